"""Every command of the README runs, in the order in which it is written."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
COMMANDS = [
    line.removeprefix("$ ").partition("  #")[0].strip()
    for block in re.findall(r"```console\n(.*?)```", README, re.DOTALL)
    for line in block.splitlines()
    if line.startswith("$ ")
]
#: Commands that no test can run, and why.
LEFT_OUT = {
    "make demo": "installs anew; its parts are among the other commands",
    "make test": "runs this test",
    "reasoningbank run experiments/uniprot_demo.toml": "the demo takes ten minutes",
    "reasoningbank report runs/uniprot_demo": "reports the demo; another run is reported below it",
    "reasoningbank serve --open": "serves until it is stopped; tests/web does that",
    "source .venv/bin/activate": "the tests run in the environment already",
}
#: What shows that a command needs the local model: the agents ask it, `doctor` looks for it.
WITH_MODEL = re.compile(r"reasoningbank (demo|ask|doctor|algebra ask|run |report runs/)|nl2sparql ")
#: Commands that need a key: without one they say so in one line.
WITH_KEY = re.compile(r"--lm openai/")


def commands(*, model: bool) -> list[str]:
    chosen = [c for c in COMMANDS if c not in LEFT_OUT and not WITH_KEY.search(c)]
    return [c for c in chosen if bool(WITH_MODEL.search(c)) is model]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder that holds what the commands read of the repository."""
    (tmp_path / "experiments").symlink_to(ROOT / "experiments")
    return tmp_path


def run(command: str, folder: Path, seconds: float) -> subprocess.CompletedProcess[str]:
    """Run a command as a shell does, in the environment of the tests and without keys."""
    environment = {k: v for k, v in os.environ.items() if not k.endswith("_API_KEY")}
    environment["PATH"] = f"{Path(sys.executable).parent}:{environment['PATH']}"
    environment["PYTHONPATH"] = str(ROOT)
    return subprocess.run(
        ["bash", "-c", command], cwd=folder, env=environment, stdin=subprocess.DEVNULL,
        capture_output=True, text=True, timeout=seconds, check=False,
    )  # fmt: skip


def check(command: str, folder: Path, seconds: float) -> None:
    done = run(command, folder, seconds)
    assert done.returncode == 0, f"{command}\n{done.stderr[-2000:]}"
    assert "Traceback" not in done.stderr
    # A server of MCP ends when its input does, and says nothing before it is asked.
    assert (done.stdout + done.stderr).strip() or " mcp " in command


def test_what_is_left_out_is_in_the_readme() -> None:
    assert set(LEFT_OUT) <= set(COMMANDS)
    assert len(COMMANDS) == len(set(COMMANDS)) > len(LEFT_OUT) + 10


@pytest.mark.timeout(1200)
def test_the_commands_without_a_model(folder: Path) -> None:
    for command in commands(model=False):
        check(command, folder, 300)
    for file in (shlex.split(c)[-1] for c in commands(model=False) if "--out" in c):
        assert (folder / file).stat().st_size > 100_000


@pytest.mark.model
@pytest.mark.timeout(3600)
def test_the_commands_with_the_model(folder: Path) -> None:
    for command in commands(model=True):
        check(command, folder, 1800)


def test_the_commands_with_a_key_name_it(folder: Path) -> None:
    for command in filter(WITH_KEY.search, COMMANDS):
        done = run(command, folder, 300)
        assert done.returncode == 1
        assert "OPENAI_API_KEY" in done.stderr.splitlines()[-1]
