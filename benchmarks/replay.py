"""A server that has its answers at hand: what remains of a request is the client's own time."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

__all__ = ["Replay"]


class Replay:
    """Answers every GET with the body kept for the first media type it accepts.

    Args:
        answers: Body by media type.
    """

    def __init__(self, answers: Mapping[str, bytes]) -> None:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                accept = self.headers["Accept"]
                kind = min((k for k in answers if k in accept), key=accept.index)
                self.send_response(200)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(answers[kind])))
                self.end_headers()
                self.wfile.write(answers[kind])

            def log_message(self, *_: object) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._http.server_port}/sparql"
        threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True).start()

    def __enter__(self) -> Replay:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()
