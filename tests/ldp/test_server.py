"""Documents over real HTTP."""

from __future__ import annotations

import json
import socket
import threading
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit

import httpx
import pytest
from pyoxigraph import NamedNode, RdfFormat, Triple, parse, serialize
from rdflib import RDF, Graph, Literal, Namespace, URIRef
from rdflib.compare import isomorphic

from reasoningbank.errors import SetupError, UsageError
from reasoningbank.ldp import LDPServer
from reasoningbank.ldp import server as module
from reasoningbank.sparql import EndpointConfig, SPARQLClient, service_description

from .conftest import TURTLE

LDP = Namespace("http://www.w3.org/ns/ldp#")
SIOC = Namespace("http://rdfs.org/sioc/ns#")
DH = Namespace("https://www.w3.org/ns/ldt/document-hierarchy#")
DCT = Namespace("http://purl.org/dc/terms/")
CITY = '<http://e/Odense> <http://e/name> "Odense"@da ; <http://e/size> 01, [ <http://e/of> 2 ] .'
UPDATE = {"Content-Type": "application/sparql-update"}


_KINDS = ("Resource", "BasicContainer")


def put(web: httpx.Client, path: str, turtle: str, **headers: str) -> httpx.Response:
    return web.put(path, content=turtle, headers={**TURTLE, **headers})


def graph(web: httpx.Client, path: str, accept: str = "application/n-triples") -> Graph:
    reply = web.get(path, headers={"Accept": accept})
    assert reply.status_code == 200, reply.text
    kind = RdfFormat.from_media_type(accept)
    lines = serialize(parse(reply.content, kind), format=RdfFormat.N_TRIPLES)
    return Graph().parse(data=lines, format="nt")


def test_a_document_comes_back_as_it_was_put(web: httpx.Client) -> None:
    made = put(web, "cities/odense", CITY)
    assert made.status_code == 201
    assert made.headers["Location"] == f"{web.base_url}cities/odense"
    for accept in ("application/n-triples", "text/turtle", "application/ld+json"):
        found = graph(web, "cities/odense", accept)
        assert isomorphic(found, Graph().parse(data=CITY, format="turtle")), accept


def test_put_replaces_and_post_adds(web: httpx.Client) -> None:
    put(web, "d", '<> <http://e/p> "one" .')
    assert put(web, "d", '<> <http://e/p> "two" .').status_code == 200
    assert web.post("d", content='<> <http://e/p> "three" .', headers=TURTLE).status_code == 200
    values = set(graph(web, "d").objects())
    assert values == {Literal("two"), Literal("three")}
    # What is not there is made.
    assert web.post("new", content='<> <http://e/p> "x" .', headers=TURTLE).status_code == 201
    assert len(graph(web, "new")) == 1


def test_post_with_a_slug_makes_a_member(web: httpx.Client) -> None:
    put(web, "items/", "")
    body, base = "<> <http://e/p> <#x> .", str(web.base_url)

    def post(path: str, slug: str, **headers: str) -> httpx.Response:
        return web.post(path, content=body, headers={**TURTLE, "Slug": slug, **headers})

    made = post("items/", "Malm%C3%B6 by/nord")
    url = f"{base}items/Malm%C3%B6%20by%2Fnord"
    assert (made.status_code, made.headers["Location"]) == (201, url)
    assert (URIRef(url), URIRef("http://e/p"), URIRef(f"{url}#x")) in graph(web, url)
    assert URIRef(url) in set(graph(web, "items/").objects(predicate=LDP.contains))
    # A name that is taken or invalid is changed.
    others = [post("items/", slug).headers["Location"] for slug in ("Malm%C3%B6 by/nord", "..", "")]
    assert len({url, *others}) == 4
    assert others[0].startswith(f"{url}-")
    inner = post("items/", "inner", Link=f'<{LDP.BasicContainer}>; rel="type"')
    assert inner.headers["Location"] == f"{base}items/inner/"
    assert post("none/", "x").status_code == 404
    assert post("items/", "x", **{"If-Match": '"other"'}).status_code == 412
    # What is no container is added to.
    assert post("items/Malm%C3%B6%20by%2Fnord", "x").status_code == 200


