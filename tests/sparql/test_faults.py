"""The client against a server that misbehaves."""

from __future__ import annotations

import json
import threading
import time
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from pyoxigraph import Literal

from reasoningbank.errors import (
    EndpointError,
    QueryError,
    QueryTimeoutError,
    ReasoningBankError,
)
from reasoningbank.sparql import BooleanResult, EndpointConfig, SPARQLClient, TableResult, full

from .faulty import Answer, FaultyServer

JSON = {"Content-Type": "application/sparql-results+json"}
HTML = {"Content-Type": "text/html"}
PAGE = b"<!DOCTYPE html><html><head><title>Down for\nmaintenance</title></head></html>"
QUERY = "SELECT ?x { ?x ?y ?z }"


def ask(faulty: FaultyServer, query: str = QUERY, **settings: Any) -> Any:
    settings = {"backoff_s": 0.01, "timeout_s": 60.0, **settings}
    with SPARQLClient(EndpointConfig(faulty.url, "Faulty", **settings)) as client:
        return client.query(query)


def drop(handler: BaseHTTPRequestHandler) -> None:
    handler.connection.close()


def drop_midway(handler: BaseHTTPRequestHandler) -> None:
    handler.wfile.write(
        b"HTTP/1.1 200 OK\r\nContent-Type: text/tab-separated-values\r\n"
        b"Transfer-Encoding: chunked\r\n\r\n5\r\n?x\n1\n\r\n"
    )


def drip(handler: BaseHTTPRequestHandler) -> None:
    handler.wfile.write(
        b"HTTP/1.1 200 OK\r\nContent-Type: text/tab-separated-values\r\n"
        b"Content-Length: 100000000\r\n\r\n?x\n"
    )
    while True:  # until the client hangs up
        handler.wfile.write(b"1\n")
        time.sleep(0.05)


def drip_headers(handler: BaseHTTPRequestHandler) -> None:
    handler.wfile.write(b"HTTP/1.1 200 OK\r\n")
    while True:
        handler.wfile.write(b"X-Slow: 1\r\n")
        time.sleep(0.05)


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_a_busy_server_is_asked_again(faulty: FaultyServer, status: int) -> None:
    busy = Answer(status, b"busy", {"Retry-After": "0"})
    faulty.script(busy, busy, Answer())
    assert ask(faulty).rows() == [(Literal(1),)]
    assert len(faulty.seen) == 3


def test_retry_after_is_honoured(faulty: FaultyServer) -> None:
    faulty.script(Answer(503, b"", {"Retry-After": "1"}), Answer())
    ask(faulty)
    assert faulty.seen[1].at - faulty.seen[0].at >= 1.0


def test_retries_end(faulty: FaultyServer) -> None:
    faulty.script(Answer(502, PAGE, HTML))
    with pytest.raises(EndpointError, match=r"HTTP 502: Down for maintenance; try again later"):
        ask(faulty, retries=2)
    assert len(faulty.seen) == 3


def test_a_wait_past_the_deadline_is_not_waited_for(faulty: FaultyServer) -> None:
    faulty.script(Answer(429, b"slow down", {"Retry-After": "3600"}))
    with pytest.raises(EndpointError, match="HTTP 429: slow down"):
        ask(faulty)
    assert len(faulty.seen) == 1


@pytest.mark.parametrize(
    "lost",
    [Answer(say=drop), Answer(say=drop_midway), Answer(body=b"?x\n1\n", announce=1_000)],
    ids=["before the answer", "between chunks", "within the announced length"],
)
def test_a_dropped_connection_is_tried_again(faulty: FaultyServer, lost: Answer) -> None:
    faulty.script(lost, Answer())
    assert ask(faulty).rows() == [(Literal(1),)]
    faulty.script(lost)
    with pytest.raises(EndpointError) as caught:
        ask(faulty, retries=1)
    assert caught.value.code == "dropped"
    assert len(faulty.seen) == 4


@pytest.mark.parametrize("slow", [drip, drip_headers], ids=["body", "headers"])
def test_a_trickle_cannot_outlast_the_timeout(faulty: FaultyServer, slow: Any) -> None:
    faulty.script(Answer(say=slow))
    with pytest.raises(QueryTimeoutError):
        ask(faulty, timeout_s=0.5)
    assert len(faulty.seen) == 1


