"""The query and discovery tools against public endpoints, each within a minute, none in error."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

import pytest

from reasoningbank.refs import Ref
from reasoningbank.tools import EndpointTools, SPARQLTools
from reasoningbank.tools.returns import MAX_CHARS

from .public import PublicEndpoint, endpoints

pytestmark = pytest.mark.live

#: Seconds one call of an exploring tool may take; its own limit is 20 s and retries.
CALL_S = 45.0


@pytest.fixture(scope="module", params=endpoints(), ids=lambda e: e.name)
def public(request: pytest.FixtureRequest) -> PublicEndpoint:
    """A public endpoint that can be reached."""
    found: PublicEndpoint = request.param
    reason = found.unreachable()
    if reason:
        pytest.skip(reason)
    return found


@pytest.fixture(scope="module")
def tools(public: PublicEndpoint) -> Iterator[SPARQLTools]:
    made = SPARQLTools(public.config())
    yield made
    made.close()


@pytest.fixture(autouse=True)
def _in_time() -> Iterator[None]:
    began = time.monotonic()
    yield
    assert time.monotonic() - began < CALL_S


def _bounded(value: dict[str, object]) -> None:
    assert len(json.dumps(value)) < MAX_CHARS + 3_000
    assert value["source"]
    assert "truncated" in value


def test_query_stats_peek_slice(tools: SPARQLTools, public: PublicEndpoint) -> None:
    ref = tools.sparql_query(f"SELECT ?s WHERE {{ ?s a <{public.class_uri}> }}", limit=30)
    assert isinstance(ref, Ref)
    assert tools.sparql_stats(ref)["rows"] == ref.rows > 5
    assert len(tools.sparql_peek(ref, 3)) == 3
    assert len(tools.sparql_slice(ref, 1, 4)) == 3
    assert str(tools.sparql_peek(ref, 1, full=True)[0]["s"]).startswith("<http")


def test_ask_and_construct(tools: SPARQLTools, public: PublicEndpoint) -> None:
    ask = tools.sparql_query(f"ASK {{ <{public.resource}> ?p ?o }}")
    assert tools.sparql_peek(ask) == [{"boolean": True}]
    pattern = f"<{public.resource}> ?p ?o"
    graph = tools.sparql_query(f"CONSTRUCT {{ {pattern} }} WHERE {{ {pattern} }} LIMIT 5")
    assert graph.dtype == "graph"
    assert 0 < graph.rows <= 5


def test_classes(tools: SPARQLTools) -> None:
    found = tools.sparql_classes()
    _bounded(found)
    assert found["classes"]
    assert found["via"]


def test_properties(tools: SPARQLTools, public: PublicEndpoint) -> None:
    found = tools.sparql_properties()
    _bounded(found)
    assert found["properties"]
    of_class = tools.sparql_properties(class_uri=public.class_uri)
    assert of_class["properties"]


def test_describe(tools: SPARQLTools, public: PublicEndpoint) -> None:
    found = tools.sparql_describe(public.resource)
    _bounded(found)
    assert found["triples"]


def test_find(tools: SPARQLTools, public: PublicEndpoint) -> None:
    found = tools.sparql_find(public.label)
    _bounded(found)
    assert public.label.lower() in str(found["results"][0]["label"]).lower()
    assert found["via"]


def test_sample(tools: SPARQLTools, public: PublicEndpoint) -> None:
    found = tools.sparql_sample(public.class_uri)
    _bounded(found)
    assert found["count"] == 10
    assert found["example"]


def test_count(tools: SPARQLTools, public: PublicEndpoint) -> None:
    query = f"SELECT (COUNT(*) AS ?n) WHERE {{ ?s a <{public.class_uri}> }}"
    assert tools.sparql_count(query)["count"] > 5


def test_endpoint_info(tools: SPARQLTools, public: PublicEndpoint) -> None:
    assert tools.endpoint_info()["url"] == public.url


def test_a_misspelt_name_is_noticed(tools: SPARQLTools, public: PublicEndpoint) -> None:
    ref = tools.sparql_query(f"SELECT ?s WHERE {{ ?s a <{public.class_uri}Nope> }}")
    assert tools.sparql_peek(ref).note


def test_service_description(public: PublicEndpoint) -> None:
    found = EndpointTools(endpoints=[public.config()])
    ref = found.service_desc(public.url)
    assert ref.dtype == "service_desc"
    _bounded(found.service_desc_stats(ref))
    _bounded(found.service_desc_features(ref))
    _bounded(found.service_desc_graphs(ref))
    _bounded(found.service_desc_sample(ref))
