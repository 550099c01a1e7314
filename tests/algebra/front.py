"""A server in front of another one, which fails as asked, and knows what went through."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx


@dataclass(frozen=True)
class Fault:
    """What happens to one request.

    Attributes:
        kind: ``pass`` it on; ``cut`` the connection before it; ``lose`` the answer after it;
            ``answer`` by itself; ``drip`` a byte now and then, for ever; ``gone``: cut this and all
            later ones.
        status: The status of an answer of its own, which may also follow after passing it on.
        headers: Its headers.
        body: Its body.
    """

    kind: str = "pass"
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""


PASS = Fault()
CUT = Fault("cut")
LOSE = Fault("lose")
GONE = Fault("gone")


def answer(status: int, body: bytes | str = b"", **headers: str) -> Fault:
    """Return the fault that a server answers by itself; header names with _ for -."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Fault("answer", status, named, body.encode() if isinstance(body, str) else body)


class Front:
    """Passes requests on, except for those that its script has something else for.

    Args:
        behind: The address of the server behind it; None where it only answers by itself.
    """

    def __init__(self, behind: str | None = None) -> None:
        self.seen: list[tuple[str, str]] = []
        self.headers: list[dict[str, str]] = []
        self.bodies: list[bytes] = []
        self._script: Iterator[Fault] = iter(())
        self._methods: tuple[str, ...] = ()
        self._gone = False
        self._lock = threading.Lock()
        self.done = threading.Event()
        # Making one takes longer than a request.
        self._client = httpx.Client(trust_env=False, verify=False)
        self.during: Callable[[], Any] = lambda: None
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                outer._serve(self, behind)

            do_HEAD = do_PUT = do_POST = do_PATCH = do_DELETE = do_GET  # noqa: N815

            def log_message(self, *_: object) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self.port = self._http.server_port
        self.url = f"http://127.0.0.1:{self.port}/"
        threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True).start()

    def script(self, *faults: Fault, methods: str = "GET HEAD PUT POST PATCH DELETE") -> None:
        """Say what happens to the next requests of some methods; what follows passes."""
        self._script, self._methods, self._gone = iter(faults), tuple(methods.split()), False

    def wrap(self, context: ssl.SSLContext) -> None:
        """Speak TLS from now on."""
        self._http.socket = context.wrap_socket(self._http.socket, server_side=True)
        self.url = f"https://localhost:{self.port}/"

    def times(self, method: str, path: str = "") -> int:
        """How often it saw a request."""
        return sum(one == method and (not path or where == path) for one, where in self.seen)

    def close(self) -> None:
        self.done.set()
        self._client.close()
        self._http.shutdown()
        self._http.server_close()

    def _serve(self, handler: BaseHTTPRequestHandler, behind: str | None) -> None:
        body = handler.rfile.read(int(handler.headers.get("Content-Length", 0)))
        with self._lock:
            self.seen.append((handler.command, handler.path))
            self.headers.append({k.lower(): v for k, v in handler.headers.items()})
            self.bodies.append(body)
            fault = PASS
            if handler.command in self._methods:
                fault = next(self._script, PASS)
            if fault.kind == "gone" or self._gone:
                self._gone, fault = True, CUT
        with suppress(OSError):
            self._carry_out(fault, handler, behind, body)
        if fault.kind in ("cut", "lose", "drip"):
            handler.close_connection = True
            with suppress(OSError):
                handler.connection.shutdown(socket.SHUT_RDWR)

    def _carry_out(
        self, fault: Fault, handler: BaseHTTPRequestHandler, behind: str | None, body: bytes
    ) -> None:
        if fault.kind == "cut":
            return
        if fault.kind == "answer":
            self._say(handler, fault.status, fault.headers, fault.body)
            return
        if fault.kind == "drip":
            handler.wfile.write(fault.body)
            while not self.done.wait(0.02):
                handler.wfile.write(b"x")
            return
        assert behind is not None
        kept = {
            name: value
            for name, value in handler.headers.items()
            if name.lower() not in ("host", "connection", "content-length")
        }
        reply = self._client.request(
            handler.command, behind + handler.path[1:], content=body, headers=kept
        )
        self.during()
        if fault.kind == "lose":
            return
        if fault.kind == "after":
            self._say(handler, fault.status, fault.headers, fault.body)
            return
        passed = {
            name: value
            for name, value in reply.headers.items()
            if name not in ("content-length", "transfer-encoding", "server", "date")
        }
        self._say(handler, reply.status_code, passed, reply.content)

    def _say(
        self, handler: BaseHTTPRequestHandler, status: int, headers: dict[str, str], body: bytes
    ) -> None:
        handler.send_response_only(status)
        for name, value in headers.items():
            handler.send_header(name, value)
        if status not in (204, 304):
            handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        if handler.command != "HEAD":
            handler.wfile.write(body)
