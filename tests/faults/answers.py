"""What an endpoint may do: one line within the time, and whose fault it is."""

from __future__ import annotations

import gzip
import socket
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler

from sparql.faulty import Answer

from reasoningbank.sparql import EndpointConfig, SPARQLClient

from .scene import Fault, Scene

TSV = {"Content-Type": "text/tab-separated-values"}
JSON = {"Content-Type": "application/sparql-results+json"}
NT = {"Content-Type": "application/n-triples"}
HTML = {"Content-Type": "text/html"}
PAGE = (
    b"<!DOCTYPE html><html><head><title>Down for\nmaintenance</title></head><body>x</body></html>"
)
HEAD = b'{"head":{"vars":["x"]},"results":{"bindings":['
CONSTRUCT = "CONSTRUCT WHERE { ?s ?p ?o }"


def answers(
    name: str, answer: Answer, said: str, kind: str = "EndpointError", **more: object
) -> Fault:
    """Describe a fault that one answer to `sparql_query` makes."""
    return Fault(name, "sparql_query", lambda s: s.look(answer, **more), said, kind)  # type: ignore[arg-type]


def graph(name: str, body: bytes, said: str, kind: str = "EndpointError") -> Fault:
    return answers(name, Answer(200, body, NT), said, kind, query=CONSTRUCT)


def broken_chunks(handler: BaseHTTPRequestHandler) -> None:
    handler.wfile.write(
        b"HTTP/1.1 200 OK\r\nContent-Type: text/tab-separated-values\r\n"
        b"Transfer-Encoding: chunked\r\n\r\n5\r\n?x\n1\n\r\nno number\r\n"
    )


def drip(handler: BaseHTTPRequestHandler) -> None:
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/tab-separated-values\r\n\r\n?x\n")
    for _ in range(60):
        handler.wfile.write(b"1\n")
        time.sleep(0.05)


def drip_headers(handler: BaseHTTPRequestHandler) -> None:
    handler.wfile.write(b"HTTP/1.1 200 OK\r\n")
    for n in range(60):
        handler.wfile.write(f"X-Slow-{n}: 1\r\n".encode())
        time.sleep(0.05)


def silence(_: BaseHTTPRequestHandler) -> None:
    time.sleep(2)


def drop(handler: BaseHTTPRequestHandler) -> None:
    handler.connection.close()


def rows_without_end(handler: BaseHTTPRequestHandler) -> None:
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/tab-separated-values\r\n\r\n?x\n")
    block = (b'"' + b"x" * 999_996 + b'"\n') * 4
    for _ in range(75):
        handler.wfile.write(block)


def headers_without_end(handler: BaseHTTPRequestHandler) -> None:
    handler.wfile.write(b"HTTP/1.1 200 OK\r\n")
    handler.wfile.write(b"X-Long: " + b"x" * 200_000 + b"\r\n\r\n")


def not_http(handler: BaseHTTPRequestHandler) -> None:
    handler.wfile.write(b"220 mail.example ESMTP ready\r\n")


def large(scene: Scene) -> str:
    tools, ref = scene.ask(
        Answer(say=rows_without_end), limit=1_000, timeout_s=20.0, max_bytes=64 << 20
    )
    assert 50 <= ref.rows <= 67
    return f"{tools.sparql_stats(ref)}"


def later(scene: Scene) -> str:
    date = format_datetime(datetime.now(UTC) + timedelta(seconds=2), usegmt=True)
    # Dates have no fractions: it may be all but a second less.
    return waited(scene, date, 1.0)


def waited(scene: Scene, after: str, least: float) -> str:
    server = scene.faulty(Answer(429, b"slow down", {"Retry-After": after}), Answer())
    ref = scene.at(server.url, retries=1).sparql_query("SELECT * { ?x ?y ?z }")
    first, second = server.seen
    assert second.at - first.at >= least
    return f"{ref!r}, after the wait that was asked for"


def redirected(scene: Scene, location: str) -> object:
    other = scene.faulty(Answer())
    try:
        return scene.look(Answer(302, b"", {"Location": location.replace("ELSEWHERE", other.url)}))
    finally:
        assert other.seen == []


def gone(scene: Scene) -> object:
    server = scene.faulty(Answer())
    tools = scene.at(server.url, retries=0)
    tools.sparql_query("SELECT ?x { ?x ?y ?z }")
    server.close()
    return tools.sparql_query("SELECT ?x { ?x ?y ?z }")


def kept(scene: Scene) -> str:
    server = scene.faulty(Answer())
    tools = scene.at(server.url, retries=0)
    ref = tools.sparql_query("SELECT ?x { ?x ?y ?z }")
    server.close()
    return f"{tools.sparql_peek(ref)!r}"


def nobody(scene: Scene) -> object:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return scene.at(f"http://127.0.0.1:{free.getsockname()[1]}/sparql").sparql_query("ASK {}")


def description(scene: Scene) -> object:
    server = scene.faulty(Answer(200, PAGE, HTML))
    return scene.at(server.url).sparql_classes()


