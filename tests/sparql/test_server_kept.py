"""An embedded engine that ends, or that computes what nobody waits for, is started again."""

from __future__ import annotations

import socket
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest

from reasoningbank.errors import EndpointError, QueryError, QueryTimeoutError
from reasoningbank.sparql import EndpointConfig, OxigraphServer, SPARQLClient, TableResult
from reasoningbank.sparql.supervisor import LEAST_PATIENCE_S

NUMBERS = 2_000
PREFIX = "PREFIX : <http://e/>\n"
#: Its first pattern is read anew after hours of computing; an engine can be interrupted only there.
PRODUCT = "?a :v ?x . ?b :v ?y . ?c :v ?z . ?d :v ?u ."
RUNAWAYS = {
    "a filter": f"SELECT * {{ {PRODUCT} FILTER(?x + ?y + ?z + ?u < 0) }}",
    "an aggregate": f"SELECT (SUM(?x * ?y * ?z * ?u) AS ?n) {{ {PRODUCT} }}",
    "rows that are all the same": f"SELECT DISTINCT ?k {{ {PRODUCT} BIND(?x * 0 AS ?k) }}",
}
ALL = "SELECT (COUNT(*) AS ?n) { ?s :v ?o }"


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("data") / "numbers.ttl"
    lines = " ".join(f":n{n} :v {n} ." for n in range(NUMBERS))
    file.write_text(f"@prefix : <http://e/> . {lines}")
    return file


@pytest.fixture
def server(file: Path) -> Iterator[OxigraphServer]:
    with OxigraphServer([file], timeout_s=1) as running:
        yield running


@contextmanager
def asking(server: OxigraphServer, timeout_s: float = 30.0) -> Iterator[SPARQLClient]:
    with SPARQLClient(EndpointConfig(server.url, timeout_s=timeout_s)) as client:
        yield client


def engine(server: OxigraphServer) -> psutil.Process:
    """Return the process of the engine; waits for one."""
    port = server.port
    end = time.monotonic() + 120
    while time.monotonic() < end:
        for supervisor in psutil.Process().children():
            with suppress(psutil.Error):
                if "supervisor.py" in " ".join(supervisor.cmdline()) and any(
                    c.laddr.port == port for c in supervisor.net_connections("tcp")
                ):
                    for child in supervisor.children():
                        if child.name() == "oxigraph":
                            return child
        time.sleep(0.02)
    raise AssertionError("no engine")


def cpu_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return times.user + times.system


def give_up(server: OxigraphServer, query: str, after_s: float = 0.5) -> None:
    with asking(server, after_s) as client, pytest.raises(QueryTimeoutError):
        client.query(PREFIX + query)


def counted(client: SPARQLClient) -> str:
    found = client.query(PREFIX + ALL)
    assert isinstance(found, TableResult)
    return str(found.rows(0, 1)[0][0].value)


def unfinished(server: OxigraphServer) -> socket.socket:
    """Begin a request and leave it at that."""
    client = socket.create_connection(("127.0.0.1", server.port), timeout=120)
    client.sendall(b"POST /query HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 99\r\n\r\nASK")
    return client


def until_gone(process: psutil.Process, within_s: float) -> float:
    began = time.monotonic()
    process.wait(within_s)
    return time.monotonic() - began


@pytest.mark.parametrize("query", RUNAWAYS.values(), ids=RUNAWAYS)
def test_what_nobody_waits_for_does_not_run_on(server: OxigraphServer, query: str) -> None:
    first = engine(server)
    url = server.url
    give_up(server, query)
    # The engine's own limit of 1 s does not end it, and it is given some time.
    assert until_gone(first, 120) > 0.5
    with asking(server) as client:
        assert counted(client) == str(NUMBERS)
    assert server.url == url
    second = engine(server)
    assert second.pid != first.pid
    before = cpu_s(second)
    time.sleep(0.5)
    assert cpu_s(second) - before < 0.1


