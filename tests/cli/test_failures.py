"""What goes wrong is one line on standard error that names the thing and what to do."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from reasoningbank.agents.sandbox import interpreter as deno
from reasoningbank.agents.sandbox.interpreter import deno_command
from reasoningbank.errors import SetupError

from .conftest import Said

Cli = Callable[..., Said]
DEAD = "http://127.0.0.1:9/sparql"


def one_line(said: Said, *parts: str) -> None:
    """Check that a command failed as it should, naming each of the parts."""
    assert said.status == 1
    assert said.out == ""
    reported = [line for line in said.err.splitlines() if line.startswith("reasoningbank: ")]
    assert len(reported) == 1, said.err
    assert said.err.splitlines()[-1] == reported[0]
    assert "Traceback" not in said.err
    for part in parts:
        assert part in reported[0]


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (("tasks", "list", "unprot"), ("unknown pack 'unprot'", "uniprot")),
        (("tasks", "show", "t9"), ("unknown task 't9'", "tasks list")),
        (("endpoint", "classes", "--pack", "unprot"), ("unknown pack 'unprot'",)),
        (("ask", "Which?", "--pack", "unprot"), ("unknown pack 'unprot'", "uniprot")),
        (("ask", "Which?", "--agent", "rml"), ("unknown agent 'rml'", "rlm")),
        (
            ("ask", "Which?", "--agent", "oracle"),
            ("oracle", "gold query", "choose rag, rlm or react"),
        ),
        (("ask", "  "), ("question is empty",)),
        (("ask", "Which?", "--lm", "locla"), ("locla",)),
        (("ask", "Which?", "--lm", "opnai/gpt-4.1"), ("did you mean openai/gpt-4.1?",)),
        (("ask", "Which?", "--lm", "qwen-9b-local"), ("local:/path/to/model.gguf",)),
        (("mcp", "--lm", "opnai/gpt-4.1"), ("did you mean openai/gpt-4.1?",)),
        (("algebra", "ask", "Which?", "--lm", "openai/gpt-4.1"), ("OPENAI_API_KEY",)),
        (("ask", "Which?", "--lm", "openai/gpt-4.1-mini"), ("OPENAI_API_KEY",)),
        (("ask", "Which?", "--agent", "direct"), ("reasoningbank lm pull local",)),
        (("lm", "pull", "nothing"), ("nothing",)),
        (("lm", "serve", "openai/gpt-4.1-mini"), ("not a local model", "local:/path.gguf")),
        (("lm", "serve", "local:/nowhere/x.gguf"), ("/nowhere/x.gguf",)),
        (("lm", "serve"), ("reasoningbank lm pull local",)),
        (("run", "none.toml"), ("none.toml", "no such experiment file")),
        (("status", "runs/none"), ("runs/none", "manifest.json")),
        (("judge", "compare", "a.srj", "b.srj"), ("a.srj",)),
    ],
)
def test_wrong_names_are_reported(cli: Cli, words: tuple[str, ...], parts: tuple[str, ...]) -> None:
    one_line(cli(*words), *parts)


def test_a_wrong_experiment_file_is_reported(
    cli: Cli, experiment_file: Callable[..., Path], make_pack: Callable[..., Path], tmp_path: Path
) -> None:
    pack = make_pack(1)
    one_line(cli("run", experiment_file("unprot")), "unknown pack 'unprot'")
    one_line(cli("run", experiment_file(pack, "orcale")), "unknown agent 'orcale'", "oracle")
    one_line(cli("run", experiment_file(pack, "direct", "locla")), "locla")
    one_line(cli("run", experiment_file(pack, "direct")), "reasoningbank lm pull local")
    ids = experiment_file(pack, more='[tasks]\nids = ["t00"]\n')
    one_line(cli("run", ids), "unknown task 't00'", "did you mean t000?")
    one_line(cli("run", experiment_file(pack, more="seeds = x")), "small.toml", "line ")
    one_line(cli("run", experiment_file(pack, more="lms = 1")), "small.toml", "arms.one.lms")
    assert not (tmp_path / "runs").exists()


def test_a_folder_that_cannot_be_written_is_reported(
    cli: Cli, experiment_file: Callable[..., Path], make_pack: Callable[..., Path], tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("x", encoding="utf-8")
    said = cli("run", experiment_file(make_pack(1)), "--out", tmp_path / "file" / "run")
    one_line(said, "file/run", "cannot be written", "--out")


def test_the_folder_of_another_run_is_reported(
    cli: Cli, experiment_file: Callable[..., Path], make_pack: Callable[..., Path]
) -> None:
    pack = make_pack(2)
    assert cli("run", experiment_file(pack), "--out", "run").status == 0
    said = cli("run", experiment_file(pack, more="[tasks]\nsample = 1\n"), "--out", "run")
    one_line(said, "experiment file, corpus changed", "--out")


def test_a_damaged_record_is_named(
    cli: Cli, experiment_file: Callable[..., Path], make_pack: Callable[..., Path]
) -> None:
    file = experiment_file(make_pack(1))
    assert cli("run", file, "--out", "run").status == 0
    Path("run/trials/one/t000.0.json").write_text("{", encoding="utf-8")
    said = cli("status", "run")
    assert (said.status, "Traceback" in said.err) == (0, False)
    assert "run/trials/one/t000.0.json: cannot be read and is left out" in said.err
    again = cli("run", file, "--out", "run")
    assert again.status == 0
    assert "t000.0.json.damaged: could not be read and was set aside" in again.err
    assert Path("run/trials/one/t000.0.json").exists()


@pytest.mark.parametrize("command", [("query", "ASK { ?s ?p ?o }"), ("find", "oak"), ("classes",)])
def test_an_endpoint_that_is_down_is_reported(cli: Cli, command: tuple[str, ...]) -> None:
    one_line(cli("endpoint", *command, "--url", DEAD), DEAD, "Connection refused")


def test_an_endpoint_that_is_down_is_recorded_as_an_error(
    cli: Cli, experiment_file: Callable[..., Path], make_pack: Callable[..., Path]
) -> None:
    file = experiment_file(make_pack(2), more="[retries]\nbackoff_s = 0.01\n")
    text = file.read_text(encoding="utf-8")
    file.write_text(f'endpoint = "{DEAD}"\n{text}', encoding="utf-8")
    said = cli("run", file, "--json", "--limit", 1)
    assert said.status == 0
    arm = json.loads(said.out)["arms"][0]
    assert (arm["trials"], arm["judged"], arm["statuses"]) == (1, 0, {"error": 1})


@pytest.mark.parametrize("query", ["SELECT ?x WHERE {", "DROP ALL", ""])
def test_a_wrong_query_is_reported(cli: Cli, make_pack: Callable[..., Path], query: str) -> None:
    one_line(cli("endpoint", "query", query, "--pack", make_pack(1)), ";")


@pytest.fixture
def no_deno(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    def missing() -> str:
        raise SetupError("Deno is not installed", hint="pip install 'reasoningbank[sandbox]'")

    for module in ("agents.sandbox.interpreter", "cli.setup"):
        monkeypatch.setattr(f"reasoningbank.{module}.deno_executable", missing)
    deno_command.cache_clear()
    yield
    deno_command.cache_clear()


@pytest.mark.usefixtures("no_deno")
def test_a_machine_without_deno_is_reported(
    cli: Cli,
    experiment_file: Callable[..., Path],
    make_pack: Callable[..., Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    file = experiment_file(make_pack(1), "rlm", "openai/none")
    one_line(cli("run", file), "Deno is not installed", "pip install 'reasoningbank[sandbox]'")
    assert not list(Path("runs").rglob("t000*"))


@pytest.mark.usefixtures("no_deno")
def test_doctor_lists_what_is_missing_with_a_hint(cli: Cli) -> None:
    said = cli("doctor", "--json")
    assert said.status == 1
    checks = {check["part"]: check for check in json.loads(said.out)}
    assert not checks["Deno"]["ok"]
    assert "pip install" in checks["Deno"]["hint"]
    assert not checks["model weights"]["ok"]
    assert "lm pull local" in checks["model weights"]["hint"]
    assert checks["Python"]["ok"]
    assert checks["embedded endpoint"]["ok"]


@pytest.fixture
def slow_deno(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A Deno that does nothing for half a minute, and a sandbox that waits for half a second."""
    slow = tmp_path / "deno"
    slow.write_text("#!/bin/sh\nexec sleep 30\n")
    slow.chmod(0o755)
    monkeypatch.setenv("DENO_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(deno, "deno_executable", lambda: str(slow))
    monkeypatch.setattr(deno, "deno_command", lambda: (str(slow),))
    monkeypatch.setattr(deno, "_START_S", 0.5)
    monkeypatch.setattr(deno, "_FETCH_S", 0.5)


@pytest.mark.usefixtures("slow_deno")
def test_a_sandbox_that_hangs_is_reported_by_doctor(cli: Cli) -> None:
    said = cli("doctor", "--json")
    checks = {check["part"]: check for check in json.loads(said.out)}
    assert (said.status, checks["Pyodide"]["ok"]) == (1, False)
    assert checks["Pyodide"]["found"] == "the Python sandbox did not start within 0.5 s"
    assert checks["embedded endpoint"]["ok"], "and the other parts are looked at"


@pytest.mark.usefixtures("slow_deno")
def test_a_download_of_pyodide_that_hangs_is_reported() -> None:
    with pytest.raises(SetupError, match=r"Pyodide was not fetched within 0\.5 s; check the net"):
        deno.fetch_pyodide()


def test_a_port_in_use_is_reported_by_the_installed_program(make_pack: Callable[..., Path]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        command = [sys.executable, "-m", "reasoningbank", "endpoint", "serve"]
        done = subprocess.run(
            [*command, str(make_pack(1)), "--port", port],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
            env=dict(os.environ),
        )
    one_line(Said(done.returncode, done.stdout, done.stderr), f"port {port} is in use", "another")


@pytest.mark.parametrize(
    "words", [("run",), ("nothing",), ("run", "x.toml", "--limit", "0"), ("tasks", "list", "--x")]
)
def test_bad_usage_has_a_status_of_its_own(cli: Cli, words: tuple[str, ...]) -> None:
    said = cli(*words)
    assert said.status == 2
    assert said.out == ""
    assert "Usage:" in said.err
