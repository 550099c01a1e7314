"""What an attempt answers with, and what ends it, where programs do more than ask."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from dspy.utils import DummyLM

from reasoningbank.agents import Attempt, Episode, make_agent
from reasoningbank.agents.algebra import agent, stage
from reasoningbank.algebra import Limits
from reasoningbank.corpus import Pack
from reasoningbank.errors import ModelError
from reasoningbank.sparql import EndpointConfig

from .programs import (
    ALL,
    BIG,
    COPY,
    ENDPOINT,
    JUTLAND,
    READ,
    WRITE,
    op,
    select,
    steps,
    tasks,
    value,
)


def test_a_query_runs_for_the_judge_as_it_ran_in_the_program(
    solve: Callable[..., Attempt], strict: Callable[..., bool]
) -> None:
    # Programs know more prefixes than the pack.
    query = BIG.replace("FILTER", "FILTER NOT EXISTS { ?town foaf:name ?other } FILTER")
    assert strict(READ, solve(READ, select(query)))


def test_a_query_of_another_endpoint_answers_with_what_it_returned(
    solve: Callable[..., Attempt],
) -> None:
    query = "SELECT ?title WHERE { ?document dct:title ?title }"
    attempt = solve(READ, op("SELECT", endpoint="http://docs.example/sparql", query=query))
    assert attempt.sparql is not None
    assert '("Old")' in attempt.sparql


def test_the_results_of_several_operations_are_answers_each(
    solve: Callable[..., Attempt], strict: Callable[..., bool]
) -> None:
    rows = op("Variable", name="rows", value=select(BIG))
    names = op("ForEach", select=value("$rows"), operation=value("name"))
    assert strict(READ, solve(READ, [rows, names]))
    asked = op("ASK", endpoint=ENDPOINT, query="ASK { ?town p:name ?name }")
    truth = solve(READ, [op("Variable", name="unused", value="x"), asked])
    assert truth.sparql == "ASK {}"


def test_limits_of_a_program_are_told_to_its_author(
    solve: Callable[..., Attempt], strict: Callable[..., bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stage, "LIMITS", Limits(requests=2))
    asked = op("ASK", endpoint=ENDPOINT, query="ASK { ?town p:name ?name }")
    attempt = solve(READ, op("ForEach", select=select(ALL), operation=asked), select(BIG))
    assert attempt.status == "submitted"
    assert strict(READ, attempt)
    assert "2 requests are used up" in steps(attempt, "run")[0]["problems"][0]


def test_questions_inside_a_program_are_counted(
    towns: Pack, served: EndpointConfig, episode: Callable[..., Episode]
) -> None:
    asked = op("SPARQLString", question=value("name"))
    program = op("ForEach", select=select(ALL), operation=select(asked))
    model = DummyLM([{"program": json.dumps(program)}, *[{"sparql": BIG}] * 9])
    given = episode(endpoint=served, pack=towns, lm=model, lm_calls=3)
    attempt = make_agent("algebra").solve(tasks(towns)[READ].blind(), given)
    assert (attempt.status, attempt.usage.lm_calls) == ("exhausted", 3)
    assert attempt.budget == "lm_calls"


def test_a_model_that_is_gone_inside_a_program_ends_the_attempt(
    solve: Callable[..., Attempt], monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(*_: Any) -> str:
        raise ModelError("the server hung up")

    monkeypatch.setattr(agent, "written_query", gone)
    with pytest.raises(ModelError, match="hung up"):
        solve(READ, select(op("SPARQLString", question="towns of Jutland")), select(BIG))


def test_replies_nested_too_deeply_are_told(solve: Callable[..., Attempt]) -> None:
    deep = '{"@op": "Str", "args": {"input": ' * 450 + '"x"' + "}}" * 450
    attempt = solve(READ, deep, select(BIG))
    assert attempt.status == "submitted"
    assert "nested more than 64 deep" in steps(attempt, "write")[0]["problems"][0]


def test_nothing_is_written_elsewhere(solve: Callable[..., Attempt]) -> None:
    data = {"@id": "http://towns.example/id/Ribe", "dct:title": "mine"}
    attempt = solve(WRITE, op("PUT", url="http://towns.example/id/Ribe", data=data), max_repairs=0)
    assert "may not be written" in attempt.error
    assert attempt.sparql is None


def test_a_question_inside_a_program_is_asked_once(
    solve: Callable[..., Attempt], strict: Callable[..., bool]
) -> None:
    asked = op("SPARQLString", question="towns of Jutland")
    program = json.loads(json.dumps(COPY))
    program["args"]["select"]["args"]["query"] = asked
    attempt = solve(WRITE, program, JUTLAND)
    assert strict(WRITE, attempt)
    # The plan and the run share the query.
    calls = attempt.trajectory.of("lm_call")
    assert len(calls) == 2
    messages = attempt.trajectory.resolve(calls[1].data)["messages"]
    assert "Name the columns ?name, ?town" in messages[-1]["content"]
