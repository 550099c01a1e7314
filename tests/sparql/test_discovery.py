"""What endpoints say about themselves, and what is reported where they say nothing."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pyoxigraph as ox
import pytest
from engines import VirtuosoServer, virtuoso_program

from reasoningbank.errors import EndpointError
from reasoningbank.sparql import (
    EndpointConfig,
    NamedGraph,
    OxigraphServer,
    SPARQLClient,
    discover,
    discovery,
    service_description,
    void_description,
)
from reasoningbank.sparql.tree import outline, read_query

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
    assert (found.graphs_via, found.notes) == ("description", ())
    assert set(found.triples) == {*found.service.triples, *found.void.triples}
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
    assert [*dataset.classes.items()] == [("http://e/Bush", 8), ("http://e/Tree", 7)]
    assert dataset.of_class["http://e/Tree"] == {"http://e/height": 6}
    assert dataset.properties == {"http://e/in": 30}


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
        (Answer(200, b"<html></html>", {"Content-Type": "text/html"}), "a web page came, not RDF"),
        (Answer(400, b"no query"), "HTTP 400"),
        (Answer(200, b"<a", {"Content-Type": "text/turtle"}), "cannot be parsed"),
        (Answer(200, b"x", {"Content-Type": "application/pdf"}), "application/pdf, not RDF"),
        (Answer(200, b"", {"Content-Type": "text/turtle"}), "the answer is empty"),
        (Answer(200, b"# nothing", {"Content-Type": "text/turtle"}), "the description is empty"),
        (
            Answer(200, b"<http://e/a> a <http://e/B> .", {"Content-Type": "text/turtle"}),
            "the answer describes no service",
        ),
        (Answer(200, b'{"a": ', {"Content-Type": "application/json"}), "cannot be parsed"),
        (Answer(500, b"<html>oops</html>", {"Content-Type": "text/html"}), "HTTP 500"),
        (Answer(200, b"\xff\xfe\x00", {"Content-Type": "text/turtle"}), "cannot be parsed"),
    ],
)
def test_what_is_not_a_description_is_reported(
    faulty: FaultyServer, answer: Answer, note: str
) -> None:
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
        Answer(200, b"?g\n"),
        Answer(200, b"", {"Content-Type": "application/n-triples"}),
        Answer(200, body, {"Content-Type": "text/turtle"}),
    )
    found = void_description(SPARQLClient(EndpointConfig(faulty.url)))
    assert (found.offered, found.origin) == (True, "well-known")
    assert found.datasets[0].title == "Trees"
    assert found.triples
    assert faulty.seen[2].path == "/.well-known/void"


def test_a_store_that_cannot_be_asked_is_reported(faulty: FaultyServer) -> None:
    faulty.script(Answer(400, b"too hard"), Answer(404, b""))
    found = void_description(SPARQLClient(EndpointConfig(faulty.url)))
    assert not found.offered
    assert "could not be asked" in found.notes[0]
    assert found.notes[-1] == "/.well-known/void: HTTP 404"


def test_an_endpoint_that_is_down_is_an_error() -> None:
    with pytest.raises(EndpointError, match="no connection"):
        service_description(SPARQLClient(EndpointConfig("http://127.0.0.1:9/sparql")))


@pytest.mark.parametrize("media_type", SERVICE)
@pytest.mark.parametrize("claimed", ["text/plain", "application/octet-stream", "text/turtle"])
def test_a_wrong_content_type_does_not_hide_a_description(
    faulty: FaultyServer, media_type: str, claimed: str
) -> None:
    faulty.script(Answer(200, SERVICE[media_type], {"Content-Type": claimed}))
    found = service_description(SPARQLClient(EndpointConfig(faulty.url)))
    assert found.offered
    assert found.notes == ()


@pytest.mark.parametrize(
    "first",
    [
        Answer(406, b"not acceptable"),
        Answer(200, b"<!DOCTYPE html><title>Query form</title>", {"Content-Type": "text/html"}),
    ],
    ids=["406", "page"],
)
def test_an_endpoint_that_knows_one_format_is_asked_for_it(
    faulty: FaultyServer, first: Answer
) -> None:
    xml = "application/rdf+xml"
    faulty.script(first, Answer(200, SERVICE[xml], {"Content-Type": xml}))
    assert service_description(SPARQLClient(EndpointConfig(faulty.url))).offered
    assert [seen.headers["Accept"] for seen in faulty.seen][1:] == [xml]


def test_statistics_in_the_service_description_cost_no_further_request(
    faulty: FaultyServer,
) -> None:
    body = VOID.format(graph="").replace("{", "", 1)[:-3].encode()
    faulty.script(Answer(200, body, {"Content-Type": "text/turtle"}))
    found = discover(SPARQLClient(EndpointConfig(faulty.url)))
    assert (found.service.offered, found.void.origin) == (True, "service description")
    assert found.named_graphs[0] == NamedGraph("http://e/trees", 40)
    assert len(faulty.seen) == 1


def test_a_document_that_unfolds_to_gigabytes_is_not_read(faulty: FaultyServer) -> None:
    tenfold = "".join(f'<!ENTITY e{i} "{f"&e{i - 1};" * 10}">' for i in range(1, 10))
    bomb = SERVICE["application/rdf+xml"].decode()
    bomb = f'<?xml version="1.0"?><!DOCTYPE r [<!ENTITY e0 "lol">{tenfold}]>' + bomb.replace(
        "</sd:Service>", "<sd:x>&e9;</sd:x></sd:Service>"
    )
    faulty.script(Answer(200, bomb.encode(), {"Content-Type": "application/rdf+xml"}))
    found = service_description(SPARQLClient(EndpointConfig(faulty.url)))
    assert not found.offered
    assert "expand" in found.notes[0]


def test_a_document_that_nests_without_end_is_not_read(faulty: FaultyServer) -> None:
    """The parser's stack overflows on it, which ends the whole process."""
    bomb = b"<a:a> <a:b> " + b"<<( <a:a> <a:b> " * 100_000 + b"<a:c>" + b" )>>" * 100_000 + b" ."
    faulty.script(Answer(200, bomb, {"Content-Type": "text/turtle"}))
    found = service_description(SPARQLClient(EndpointConfig(faulty.url)))
    assert not found.offered
    assert "more than 100 deep" in found.notes[0]