def test_a_web_page_is_not_a_result(faulty: FaultyServer) -> None:
    faulty.script(Answer(200, PAGE, HTML))
    with pytest.raises(EndpointError, match=r"a web page came instead .*Down for maintenance"):
        ask(faulty)
    faulty.script(Answer(200, b"hello", {"Content-Type": "text/plain"}))
    with pytest.raises(EndpointError) as caught:
        ask(faulty)
    assert caught.value.code == "unreadable"


@pytest.mark.parametrize(
    ("answer", "kind", "code"),
    [
        (Answer(400, b"no such function"), QueryError, "query-rejected"),
        (Answer(413, b""), QueryError, "too-long"),
        (Answer(414, b""), QueryError, "too-long"),
        (Answer(408, b""), QueryTimeoutError, "query-timeout"),
        (
            Answer(500, b"Virtuoso 42000 Error The estimated execution time 900 exceeds the limit"),
            QueryError,
            "too-costly",
        ),
        (Answer(500, b"Virtuoso 37000 Error SP030: SPARQL compiler"), QueryError, "query-rejected"),
        (Answer(500, PAGE, HTML), EndpointError, "http-status"),
        (Answer(401, b""), EndpointError, "http-status"),
        (Answer(403, b"no"), EndpointError, "http-status"),
        (Answer(404, b""), EndpointError, "http-status"),
    ],
)
def test_the_status_tells_whose_fault_it_is(
    faulty: FaultyServer, answer: Answer, kind: type[ReasoningBankError], code: str
) -> None:
    faulty.script(answer)
    with pytest.raises(kind) as caught:
        ask(faulty)
    assert type(caught.value) is kind
    assert caught.value.code == code
    assert caught.value.fields.get("status", answer.status) == answer.status
    assert "\n" not in str(caught.value)
    assert len(faulty.seen) == 1


def test_an_engine_without_tsv_is_asked_for_json(faulty: FaultyServer) -> None:
    body = b"""{"head":{"vars":["x"]},"results":{"bindings":[{"x":{"type":"typed-literal",
      "value":"1","datatype":"http://www.w3.org/2001/XMLSchema#integer"}}]}}"""
    faulty.script(Answer(406, b""), Answer(200, body, JSON))
    assert ask(faulty).rows() == [(Literal(1),)]
    faulty.script(Answer(200, body, JSON))
    assert ask(faulty).rows() == [(Literal(1),)]
    assert len(faulty.seen) == 3


@pytest.mark.parametrize(
    "unfaithful",
    [
        Answer(200, b'"x"\n1\n'),
        Answer(200, b"?x\nBaum\n"),
        Answer(
            200, b"?x\n1\n", {"Content-Type": "text/tab-separated-values", "Server": "Virtuoso/7"}
        ),
    ],
    ids=["header", "cell", "engine"],
)
def test_unfaithful_tsv_is_asked_for_again_as_json(
    faulty: FaultyServer, unfaithful: Answer
) -> None:
    body = (
        b'{"head":{"vars":["x"]},"results":{"bindings":'
        b'[{"x":{"type":"literal","value":"Baum","xml:lang":"de"}}]}}'
    )
    faulty.script(unfaithful, Answer(200, body, JSON))
    with SPARQLClient(EndpointConfig(faulty.url)) as client:
        for _ in range(2):
            found = client.query(QUERY)
            assert isinstance(found, TableResult)
            assert found.rows() == [(Literal("Baum", language="de"),)]
    # What was learned about the engine is kept: TSV was asked for once.
    asked = [seen.headers["Accept"] for seen in faulty.seen]
    assert [a.startswith("text/tab") for a in asked] == [True, False, False]


def test_json_that_ends_in_a_message_is_the_querys_fault(faulty: FaultyServer) -> None:
    body = b'{"head":{"vars":["x"]},"results":{"bindings":[The SPARQL operation has been cancelled'
    faulty.script(Answer(200, body, JSON))
    with pytest.raises(QueryTimeoutError):
        ask(faulty)


def test_partial_results_are_marked(faulty: FaultyServer) -> None:
    headers = {"Content-Type": "text/tab-separated-values", "X-SQL-State": "S1TAT"}
    faulty.script(Answer(headers=headers))
    assert ask(faulty).truncated
    for media_type in ("application/n-triples", "text/turtle"):
        marked = {"Content-Type": media_type, "X-SQL-State": "S1TAT"}
        faulty.script(Answer(body=b"<a:a> <a:b> <a:c> .\n", headers=marked))
        assert ask(faulty, "CONSTRUCT WHERE { ?s ?p ?o }").truncated
    # What was found is there; what was not found may be.
    faulty.script(Answer(body=b'{"boolean": true}', headers={**JSON, "X-SQL-State": "S1TAT"}))
    assert ask(faulty, "ASK { ?s ?p ?o }").value
    faulty.script(Answer(206, b'{"boolean": false}', JSON))
    with pytest.raises(QueryTimeoutError):
        ask(faulty, "ASK { ?s ?p ?o }")


