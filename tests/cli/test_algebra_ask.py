"""`algebra ask`, and `run` with a model: the model is scripted (`DummyLM`), the web is real."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from towns import write_towns

from reasoningbank.cli import algebra
from reasoningbank.ldp import LDPServer

from .conftest import Said, scripting

ENDPOINT = "https://towns.example/sparql"
JUTLAND = "SELECT ?town ?name WHERE { ?town p:region t:Jutland ; p:name ?name }"
READING = {"@op": "SELECT", "args": {"endpoint": ENDPOINT, "query": JUTLAND}}
WRITING = {
    "@op": "ForEach",
    "args": {
        "select": READING,
        "operation": {
            "@op": "PUT",
            "args": {
                "url": {
                    "@op": "ResolveURI",
                    "args": {
                        "base": "http://docs.example/",
                        "relative": {"@op": "Value", "args": {"name": "name"}},
                    },
                },
                "data": {"@op": "GET", "args": {"url": {"@op": "Value", "args": {"name": "town"}}}},
            },
        },
    },
}

Cli = Callable[..., Said]


@pytest.fixture
def replies(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    scripted = scripting(monkeypatch, algebra, anew=True)

    def script(*written: Any) -> None:
        texts = [one if isinstance(one, str) else json.dumps(one) for one in written]
        scripted(*({"program": text} for text in texts))

    return script


@pytest.fixture
def pack(tmp_path: Path) -> Path:
    return write_towns(tmp_path / "towns").root


@pytest.fixture
def home() -> Iterator[LDPServer]:
    with LDPServer("http://docs.example/") as server:
        yield server


def writable(server: LDPServer) -> tuple[str, ...]:
    real = f"http://docs.example/={server.address}"
    return ("--allow-write", "http://docs.example/", "--address", real)


def test_a_program_is_written_shown_and_run(
    cli: Cli, replies: Any, pack: Path, tmp_path: Path
) -> None:
    replies("Sure!", READING)
    kept = tmp_path / "program.json"
    said = cli("algebra", "ask", "Which towns lie in Jutland?", "--pack", pack, "--save", kept)
    assert said.status == 0, said.err
    rows = json.loads(said.out)["results"]["bindings"]
    assert sorted(row["name"]["value"] for row in rows) == ["Aarhus", "Ribe"]
    assert "invalid: line 1, column 1" in said.err
    assert '"@op": "SELECT"' in said.err
    assert "2 calls" in said.err
    # The program stands alone: it runs again without the model.
    assert cli("algebra", "run", kept, "--pack", pack).out == said.out


def test_what_would_be_written_is_shown_and_agreed_to_first(
    cli: Cli, replies: Any, pack: Path, home: LDPServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    replies(WRITING)
    ask = ("algebra", "ask", "Write a document about each.", "--pack", pack, *writable(home))
    said = cli(*ask)
    assert (said.status, said.out) == (1, "")
    assert "would PUT http://docs.example/Ribe" in said.err
    assert said.code == "no-terminal"
    assert home.documents.written() == {}

    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    monkeypatch.setattr("typer.confirm", lambda *_, **__: False)
    said = cli(*ask)
    assert (said.status, home.documents.written()) == (1, {})
    assert "nothing was written" in said.err

    monkeypatch.setattr("typer.confirm", lambda *_, **__: True)
    said = cli(*ask)
    assert said.status == 0, said.err
    assert sorted(home.documents.written()) == [
        "http://docs.example/Aarhus",
        "http://docs.example/Ribe",
    ]
    assert len(json.loads(said.out)) == 2


def test_yes_and_dry_run(cli: Cli, replies: Any, pack: Path, home: LDPServer) -> None:
    replies(WRITING)
    ask = ("algebra", "ask", "Write.", "--pack", pack, *writable(home))
    said = cli(*ask, "--dry-run")
    assert (said.status, home.documents.written()) == (0, {})
    assert len(json.loads(said.out)["writes"]) == 2
    assert cli(*ask, "--yes").status == 0
    assert len(home.documents.written()) == 2


def test_nothing_is_written_where_it_is_not_allowed(cli: Cli, replies: Any, pack: Path) -> None:
    replies(WRITING)
    said = cli("algebra", "ask", "Write.", "--pack", pack, "--yes")
    assert (said.status, said.out) == (1, "")
    assert said.code == "write-not-allowed"
    assert "http://docs.example/" in said.err.strip().splitlines()[-1]


def test_a_model_that_writes_no_program_is_reported(cli: Cli, replies: Any, pack: Path) -> None:
    replies("I cannot.", "I cannot.")
    said = cli("algebra", "ask", "Dance!", "--pack", pack, "--repairs", "1")
    assert (said.status, said.out) == (1, "")
    assert said.code == "no-program"
    assert cli("algebra", "ask", " ", "--pack", pack).status == 1


def test_a_wrong_program_that_is_nested_too_deeply_is_shown_as_it_came(
    cli: Cli, replies: Any, pack: Path
) -> None:
    replies('{"@op": "Str", "args": {"input": ' * 450 + '"x"' + "}}" * 450)
    said = cli("algebra", "ask", "Dive.", "--pack", pack, "--repairs", "0")
    assert (said.status, said.out) == (1, "")
    assert "nested more than 64 deep" in said.err.strip().splitlines()[-1]


def test_a_file_that_cannot_be_written_is_reported_before_a_model_is_opened(
    cli: Cli, replies: Any, pack: Path, tmp_path: Path
) -> None:
    replies(READING)
    ask = ("algebra", "ask", "Which?", "--pack", pack)
    said = cli(*ask, "--save", tmp_path / "no" / "x.json")
    assert (said.status, said.out) == (1, "")
    assert said.code == "no-folder"
    assert "opening" not in said.err
    said = cli(*ask, "--save", tmp_path)
    assert said.code == "cannot-write"
    (tmp_path / "journal").write_text("x")
    said = cli(*ask, "--journal", tmp_path / "journal")
    assert said.code == "journal-exists"
    assert "opening" not in said.err


def test_the_saved_program_goes_on_with_the_journal(
    cli: Cli, replies: Any, pack: Path, home: LDPServer, tmp_path: Path
) -> None:
    replies(WRITING)
    kept, journal = tmp_path / "program.json", tmp_path / "writes.journal"
    may = ("--allow-write", "http://docs.example/")
    # Nobody listens there yet.
    dead = ("--address", "http://docs.example/=http://127.0.0.1:9/")
    ask = ("algebra", "ask", "Write.", "--pack", pack, *may, *dead, "--yes", "--save", kept)
    assert cli(*ask, "--journal", journal).status == 1
    go_on = ("algebra", "run", kept, "--pack", pack, "--journal", journal, "--resume")
    said = cli(*go_on, *writable(home))
    assert said.status == 0, said.err
    assert len(home.documents.written()) == 2


def test_nobody_agrees_where_there_is_no_input(
    cli: Cli, replies: Any, pack: Path, home: LDPServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    replies(WRITING)
    monkeypatch.setattr(sys, "stdin", None)
    said = cli("algebra", "ask", "Write.", "--pack", pack, *writable(home))
    assert said.status == 1
    assert said.code == "no-terminal"


def test_run_has_the_model_write_queries(
    cli: Cli, replies: Any, pack: Path, tmp_path: Path
) -> None:
    question = {"@op": "SPARQLString", "args": {"question": "towns of Jutland"}}
    program = {"@op": "SELECT", "args": {"endpoint": ENDPOINT, "query": question}}
    file = tmp_path / "asked.json"
    file.write_text(json.dumps(program))
    replies(JUTLAND)
    said = cli("algebra", "run", file, "--pack", pack, "--lm", "local")
    assert said.status == 0, said.err
    assert len(json.loads(said.out)["results"]["bindings"]) == 2
    said = cli("algebra", "run", file, "--pack", pack)
    assert (said.status, said.out) == (1, "")
    assert "$.args.query: the run has no model" in said.err
