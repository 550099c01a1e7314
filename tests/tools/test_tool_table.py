"""Every query tool, on the sample, on a bare store in named graphs, and on a foreign engine."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from reasoningbank.refs import Ref
from reasoningbank.sparql import EndpointConfig
from reasoningbank.tools import SPARQLTools
from reasoningbank.tools.returns import MAX_CHARS

#: Patterns stand in a GRAPH clause, which all three endpoints answer alike.
TAXA = "SELECT ?t ?name WHERE { GRAPH ?g { ?t a up:Taxon ; up:scientificName ?name } }"


@pytest.fixture
def tools(endpoint: EndpointConfig) -> Iterator[SPARQLTools]:
    made = SPARQLTools(endpoint)
    yield made
    made.close()


def test_sparql_query_gives_a_handle(tools: SPARQLTools) -> None:
    ref = tools.sparql_query(TAXA, limit=30)
    assert isinstance(ref, Ref)
    assert repr(ref) == "Ref('results_0', 'results', 30 items from UniProt)"
    assert ref.sz > 500


def test_sorted_rows_come_even_from_an_engine_that_sorts_few(tools: SPARQLTools) -> None:
    ref = tools.sparql_query(TAXA + " ORDER BY ?t", limit=10_000)
    assert 50 < ref.rows < 10_000
    assert not tools.sparql_stats(ref)["truncated"]


def test_sparql_stats_tells_of_it(tools: SPARQLTools) -> None:
    stats = tools.sparql_stats(tools.sparql_query(TAXA, limit=30))
    assert (stats["rows"], stats["cols"], stats["source"]) == (30, ["t", "name"], "UniProt")
    assert stats["truncated"]


def test_sparql_peek_and_slice_show_rows(tools: SPARQLTools) -> None:
    ref = tools.sparql_query(TAXA + " ORDER BY ?t", limit=30)
    first, rest = tools.sparql_peek(ref, 5), tools.sparql_slice(ref.key, 5, 30)
    assert (len(first), len(rest), rest.source, rest.total) == (5, 25, "UniProt", 30)
    names = [row["t"] for row in [*first, *rest]]
    assert names == sorted(set(names))
    assert all(name.startswith("taxon:") for name in names)


def test_full_terms_are_one_call_away(tools: SPARQLTools) -> None:
    query = "SELECT ?t ?n { GRAPH ?g { ?t up:scientificName ?n } FILTER(?t = taxon:9606) }"
    ref = tools.sparql_query(query)
    assert tools.sparql_peek(ref) == [{"t": "taxon:9606", "n": "Homo sapiens"}]
    assert tools.sparql_peek(ref, full=True) == [
        {"t": "<http://purl.uniprot.org/taxonomy/9606>", "n": '"Homo sapiens"'}
    ]


def test_ask_construct_and_describe(tools: SPARQLTools) -> None:
    ask = tools.sparql_query("ASK { GRAPH ?g { taxon:9606 a up:Taxon } }")
    assert tools.sparql_peek(ask) == [{"boolean": True}]
    built = tools.sparql_query(
        "CONSTRUCT { ?t rdfs:label ?n } WHERE { GRAPH ?g { ?t up:scientificName ?n "
        "FILTER(?t = taxon:9606) } }"
    )
    assert built.dtype == "graph"
    assert tools.sparql_slice(built) == [
        {"subject": "taxon:9606", "predicate": "rdfs:label", "object": "Homo sapiens"}
    ]
    described = tools.sparql_query("DESCRIBE ?t { GRAPH ?g { ?t up:mnemonic 'HUMAN' } }")
    assert described.dtype == "graph"


def test_sparql_classes(tools: SPARQLTools) -> None:
    found = tools.sparql_classes(limit=80)
    names = {row["class"] for row in found["classes"]}
    assert {"up:Protein", "up:Taxon"} <= names
    assert all(row["count"] > 0 for row in found["classes"])
    assert found["via"] == "void" or found["via"].startswith("all ")


def test_sparql_properties(tools: SPARQLTools) -> None:
    names = {row["property"] for row in tools.sparql_properties(limit=100)["properties"]}
    assert {"up:organism", "up:scientificName", "rdf:type"} <= names
    of_taxa = tools.sparql_properties(class_uri="up:Taxon")
    assert {"up:scientificName", "up:rank"} <= {row["property"] for row in of_taxa["properties"]}
    assert of_taxa["via"] in ("void", "sample of 200 instances")


def test_sparql_describe(tools: SPARQLTools) -> None:
    found = tools.sparql_describe("taxon:9606")
    assert {"p": "up:scientificName", "o": "Homo sapiens"} in found["triples"]
    assert any(row["p"] == "up:organism" and "s" in row for row in found["triples"])


def test_sparql_find(tools: SPARQLTools) -> None:
    found = tools.sparql_find("homo sapiens")
    assert found["results"][0] == {
        "uri": "taxon:9606",
        "label": "Homo sapiens",
        "property": "up:scientificName",
        "class": "up:Taxon",
    }
    assert found["via"].startswith("all ")


def test_sparql_sample(tools: SPARQLTools) -> None:
    found = tools.sparql_sample("up:Taxon", 3)
    assert len(found["instances"]) == 3
    assert found["truncated"]
    assert "up:scientificName" in {row["p"] for row in found["example"]}


def test_sparql_count(tools: SPARQLTools) -> None:
    one = (
        "SELECT (COUNT(DISTINCT ?t) AS ?n) { GRAPH ?g { ?t up:mnemonic ?m } FILTER(?m = 'HUMAN') }"
    )
    assert tools.sparql_count(one)["count"] == 1
    assert tools.sparql_count(TAXA)["count"] > 50


def test_endpoint_info(tools: SPARQLTools) -> None:
    info = tools.endpoint_info()
    assert (info["name"], info["url"]) == ("UniProt", "https://sparql.uniprot.org/sparql/")
    assert "skos:prefLabel" in info["label_properties"]


def test_an_empty_result_says_what_is_wrong_with_the_query(tools: SPARQLTools) -> None:
    ref = tools.sparql_query("SELECT ?t { GRAPH ?g { ?t a up:Taxonn } }")
    rows = tools.sparql_peek(ref)
    assert rows == []
    assert "up:Taxonn" in rows.note
    assert "up:Taxon" in rows.note.replace("up:Taxonn", "")
    assert tools.sparql_stats(ref)["note"] == rows.note


def test_every_return_is_bounded(tools: SPARQLTools) -> None:
    for value in (
        tools.sparql_classes(100),
        tools.sparql_properties(100),
        tools.sparql_describe("taxon:9606", 50),
        tools.sparql_find("a", 50),
        tools.sparql_sample("up:Protein", 50),
    ):
        assert len(json.dumps(value)) <= MAX_CHARS
        assert value["source"] == "UniProt"
        assert "truncated" in value
