"""Budgets end what they count and nothing else; queries of an agent's own steps count too."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import asdict, replace

import pytest

from reasoningbank.agents import Budget, Episode, Meter
from reasoningbank.agents.calling import RecordedClient
from reasoningbank.errors import BudgetError, EndpointError, QueryError, ToolError
from reasoningbank.refs import Ref
from reasoningbank.sparql import EndpointConfig
from reasoningbank.trajectory import Usage

Make = Callable[..., Episode]


@pytest.mark.parametrize(
    ("budget", "used", "code", "named"),
    [
        (Budget(lm_calls=2), Usage(lm_calls=1, cached_calls=1), "budget", "lm_calls"),
        (Budget(tokens=100), Usage(prompt_tokens=90, completion_tokens=10), "budget", "tokens"),
        (Budget(dollars=0.5), Usage(dollars=0.5), "budget", "dollars"),
        (Budget(dollars=0.5), Usage(lm_calls=1), "unknown-price", "dollars"),
    ],
)
def test_a_used_up_budget_ends_the_next_turn(
    budget: Budget, used: Usage, code: str, named: str
) -> None:
    with pytest.raises(BudgetError) as caught:
        Meter(budget, lambda: used).turn()
    assert caught.value.code == code
    assert caught.value.fields == {"budget": named, "limit": getattr(budget, named)}


def test_a_budget_not_used_up_ends_nothing() -> None:
    meter = Meter(Budget(lm_calls=2, tokens=100), lambda: Usage(lm_calls=1, prompt_tokens=99))
    meter.turn()
    meter.turn()
    assert meter.usage().iterations == 2


def test_tools_keep_their_signature_and_are_counted_in_all_and_each() -> None:
    def look(ref: str, n: int = 5) -> str:
        """Look."""
        return ref * n

    meter = Meter(Budget(tool_calls=3, tool_calls_each=2))
    tools = meter.metered({"look": look, "find": look})
    assert inspect.signature(tools["look"]) == inspect.signature(look)
    assert tools["look"]("a", n=2) == "aa"
    tools["look"]("a")
    with pytest.raises(ToolError, match="the budget of 2 calls of look is used up") as caught:
        tools["look"]("a")
    assert caught.value.fields == {"budget": "tool_calls_each", "limit": 2, "tool": "look"}
    tools["find"]("a")
    with pytest.raises(ToolError) as caught:
        tools["find"]("a")
    assert caught.value.fields == {"budget": "tool_calls", "limit": 3}
    assert meter.usage().tool_calls == 3


def test_a_query_is_recorded_as_a_tool_call_with_its_handle(episode: Make) -> None:
    given = episode()
    with RecordedClient(given) as client:
        client.query("SELECT ?p WHERE { ?p a t:Tree }")
    call, result = given.recorder.trajectory().events
    assert (call.kind, call.data["tool"]) == ("tool_call", "sparql_query")
    assert (result.kind, result.parent) == ("tool_result", call.index)
    ref = Ref("results_1", "results", 3, 0, "Trees")
    assert result.data == {"result": repr(ref), "ref": asdict(ref)}
    assert given.meter.usage().tool_calls == 1


def test_a_failed_query_is_recorded_with_its_code(episode: Make, trees: EndpointConfig) -> None:
    given = episode()
    with RecordedClient(given) as client, pytest.raises(QueryError) as caught:
        client.query("SELECT ?p WHERE {")
    result = given.recorder.trajectory().of("tool_result")[0]
    assert result.data["code"] == caught.value.code
    assert "infrastructure" not in result.data
    given = episode(endpoint=replace(trees, query_url="http://127.0.0.1:9/sparql"))
    with RecordedClient(given) as client, pytest.raises(EndpointError):
        client.query("ASK { ?s ?p ?o }")
    assert given.recorder.trajectory().of("tool_result")[0].data["infrastructure"] is True


def test_beyond_the_budget_nothing_is_sent(episode: Make) -> None:
    given = episode(tool_calls=1)
    with RecordedClient(given) as client:
        client.query("ASK { ?s ?p ?o }")
        with pytest.raises(BudgetError) as caught:
            client.query("ASK { ?s ?p ?o }")
        assert client.exhausted is caught.value
    assert caught.value.fields["budget"] == "tool_calls"
    assert len(given.recorder.trajectory().of("tool_call")) == 1
