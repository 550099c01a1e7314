"""A model on loopback that replays given replies, and remembers what it was asked."""

from __future__ import annotations

import json
import re
import threading
from collections import Counter
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from lm.scripted import Reply, chat

__all__ = ["Model", "right"]

_QUESTION = re.compile(r"Which plants are higher than (\d+) m\?")


def right(task: int) -> Reply:
    """Return the reply of a model that knows the answer, as `direct` reads it."""
    query = f"SELECT ?plant WHERE {{ ?plant t:height ?h . FILTER(?h > {task}) }}"
    return chat(f"[[ ## sparql ## ]]\n{query}\n\n[[ ## completed ## ]]")


class Model:
    """Speaks OpenAI's interface.

    `answer` says what comes: it is given the number of the request, from 1, and the number of
    the task that it asks about.
    """

    def __init__(self) -> None:
        self.asked: list[int] = []
        self.answer: Callable[[int, int], Reply] = lambda _, task: right(task)
        self.held = threading.Event()
        self.release = threading.Event()
        self._hold_at = 0
        self._lock = threading.Lock()
        self._port = 0
        self._http: ThreadingHTTPServer | None = None
        self.open()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}/v1"

    @property
    def calls(self) -> Counter[int]:
        """How often each task was asked about."""
        return Counter(self.asked)

    def hold(self, number: int) -> None:
        """Let the `number`-th request from now wait until `release` is set."""
        self.held.clear()
        self.release.clear()
        self._hold_at = len(self.asked) + number

    def open(self) -> None:
        """Listen, at the same port as before."""
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                outer._answer(self)

            def log_message(self, format: str, *args: object) -> None:
                return None

        if self._http is None:
            self._http = ThreadingHTTPServer(("127.0.0.1", self._port), Handler)
            self._http.daemon_threads = True
            self._port = self._http.server_port
            serve = self._http.serve_forever
            threading.Thread(target=serve, args=(0.02,), daemon=True).start()

    def close(self) -> None:
        """Be gone: connections are refused."""
        self.release.set()
        if self._http is not None:
            self._http.shutdown()
            self._http.server_close()
            self._http = None

    def _answer(self, handler: BaseHTTPRequestHandler) -> None:
        body = json.loads(handler.rfile.read(int(handler.headers["Content-Length"])))
        questions = _QUESTION.findall(str(body["messages"][-1]["content"]))
        task = int(questions[-1]) if questions else -1
        with self._lock:
            self.asked.append(task)
            number = len(self.asked)
        if number == self._hold_at:
            self.held.set()
            self.release.wait(60)
        reply = self.answer(number, task)
        content = reply.body if isinstance(reply.body, bytes) else json.dumps(reply.body).encode()
        try:
            handler.send_response(reply.status)
            for name, value in {"Content-Type": "application/json", **reply.headers}.items():
                handler.send_header(name, value)
            handler.send_header("Content-Length", str(len(content)))
            handler.end_headers()
            handler.wfile.write(content)
        except (BrokenPipeError, ConnectionResetError):
            # Who asked was killed, or waits no longer.
            return
