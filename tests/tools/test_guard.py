"""The tools on endpoints that refuse whatever could make them look at everything."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from reasoningbank.errors import ToolError
from reasoningbank.schema import EndpointProfile
from reasoningbank.sparql import EndpointConfig
from reasoningbank.tools import SPARQLTools

from .guard import Costly, Guard, check, guarded

LABEL = "<http://www.w3.org/2000/01/rdf-schema#label>"


@pytest.mark.parametrize(
    "query",
    [
        "SELECT ?s { ?s ?p ?o }",
        "SELECT ?s { ?s ?p ?o } LIMIT 1000000",
        "SELECT DISTINCT ?c { ?s a ?c } LIMIT 10",
        "SELECT ?c (COUNT(*) AS ?n) { ?s a ?c } GROUP BY ?c LIMIT 10",
        "SELECT (COUNT(*) AS ?n) { ?s a <http://e/C> }",
        "SELECT ?p (COUNT(*) AS ?n) { ?s ?p <http://e/x> } GROUP BY ?p",
        f"SELECT ?s {{ ?s {LABEL} ?l FILTER(CONTAINS(?l, 'x')) }} LIMIT 10",
        f"SELECT ?s {{ ?s {LABEL} ?l }} ORDER BY ?l LIMIT 10",
        "SELECT ?u { VALUES ?p { <http://e/l> } ?u ?p ?l FILTER(CONTAINS(?l, 'x')) } LIMIT 9",
        "SELECT ?x { { ?x a ?c } UNION { <http://e/a> <http://e/b> ?x } FILTER(?x != 1) } LIMIT 5",
        "CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o }",
    ],
)
def test_the_guard_refuses_scans(query: str) -> None:
    with pytest.raises(Costly):
        check(query)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT ?s { ?s ?p ?o } LIMIT 10",
        "SELECT ?c (COUNT(*) AS ?n) { { SELECT ?c { ?s a ?c } LIMIT 5 } } GROUP BY ?c ORDER BY ?n",
        "SELECT ?p { <http://e/x> ?p ?o } ORDER BY ?p",
        "ASK { ?s ?p <http://e/x> }",
        f'SELECT ?s {{ VALUES ?l {{ "a" "A" }} ?s {LABEL} ?l }} ORDER BY ?s',
        "SELECT ?n (SUM(?e) AS ?c) { ?x <http://rdfs.org/ns/void#entities> ?e } GROUP BY ?n",
        "SELECT ?n { { SELECT ?s { ?s a <http://e/C> } LIMIT 20 } ?s ?n ?o } ORDER BY ?n",
    ],
)
def test_the_guard_lets_bounded_queries_pass(query: str) -> None:
    check(query)


@pytest.fixture(params=["sample", "bare"])
def guard(request: pytest.FixtureRequest) -> Iterator[tuple[Guard, EndpointConfig]]:
    """A guard before an endpoint, and the endpoint's configuration through it."""
    config: EndpointConfig = request.getfixturevalue(request.param)
    with guarded(config.address) as made:
        yield made, replace(config, query_url=made.url, timeout_s=120.0)


@pytest.mark.parametrize("look", [50_000, 400])
def test_every_tool_passes_the_guard(
    guard: tuple[Guard, EndpointConfig], look: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, config = guard
    # The look at an endpoint elsewhere, also for the schema that hints come from.
    monkeypatch.setattr("reasoningbank.schema.sampling.LOOK_HERE", look)
    tools = SPARQLTools(config)
    assert tools.sparql_classes()["count"] > 0
    assert tools.sparql_properties()["count"] > 3
    assert tools.sparql_properties(class_uri="up:Protein")["count"] > 5
    assert "up:Nothing" in tools.sparql_properties(class_uri="up:Nothing")["note"]
    assert tools.sparql_sample("up:Protein")["count"] == 10
    for uri in ("taxon:9606", "up:Protein", "up:nothing"):
        tools.sparql_describe(uri)
    assert tools.sparql_find("Homo Sapiens")["results"][0]["uri"] == "taxon:9606"
    tools.sparql_find("no such thing")
    ref = tools.sparql_query("SELECT ?p { GRAPH ?g { ?p a up:Protein } }")
    assert tools.sparql_peek(ref)
    assert made.passed
    assert made.refused == []


def test_what_a_large_endpoint_cannot_tell_is_said(guard: tuple[Guard, EndpointConfig]) -> None:
    made, config = guard
    tools = SPARQLTools(config, profile=EndpointProfile(config, look=400))
    found = tools.sparql_find("sapiens")
    assert "first" in found["via"]
    assert "parts of labels only in the first" in found["note"]
    with_statistics = tools.sparql_classes()["via"] == "void"
    if not with_statistics:
        assert tools.sparql_classes()["via"].startswith("sample of 400 triples")
        assert "in the sample" in tools.sparql_classes()["note"]
    assert made.refused == []


def test_names_of_the_schema_stand_in_for_statistics(bare: EndpointConfig, uniprot: object) -> None:
    with guarded(bare.address) as made:
        config = replace(bare, query_url=made.url)
        tools = SPARQLTools(config, schema=uniprot.schema)
        tools.profile.look = 400
        classes, properties = tools.sparql_classes(100), tools.sparql_properties(100)
        assert classes["via"] == properties["via"] == "schema"
        assert {"class": "up:Protein"} in classes["classes"]
        assert {"property": "up:organism"} in properties["properties"]
    assert made.refused == []


def test_a_count_of_everything_becomes_a_bounded_one(bare: EndpointConfig) -> None:
    with guarded(bare.address) as made:
        tools = SPARQLTools(replace(bare, query_url=made.url))
        found = tools.sparql_count("SELECT (COUNT(*) AS ?n) { GRAPH ?g { ?s ?p ?o } }")
    assert len(made.refused) == 1
    assert found["count"] > 5_000
    assert found["truncated"]
    assert "only the first 100,000" in found["note"]


def test_what_is_refused_gives_way_to_less_and_is_not_asked_again(bare: EndpointConfig) -> None:
    with guarded(bare.address, most=1_500) as made:
        config = replace(bare, query_url=made.url)
        tools = SPARQLTools(config, profile=EndpointProfile(config, look=50_000))
        classes = tools.sparql_classes()
        assert classes["count"] > 0
        assert classes["via"].startswith("sample of 1,000 triples")
        assert (
            "look at 50,000 triples: the endpoint estimates the query as too costly"
            in classes["note"]
        )
        found = tools.sparql_find("homo sapiens")
        assert found["results"][0]["uri"] == "taxon:9606"
        assert found["via"] == "whole labels, the first 7,000 labels"
        before = len(made.refused)
        assert tools.sparql_classes()["classes"] == classes["classes"]
        assert len(made.refused) == before


def test_where_nothing_is_answered_the_error_is_one_line(bare: EndpointConfig) -> None:
    with guarded(bare.address, most=0) as made:
        tools = SPARQLTools(replace(bare, query_url=made.url))
        for call in (tools.sparql_classes, lambda: tools.sparql_sample("up:Protein")):
            with pytest.raises(ToolError, match="too costly") as caught:
                call()
            assert "\n" not in str(caught.value)