def test_a_header_on_several_lines_is_one_list(web: httpx.Client) -> None:
    types = [("Link", f'<http://www.w3.org/ns/ldp#{kind}>; rel="type"') for kind in _KINDS]
    for number, links in enumerate((types, types[::-1])):
        headers = [("Slug", f"c{number}"), ("Content-Type", "text/turtle"), *links]
        assert (
            web.post("/", content="", headers=headers).headers["Location"].endswith(f"c{number}/")
        )
    accept = [("Accept", "application/x-none"), ("Accept", "text/turtle")]
    assert web.get("/", headers=accept).status_code == 200


def test_a_new_container_takes_nothing_from_what_others_say(web: httpx.Client) -> None:
    base = str(web.base_url)
    said = f"<{base}c/> <http://rdfs.org/sioc/ns#has_container> <{base}> ."
    put(web, "/other", said)
    put(web, "/c/x", "<> <http://e/p> 1 .")
    assert len(graph(web, "/other")) == 1
    asked = {"query": f"ASK {{ <{base}c/> <http://rdfs.org/sioc/ns#has_container> ?o }}"}
    assert web.get("/sparql", params=asked).json()["boolean"]


def test_post_of_what_is_there_changes_nothing(web: httpx.Client) -> None:
    put(web, "d", '<> <http://e/p> "x", 01, 1 .')
    before = web.get("d")
    web.post("d", content="<> <http://e/p> 1 .", headers=TURTLE)
    after = web.get("d")
    assert after.text == before.text
    assert after.headers["ETag"] == before.headers["ETag"]


def test_a_document_is_deleted(web: httpx.Client) -> None:
    put(web, "d", CITY)
    assert web.delete("d").status_code == 204
    assert web.get("d").status_code == web.delete("d").status_code == 404
    assert not list(graph(web, "").objects(predicate=LDP.contains))


def test_patch_changes_one_document(web: httpx.Client) -> None:
    put(web, "d", '<> <http://e/p> "old", "kept" . <> <http://e/q> [ <http://e/r> 1 ] .')
    put(web, "other", '<> <http://e/p> "old" .')
    text = 'DELETE { ?s ?p "old" } INSERT { <#x> ?p "new"@en } WHERE { ?s ?p "old" }'
    assert web.patch("d", content=text, headers=UPDATE).status_code == 200
    found = graph(web, "d")
    base = URIRef(f"{web.base_url}d#x")
    assert (base, URIRef("http://e/p"), Literal("new", lang="en")) in found
    assert len(found) == 4
    assert Literal("old") in set(graph(web, "other").objects())


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("INSERT DATA { GRAPH <http://e/g> { <a> <b> 1 } }", 422),
        ("LOAD <http://127.0.0.1:1/>", 422),
        (r"\u004COAD <http://127.0.0.1:1/>", 422),
        (r'INSERT DATA { <a> <b> "\u0022 } ; LOAD <http://127.0.0.1:1/>', 422),
        (r"\u005Cu004COAD <http://127.0.0.1:1/>", 400),
        (r"\uD800", 400),
        ("INSERT { <a> <b> ?x } WHERE { SERVICE <http://127.0.0.1:1/> { ?x ?y ?z } }", 422),
        ("WITH <http://e/other> DELETE { ?s ?p ?o } WHERE { ?s ?p ?o }", 422),
        ("DROP ALL", 422),
        ("INSERT DATA { <a> <b> }", 400),
        ("SELECT * { ?s ?p ?o }", 400),
    ],
)
def test_a_patch_reaches_nothing_else(web: httpx.Client, text: str, status: int) -> None:
    put(web, "d", CITY)
    before = web.get("d").text
    refused = web.patch("d", content=text, headers=UPDATE)
    assert refused.status_code == status
    assert len(refused.text.splitlines()) == 1
    assert web.get("d").text == before


