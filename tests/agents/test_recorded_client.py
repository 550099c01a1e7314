"""Queries of an agent's own steps: metered, recorded, and told whose fault a failure is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from reasoningbank.agents import Episode
from reasoningbank.agents.recorded_client import RecordedClient
from reasoningbank.errors import BudgetError, EndpointError, QueryError
from reasoningbank.sparql import EndpointConfig

Make = Callable[..., Episode]


def test_a_query_is_a_tool_call_with_its_result(episode: Make) -> None:
    given = episode()
    with RecordedClient(given) as client:
        client.query("SELECT ?p WHERE { ?p a t:Tree }")
    call, result = given.recorder.trajectory().events
    assert (call.kind, call.data["tool"]) == ("tool_call", "sparql_query")
    assert (result.kind, result.parent) == ("tool_result", call.index)
    assert result.data["result"] == "Ref('results_1', 'results', 3 items from Trees)"
    assert given.meter.usage().tool_calls == 1


def test_a_wrong_query_is_recorded_as_one(episode: Make) -> None:
    given = episode()
    with RecordedClient(given) as client, pytest.raises(QueryError):
        client.query("SELECT ?p WHERE {")
    result = given.recorder.trajectory().of("tool_result")[0]
    assert result.data["error"].startswith("QueryError: ")
    assert "infrastructure" not in result.data


def test_an_endpoint_that_is_gone_is_the_infrastructures_failure(
    episode: Make, trees: EndpointConfig
) -> None:
    given = episode(endpoint=replace(trees, query_url="http://127.0.0.1:9/sparql"))
    with RecordedClient(given) as client, pytest.raises(EndpointError):
        client.query("ASK { ?s ?p ?o }")
    assert given.recorder.trajectory().of("tool_result")[0].data["infrastructure"] is True


def test_beyond_the_budget_nothing_is_sent(episode: Make) -> None:
    given = episode(tool_calls=1)
    with RecordedClient(given) as client:
        client.query("ASK { ?s ?p ?o }")
        with pytest.raises(BudgetError, match="budget of 1 tool calls"):
            client.query("ASK { ?s ?p ?o }")
        assert client.spent
    assert len(given.recorder.trajectory().of("tool_call")) == 1
