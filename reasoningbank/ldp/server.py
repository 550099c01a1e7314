"""Documents and SPARQL over HTTP on loopback."""

from __future__ import annotations

import contextlib
import logging
import shutil
import socket
import tempfile
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from email.message import Message
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import IO, Any
from urllib.parse import parse_qs, quote, unquote, urlsplit
from uuid import uuid4

import pyoxigraph as ox

from reasoningbank import http
from reasoningbank.errors import QueryError
from reasoningbank.ldp.documents import Document, Documents, document_url
from reasoningbank.ldp.exchange import (
    GRAPH_FORMATS,
    Conditions,
    Refused,
    best,
    expanded,
    read_triples,
    updated,
    written,
)
from reasoningbank.sparql import is_loopback
from reasoningbank.sparql.tree import outline

UPDATE = "application/sparql-update"
#: Characters of a member's name that its maker asked for.
_MAX_NAME = 100
METHODS = "GET, HEAD, PUT, POST, PATCH, DELETE, OPTIONS"
_ALLOWED = {"Allow": METHODS, "Accept-Post": ", ".join(GRAPH_FORMATS), "Accept-Patch": UPDATE}
_LDP = "http://www.w3.org/ns/ldp#"


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    query: str
    headers: Message
    body: bytes

    @property
    def media_type(self) -> str:
        return http.media_type(self.headers)

    @property
    def conditions(self) -> Conditions:
        return Conditions(self.listed("If-Match"), self.listed("If-None-Match"))

    def listed(self, header: str) -> str | None:
        """Return a header whose lines are one list (RFC 9110, 5.3); None without it."""
        lines = self.headers.get_all(header)
        return None if lines is None else ", ".join(lines)

    def wanted(self, what: str, offers: Iterable[str]) -> str:
        """Return the media type that it prefers; `what` is said if it accepts none."""
        there = list(offers)
        found = best(self.listed("Accept") or "", there)
        if found is None:
            raise Refused(406, f"{what} available as {', '.join(there)}")
        return found


@dataclass(frozen=True)
class Response:
    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    write: Callable[[IO[bytes]], object] | None = None  #: Writes the body instead


def respond(documents: Documents, request: Request) -> Response:
    url = document_url(documents.base, request.path)
    if url is None:
        raise Refused(404, f"no document can have the path {request.path}")
    if request.query:
        raise Refused(404, "a document's address has no query")
    if request.method in ("GET", "HEAD"):
        return _got(documents.existing(url), request)
    if request.method == "OPTIONS":
        return Response(204, _ALLOWED)
    if request.method == "DELETE":
        documents.delete(url, request.conditions.check)
        return Response(204)
    if request.method == "PATCH":
        return _patched(documents, url, request)
    if request.method not in ("PUT", "POST"):
        raise Refused(405, f"{request.method} is not supported", {"Allow": METHODS})
    if request.method == "POST" and "Slug" in request.headers and url.endswith("/"):
        return _made_member(documents, url, request)
    triples = read_triples(request.body, request.media_type, url)
    add = request.method == "POST"
    created = documents.put(url, triples, request.conditions.check, add=add)
    return _done(documents, url, 201 if created else 200)


def _got(document: Document, request: Request) -> Response:
    media_type = request.wanted("documents are", GRAPH_FORMATS)
    tag = _tag(document, media_type)
    kind = "BasicContainer" if document.is_container else "RDFSource"
    headers = {
        **_ALLOWED,
        "ETag": tag,
        "Vary": "Accept",
        "Link": f'<{_LDP}Resource>; rel="type", <{_LDP}{kind}>; rel="type"',
    }
    if request.conditions.unchanged(tag):
        return Response(304, headers)
    body = written(document.triples, media_type)
    return Response(200, {**headers, "Content-Type": f"{media_type}; charset=utf-8"}, body)


def _made_member(documents: Documents, container: str, request: Request) -> Response:
    """Make a member of a container with the name that the request asks for, or one like it."""
    request.conditions.check(documents.existing(container).version)
    wanted = quote(unquote(request.headers["Slug"]).strip("/ ")[:_MAX_NAME], safe="")
    names = [wanted] if wanted.strip(".") else []
    is_container = f"<{_LDP}BasicContainer>" in (request.listed("Link") or "")
    for name in (*names, *(f"{wanted.strip('.')}-{uuid4().hex[:8]}".lstrip("-") for _ in "123")):
        url = document_url(documents.base, urlsplit(container).path + name + "/" * is_container)
        if url is None:
            continue
        triples = read_triples(request.body, request.media_type, url)
        try:
            documents.put(url, triples, Conditions(if_none_match="*").check)
        except Refused as refused:
            if refused.status != 412:  # with 412 the name is taken
                raise
        else:
            return _done(documents, url, 201)
    raise Refused(409, f"no free name in {container}")


def _patched(documents: Documents, url: str, request: Request) -> Response:
    if request.media_type != UPDATE:
        raise Refused(415, f"send the update as {UPDATE}", {"Accept-Patch": UPDATE})
    try:
        update = request.body.decode()
    except UnicodeDecodeError:
        raise Refused(400, "the update is not UTF-8") from None
    check = request.conditions.check
    documents.change(url, lambda triples: updated(triples, update, url), check)
    return _done(documents, url, 200)