def test_waiting_behind_others_is_not_the_querys_fault(faulty: FaultyServer) -> None:
    def late(handler: BaseHTTPRequestHandler) -> None:
        time.sleep(0.6)

    faulty.script(Answer(say=late))
    settings = {"timeout_s": 0.5, "deadline_s": 0.5, "max_connections": 1, "retries": 0}
    config = EndpointConfig(faulty.url, "Busy", **settings)
    with SPARQLClient(config) as client:
        first = threading.Thread(
            target=pytest.raises, args=(QueryTimeoutError, client.query, QUERY)
        )
        first.start()
        while not faulty.seen:
            time.sleep(0.01)
        time.sleep(0.2)
        with pytest.raises(EndpointError) as caught:
            client.query(QUERY)
        assert caught.value.code == "busy"
        first.join()


#: An ASK as Virtuoso answers it.
TABLE = (
    b'{"head": {"vars": ["__ASK_RETVAL"]}, "results": {"bindings": '
    b'[{"__ASK_RETVAL": {"type": "literal", "value": "1"}}]}}'
)


@pytest.mark.parametrize(
    "body", [b'{"boolean": true}', b"true", b"<sparql><boolean>true</boolean></sparql>", TABLE]
)
def test_booleans_come_in_many_forms(faulty: FaultyServer, body: bytes) -> None:
    faulty.script(Answer(200, body, {"Content-Type": "application/octet-stream"}))
    found = ask(faulty, "ASK {}")
    assert isinstance(found, BooleanResult)
    assert found.value is True


def test_a_table_that_answers_an_ask_is_refused(faulty: FaultyServer) -> None:
    faulty.script(Answer(200, TABLE.replace(b"__ASK_RETVAL", b"x"), JSON))
    with pytest.raises(EndpointError) as caught:
        ask(faulty, "ASK {}")
    assert caught.value.code == "unreadable"


def test_redirects_elsewhere_are_not_followed(faulty: FaultyServer) -> None:
    other = FaultyServer()
    other.script(Answer())
    try:
        faulty.script(Answer(302, b"", {"Location": other.url}))
        with pytest.raises(EndpointError, match="redirects to"):
            ask(faulty)
        faulty.script(Answer(302, b"", {"Location": "file:///etc/passwd"}))
        with pytest.raises(EndpointError):
            ask(faulty)
        assert other.seen == []
    finally:
        other.close()


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_redirects_within_the_host_keep_a_long_query(faulty: FaultyServer, status: int) -> None:
    faulty.script(Answer(status, b"", {"Location": "/sparql/"}), Answer())
    query = QUERY + " # " + "long " * 500
    assert ask(faulty, query).n_rows == 1
    first, second = faulty.seen
    assert (first.method, second.method, second.path) == ("POST", "POST", "/sparql/")
    assert parse_qs(second.body.decode())["query"][0].startswith(QUERY)


def test_requests_carry_agent_headers_and_the_query(faulty: FaultyServer) -> None:
    faulty.script(Answer())
    ask(faulty, user_agent="lab/1 (a@example.org)", headers={"X-Key": "k"})
    seen = faulty.seen[0]
    assert (seen.headers["User-Agent"], seen.headers["X-Key"]) == ("lab/1 (a@example.org)", "k")
    assert parse_qs(urlsplit(seen.path).query)["query"] == [f"{QUERY}\nLIMIT 10001"]


