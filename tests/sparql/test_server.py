"""The embedded server: data, ports, read-only stores, and no orphans."""

from __future__ import annotations

import gzip
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Literal

import pytest

from reasoningbank.errors import EndpointError, SetupError, UsageError
from reasoningbank.sparql import (
    BooleanResult,
    EndpointConfig,
    OxigraphServer,
    SPARQLClient,
    TableResult,
)
from reasoningbank.sparql.server import content_hash, stored

TRIPLE = "<http://e/a> <http://e/b> <http://e/c> "


def count(server: OxigraphServer) -> int:
    with SPARQLClient(EndpointConfig(server.url)) as client:
        return client.query("SELECT * { ?s ?p ?o }").n_rows


def alive(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def gone(port: int, within_s: float = 120.0) -> bool:
    end = time.monotonic() + within_s
    while time.monotonic() < end:
        if not alive(port):
            return True
        time.sleep(0.05)
    return False


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def test_files_of_many_formats_are_served_together(tmp_path: Path) -> None:
    (tmp_path / "a.nt").write_text(TRIPLE + ".")
    (tmp_path / "b.ttl").write_text("@prefix e: <http://e/> . e:a e:b 1 .")
    (tmp_path / "c.nq.gz").write_bytes(gzip.compress((TRIPLE + "<http://e/g> .").encode()))
    (tmp_path / "d.trig").write_text("<http://e/g> { <http://e/x> <http://e/b> 2 }")
    (tmp_path / "e.rdf").write_text(
        '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://e/">'
        '<rdf:Description rdf:about="http://e/y"><e:b>3</e:b></rdf:Description></rdf:RDF>'
    )
    (tmp_path / "f.jsonld").write_text('{"@id": "http://e/z", "http://e/b": 4}')
    files = sorted(tmp_path.glob("*.*"))
    with OxigraphServer(files) as server:
        assert count(server) == 5
    with OxigraphServer(files, storage="disk") as server:
        assert count(server) == 5


@pytest.mark.parametrize("storage", ["memory", "disk"])
def test_the_merged_graph_has_each_triple_once_and_the_same_blank_nodes(
    tmp_path: Path, storage: Literal["memory", "disk"]
) -> None:
    file = tmp_path / "a.trig"
    file.write_text(
        "@prefix e: <http://e/> . e:a e:b e:c . e:g { e:a e:b e:c ; e:has [ e:name 1 ] }"
        " e:h { e:a e:b e:c }"
    )
    with OxigraphServer([file], storage=storage) as server:
        assert count(server) == 3
        with SPARQLClient(EndpointConfig(server.url, prefixes={"e": "http://e/"})) as client:
            joined = client.query("SELECT * { GRAPH ?g { ?a e:has ?x } ?x e:name ?n }")
            assert joined.n_rows == 1
            by_graph = client.query("SELECT * { GRAPH ?g { e:a e:b e:c } }")
            assert by_graph.n_rows == 2


def test_several_servers_at_once(tmp_path: Path) -> None:
    file = tmp_path / "a.nt"
    file.write_text(TRIPLE + ".")
    with OxigraphServer([file]) as one, OxigraphServer() as other:
        assert one.port != other.port
        assert (count(one), count(other)) == (1, 0)
        ports = one.port, other.port
    assert not any(alive(port) for port in ports)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("broken.ttl", b"<http://e/a> <http://e/b>", "cannot be loaded"),
        ("broken.nq.gz", b"not gzip", "broken gzip file"),
        ("cut.nq.gz", gzip.compress(TRIPLE.encode() * 999, mtime=0)[:40], "broken gzip file"),
        ("what.docx", b"", "not an RDF file"),
        ("missing.nt", None, "cannot be read"),
    ],
)
@pytest.mark.parametrize("storage", ["memory", "disk"])
def test_a_bad_file_is_named_and_leaves_nothing_running(
    tmp_path: Path, name: str, content: bytes | None, said: str, storage: Literal["memory", "disk"]
) -> None:
    file = tmp_path / name
    if content is not None:
        file.write_bytes(content)
    server = OxigraphServer([file], storage=storage)
    with pytest.raises(UsageError, match=said) as caught:
        server.start()
    assert name in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not server.running
    assert not [p for p in (tmp_path / "cache").rglob("*") if p.is_file()]


def test_a_port_in_use_is_a_clear_error() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(SetupError, match=f"port {port} is in use"):
            OxigraphServer(port=port).start()


def test_a_store_on_disk_is_built_once_and_read_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "a.nt"
    file.write_text(TRIPLE + ".")
    with OxigraphServer([file], storage="disk") as one:
        monkeypatch.setattr("pyoxigraph.Store.bulk_load", None)
        with OxigraphServer([file], storage="disk") as two:
            assert (count(one), count(two)) == (1, 1)
        request = urllib.request.Request(
            one.url.replace("/query", "/update"),
            data=b"DELETE WHERE { ?s ?p ?o }",
            headers={"Content-Type": "application/sparql-update"},
        )
        with pytest.raises(urllib.error.HTTPError, match="403"):
            urllib.request.urlopen(request)
        assert count(one) == 1