def _done(documents: Documents, url: str, status: int) -> Response:
    document = documents.read(url)
    # It may have been removed since.
    tag = {} if document is None else {"ETag": _tag(document, next(iter(GRAPH_FORMATS)))}
    return Response(status, {**tag, "Location": url} if status == 201 else tag)


def _tag(document: Document, media_type: str) -> str:
    return f'"{document.version}.{GRAPH_FORMATS[media_type].file_extension}"'


QUERY = "application/sparql-query"
FORM = "application/x-www-form-urlencoded"
TABLE_FORMATS: Mapping[str, ox.QueryResultsFormat] = {
    "application/sparql-results+json": ox.QueryResultsFormat.JSON,
    "application/sparql-results+xml": ox.QueryResultsFormat.XML,
    "text/tab-separated-values": ox.QueryResultsFormat.TSV,
    "text/csv": ox.QueryResultsFormat.CSV,
}
_DESCRIPTION = b"""
PREFIX sd: <http://www.w3.org/ns/sparql-service-description#>
[] a sd:Service ; sd:endpoint <sparql> ;
  sd:supportedLanguage sd:SPARQL11Query ; sd:feature sd:UnionDefaultGraph .
"""


def query_result(documents: Documents, request: Request) -> Response:
    """Run the query of a request; without one, describe the service."""
    if request.method in ("GET", "HEAD") and not request.query:
        media_type = request.wanted("the description is", GRAPH_FORMATS)
        triples = read_triples(_DESCRIPTION, "text/turtle", documents.base)
        headers = {"Content-Type": f"{media_type}; charset=utf-8", "Vary": "Accept"}
        return Response(200, headers, written(triples, media_type))
    query, parameters = _query(request)
    query = expanded(query)
    try:
        if outline(query).service_targets:
            raise Refused(400, "SERVICE is not supported; query the other endpoint directly")
        found = documents.query(
            query,
            default_graphs=parameters.get("default-graph-uri", ()),
            named_graphs=parameters.get("named-graph-uri", ()),
        )
    except QueryError as error:
        raise Refused(400, str(error)) from error
    except (SyntaxError, ValueError) as error:
        raise Refused(400, f"the query does not parse: {error}") from error
    is_graph = isinstance(found, ox.QueryTriples)
    formats: Mapping[str, Any] = GRAPH_FORMATS if is_graph else TABLE_FORMATS
    media_type = request.wanted("the result is", formats)
    write = partial(found.serialize, format=formats[media_type])
    return Response(200, {"Content-Type": media_type}, write=write)


def _query(request: Request) -> tuple[str, Mapping[str, list[str]]]:
    text = request.query
    if request.method not in ("GET", "HEAD", "POST"):
        raise Refused(405, "this address accepts queries", {"Allow": "GET, HEAD, POST"})
    try:
        if request.method == "POST" and request.media_type == QUERY:
            return request.body.decode(), parse_qs(text, max_num_fields=100)
        if request.method == "POST":
            if request.media_type != FORM:
                raise Refused(415, f"send the query as {QUERY} or {FORM}")
            text = request.body.decode()
        parameters = parse_qs(text, max_num_fields=100)
    except (UnicodeDecodeError, ValueError) as error:
        raise Refused(400, f"the request does not parse: {error}") from error
    if "update" in parameters:
        raise Refused(403, "change documents with PUT, POST, PATCH and DELETE")
    queries = parameters.get("query", ())
    if len(queries) != 1:
        raise Refused(400, "give one query in the parameter 'query'")
    return queries[0], parameters


MAX_BODY = 64 * 1024 * 1024
#: Bytes of a result that are kept in memory until all of it is there.
_IN_MEMORY = 16 * 1024 * 1024
#: Bytes of an oversized body that are read, so that its sender sees the response.
_MAX_UNWANTED = 1024 * 1024
_MAX_DIGITS = 19
_SAFE = ("GET", "HEAD", "OPTIONS")
_PLAIN = "text/plain; charset=utf-8"
#: Ends the connection, whose next bytes could be misread.
_CLOSE = {"Connection": "close"}

_log = logging.getLogger(__name__)