def test_words_of_updates_may_stand_in_strings_and_names(web: httpx.Client) -> None:
    put(web, "d", "")
    text = 'PREFIX add: <http://e/load#> INSERT DATA { add:drop add:graph "SERVICE # LOAD" }'
    assert web.patch("d", content=text, headers=UPDATE).status_code == 200


def test_patch_needs_a_document_and_an_update(web: httpx.Client) -> None:
    text = "INSERT DATA { <a> <b> 1 }"
    assert web.patch("d", content=text, headers=UPDATE).status_code == 404
    put(web, "d", "")
    assert web.patch("d", content=text, headers=TURTLE).status_code == 415
    assert web.patch("d", content=b"\xff", headers=UPDATE).status_code == 400


def test_etags_tell_whether_a_copy_is_current(web: httpx.Client) -> None:
    tag = put(web, "d", CITY).headers["ETag"]
    assert web.get("d", headers={"Accept": "text/turtle"}).headers["ETag"] == tag
    as_json = web.get("d", headers={"Accept": "application/ld+json"}).headers["ETag"]
    assert as_json != tag
    assert web.get("d", headers={"If-None-Match": tag}).status_code == 304
    # A copy in one format says what version its holder knows, also where another was put.
    assert put(web, "d", "<> a <#T> .", **{"If-Match": as_json}).status_code == 200
    assert put(web, "d", "<> a <#U> .", **{"If-Match": tag}).status_code == 412
    assert web.delete("d", headers={"If-Match": tag}).status_code == 412
    assert put(web, "d", "<> a <#U> .", **{"If-None-Match": "*"}).status_code == 412
    assert put(web, "e", "<> a <#U> .", **{"If-None-Match": "*"}).status_code == 201
    assert put(web, "f", "<> a <#U> .", **{"If-Match": "*"}).status_code == 412
    assert web.get("f").status_code == 404
    assert web.get("d").text.strip().endswith("d#T> .")


def test_of_many_conditional_writers_one_wins(web: httpx.Client, server: LDPServer) -> None:
    tag = put(web, "d", "<> a <#T> .").headers["ETag"]
    statuses: list[int] = []

    def write(number: int) -> None:
        body = f"<> <http://e/n> {number} ."
        reply = httpx.post(f"{server.base}d", content=body, headers={**TURTLE, "If-Match": tag})
        statuses.append(reply.status_code)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(statuses) == [200] + [412] * 7
    assert len(graph(web, "d")) == 2


def test_containers_hold_what_lies_in_them(web: httpx.Client) -> None:
    base = str(web.base_url)
    put(web, "a/b/c", "<> a <#T> .")
    put(web, "a/item/", f"<> a <{DH.Item}> .")
    inside = graph(web, "a/")
    a, b, item = URIRef(f"{base}a/"), URIRef(f"{base}a/b/"), URIRef(f"{base}a/item/")
    assert set(inside.objects(a, LDP.contains)) == {b, item}
    assert (b, SIOC.has_parent, a) in inside
    assert (item, SIOC.has_container, a) in inside
    assert 'rel="type"' in web.head("a/").headers["Link"]
    assert "BasicContainer" in web.head("a/").headers["Link"]
    assert "BasicContainer" not in web.head("a/item/").headers["Link"]
    # A document does not change because of where it lies.
    assert len(graph(web, "a/b/c")) == 1


def test_a_container_can_be_described_without_losing_members(web: httpx.Client) -> None:
    put(web, "a/b", "<> a <#T> .")
    body = web.get("a/").text + f'<> <{DCT.title}> "Things" .'
    assert put(web, "a/", body).status_code == 200
    found = graph(web, "a/")
    assert len(found) == 3
    assert put(web, "a/", f'<> <{DCT.title}> "Things only" .').status_code == 200
    assert len(graph(web, "a/")) == 3
    text = "DELETE { ?s ?p ?o } WHERE { ?s ?p ?o }"
    assert web.patch("a/", content=text, headers=UPDATE).status_code == 200
    assert len(graph(web, "a/")) == 2
    assert put(web, "a/", f"<> <{LDP.contains}> <nothing> .").status_code == 409