def test_namespaces_as_entities_are_read(faulty: FaultyServer) -> None:
    sd = "http://www.w3.org/ns/sparql-service-description#"
    xml = SERVICE["application/rdf+xml"].decode().replace(f'resource="{sd}', 'resource="&sd;')
    body = f'<!DOCTYPE r [<!ENTITY sd "{sd}">]>{xml}'.encode()
    faulty.script(Answer(200, body, {"Content-Type": "application/rdf+xml"}))
    found = service_description(SPARQLClient(EndpointConfig(faulty.url)))
    assert found.features == (f"{sd}UnionDefaultGraph",)


def test_discovery_ends_in_time_on_an_endpoint_that_stalls(
    faulty: FaultyServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(discovery, "STEP_S", 1.0)
    monkeypatch.setattr(discovery, "TOTAL_S", 1.5)

    over = threading.Event()

    def stall(handler: BaseHTTPRequestHandler) -> None:
        over.wait()

    faulty.script(Answer(say=stall))
    config = EndpointConfig(faulty.url, retries=0)
    with pytest.raises(EndpointError, match=r"no answer within 1 s"):
        discover(SPARQLClient(config))
    # A service that describes itself and stalls over its data is described without them.
    faulty.script(
        Answer(200, SERVICE["text/turtle"], {"Content-Type": "text/turtle"}), Answer(say=stall)
    )
    found = discover(SPARQLClient(config))
    assert (found.service.offered, found.void.offered) == (True, False)
    assert any("timed out" in note for note in found.notes)
    assert "named graphs: not asked: the endpoint took more than 1.5 s already" in found.notes
    over.set()


def test_blank_nodes_of_two_graphs_stay_apart(faulty: FaultyServer) -> None:
    void = "http://rdfs.org/ns/void#"
    part = (
        f"<http://e/{{0}}> <{void}classPartition> _:b0 .\n_:b0 <{void}class> <http://e/C{{0}}> .\n"
    )
    graphs = (Answer(200, part.format(n).encode(), {"Content-Type": "text/plain"}) for n in "12")
    faulty.script(Answer(200, b"?g\n<http://g/1>\n<http://g/2>\n"), *graphs)
    found = void_description(SPARQLClient(EndpointConfig(faulty.url)))
    assert [list(d.classes) for d in found.datasets] == [["http://e/C1"], ["http://e/C2"]]


def test_relative_addresses_are_read_as_public_ones(faulty: FaultyServer) -> None:
    faulty.script(Answer(200, SERVICE["text/turtle"], {"Content-Type": "text/turtle"}))
    config = EndpointConfig("https://public.example/sparql", query_url=faulty.url)
    found = service_description(SPARQLClient(config))
    assert "https://public.example/sparql" in str(found.triples)
    assert "127.0.0.1" not in str(found.triples)


def test_an_endpoint_that_answers_queries_only_is_described_by_its_store(
    faulty: FaultyServer,
) -> None:
    body = VOID.format(graph="").replace("{", "", 1)[:-3]
    triples = "".join(f"{t} .\n" for t in ox.parse(body, ox.RdfFormat.TURTLE)).encode()

    def drop(handler: BaseHTTPRequestHandler) -> None:
        handler.connection.close()

    faulty.script(
        Answer(say=drop),
        Answer(200, b"?g\n<http://e/void>\n"),
        Answer(200, triples, {"Content-Type": "application/n-triples"}),
    )
    found = discover(SPARQLClient(EndpointConfig(faulty.url, retries=0)))
    assert (found.service.offered, found.void.origin) == (False, "store")
    assert "service description: the connection was dropped" in found.notes[0]


def test_every_query_of_discovery_can_be_answered_from_an_index(faulty: FaultyServer) -> None:
    nothing = Answer(200, b"", {"Content-Type": "application/n-triples"})
    one = Answer(200, b"?g\n<http://e/void>\n")
    none = Answer(200, b"?g\n")
    for found in (one, none):
        faulty.script(Answer(404, b""), found, nothing, Answer(404, b""), none)
        discover(SPARQLClient(EndpointConfig(faulty.url)))
    queries = [
        parse_qs(urlsplit(seen.path).query or seen.body.decode()).get("query", [""])[0]
        for seen in faulty.seen
    ]
    asked = [query for query in queries if query]
    assert len(asked) == 6
    for query in asked:
        assert outline(query).limit.value is not None
        for pattern in read_query(query).triple_patterns():
            assert not pattern.predicate.startswith("?")
    for query in asked:
        if "DISTINCT" in query:
            assert "LIMIT 10000 }" in " ".join(query.split())


def test_statistics_are_cut_and_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data: Path
) -> None:
    monkeypatch.setattr(discovery, "MOST_STORED", 12)
    file = tmp_path / "void.trig"
    file.write_text(VOID.format(graph="e:void"))
    with OxigraphServer([data, file]) as server:
        found = void_description(SPARQLClient(EndpointConfig(server.url)))
    assert found.truncated
    assert "more than 12 triples" in found.notes[0]
    # What matters most was read: datasets and classes; properties, the most, were left out.
    assert found.named_graphs[0] == NamedGraph("http://e/trees", 40)
    assert list(found.datasets[0].classes) == ["http://e/Bush", "http://e/Tree"]
    assert found.datasets[0].properties == {}