def impatient(scene: Scene) -> object:
    server = scene.faulty(Answer(say=drip))
    config = EndpointConfig(
        server.url, "Faulty", retries=0, max_connections=1, deadline_s=0.3, timeout_s=0.3
    )
    with SPARQLClient(config) as client:
        return client.query("SELECT ?x { ?x ?y ?z }")


STATUSES = [
    answers(
        "400 with a message",
        Answer(400, b"no such function: nosuch"),
        r"rejects the query: no such function",
        "QueryError",
    ),
    answers(
        "400 with a position",
        Answer(400, b"error at 1:8: expected one of"),
        r"line 1, column",
        "QueryError",
    ),
    answers("401", Answer(401, b""), r"HTTP 401; try again once"),
    answers("403", Answer(403, b"no"), r"HTTP 403: no"),
    answers("404 with a page", Answer(404, PAGE, HTML), r"HTTP 404: Down for maintenance"),
    answers("406 for every format", Answer(406, b""), r"HTTP 406"),
    answers("413", Answer(413, b""), r"too long \(HTTP 413\)", "QueryError"),
    Fault(
        "429, Retry-After: 1",
        "sparql_query",
        lambda s: waited(s, "1", 1.0),
        r"1 items .*after the wait",
        "result",
    ),
    Fault("429, Retry-After: a date", "sparql_query", later, r"1 items .*after the wait", "result"),
    answers(
        "429, Retry-After: a year",
        Answer(429, b"slow down", {"Retry-After": "31536000"}),
        r"HTTP 429: slow down",
    ),
    answers(
        "429, Retry-After: nonsense",
        Answer(429, b"slow down", {"Retry-After": "9" * 400}),
        r"HTTP 429: slow down",
    ),
    answers(
        "500 about itself",
        Answer(500, b"java.lang.OutOfMemoryError"),
        r"HTTP 500: java.lang.OutOfMemoryError",
    ),
    answers(
        "500 about the query",
        Answer(500, b"Virtuoso 22012 Error SR084: Division by 0.\n\nSPARQL query:\ndefine x"),
        r"rejects the query: .*Division by 0\.;",
        "QueryError",
    ),
    answers(
        "500 about its cost",
        Answer(
            500,
            b"Virtuoso 42000 Error The estimated execution time 6896 (sec) exceeds the limit",
        ),
        r"too costly.*more selective",
        "QueryError",
    ),
    answers("502 for ever", Answer(502, PAGE, HTML), r"HTTP 502: Down for maintenance"),
    Fault(
        "503 once",
        "sparql_query",
        lambda s: s.look(Answer(503, b"busy"), Answer()),
        r"1 items",
        "result",
    ),
]

BODIES = [
    answers(
        "a web page with 200",
        Answer(200, PAGE, HTML),
        r"a web page came instead of results: Down for maintenance",
    ),
    answers(
        "JSON that ends midway",
        Answer(200, HEAD + b'{"x":{"type":"uri","va', JSON),
        r"failed during its evaluation|cannot be read",
        "QueryError",
    ),
    answers(
        "JSON that ends in a message",
        Answer(200, HEAD + b"The SPARQL operation has been cancelled", JSON),
        r"timed out",
        "QueryTimeoutError",
    ),
    answers(
        "TSV that ends within a row",
        Answer(200, b'?x\n"on', TSV, announce=100),
        r"the connection was dropped: 94 bytes",
    ),
    answers(
        "TSV that ends in a message",
        Answer(200, b"?x\n1\nquery timed out after 30 s\n", TSV | {"Server": "oxigraph"}),
        r"timed out",
        "QueryTimeoutError",
    ),
    answers("malformed chunks", Answer(say=broken_chunks), r"the connection was dropped"),
    answers("no body", Answer(200, b"", TSV), r"cannot be read"),
    answers("no body, as JSON", Answer(200, b"", JSON), r"cannot be read"),
    answers(
        "a content type from elsewhere",
        Answer(200, b"%PDF-1.4", {"Content-Type": "application/pdf"}),
        r"unknown format: application/pdf",
    ),
    answers("no content type, but TSV", Answer(200, b"?x\n1\n", {}), r"1 items", "result"),
    answers(
        "text that is not UTF-8",
        Answer(200, b'?x\n"\xff\xfe"\n', TSV),
        r"cannot be read: not UTF-8",
    ),
    answers(
        "gzip that nobody asked for",
        Answer(200, gzip.compress(b"?x\n1\n"), TSV | {"Content-Encoding": "gzip"}),
        r"compressed \(gzip\)",
    ),
    answers(
        "a gzip bomb",
        Answer(200, gzip.compress(bytes(50_000_000)), TSV | {"Content-Encoding": "gzip"}),
        r"compressed \(gzip\)",
    ),
    answers(
        "a table for an ASK",
        Answer(200, HEAD + b"]}}", JSON),
        r"a table came in answer to an ASK",
        query="ASK {}",
    ),
    answers("nothing for an ASK", Answer(200, b"\n", JSON), r"cannot be read", query="ASK {}"),
    answers(
        "no boolean for an ASK",
        Answer(200, b"{}", JSON),
        r"no boolean",
        "QueryError",
        query="ASK {}",
    ),
    answers(
        "a boolean for a SELECT",
        Answer(200, b'{"head":{},"boolean":true}', JSON),
        r"a boolean came in answer to a SELECT",
    ),
    answers("a page for a CONSTRUCT", Answer(200, PAGE, HTML), r"a web page came", query=CONSTRUCT),
    graph("triples that end midway", b"<http://e/s> <http://e/p> ", r"cannot be read"),
    graph(
        "spaces in an IRI of a graph",
        b"<http://e/s> <http://e/p> <http://e/a b> .\n",
        r"<http://e/a b>",
        "result",
    ),
    answers(
        "spaces in an IRI of a table",
        Answer(200, b"?x\n<http://e/a b>\n", TSV),
        r"http://e/a b",
        "result",
    ),
    answers(
        "the same column twice",
        Answer(200, b"?x\t?x\n1\t2\n", TSV),
        r"two columns of it have the same name",
    ),
    answers(
        "more cells than columns",
        Answer(200, b"?x\n1\t2\n", TSV | {"Server": "oxigraph"}),
        r"failed during its evaluation",
        "QueryError",
    ),
    answers(
        "blank nodes and triple terms",
        Answer(200, b"?x\n_:b0\n<<( <http://e/a> <http://e/b> _:c )>>\n", TSV),
        r"_:b0.*<<\(",
        "result",
    ),
]

