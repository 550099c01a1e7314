"""Vocabularies: statistics where the endpoint publishes them, a bounded sample otherwise."""

from __future__ import annotations

from pathlib import Path

from reasoningbank.sparql import EndpointConfig, OxigraphServer, SPARQLClient
from reasoningbank.tools import schema_queries

VOID = """
@prefix : <http://e/> .
@prefix void: <http://rdfs.org/ns/void#> .
:set void:classPartition [ void:class :Tree ; void:entities 3000 ] ,
        [ void:class :Moss ; void:entities 70 ] ;
    void:propertyPartition [ void:property :height ; void:triples 2900 ] .
:other void:classPartition [ void:class :Tree ; void:entities 5 ] .
:oak a :Shrub .
"""


def test_published_statistics_are_taken_and_summed(tmp_path: Path) -> None:
    file = tmp_path / "void.ttl"
    file.write_text(VOID, encoding="utf-8")
    with (
        OxigraphServer([file]) as server,
        SPARQLClient(EndpointConfig(server.url)) as client,
    ):
        classes = schema_queries.classes(client.query, 10)  # type: ignore[arg-type]
        properties = schema_queries.properties(client.query, 10)  # type: ignore[arg-type]
    assert classes.via == properties.via == "void"
    assert classes.items == (("http://e/Tree", 3005), ("http://e/Moss", 70))
    assert properties.items == (("http://e/height", 2900),)


def test_without_statistics_a_sample_is_counted(trees: EndpointConfig) -> None:
    with SPARQLClient(trees) as client:
        classes = schema_queries.classes(client.query, 1)  # type: ignore[arg-type]
        of_moss = schema_queries.properties(client.query, 10, "http://e/Moss")  # type: ignore[arg-type]
    assert classes.items == (("http://e/Tree", 3),)
    assert classes.via == f"sample of {schema_queries.SAMPLE} triples"
    assert {iri.rpartition("#")[2]: count for iri, count in of_moss.items} == {
        "label": 1,
        "type": 1,
    }