def test_a_store_is_known_by_its_contents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REASONINGBANK_CACHE", str(tmp_path))
    one, other = tmp_path / "a.nt", tmp_path / "b.nt"
    one.write_text(TRIPLE + ".")
    other.write_text(TRIPLE + ".")
    assert content_hash([(one, None)]) == content_hash([(other, None)])
    assert stored([(one, None)], True) == stored([(other, None)], True)
    assert stored([(one, None)], False) != stored([(one, None)], True)
    other.write_text(TRIPLE + ". ")
    assert content_hash([(one, None)]) != content_hash([(other, None)])
    assert len(list((tmp_path / "stores").iterdir())) == 2


def test_a_stopped_server_says_so_and_can_be_started_again() -> None:
    server = OxigraphServer()
    with pytest.raises(UsageError, match="not running"):
        _ = server.url
    server.start()
    url = server.url
    server.stop()
    server.stop()
    assert not server.running
    server.start()
    assert server.url == url
    assert count(server) == 0
    server.stop()


def test_a_server_that_died_is_an_endpoint_error_and_comes_back(tmp_path: Path) -> None:
    file = tmp_path / "a.nt"
    file.write_text(TRIPLE + ".")
    with OxigraphServer([file]) as server:
        client = SPARQLClient(EndpointConfig(server.url, backoff_s=0.01))
        assert client.query("ASK { ?s ?p ?o }").n_rows == 1
        supervisor = server._process
        assert supervisor is not None
        # What keeps the engine running, and with it the engine.
        supervisor.kill()
        supervisor.wait(120)
        assert gone(server.port)
        assert not server.running
        with pytest.raises(EndpointError, match="no connection"):
            client.query("ASK { ?s ?p ?o }")
        server.start()
        found = client.query("SELECT * { ?s ?p ?o }")
        assert isinstance(found, TableResult)
        assert found.n_rows == 1


STARTER = """
import os, signal, sys, threading, time
from reasoningbank.sparql import OxigraphServer
# A shell starts what runs in its background with this signal ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
server = OxigraphServer()
# Started by a thread that ends: the server must not end with it.
thread = threading.Thread(target=server.start)
thread.start()
thread.join()
print(server.port, server._process.pid, flush=True)
time.sleep(60)
"""


def start_in_a_process() -> tuple[subprocess.Popen[str], int, int]:
    process = subprocess.Popen(
        [sys.executable, "-c", STARTER],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert process.stdout is not None
    port, watcher = process.stdout.readline().split()
    return process, int(port), int(watcher)


@pytest.mark.parametrize("deadly", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_no_server_outlives_the_process_that_started_it(deadly: signal.Signals) -> None:
    process, port, _ = start_in_a_process()
    try:
        time.sleep(0.3)
        assert alive(port)
        process.send_signal(deadly)
        process.wait(120)
        assert gone(port)
    finally:
        process.kill()
        process.wait()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the kernel's help is Linux's")
def test_no_server_outlives_its_watcher() -> None:
    process, port, watcher = start_in_a_process()
    try:
        os.kill(watcher, signal.SIGKILL)
        assert gone(port)
    finally:
        process.kill()
        process.wait()


def test_a_file_can_be_put_into_a_named_graph(tmp_path: Path) -> None:
    file = tmp_path / "about.ttl"
    file.write_text("<http://e/a> <http://e/p> 1 .")
    for storage in ("memory", "disk"):
        server = OxigraphServer([(file, "http://e/g")], storage=storage)  # type: ignore[arg-type]
        with server, SPARQLClient(EndpointConfig(server.url)) as client:
            inside = client.query("ASK { GRAPH <http://e/g> { <http://e/a> ?p 1 } }")
            merged = client.query("ASK { <http://e/a> ?p 1 }")
            assert isinstance(inside, BooleanResult)
            assert isinstance(merged, BooleanResult)
            assert (inside.value, merged.value) == (True, True)


@pytest.mark.parametrize("storage", ["memory", "disk"])
def test_triples_without_a_graph_go_to_the_default_graph(
    tmp_path: Path, storage: Literal["memory", "disk"]
) -> None:
    file = tmp_path / "about.ttl"
    file.write_text("<http://e/a> <http://e/p> 1 .")
    server = OxigraphServer([file], storage=storage, union_default_graph=False)
    with server, SPARQLClient(EndpointConfig(server.url)) as client:
        plain = client.query("ASK { <http://e/a> ?p 1 }")
        named = client.query("ASK { GRAPH ?g { ?s ?p ?o } }")
        assert isinstance(plain, BooleanResult)
        assert isinstance(named, BooleanResult)
        assert (plain.value, named.value) == (True, False)