@pytest.fixture(scope="module")
def described_by_virtuoso(
    tmp_path_factory: pytest.TempPathFactory, data: Path
) -> Iterator[EndpointConfig]:
    if virtuoso_program() is None:
        pytest.skip("no Virtuoso here: python scripts/fetch_virtuoso.py brings it on Debian")
    file = tmp_path_factory.mktemp("virtuoso") / "void.trig"
    file.write_text(VOID.format(graph="e:void"))
    with VirtuosoServer([data, file]) as server:
        yield EndpointConfig("https://foreign.example/sparql", "Foreign", query_url=server.url)


def test_a_foreign_engine_is_read_too(described_by_virtuoso: EndpointConfig) -> None:
    with SPARQLClient(described_by_virtuoso) as client:
        found = discover(client)
    assert found.service.offered
    assert "http://www.w3.org/ns/sparql-service-description#UnionDefaultGraph" in (
        found.service.features
    )
    assert (found.void.origin, found.graphs_via) == ("store", "description")
    assert found.named_graphs[0] == NamedGraph("http://e/trees", 40)
    (dataset,) = found.void.datasets
    assert [*dataset.classes.items()] == [("http://e/Bush", 8), ("http://e/Tree", 7)]
    assert dataset.of_class["http://e/Tree"] == {"http://e/height": 6}


def test_a_foreign_engine_without_statistics(virtuoso: VirtuosoServer) -> None:
    with SPARQLClient(EndpointConfig(virtuoso.url, "Foreign")) as client:
        found = discover(client)
    assert (found.service.offered, found.void.offered) == (True, False)
    assert found.graphs_via == "sample of 10,000 triples"
    assert found.named_graphs
    assert "statistics: the store holds no VoID statistics" in found.notes


def test_graphs_are_sampled_where_nobody_names_them(client: SPARQLClient) -> None:
    found = discover(client)
    # Of the graphs of the data only those with typed resources can be seen by a sample.
    assert found.named_graphs == ()
    assert found.graphs_via == ""
    assert found.notes == (
        "statistics: the store holds no VoID statistics",
        "statistics: /.well-known/void: HTTP 404",
    )