SIZES = [
    Fault(
        "300 MB of rows",
        "sparql_query",
        large,
        r"'truncated': True.*too large for one answer",
        "result",
    ),
    answers(
        "a cell of 20 MB",
        Answer(200, b'?x\n"' + b"x" * 20_000_000 + b'"\n', TSV),
        r"20,?000,?000|xxx",
        "result",
    ),
    answers(
        "100,000 columns",
        Answer(
            200,
            b"\t".join(b"?c%d" % n for n in range(100_000))
            + b"\n"
            + b"\t".join([b"1"] * 100_000)
            + b"\n",
            TSV,
        ),
        r"it has 100,000 columns, more than 1,000",
        "QueryError",
    ),
    answers("a header line of 200 kB", Answer(say=headers_without_end), r"dropped: .*line"),
]

WIRE = [
    answers(
        "a body that drips",
        Answer(say=drip),
        r"timed out \(no answer within 0.5 s\)",
        "QueryTimeoutError",
        timeout_s=0.5,
    ),
    answers(
        "headers that drip",
        Answer(say=drip_headers),
        r"timed out \(no answer within 0.5 s\)",
        "QueryTimeoutError",
        timeout_s=0.5,
    ),
    answers(
        "silence",
        Answer(say=silence),
        r"timed out \(no answer within 0.5 s\)",
        "QueryTimeoutError",
        timeout_s=0.5,
    ),
    Fault(
        "no time left for a second try",
        "SPARQLClient.query",
        impatient,
        r"timed out",
        "QueryTimeoutError",
    ),
    answers("a connection that is closed", Answer(say=drop), r"the connection was dropped"),
    answers("another protocol", Answer(say=not_http), r"dropped|cannot be read"),
    Fault(
        "a redirect to a private address",
        "sparql_query",
        lambda s: redirected(s, "ELSEWHERE"),
        r"HTTP 302",
        "EndpointError",
    ),
    Fault(
        "a redirect to another host",
        "sparql_query",
        lambda s: redirected(s, "http://localhost:9/sparql"),
        r"HTTP 302",
        "EndpointError",
    ),
    Fault(
        "a redirect to a file",
        "sparql_query",
        lambda s: redirected(s, "file:///etc/passwd"),
        r"HTTP 302",
        "EndpointError",
    ),
    answers("redirects in a circle", Answer(302, b"", {"Location": "/sparql"}), r"HTTP 302"),
    Fault(
        "nobody at the address",
        "sparql_query",
        nobody,
        r"no connection: .*refused",
        "EndpointError",
    ),
    Fault(
        "a host that does not exist",
        "sparql_query",
        lambda s: s.at("http://nosuch.invalid/sparql").sparql_query("ASK {}"),
        r"no connection",
        "EndpointError",
    ),
    Fault(
        "a certificate nobody vouches for",
        "sparql_query",
        lambda s: s.at(s.self_signed()).sparql_query("ASK {}"),
        r"certificate",
        "EndpointError",
    ),
    Fault(
        "no TLS at an https address",
        "sparql_query",
        lambda s: s.at(s.faulty(Answer()).url.replace("http:", "https:")).sparql_query("ASK {}"),
        r"no connection: .*SSL",
        "EndpointError",
    ),
    Fault("gone in mid-task", "sparql_query", gone, r"no connection", "EndpointError"),
    Fault("gone in mid-task, results at hand", "sparql_peek", kept, r"\[{'x': 1}\]", "result"),
    Fault(
        "a web page for every question",
        "sparql_classes",
        description,
        r"a web page came|Down for maintenance",
        "EndpointError",
    ),
]
