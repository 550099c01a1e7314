"""An HTTP server that misbehaves as asked."""

from __future__ import annotations

import ssl
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Answer:
    """One scripted answer; `say` may write anything by itself instead."""

    status: int = 200
    body: bytes = b"?x\n1\n"
    headers: dict[str, str] = field(
        default_factory=lambda: {"Content-Type": "text/tab-separated-values"}
    )
    announce: int | None = None
    say: Callable[[BaseHTTPRequestHandler], None] | None = None


@dataclass
class Seen:
    """What a request looked like."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    at: float


class FaultyServer:
    """Gives its answers in order, the last one for ever, and remembers the requests."""

    def __init__(self) -> None:
        self.answers: list[Answer] = []
        self.seen: list[Seen] = []
        self.in_flight = 0
        self.most_in_flight = 0
        self._lock = threading.Lock()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer._answer(self, b"")

            def do_POST(self) -> None:
                outer._answer(self, self.rfile.read(int(self.headers["Content-Length"])))

            def log_message(self, *_: object) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._http.server_port}/sparql"
        threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True).start()

    def script(self, *answers: Answer) -> None:
        self.answers = list(answers)

    def wrap(self, context: ssl.SSLContext) -> None:
        """Speak TLS from now on."""
        self._http.socket = context.wrap_socket(self._http.socket, server_side=True)

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()

    def _answer(self, handler: BaseHTTPRequestHandler, body: bytes) -> None:
        with self._lock:
            headers = dict(handler.headers.items())
            self.seen.append(Seen(handler.command, handler.path, headers, body, time.monotonic()))
            answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
            self.in_flight += 1
            self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            if answer.say is not None:
                answer.say(handler)
                return
            handler.send_response_only(answer.status)
            for name, value in answer.headers.items():
                handler.send_header(name, value)
            announced = len(answer.body) if answer.announce is None else answer.announce
            handler.send_header("Content-Length", str(announced))
            handler.end_headers()
            handler.wfile.write(answer.body)
        except (BrokenPipeError, ConnectionResetError):
            pass
        finally:
            with self._lock:
                self.in_flight -= 1
            handler.close_connection = True
