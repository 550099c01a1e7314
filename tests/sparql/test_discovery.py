"""What endpoints tell about themselves, and what is said where they tell nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from reasoningbank.errors import EndpointError
from reasoningbank.sparql import (
    EndpointConfig,
    NamedGraph,
    OxigraphServer,
    SPARQLClient,
    discover,
    service_description,
    void_description,
)

from .faulty import Answer, FaultyServer

VOID = """
@prefix void: <http://rdfs.org/ns/void#> .
@prefix sd: <http://www.w3.org/ns/sparql-service-description#> .
@prefix dcterms: <http://purl.org/dc/terms/> .
@prefix e: <http://e/> .
{graph} {{
e:sparql a sd:Service ; sd:defaultDataset [ sd:namedGraph
    [ sd:name e:trees ; sd:graph e:treeset ] , [ sd:name e:void ] ] .
e:treeset a void:Dataset ; dcterms:title "Trees" ; void:triples 40 ; void:entities 9 ;
    void:classPartition [ void:class e:Tree ; void:entities 7 ;
        void:propertyPartition [ void:property e:height ; void:triples 6 ] ] ,
      [ void:class e:Bush ; void:entities 8 ] ;
    void:propertyPartition [ void:property e:in ; void:triples 30 ] .
e:tree1 dcterms:title "not a dataset" .
}}
"""


@pytest.fixture(scope="module")
def described(tmp_path_factory: pytest.TempPathFactory, data: Path) -> Iterator[SPARQLClient]:
    file = tmp_path_factory.mktemp("void") / "void.trig"
    file.write_text(VOID.format(graph="e:void"))
    with OxigraphServer([data, file]) as server:
        config = EndpointConfig("https://trees.example/", "Trees", query_url=server.url)
        with SPARQLClient(config) as client:
            yield client


def test_engine_and_store_are_joined(described: SPARQLClient) -> None:
    found = discover(described)
    assert found.service.offered
    assert found.service.source == "Trees"
    assert found.service.endpoint == "https://trees.example/"
    assert "http://www.w3.org/ns/sparql-service-description#BasicFederatedQuery" in (
        found.service.features
    )
    assert "http://www.w3.org/ns/formats/SPARQL_Results_TSV" in found.service.result_formats
    assert found.service.triples
    # Oxigraph names no graphs; the store's own description does.
    assert found.service.named_graphs == ()
    assert found.named_graphs == (
        NamedGraph("http://e/trees", 40),
        NamedGraph("http://e/void", None),
    )


def test_statistics_of_the_store(described: SPARQLClient) -> None:
    found = void_description(described)
    assert (found.offered, found.origin, found.truncated) == (True, "store", False)
    (dataset,) = found.datasets
    assert (dataset.title, dataset.graph, dataset.triples, dataset.entities) == (
        "Trees",
        "http://e/trees",
        40,
        9,
    )
    assert [(c.class_, c.entities) for c in dataset.classes] == [
        ("http://e/Bush", 8),
        ("http://e/Tree", 7),
    ]
    assert [(p.property, p.triples) for p in dataset.classes[1].properties] == [
        ("http://e/height", 6)
    ]
    assert [(p.property, p.triples) for p in dataset.properties] == [("http://e/in", 30)]


def test_nothing_offered_is_said_and_no_error(client: SPARQLClient) -> None:
    found = void_description(client)
    assert (found.offered, found.origin, found.datasets) == (False, "", ())
    assert found.notes == (
        "the store holds no VoID statistics",
        "/.well-known/void: HTTP 404",
    )


@pytest.mark.parametrize(
    ("answer", "note"),
    [
        (Answer(200, b"<html></html>", {"Content-Type": "text/html"}), "a web page came, no RDF"),
        (Answer(400, b"no query"), "HTTP 400"),
        (Answer(200, b"<a", {"Content-Type": "text/turtle"}), "cannot be parsed"),
        (Answer(200, b"x", {"Content-Type": "application/pdf"}), "application/pdf, no RDF"),
        (Answer(200, b"", {"Content-Type": "text/turtle"}), "what came describes no service"),
    ],
)
def test_what_is_no_description_is_told(faulty: FaultyServer, answer: Answer, note: str) -> None:
    faulty.script(answer)
    found = service_description(SPARQLClient(EndpointConfig(faulty.url)))
    assert not found.offered
    assert note in found.notes[0]
    assert found.features == ()


SERVICE = {
    "text/turtle": b"""@prefix sd: <http://www.w3.org/ns/sparql-service-description#> .
        [] a sd:Service ; sd:endpoint <> ; sd:feature sd:UnionDefaultGraph .""",
    "application/n-triples": b"""_:s <http://www.w3.org/ns/sparql-service-description#feature>
        <http://www.w3.org/ns/sparql-service-description#UnionDefaultGraph> .
        _:s <http://www.w3.org/ns/sparql-service-description#endpoint> <http://e/> .""".replace(
        b"\n        <", b" <"
    ),
    "application/rdf+xml": b"""<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"
        xmlns:sd="http://www.w3.org/ns/sparql-service-description#"><sd:Service><sd:feature
        rdf:resource="http://www.w3.org/ns/sparql-service-description#UnionDefaultGraph"/>
        </sd:Service></rdf:RDF>""",
    "application/ld+json": b"""{"@type": "http://www.w3.org/ns/sparql-service-description#Service",
        "http://www.w3.org/ns/sparql-service-description#feature":
        {"@id": "http://www.w3.org/ns/sparql-service-description#UnionDefaultGraph"}}""",
}


@pytest.mark.parametrize("media_type", SERVICE)
def test_descriptions_come_in_four_formats(faulty: FaultyServer, media_type: str) -> None:
    faulty.script(Answer(200, SERVICE[media_type], {"Content-Type": f"{media_type}; charset=x"}))
    found = service_description(SPARQLClient(EndpointConfig(faulty.url)))
    assert found.offered
    assert found.features == ("http://www.w3.org/ns/sparql-service-description#UnionDefaultGraph",)
    assert all(name in faulty.seen[0].headers["Accept"] for name in SERVICE)


def test_the_well_known_location_is_read_where_the_store_tells_nothing(
    faulty: FaultyServer,
) -> None:
    body = VOID.format(graph="").replace("{", "", 1)[:-3].encode()
    faulty.script(
        Answer(200, b"", {"Content-Type": "application/n-triples"}),
        Answer(200, body, {"Content-Type": "text/turtle"}),
    )
    found = void_description(SPARQLClient(EndpointConfig(faulty.url)))
    assert (found.offered, found.origin) == (True, "well-known")
    assert found.datasets[0].title == "Trees"
    assert faulty.seen[1].path == "/.well-known/void"


def test_a_store_that_cannot_be_asked_is_told(faulty: FaultyServer) -> None:
    faulty.script(Answer(400, b"too hard"), Answer(404, b""))
    found = void_description(SPARQLClient(EndpointConfig(faulty.url)))
    assert not found.offered
    assert "could not be asked" in found.notes[0]


def test_an_endpoint_that_is_down_is_an_error() -> None:
    with pytest.raises(EndpointError, match="no connection"):
        service_description(SPARQLClient(EndpointConfig("http://127.0.0.1:9/sparql")))
