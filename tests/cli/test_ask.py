"""`reasoningbank ask`, with a scripted model (`DummyLM`) over a small pack's real endpoint."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from dspy.utils import DummyLM
from forest import write_forest
from rich.console import Console

from reasoningbank.cli.ask import step_printer
from reasoningbank.cli.output import print_query
from reasoningbank.corpus import Pack
from reasoningbank.experiment import ask as command
from reasoningbank.memory import MemoryItem, Snapshot
from reasoningbank.trajectory import Recorder

from .conftest import Said, scripting

QUESTION = "Which plants near the pine are trees, and how tall are they?"
QUERY = "SELECT ?plant ?metres WHERE { ?plant a t:Tree ; t:height ?metres }"
EMPTY = "SELECT ?plant WHERE { ?plant a t:Moss ; t:near ?other }"
ANALYSIS = {"patterns": '["KIND"]', "complexity": "simple", "dialects": "[]", "unclear": "none"}
SOUND = ({"sparql": QUERY}, {"valid": "True", "issues": "[]"})

Cli = Callable[..., Said]


@pytest.fixture(scope="module")
def forest(tmp_path_factory: pytest.TempPathFactory, trees_file: Path) -> Pack:
    return write_forest(tmp_path_factory.mktemp("ask") / "trees", trees_file.read_text("utf-8"))


@pytest.fixture
def replies(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    return scripting(monkeypatch, command)


def asked(cli: Cli, forest: Pack, agent: str, *more: str) -> Said:
    said = cli("ask", QUESTION, "--pack", forest.root, "--agent", agent, *more)
    assert said.status == 0, said.err
    return said


def named(said: Said) -> list[str]:
    return re.findall(r"^\[([a-z]+(?: \d+)?)\]", said.err, re.MULTILINE)


def test_the_pipeline_shows_its_steps_as_they_complete(
    cli: Cli, replies: Any, forest: Pack
) -> None:
    replies({"sparql": EMPTY}, {"sparql": QUERY})
    said = asked(cli, forest, "rag", "--stream")
    assert named(said) == [
        "detect", "retrieve", "constrain", "synthesise", "validate", "fix", "validate", "output",
    ]  # fmt: skip
    assert "[validate] 0 rows; " in said.err
    assert EMPTY in said.err
    assert "\x1b" not in said.err + said.out
    # The answer alone is on standard output, the query as it was written.
    assert said.out.splitlines()[:2] == ["3 results: t:ash, t:pine, t:oak.", QUERY]
    assert "[validate]" not in said.out
    assert "t:oak\t31" in said.out
    assert "It needs KIND, HEIGHT, NEAR. Fixed after the examples" in said.out
    assert "confidence" not in said.out


def test_the_graph_shows_its_nodes(cli: Cli, replies: Any, forest: Pack) -> None:
    replies(ANALYSIS, {"sparql": EMPTY}, *SOUND)
    said = asked(cli, forest, "graph", "--stream")
    assert named(said) == [
        "analyze", "plan", "retrieve", "write", "execute", "verify", "explore",
        "write", "execute", "verify", "output",
    ]  # fmt: skip
    assert said.out.splitlines()[:2] == ["3 results: t:ash, t:pine, t:oak.", QUERY]
    assert "confidence" not in said.out


@pytest.mark.sandbox
def test_turns_of_code_are_shown_with_their_output(cli: Cli, replies: Any, forest: Pack) -> None:
    code = f"ref = sparql_query({QUERY!r})\nprint(sparql_peek(ref, 3))"
    turns = (code, f"SUBMIT({QUERY!r})")
    replies(*({"reasoning": "next", "code": f"```python\n{one}\n```"} for one in turns))
    said = asked(cli, forest, "rlm", "--stream")
    assert named(said) == ["turn 1", "turn 2"]
    assert code in said.err
    assert "t:oak" in said.err
    assert said.out.splitlines()[:2] == ["3 results: t:ash, t:pine, t:oak.", QUERY]
    # It does not say how sure it is.
    assert "confidence" not in said.out


def test_without_the_option_no_step_is_shown(cli: Cli, replies: Any, forest: Pack) -> None:
    replies({"sparql": QUERY})
    said = asked(cli, forest, "rag")
    assert named(said) == []
    assert said.out.splitlines()[:2] == ["3 results: t:ash, t:pine, t:oak.", QUERY]
    assert "confidence" not in said.out


@pytest.mark.parametrize(("lm", "price"), [("local", "free"), ("ollama/nobodys", "no known price")])
def test_an_unknown_price_is_not_a_price(
    cli: Cli, replies: Any, forest: Pack, lm: str, price: str
) -> None:
    replies({"sparql": QUERY})
    assert asked(cli, forest, "rag", "--lm", lm).out.splitlines()[-1].endswith(f" · {price}")


@pytest.mark.parametrize("agent", ["rag", "direct"])
def test_json_is_alone_on_standard_output(cli: Cli, replies: Any, forest: Pack, agent: str) -> None:
    replies({"sparql": QUERY})
    said = asked(cli, forest, agent, "--stream", "--json")
    found = json.loads(said.out)
    assert found["answer"] == "3 results: t:ash, t:pine, t:oak."
    assert (found["sparql"], len(found["rows"])) == (QUERY, 3)
    assert (found["confidence"], found["calibrated"]) == (None, False if agent == "rag" else None)
    assert bool(named(said)) == (agent == "rag")


def test_no_query_is_a_failure_as_json_too(cli: Cli, replies: Any, forest: Pack) -> None:
    replies(*[{"sparql": "Nobody knows."}] * 4)
    said = cli("ask", "Which trees?", "--pack", forest.root, "--agent", "direct", "--json")
    assert json.loads(said.out)["sparql"] is None
    assert (said.status, said.code) == (1, "no-query")


def test_on_a_terminal_queries_are_highlighted() -> None:
    screen = io.StringIO()
    terminal = Console(file=screen, force_terminal=True, color_system="256", width=90)
    print_query(QUERY, terminal)
    assert "\x1b[" in screen.getvalue()
    piped = io.StringIO()
    long = f"SELECT ?x WHERE {{ ?x a <http://example.org/{'a' * 200}> }}  # :smile: [bold]"
    print_query(long, Console(file=piped, width=40))
    assert piped.getvalue() == long + "\n"


def test_calls_of_tools_are_shown_with_what_they_returned() -> None:
    screen = io.StringIO()
    recorder = Recorder(redact=["s3cret"], watch=step_printer(Console(file=screen)))
    call = recorder.add("tool_call", {"tool": "sparql_find", "arguments": {"text": "s3cret"}})
    recorder.add("tool_result", {"result": "long " * 1_000}, parent=call)
    recorder.add("error", {"error": "the reply could not be parsed"})
    lines = screen.getvalue().splitlines()
    assert lines[0] == "[turn 1] sparql_find(text='[redacted]')"
    # A payload that is stored apart is shown all the same, up to what an agent sees.
    assert lines[1].startswith("long long")
    assert len(lines[1]) < 1_600
    assert lines[2] == "[error] the reply could not be parsed"


def test_items_of_a_bank_are_shown_to_the_agent(
    cli: Cli, replies: Any, forest: Pack, tmp_path: Path
) -> None:
    reported = MemoryItem(
        "Height is in metres", "Questions for how tall trees are", "Ask t:height.", "seed"
    )
    bank = tmp_path / "bank.jsonl"
    bank.write_bytes(Snapshot.of([reported]).lines())
    model = DummyLM([{"sparql": QUERY}])
    replies(model=model)
    said = asked(cli, forest, "rag", "--stream", "--memory", bank)
    assert named(said)[0] == "memory"
    assert "[memory] Height is in metres\n" in said.err
    assert "Ask t:height." in str(model.history[0]["messages"])
    replies({"sparql": QUERY})
    found = json.loads(asked(cli, forest, "rag", "--json", "--memory", bank).out)
    assert found["memory"] == [reported.id]
    replies({"sparql": QUERY})
    assert json.loads(asked(cli, forest, "rag", "--json").out)["memory"] == []


@pytest.mark.parametrize(("written", "reason"), [(None, "no such bank"), ("{", "is not JSON")])
def test_a_file_that_is_not_a_bank_is_refused_before_a_model_is_opened(
    cli: Cli, forest: Pack, tmp_path: Path, written: str | None, reason: str
) -> None:
    bank = tmp_path / "bank.jsonl"
    if written:
        bank.write_text(written)
    said = cli("ask", QUESTION, "--pack", forest.root, "--memory", bank)
    assert said.status != 0
    assert "opening" not in said.err
    assert (said.err.count("\n"), str(bank) in said.err) == (1, True)
    assert reason in said.err