def test_loopback_is_never_asked_through_a_proxy(
    faulty: FaultyServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9/")
    faulty.script(Answer())
    assert ask(faulty).n_rows == 1


def test_connections_are_limited_for_all_clients_of_an_address(faulty: FaultyServer) -> None:
    def slow(handler: BaseHTTPRequestHandler) -> None:
        time.sleep(0.1)
        handler.wfile.write(
            b"HTTP/1.0 200 OK\r\nContent-Type: text/tab-separated-values\r\n\r\n?x\n"
        )

    faulty.script(Answer(say=slow))
    threads = [
        threading.Thread(target=ask, args=(faulty,), kwargs={"max_connections": 1 + number % 2})
        for number in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(faulty.seen) == 6
    assert faulty.most_in_flight == 2


def test_requests_keep_their_distance(faulty: FaultyServer) -> None:
    faulty.script(Answer())
    config = EndpointConfig(faulty.url, min_interval_s=0.2)
    began = time.monotonic()
    with SPARQLClient(config) as client:
        for sent in range(3):
            client.query(QUERY)
            # By the clock of who asks: a busy machine may hear of one request late.
            assert time.monotonic() - began >= 0.2 * sent


def test_terms_that_rdf_does_not_allow_are_read_all_the_same(faulty: FaultyServer) -> None:
    body = b"""{"head":{"vars":["x"]},"results":{"bindings":[
      {"x":{"type":"uri","value":"http://e/a b"}}, {"x":{"type":"bnode","value":"nodeID://b1"}},
      {"x":{"type":"literal","value":"a\\nb","xml:lang":"en_US"}}, {},
      {"x":{"type":"literal","value":"1","datatype":"not-absolute"}}]}}"""
    faulty.script(Answer(200, body, JSON))
    found = ask(faulty)
    assert [full(row[0]) if row[0] else None for row in found.rows()] == [
        "<http://e/a b>",
        "_:nodeIDx3ax2fx2fb1",
        '"a\\nb"@en-us',
        None,
        '"1"^^<not-absolute>',
    ]
    faulty.script(Answer(200, b"?x\n<http://e/a b>\n"))
    assert ask(faulty).rows() == found.rows(0, 1)
    line = b"<http://e/s> <http://e/p> <http://e/a b> .\n"
    faulty.script(Answer(200, line, {"Content-Type": "application/n-triples"}))
    graph = ask(faulty, "CONSTRUCT WHERE { ?s ?p ?o }")
    assert [full(t.object) for t in graph.triples()] == ["<http://e/a b>"]


@pytest.mark.parametrize("said", ["error at 3:5: no", "Lexical error at line 3, column 5. no"])
def test_positions_of_any_engine_are_traced_to_the_authors_lines(
    faulty: FaultyServer, said: str
) -> None:
    faulty.script(Answer(400, said.encode()))
    with pytest.raises(QueryError) as caught:
        ask(faulty, "SELECT *\n{ ?s rdfs:label ?o }")
    # The added PREFIX line counts for the engine and not for the author.
    assert caught.value.where == "line 2, column 6"
    assert "no" in caught.value.what


def test_a_value_longer_than_the_parser_takes_is_read_whole(faulty: FaultyServer) -> None:
    text = 'a "b"\\' * 200_000
    cell = text.replace("\\", "\\\\").replace('"', '\\"')
    faulty.script(Answer(200, f'?x\t?y\n"{cell}"@en\t"\\u00e9 {cell}"\n'.encode()))
    found = ask(faulty)
    assert found.rows() == [(Literal(text, language="en"), Literal(f"é {text}"))]
    text = "x" * 17_000_000
    value = {"type": "literal", "value": text}
    body = json.dumps({"head": {"vars": ["x"]}, "results": {"bindings": [{"x": value}]}})
    faulty.script(Answer(200, body.encode(), JSON))
    assert ask(faulty).rows() == [(Literal(text),)]


def test_what_no_engine_means_is_refused(faulty: FaultyServer) -> None:
    many = "\t".join(f"?c{n}" for n in range(1_001))
    faulty.script(Answer(200, f"{many}\n".encode()))
    with pytest.raises(QueryError, match="1,001 columns, more than 1,000"):
        ask(faulty)
    twice = b'{"head":{"vars":["x","x"]},"results":{"bindings":[]}}'
    faulty.script(Answer(200, twice, JSON))
    with pytest.raises(EndpointError, match="two columns of it have the same name"):
        ask(faulty)


@pytest.mark.parametrize("answer", [b"", b"not a table", b'?x\n"half'])
def test_what_is_wrong_with_an_engine_with_only_tsv_is_reported(
    faulty: FaultyServer, answer: bytes
) -> None:
    faulty.script(Answer(200, answer))
    with pytest.raises((EndpointError, QueryError)) as caught:
        ask(faulty)
    assert "unknown format" not in str(caught.value)


def test_compressed_answers_are_not_unpacked(faulty: FaultyServer) -> None:
    headers = {"Content-Type": "text/tab-separated-values", "Content-Encoding": "gzip"}
    faulty.script(Answer(200, b"\x1f\x8b", headers))
    with pytest.raises(EndpointError, match=r"compressed \(gzip\), which was not asked for"):
        ask(faulty)
    assert len(faulty.seen) == 1
    faulty.script(Answer(headers=headers | {"Content-Encoding": "identity"}))
    assert ask(faulty).n_rows == 1
