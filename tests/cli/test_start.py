"""The command line starts without what only some commands need."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from collections.abc import Callable

import pytest
import typer

from reasoningbank import __version__
from reasoningbank.cli.app import COMMANDS, app, load_command

from .conftest import Said

#: Packages that take long to load.
HEAVY = {"dspy", "litellm", "openai", "pandas", "numpy", "pyarrow", "rdflib", "scipy", "matplotlib",
         "pyoxigraph", "httpx", "pydantic", "rich", "langgraph", "huggingface_hub"}  # fmt: skip


def modules_loaded_by(*arguments: str) -> set[str]:
    code = (
        "import atexit, sys; from reasoningbank.cli import main; "
        "atexit.register(lambda: print(*sys.modules, file=sys.stderr)); main()"
    )
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    return set(done.stderr.split())


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_help_and_version_load_no_heavy_package_and_no_command(option: str) -> None:
    loaded = modules_loaded_by(option)
    assert "reasoningbank.cli.app" in loaded
    assert {name.partition(".")[0] for name in loaded} & HEAVY == set()
    assert {name for name in loaded if name.startswith("reasoningbank.")} == {
        "reasoningbank.cli", "reasoningbank.cli.app", "reasoningbank.errors",
        "reasoningbank.findings", "reasoningbank.version",
    }  # fmt: skip


@pytest.mark.parametrize("name", COMMANDS)
def test_the_line_of_a_command_is_that_of_its_help(name: str) -> None:
    listed = typer.main.get_command(app).commands[name]
    assert listed.get_short_help_str(200) == load_command(name).get_short_help_str(200)
    assert COMMANDS[name][1] in " ".join(load_command(name).help.split())


def test_version(cli: Callable[..., Said]) -> None:
    assert cli("--version") == Said(0, f"reasoningbank {__version__}\n", "")


def test_an_unknown_command_names_the_nearest(cli: Callable[..., Said]) -> None:
    said = cli("reprot")
    assert (said.status, said.out) == (2, "")
    assert "'report'" in said.err


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_completes_commands_of_groups(shell: str) -> None:
    environment = os.environ | {
        "_REASONINGBANK_COMPLETE": f"complete_{shell}",
        "COMP_WORDS": "reasoningbank tasks va",
        "COMP_CWORD": "2",
        "_TYPER_COMPLETE_ARGS": "reasoningbank tasks va",
        "_TYPER_COMPLETE_FISH_ACTION": "get-args",
    }
    code = "import sys; sys.argv = ['reasoningbank']; from reasoningbank.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True,
                          text=True, timeout=120, check=False)  # fmt: skip
    assert "validate" in done.stdout
    assert "sample" not in done.stdout


@pytest.mark.parametrize(("no_color", "coloured"), [("", True), ("1", False)])
@pytest.mark.parametrize("arguments", [["--help"], ["tasks", "--help"], ["lm", "pull", "--help"]])
def test_help_has_colours_on_a_terminal(
    arguments: list[str], no_color: str, coloured: bool
) -> None:
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "reasoningbank", *arguments]
    environment = os.environ | {"NO_COLOR": no_color}
    subprocess.run(command, stdout=theirs, env=environment, timeout=120, check=True)
    os.close(theirs)
    said = os.read(ours, 65536).decode()
    os.close(ours)
    assert ("\x1b[36m--help\x1b[0m" in said) is coloured
    assert ("\x1b[1mOptions:\x1b[0m" in said) is coloured
    assert "--help" in said