class LDPServer:
    """Serves documents on loopback: GET, HEAD, PUT, POST, PATCH, DELETE, and SPARQL at BASE/sparql.

    It has no authentication, so it listens on loopback only. It serves as long as its context.

    Args:
        base: Base of the documents' addresses; default where it listens. With a public base
            (``http://dbpedia.org/``), send requests to `address` with the same paths.
        port: Port to listen on; a free one by default.
        folder: Where to keep each document as a Turtle file.
        store: A folder for an Oxigraph store instead; without either, documents live in memory.
        initial: The first documents, by address, if they live in memory.
    """

    def __init__(
        self,
        base: str | None = None,
        *,
        port: int | None = None,
        folder: Path | None = None,
        store: Path | None = None,
        initial: Mapping[str, Sequence[ox.Triple]] | None = None,
    ) -> None:
        with http.binding(port or 0, "LDPServer", "choose another port, or none to get a free one"):
            self._http = _Server(("127.0.0.1", port or 0))
        serve = self._http.serve_forever
        self._thread = threading.Thread(target=serve, args=(0.05,), daemon=True)
        try:
            own = f"http://127.0.0.1:{self._http.server_port}"
            self.documents = Documents(base or own, folder=folder, store=store, initial=initial)
        except BaseException:
            self._http.server_close()
            raise
        self._http.documents = self.documents

    @property
    def base(self) -> str:
        """Base of the documents' addresses."""
        return self.documents.base

    @property
    def address(self) -> str:
        """Where the server listens, with the path of `base`."""
        path = urlsplit(self.base).path
        return f"http://127.0.0.1:{self._http.server_port}{path}"

    def __enter__(self) -> LDPServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()
        self._http.hang_up()
        self.documents.close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    documents: Documents

    def __init__(self, address: tuple[str, int]) -> None:
        super().__init__(address, _Handler)
        self._open: set[Any] = set()

    def process_request(self, request: Any, client_address: Any) -> None:
        self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self._open.discard(request)
        super().shutdown_request(request)

    def hang_up(self) -> None:
        """Close connections that clients keep open."""
        for connection in list(self._open):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"
    #: Seconds without a byte after which a connection ends.
    timeout = 60

    def do_GET(self) -> None:
        self._serve()

    do_HEAD = do_PUT = do_POST = do_GET  # noqa: N815 - the names that the base class calls
    do_PATCH = do_DELETE = do_OPTIONS = do_GET  # noqa: N815

    def version_string(self) -> str:
        return "reasoningbank-ldp"

    def log_message(self, format: str, *args: object) -> None:
        _log.info(format, *args)

    def _serve(self) -> None:
        try:
            request = self._request()
            base = self.server.documents.base
            sparql = document_url(base, request.path) == f"{base}sparql"
            self._send((query_result if sparql else respond)(self.server.documents, request))
        except Refused as refused:
            headers = {**refused.headers, "Content-Type": _PLAIN}
            self._send(Response(refused.status, headers, f"{refused.why}\n".encode()))
        except OSError:
            # The client hung up, or its request is incomplete.
            self.close_connection = True

    def _request(self) -> Request:
        # Undecoded bytes of a path come as Latin-1; people send UTF-8.
        target = self.path.encode("latin-1", "replace").decode("utf-8", "replace")
        path, _, query = target.partition("?")
        lengths = self.headers.get_all("Content-Length") or ()
        if len(lengths) > 1 or self.headers.defects or self.headers.get_payload():
            # The rest could be read as another request (request smuggling).
            raise Refused(400, "malformed headers", _CLOSE)
        # DNS rebinding would make a foreign page of one origin with this server.
        if not self._is_own(f"http://{self.headers.get('Host', '')}"):
            raise Refused(421, "no site of that name (Host) here", _CLOSE)
        if self.command not in _SAFE and not self._is_own(self.headers.get("Origin", "")):
            raise Refused(403, "pages of other sites may not change documents", _CLOSE)
        return Request(self.command, path, query, self.headers, self._body())

    def _is_own(self, site: str) -> bool:
        """Return whether a site is this server or machine, or unnamed."""
        try:
            host = urlsplit(site).hostname
        except ValueError:
            return False
        own = urlsplit(self.server.documents.base).hostname
        return site in ("", "http://") or host == own or is_loopback(site)

    def _body(self) -> bytes:
        announced = self.headers.get("Content-Length", "0")
        # A longer number exceeds every accepted length.
        known = announced.isascii() and announced.isdigit() and len(announced) <= _MAX_DIGITS
        if "Transfer-Encoding" in self.headers or not known:
            raise Refused(411, "send the body's length in Content-Length", _CLOSE)
        length = int(announced)
        if length > MAX_BODY:
            self.rfile.read(min(length, _MAX_UNWANTED))
            raise Refused(413, f"the body has more than {MAX_BODY:,} bytes", _CLOSE)
        body = self.rfile.read(length)
        if len(body) < length:
            raise ConnectionResetError("the body ended too early")
        if self.headers.get("Content-Encoding", "identity").lower() != "identity":
            raise Refused(415, "send the body uncompressed")
        return body

    def _send(self, reply: Response) -> None:
        # It is complete before the first byte is sent: a query that fails half-way is an error.
        with tempfile.SpooledTemporaryFile(_IN_MEMORY) as body:
            try:
                (reply.write or (lambda out: out.write(reply.body)))(body)
            except (OSError, RuntimeError, ValueError) as error:
                raise Refused(500, f"the query failed: {error}") from error
            self.send_response(reply.status)
            ending = _CLOSE if self.close_connection else {}
            for name, value in {**reply.headers, **ending}.items():
                self.send_header(name, value)
            if reply.status not in (204, 304):
                self.send_header("Content-Length", str(body.tell()))
            self.end_headers()
            if self.command != "HEAD":
                body.seek(0)
                shutil.copyfileobj(body, self.wfile)