def test_others_are_not_disturbed_before_the_engines_own_limit_is_over(file: Path) -> None:
    limit_s = 3
    with OxigraphServer([file], timeout_s=limit_s) as server:
        first = engine(server)
        began = time.monotonic()
        give_up(server, RUNAWAYS["a filter"], 0.3)
        # Somebody waits at every moment, though nobody for long.
        with unfinished(server):
            time.sleep(2.4)
            other = unfinished(server)
            time.sleep(0.2)
        with other:
            until_gone(first, 120)
            took = time.monotonic() - began
            assert other.recv(99).startswith(b"HTTP/1.1 503 ")
        assert took > limit_s + LEAST_PATIENCE_S - 0.1
        with asking(server) as client:
            assert counted(client) == str(NUMBERS)


def test_who_asks_one_thing_after_another_sees_nothing_of_it(server: OxigraphServer) -> None:
    first = engine(server)
    give_up(server, RUNAWAYS["a filter"])
    with asking(server) as client:
        while first.is_running():
            assert counted(client) == str(NUMBERS)
        assert counted(client) == str(NUMBERS)


def test_a_query_that_ends_by_itself_costs_nobody_the_engine(server: OxigraphServer) -> None:
    first = engine(server)
    # Its client leaves first; the engine can interrupt it, since it reads the store all along.
    give_up(server, "SELECT (COUNT(*) AS ?n) { ?a :v ?x . ?b :v ?y FILTER(?x + ?y > 1) }", 0.2)
    with asking(server) as client:
        for _ in range(5):
            assert counted(client) == str(NUMBERS)
    time.sleep(LEAST_PATIENCE_S + 1.2)
    assert first.is_running()
    assert engine(server).pid == first.pid


def test_a_wait_beyond_the_engines_interrupt_limit_is_reported(
    server: OxigraphServer,
) -> None:
    with (
        asking(server, 60) as client,
        pytest.raises(QueryError, match=r"timed out .*too long to run"),
    ):
        client.query(PREFIX + RUNAWAYS["a filter"])


def test_an_engine_that_is_killed_comes_back_before_anything_is_answered(
    server: OxigraphServer,
) -> None:
    for _ in range(4):
        # The same query each time: it may meet the engine's end, and is not to blame for it.
        engine(server).kill()
        with asking(server) as client:
            assert counted(client) == str(NUMBERS)


def test_data_that_changed_meanwhile_are_not_served(tmp_path: Path) -> None:
    file = tmp_path / "a.nt"
    file.write_text("<http://e/a> <http://e/v> <http://e/b> .")
    with OxigraphServer([file]) as server:
        file.write_text("<http://e/a> <http://e/v> <http://e/c> .")
        engine(server).kill()
        with SPARQLClient(EndpointConfig(server.url, backoff_s=0.01, retries=1)) as client:
            with pytest.raises(EndpointError, match=r"a\.nt: was changed since"):
                client.query("ASK { ?s ?p ?o }")
            file.write_text("<http://e/a> <http://e/v> <http://e/b> .")
            patient = EndpointConfig(server.url, retries=9)
            with SPARQLClient(patient) as client:
                assert client.query("ASK { ?s ?p ?o }").n_rows == 1


def test_a_query_that_ends_the_engine_is_refused_the_third_time(server: OxigraphServer) -> None:
    # The client refuses to send such a sum; others may not.
    text = "SELECT (" + "+".join(["1"] * 5_000) + " AS ?sum) {}"
    headers = {"Content-Type": "application/sparql-query"}
    request = urllib.request.Request(server.url, text.encode(), headers)
    said = []
    for _ in range(4):
        with pytest.raises(urllib.error.HTTPError) as caught:
            urllib.request.urlopen(request, timeout=120)
        said.append((caught.value.code, caught.value.read().decode()))
        caught.value.close()
    assert [code for code, _ in said] == [503, 503, 500, 500]
    assert "broke off twice" in said[-1][1]
    with asking(server) as client:
        assert counted(client) == str(NUMBERS)


def test_who_connects_early_is_served_by_the_engine_of_the_time_it_asks(
    server: OxigraphServer,
) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=120) as client:
        time.sleep(0.1)
        killed = engine(server)
        killed.kill()
        # One that is being killed still takes connections for a moment, and breaks them off.
        killed.wait(120)
        client.sendall(
            b"GET /query?query=ASK%20%7B%7D HTTP/1.1\r\n"
            b"Host: 127.0.0.1\r\nConnection: close\r\n\r\n"
        )
        assert client.recv(99).startswith(b"HTTP/1.1 200 ")
