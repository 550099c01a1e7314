"""Documents over HTTP on loopback, for as long as somebody holds the server."""

from __future__ import annotations

import contextlib
import errno
import logging
import socket
import threading
from collections.abc import Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pyoxigraph import Triple

from reasoningbank.errors import SetupError
from reasoningbank.ldp.answering import Answer, Request, answer
from reasoningbank.ldp.asking import Results, asked, described
from reasoningbank.ldp.documents import Documents
from reasoningbank.ldp.faults import Refused
from reasoningbank.ldp.names import document_url
from reasoningbank.sparql import is_loopback

__all__ = ["LDPServer"]

MOST_BODY = 64 * 1024 * 1024
#: Of a body that is not wanted, so much is read, so that its sender gets to see the answer.
_MOST_UNWANTED = 1024 * 1024
_MOST_DIGITS = 19
_SAFE = ("GET", "HEAD", "OPTIONS")
_PLAIN = "text/plain; charset=utf-8"

_log = logging.getLogger(__name__)


class LDPServer:
    """Serves documents on loopback: GET, HEAD, PUT, POST, PATCH, DELETE, and SPARQL at BASE/sparql.

    It has no authentication, so it listens to this machine alone.

    Args:
        base: What documents are called: the address that people and data use. By default where it
            listens. Another one (``http://dbpedia.org/``) stands for a public site; requests come
            to `address` then, with the same paths.
        port: Port to listen on; a free one by default.
        folder: Where each document is kept as a Turtle file.
        store: A folder where an Oxigraph store is kept instead; without either, documents live in
            memory and end with the server.
        initial: Documents that it begins with, by address, where they live in memory.

    Raises:
        UsageError: The base is no address, or a place cannot be used.
        SetupError: The port cannot be had.

    Examples:
        >>> import httpx
        >>> with LDPServer() as server:
        ...     made = httpx.put(f"{server.base}a", content="<> a <#T> .",
        ...                      headers={"Content-Type": "text/turtle"})
        ...     made.status_code, httpx.get(f"{server.base}b").status_code
        (201, 404)
    """

    def __init__(
        self,
        base: str | None = None,
        *,
        port: int | None = None,
        folder: Path | None = None,
        store: Path | None = None,
        initial: Mapping[str, Sequence[Triple]] | None = None,
    ) -> None:
        try:
            self._http = _Server(("127.0.0.1", port or 0))
        except OSError as error:
            used = error.errno == errno.EADDRINUSE
            raise SetupError(
                f"port {port} {'is in use' if used else f'cannot be had: {error.strerror}'}",
                where="LDPServer",
                hint="choose another port, or none to get a free one",
            ) from error
        self._thread: threading.Thread | None = None
        self._stopped = False
        try:
            own = f"http://127.0.0.1:{self._http.server_port}"
            self.documents = Documents(base or own, folder=folder, store=store, initial=initial)
        except BaseException:
            self._http.server_close()
            raise
        self._http.documents = self.documents

    @property
    def base(self) -> str:
        """What documents' addresses begin with."""
        return self.documents.base

    @property
    def address(self) -> str:
        """Where `base` is really asked."""
        path = urlsplit(self.base).path
        return f"http://127.0.0.1:{self._http.server_port}{path}"

    def __enter__(self) -> LDPServer:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> LDPServer:
        """Answer requests from now on, in threads of their own."""
        if self._thread is None:
            serve = self._http.serve_forever
            self._thread = threading.Thread(target=serve, args=(0.05,), daemon=True)
            self._thread.start()
        return self

    def stop(self) -> None:
        """End it and close its documents; a server that was stopped is not started again."""
        if self._stopped:
            return
        self._stopped = True
        if self._thread is not None:
            self._http.shutdown()
            self._thread.join()
            self._thread = None
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
        """End the connections that clients keep."""
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
            if document_url(base, request.path) == f"{base}sparql":
                told = described(self.server.documents, request)
                if told is not None:
                    self._send(told)
                else:
                    self._stream(asked(self.server.documents, request))
            else:
                self._send(answer(self.server.documents, request))
        except Refused as refused:
            headers = {**refused.headers, "Content-Type": _PLAIN}
            self._send(Answer(refused.status, headers, f"{refused.why}\n".encode()))
        except OSError:
            # The requester hung up, or the rest of its request did not come.
            self.close_connection = True

    def _request(self) -> Request:
        # Undecoded bytes of a path come as Latin-1; people send UTF-8.
        target = self.path.encode("latin-1", "replace").decode("utf-8", "replace")
        path, _, query = target.partition("?")
        lengths = self.headers.get_all("Content-Length") or ()
        if len(lengths) > 1 or self.headers.defects or self.headers.get_payload():
            # What follows could be read as another request than the one that was sent.
            self.close_connection = True
            raise Refused(400, "its headers cannot be read")
        headers = {name.lower(): value for name, value in self.headers.items()}
        # A page whose site's name was made to lead here (DNS rebinding) is of one origin with what
        # it asks for, and would read everything.
        if not self._is_own(f"http://{headers.get('host', '')}"):
            self.close_connection = True
            raise Refused(421, "there is no site of that name (Host) here")
        if self.command not in _SAFE and not self._is_own(headers.get("origin", "")):
            self.close_connection = True
            raise Refused(403, "a page of another site may change nothing here")
        return Request(self.command, path, query, headers, self._body(headers))

    def _is_own(self, site: str) -> bool:
        """Tell whether a site is this server's or of this machine, or none is named."""
        try:
            host = urlsplit(site).hostname
        except ValueError:
            return False
        own = urlsplit(self.server.documents.base).hostname
        return site in ("", "http://") or host == own or is_loopback(site)

    def _body(self, headers: dict[str, str]) -> bytes:
        announced = headers.get("content-length", "0")
        # So few digits hold any length that is taken, and what is no number is none here.
        known = announced.isascii() and announced.isdigit() and len(announced) <= _MOST_DIGITS
        if "transfer-encoding" in headers or not known:
            self.close_connection = True
            raise Refused(411, "say the body's length in Content-Length")
        length = int(announced)
        if length > MOST_BODY:
            self.close_connection = True
            self.rfile.read(min(length, _MOST_UNWANTED))
            raise Refused(413, f"the body has more than {MOST_BODY:,} bytes")
        body = self.rfile.read(length)
        if len(body) < length:
            raise ConnectionResetError("the body ended too early")
        if headers.get("content-encoding", "identity").lower() != "identity":
            raise Refused(415, "send the body uncompressed")
        return body

    def _send(self, reply: Answer) -> None:
        self.send_response(reply.status)
        for name, value in reply.headers.items():
            self.send_header(name, value)
        if reply.status not in (204, 304):
            self.send_header("Content-Length", str(len(reply.body)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(reply.body)

    def _stream(self, results: Results) -> None:
        self.send_response(200)
        self.send_header("Content-Type", results.media_type)
        chunked = self.request_version != "HTTP/1.0"
        if chunked:
            self.send_header("Transfer-Encoding", "chunked")
        else:
            self.close_connection = True
        self.end_headers()
        if self.command == "HEAD":
            return
        out = _Chunks(self, chunked)
        try:
            results.write(out)  # type: ignore[arg-type]
            out.end()
        except Exception:
            # Without its last chunk, the answer is seen to be incomplete.
            self.close_connection = True
            with contextlib.suppress(OSError):
                self.wfile.flush()


class _Chunks:
    """Writes what comes in pieces of some size, as chunks of HTTP/1.1 where it can."""

    def __init__(self, handler: _Handler, chunked: bool) -> None:
        self._out = handler.wfile
        self._chunked = chunked
        self._pending = bytearray()

    def write(self, data: bytes) -> int:
        self._pending += data
        if len(self._pending) >= 64 * 1024:
            self.flush()
        return len(data)

    def flush(self) -> None:
        if self._pending:
            head, tail = (f"{len(self._pending):x}\r\n".encode(), b"\r\n") if self._chunked else (
                b"", b""
            )  # fmt: skip
            self._out.write(head + bytes(self._pending) + tail)
            self._pending.clear()

    def end(self) -> None:
        self.flush()
        if self._chunked:
            self._out.write(b"0\r\n\r\n")