def test_only_empty_containers_are_deleted(web: httpx.Client) -> None:
    put(web, "a/b", "<> a <#T> .")
    assert web.delete("a/").status_code == 409
    web.delete("a/b")
    assert web.get("a/").status_code == 200
    assert web.delete("a/").status_code == 204
    assert web.delete("").status_code == 405
    assert web.get("").status_code == 200


def test_nothing_lies_in_an_item(web: httpx.Client) -> None:
    put(web, "i/", f"<> a <{DH.Item}> .")
    assert put(web, "i/x", "<> a <#T> .").status_code == 409
    assert web.get("i/x").status_code == 404
    put(web, "c/x", "<> a <#T> .")
    assert put(web, "c/", f"<> a <{DH.Item}> .").status_code == 409


def test_sparql_sees_documents_as_graphs(web: httpx.Client, server: LDPServer) -> None:
    put(web, "a/b", '<http://e/x> <http://e/p> "both" .')
    put(web, "a/c", '<http://e/x> <http://e/p> "both" ; <http://e/q> "é\\n"@fr .')
    with SPARQLClient(EndpointConfig(f"{server.base}sparql")) as client:
        named = client.query("SELECT ?g { GRAPH ?g { ?s <http://e/p> ?o } } ORDER BY ?g")
        assert [row[0].value for row in named.rows()] == [f"{server.base}a/b", f"{server.base}a/c"]
        # What two documents say is one triple of all together.
        assert client.query("SELECT * { ?s <http://e/p> ?o }").n_rows == 1
        assert client.query("ASK { ?s <http://e/q> 'é\\n'@fr }").value
        assert client.query("CONSTRUCT WHERE { ?s <http://e/q> ?o }").n_rows == 1
        web.delete("a/c")
        assert client.query("SELECT * { ?s <http://e/p> ?o }").n_rows == 1
        web.delete("a/b")
        assert client.query("SELECT * { ?s <http://e/p> ?o }").n_rows == 0
        parents = "SELECT ?c { ?c <http://rdfs.org/sioc/ns#has_parent> ?p }"
        assert client.query(parents).rows()[0][0].value == f"{server.base}a/"


def test_the_sparql_protocol(web: httpx.Client) -> None:
    put(web, "d", "<http://e/x> <http://e/p> 1 .")
    query = "SELECT ?o { ?s <http://e/p> ?o }"
    replies = [
        web.get("sparql", params={"query": query}),
        web.post("sparql", data={"query": query}),
        web.post("sparql", content=query, headers={"Content-Type": "application/sparql-query"}),
    ]
    for reply in replies:
        assert reply.headers["Content-Type"] == "application/sparql-results+json"
        assert json.loads(reply.text)["results"]["bindings"][0]["o"]["value"] == "1"
    graphs = {"query": "SELECT * { ?s ?p ?o }", "default-graph-uri": f"{web.base_url}none"}
    assert web.get("sparql", params=graphs).json()["results"]["bindings"] == []
    assert "1" in web.get("sparql", params={"query": query}, headers={"Accept": "text/csv"}).text
    head = web.head("sparql", params={"query": query})
    assert (head.status_code, head.content) == (200, b"")


@pytest.mark.parametrize(
    ("method", "parameters", "status"),
    [
        ("GET", {"format": "json"}, 400),
        ("POST", {}, 415),
        ("GET", {"query": "SELECT"}, 400),
        ("GET", {"query": "INSERT DATA { <a:a> <a:b> 1 }"}, 400),
        ("GET", {"update": "DROP ALL"}, 403),
        ("GET", {"query": "SELECT * { SERVICE <http://127.0.0.1:1/> { ?s ?p ?o } }"}, 400),
        ("GET", {"query": r"SELECT * { \u0053ERVICE <http://127.0.0.1:1/> { ?s ?p ?o } }"}, 400),
        ("PUT", {"query": "ASK {}"}, 405),
    ],
)
def test_queries_that_are_refused(
    web: httpx.Client, method: str, parameters: dict[str, str], status: int
) -> None:
    refused = web.request(method, "sparql", params=parameters)
    assert refused.status_code == status
    assert len(refused.text.splitlines()) == 1


