"""What is found out of an endpoint is found out once, for all threads, within its time."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler
from urllib.parse import unquote_plus

import pytest
from sparql.faulty import Answer, FaultyServer

from reasoningbank.errors import QueryError, QueryTimeoutError, ToolError
from reasoningbank.schema import EndpointProfile
from reasoningbank.schema import sampling as module
from reasoningbank.schema.sampling import Way, first_answer
from reasoningbank.sparql import EndpointConfig
from reasoningbank.tools import SPARQLTools
from reasoningbank.tools.describing import bounded_count

from .guard import guarded


@pytest.fixture
def faulty() -> Iterator[FaultyServer]:
    made = FaultyServer()
    yield made
    made.close()


def test_threads_and_trials_share_what_is_known(trees: EndpointConfig) -> None:
    with guarded(trees.address) as guard:
        config = replace(trees, query_url=guard.url)
        profile = EndpointProfile(config, look=50_000)
        tools = [SPARQLTools(config, profile=profile) for _ in range(6)]
        threads = [threading.Thread(target=one.sparql_find, args=("oak",)) for one in tools]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        counting = [query for query in guard.passed if "SELECT ?property ?n" in query]
        assert len(counting) == 1
        tools[0].close()
        assert tools[1].sparql_find("oak")["results"]


def test_an_own_profile_is_closed_with_the_tools(trees: EndpointConfig) -> None:
    tools = SPARQLTools(trees)
    tools.close()
    with pytest.raises(Exception, match="closed"):
        tools.sparql_classes()


def test_a_silent_endpoint_does_not_hold_an_agent_up(faulty: FaultyServer) -> None:
    def drip(handler: BaseHTTPRequestHandler) -> None:
        over.wait()

    over = threading.Event()
    faulty.script(Answer(say=drip))
    tools = SPARQLTools(EndpointConfig(faulty.url, "Slow", timeout_s=1, retries=0))
    for call in (tools.sparql_classes, lambda: tools.sparql_find("oak")):
        with pytest.raises(ToolError, match="timed out"):
            call()
    over.set()


def test_a_way_that_failed_is_not_gone_again_but_its_reason_is_kept() -> None:
    calls: list[str] = []

    def fails() -> int:
        calls.append("fails")
        raise QueryTimeoutError("the query timed out (30 s)")

    given_up: dict[str, QueryError] = {}
    ways = [Way("all", fails, "all"), Way("some", lambda: None)]
    for _ in range(2):
        with pytest.raises(QueryError, match="timed out"):
            first_answer(ways, given_up)
    assert calls == ["fails"]
    found = first_answer([*ways, Way("few", lambda: 3)], {})
    assert found is not None
    assert (found.value, found.via, found.notes) == (3, "few", ("all: the query timed out (30 s)",))
    assert first_answer([Way("some", lambda: None)], {}) is None


def test_a_way_that_a_call_had_no_time_for_is_gone_the_next_time(faulty: FaultyServer) -> None:
    def hang(handler: BaseHTTPRequestHandler) -> None:
        time.sleep(1.5)

    def answer(handler: BaseHTTPRequestHandler) -> None:
        query = unquote_plus(faulty.seen[-1].path)
        if "LIMIT 1000 }" not in query and "ASK" not in query:
            hang(handler)
            return
        rows, media = b"?name\t?count\n<http://e/A>\t3\n", "text/tab-separated-values"
        if "ASK" in query:
            rows, media = b'{"boolean": true}', "application/sparql-results+json"
        handler.send_response_only(200)
        handler.send_header("Content-Type", media)
        handler.send_header("Content-Length", str(len(rows)))
        handler.end_headers()
        handler.wfile.write(rows)

    faulty.script(Answer(say=answer))
    tools = SPARQLTools(EndpointConfig(faulty.url, "Slow", timeout_s=2, retries=0))
    # Each way that hangs takes more than half of a call's time.
    for given_up in ({"void: classes"}, {"void: classes", "look: classes"}):
        with contextlib.suppress(ToolError):
            tools.sparql_classes()
        assert set(tools.profile.given_up) == given_up
    assert "http://e/A" in str(tools.sparql_classes())


def test_an_endpoint_that_cannot_tell_is_asked_again_where_its_data_are(
    faulty: FaultyServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def hang(handler: BaseHTTPRequestHandler) -> None:
        time.sleep(1)

    media = {"Content-Type": "application/sparql-results+json"}
    no, truth = (Answer(200, b'{"boolean": %s}' % word, media) for word in (b"false", b"true"))
    faulty.script(Answer(say=hang))
    monkeypatch.setattr(module, "UNSURE_S", 0.2)
    profile = EndpointProfile(EndpointConfig(faulty.url, "Slow", timeout_s=1, retries=0))
    assert (profile.in_graphs, profile.in_graphs, len(faulty.seen)) == (False, False, 1)
    time.sleep(0.3)
    faulty.script(no, truth)
    assert (profile.in_graphs, profile.in_graphs, len(faulty.seen)) == (True, True, 3)


@pytest.mark.parametrize(
    ("query", "inner"),
    [
        ("select (count(*) as ?n) where { ?s ?p ?o . # } \n }", "SELECT * WHERE { ?s ?p ?o"),
        ('PREFIX e: <http://e/> SELECT (COUNT(?s) AS ?n) { ?s e:p "}" }', 'e:p "}" } LIMIT 9'),
        ("SELECT (COUNT(DISTINCT ?s) AS ?n) { { ?s ?p 1 } UNION { ?s ?p 2 } }", "SELECT ?s WHERE"),
    ],
)
def test_a_plain_count_can_be_bounded(query: str, inner: str) -> None:
    bounded = bounded_count(query, 9)
    assert bounded is not None
    assert inner in bounded
    assert bounded.endswith("LIMIT 9 } }")


@pytest.mark.parametrize(
    "query",
    [
        "SELECT ?s { ?s ?p ?o }",
        "SELECT ?c (COUNT(*) AS ?n) { ?s a ?c } GROUP BY ?c",
        "SELECT (COUNT(*) AS ?n) (1 AS ?one) { ?s a ?c }",
        "SELECT (COUNT(*) AS ?n) { ?s a ?c } GROUP BY ?c",
        "SELECT (COUNT(*) AS ?n) FROM <http://e/g> { ?s a ?c }",
        "SELECT (SUM(?x) AS ?n) { ?s ?p ?x }",
        "SELECT (COUNT(*) AS ?n) { ?s ?p ?o } VALUES ?s { 1 }",
        "ASK { ?s ?p ?o }",
        "",
    ],
)
def test_nothing_else_is_taken_for_a_count(query: str) -> None:
    assert bounded_count(query) is None