def test_a_query_that_fails_half_way_is_an_error(
    web: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write(out: IO[bytes]) -> None:
        out.write(b"half")
        raise OSError("the disk failed")

    monkeypatch.setattr(module, "query_result", lambda *_: module.Response(200, write=write))
    reply = web.get("sparql", params={"query": "ASK {}"})
    assert (reply.status_code, "half" in reply.text) == (500, False)


def test_the_service_says_what_it_is(web: httpx.Client, server: LDPServer) -> None:
    config = EndpointConfig(f"{server.base}sparql")
    with SPARQLClient(config) as client:
        reported = service_description(client)
    assert reported.offered
    assert "http://www.w3.org/ns/sparql-service-description#UnionDefaultGraph" in reported.features
    assert web.get("sparql", headers={"Accept": "text/html"}).status_code == 406


def test_what_is_not_done(web: httpx.Client) -> None:
    assert web.request("TRACE", "d").status_code == 501
    assert web.get("d?x=1").status_code == 404
    assert web.get("d", headers={"Accept": "text/html"}).status_code == 404
    put(web, "d", CITY)
    assert web.get("d", headers={"Accept": "text/html"}).status_code == 406
    assert web.put("d", content="a", headers={"Content-Type": "text/plain"}).status_code == 415
    assert put(web, "../x", CITY).status_code == 201  # the client itself resolves the dots
    assert put(web, "%2e%2e/x", CITY).status_code == 404
    assert "PATCH" in web.options("d").headers["Allow"]
    zipped = put(web, "d", CITY, **{"Content-Encoding": "gzip"})
    assert zipped.status_code == 415


def test_a_body_has_a_length_and_a_bound(
    web: httpx.Client, server: LDPServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    unknown = web.put("d", content=iter([b"<a> <b> <c> ."]), headers=TURTLE)
    assert unknown.status_code == 411
    monkeypatch.setattr(module, "MAX_BODY", 100)
    assert put(web, "d", "#" * 101).status_code == 413
    assert web.get("d").status_code == 404


def test_half_a_body_writes_nothing(web: httpx.Client, server: LDPServer) -> None:
    place = urlsplit(server.address)
    with socket.create_connection((place.hostname or "", place.port or 0)) as raw:
        head = "PUT /d HTTP/1.1\r\nContent-Type: text/turtle\r\nContent-Length: 99\r\n\r\n"
        raw.sendall(head.encode() + b"<a:a> <a:b> <a:c> .")
        raw.shutdown(socket.SHUT_WR)
        assert raw.recv(1000) == b""
    assert web.get("d").status_code == 404


def test_another_base_stands_for_a_public_site() -> None:
    with LDPServer("http://dbpedia.org/") as site:
        body = '<> <http://e/p> "x" .'
        made = httpx.put(f"{site.address}resource/Malmö", content=body, headers=TURTLE)
        assert made.headers["Location"] == "http://dbpedia.org/resource/Malm%C3%B6"
        found = httpx.get(f"{site.address}resource/Malm%c3%b6").text
        assert found.startswith("<http://dbpedia.org/resource/Malm%C3%B6>")


def test_a_port_that_is_taken_and_a_base_that_is_none() -> None:
    with LDPServer() as one:
        port = urlsplit(one.address).port
        with pytest.raises(SetupError, match="in use"):
            LDPServer(port=port)
    with pytest.raises(UsageError, match="base address"):
        LDPServer("nonsense")


def test_a_server_that_stopped_answers_nobody() -> None:
    with httpx.Client() as client:
        with LDPServer() as server:
            assert client.get(server.base).status_code == 200
        with pytest.raises(httpx.TransportError):
            client.get(server.base)


def test_types_of_containers_come_from_the_document(web: httpx.Client) -> None:
    base = str(web.base_url)
    put(web, "c/", f"<> a <{DH.Container}> .")
    put(web, "c/", f"<> a <{DH.Item}> .")
    root = graph(web, "")
    assert (URIRef(f"{base}c/"), SIOC.has_container, URIRef(base)) in root
    assert (URIRef(f"{base}c/"), SIOC.has_parent, None) not in root
    assert (URIRef(f"{base}c/"), RDF.type, DH.Item) in graph(web, "c/")


def test_documents_in_a_folder_and_in_a_store_outlive_the_server(tmp_path: Path) -> None:
    for kept in ({"folder": tmp_path / "files"}, {"store": tmp_path / "store"}):
        with LDPServer("http://docs.example/", **kept) as first:
            for path in ("a/b", "a/i/", "København"):
                made = httpx.put(f"{first.address}{path}", content=CITY, headers=TURTLE)
                assert made.status_code == 201
            httpx.put(f"{first.address}gone", content=CITY, headers=TURTLE)
            httpx.delete(f"{first.address}gone")
            before = {path: httpx.get(f"{first.address}{path}").text for path in ("", "a/")}
        with LDPServer("http://docs.example/", **kept) as second:
            for path, text in before.items():
                again = httpx.get(f"{second.address}{path}").text
                assert sorted(again.splitlines()) == sorted(text.splitlines())
            reply = httpx.get(f"{second.address}a/b")
            found = Graph().parse(data=reply.text, format="turtle")
            assert isomorphic(found, Graph().parse(data=CITY, format="turtle"))
            assert httpx.get(f"{second.address}gone").status_code == 404
            query = "SELECT (COUNT(*) AS ?n) { ?s <http://e/name> ?o }"
            counted = httpx.get(f"{second.address}sparql", params={"query": query}).json()
            assert counted["results"]["bindings"][0]["n"]["value"] == "1"


@pytest.mark.parametrize("length", ["²", "9" * 5000, "-1", "1_0", "x"])
def test_a_length_that_is_none_is_answered(
    server: LDPServer, capfd: pytest.CaptureFixture[str], length: str
) -> None:
    place = urlsplit(server.address)
    with socket.create_connection((str(place.hostname), place.port or 0), timeout=10) as connection:
        head = f"PUT /a HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n\r\n"
        connection.sendall(head.encode("latin-1"))
        assert connection.recv(1000).startswith(b"HTTP/1.1 411 ")
    assert "Traceback" not in capfd.readouterr().err


def test_every_spelling_of_the_endpoint_is_the_endpoint(web: httpx.Client) -> None:
    assert put(web, "%73parql", CITY).status_code == 405
    assert web.get("%73parql", params={"query": "ASK {}"}).json()["boolean"] is True
    assert "sparql" not in web.get("").text


@pytest.mark.parametrize(
    "update",
    [
        "DELETE {} WHERE " + "{" * 5000 + "}" * 5000,
        "DELETE {} WHERE { FILTER(" + "(" * 5000 + "1" + ")" * 5000 + ") }",
        "DELETE {} WHERE { FILTER(" + "!" * 5000 + "true) }",
        "DELETE {} WHERE { " + "OPTIONAL { ?s ?p ?o } " * 1000 + "}",
    ],
)
def test_an_update_that_nests_too_deeply_does_not_end_the_server(
    web: httpx.Client, update: str
) -> None:
    put(web, "d", CITY)
    refused = web.patch("d", content=update, headers=UPDATE)
    assert refused.status_code == 422
    assert "nested too deeply" in refused.text
    assert web.get("d").status_code == 200


def test_an_update_may_add_very_many_triples(web: httpx.Client) -> None:
    put(web, "d", "")
    lines = "".join(f"<#s> <#p> -{number} , {number}.5 . " for number in range(2000))
    assert web.patch("d", content=f"INSERT DATA {{ {lines} }}", headers=UPDATE).status_code == 200
    assert len(graph(web, "d")) == 4000


def test_a_backslash_before_a_u_is_not_a_codepoint(web: httpx.Client) -> None:
    put(web, "d", "")
    update = r'INSERT DATA { <#s> <#p> "C:\\u0041bc\\udead \u0041" }'
    assert web.patch("d", content=update, headers=UPDATE).status_code == 200
    assert list(graph(web, "d").objects()) == [Literal(r"C:\u0041bc\udead A")]
    query = r'ASK { ?s ?p ?o FILTER(STRSTARTS(?o, "C:\\u0041bc")) }'
    assert web.get("sparql", params={"query": query}).json()["boolean"] is True


def test_documents_can_be_given_and_are_reported_without_the_servers_links() -> None:
    a, b = NamedNode("http://e/a"), NamedNode("http://e/b")
    begun = {"http://home.example/x/one": [Triple(a, a, b)]}
    with LDPServer("http://home.example/", initial=begun) as server:
        assert httpx.get(f"{server.address}x/one").status_code == 200
        assert "x/one" in httpx.get(f"{server.address}x/").text
        turtle = {"Content-Type": "text/turtle"}
        httpx.put(f"{server.address}x/two", content="<#a> <#b> 1 .", headers=turtle)
        written = server.documents.written()
    assert sorted(written) == ["http://home.example/x/one", "http://home.example/x/two"]
    assert written["http://home.example/x/one"] == begun["http://home.example/x/one"]


@pytest.mark.parametrize(
    "lines",
    [
        "Content-Length: 0\r\nContent-Length: {n}",
        "Content-Length: {n}\r\nContent-Length: 0",
        "X : y\r\nContent-Length: {n}",
    ],
)
def test_no_request_hides_in_the_body_of_another(
    server: LDPServer, web: httpx.Client, lines: str
) -> None:
    place = urlsplit(server.address)
    inner = "PUT /hidden HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/turtle\r\n"
    body = f"{inner}Content-Length: {len(CITY)}\r\n\r\n{CITY}"
    head = f"PUT /seen HTTP/1.1\r\nHost: localhost\r\n{lines.format(n=len(body))}\r\n\r\n"
    with socket.create_connection((str(place.hostname), place.port or 0), timeout=10) as connection:
        connection.sendall(f"{head}{body}".encode())
        assert connection.recv(1000).startswith(b"HTTP/1.1 400 ")
    assert web.get("hidden").status_code == 404


def test_a_page_of_another_site_changes_nothing(web: httpx.Client, server: LDPServer) -> None:
    foreign = {**TURTLE, "Origin": "http://attacker.example"}
    assert web.put("a", content=CITY, headers=foreign).status_code == 403
    assert web.get("a").status_code == 404
    assert web.get("", headers=foreign).status_code == 200
    own = {**TURTLE, "Origin": server.address.rstrip("/")}
    assert web.put("a", content=CITY, headers=own).status_code == 201
    for unclear in ("null", "http://[x"):
        asked = web.put("b", content=CITY, headers={**TURTLE, "Origin": unclear})
        assert asked.status_code == 403, unclear


def test_a_name_made_to_lead_here_reads_nothing(web: httpx.Client, server: LDPServer) -> None:
    assert web.put("a", content=CITY, headers=TURTLE).status_code == 201
    own = urlsplit(server.base).netloc
    for host, status in ((own, 200), ("localhost", 200), ("", 200), ("[::1]:80", 200),
                         ("attacker.example", 421), ("127.0.0.1.attacker.example:80", 421),
                         ("[x", 421)):  # fmt: skip
        assert web.get("a", headers={"Host": host}).status_code == status, host
        assert web.get("sparql", headers={"Host": host}).status_code == status, host


@pytest.mark.parametrize("deep", [200, 30_000])
def test_triples_in_triples_end_somewhere(web: httpx.Client, deep: int) -> None:
    body = "<a:a> <a:b> " + "<<( <a:a> <a:b> " * deep + "<a:c>" + " )>>" * deep + " ."
    reply = web.put("a", content=body, headers=TURTLE)
    assert (reply.status_code, "nest more than 100 deep" in reply.text) == (400, True)
