"""Loopback servers that send a test's replies, and remember what they were asked."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Reply:
    """One answer: status, body (bytes as they are, anything else as JSON) and headers."""

    status: int = 200
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass
class Asked:
    """One request that arrived."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    at: float = field(default_factory=time.monotonic)


@dataclass
class ScriptedServer:
    """An OpenAI-compatible server that gives its replies in turn, and repeats the last one."""

    replies: list[Reply]
    base: str = ""
    asked: list[Asked] = field(default_factory=list)

    def next_reply(self) -> Reply:
        return self.replies[min(len(self.asked), len(self.replies)) - 1]


def said(text: str | None, **more: Any) -> Reply:
    """Return a completion whose message holds more than its text, such as ``tool_calls``."""
    reply = chat(text)
    reply.body["choices"][0]["message"] |= more
    return reply


def chat(text: str | None, **usage: Any) -> Reply:
    """Return a completion as OpenAI's interface gives it."""
    counts = {"prompt_tokens": 11, "completion_tokens": 3, "total_tokens": 14, **usage}
    message = {"role": "assistant", "content": text}
    choice = {"index": 0, "finish_reason": "stop", "message": message}
    head = {"id": "c1", "object": "chat.completion", "created": 1, "model": "x"}
    return Reply(200, {**head, "choices": [choice], "usage": counts})


def failure(status: int, message: str, code: str | None = None, **headers: str) -> Reply:
    """Return an error as OpenAI's interface gives it."""
    error = {"message": message, "type": "error", "code": code}
    return Reply(status, {"error": error}, {k.replace("_", "-"): v for k, v in headers.items()})


@contextlib.contextmanager
def scripted(*replies: Reply, props: Mapping[str, Any] | None = None) -> Iterator[ScriptedServer]:
    """Serve the replies on loopback; with `props`, say of itself what llama.cpp's server says."""
    script = ScriptedServer(list(replies))

    class Handler(_Quiet):
        def do_POST(self) -> None:
            length = int(self.headers["Content-Length"])
            body = json.loads(self.rfile.read(length))
            headers = {k.lower(): v for k, v in self.headers.items()}
            script.asked.append(Asked(self.path, headers, body))
            self.send(script.next_reply())

        def do_GET(self) -> None:
            known = props is not None and self.path == "/props"
            self.send(Reply(200, props) if known else Reply(404))

    with _serving(Handler) as address:
        script.base = f"{address}/v1"
        yield script


@contextlib.contextmanager
def hub(content: bytes, etag: str, *, breaks_after: int | None = None) -> Iterator[list[str]]:
    """Serve one file as the hub does; yields its address, then the ranges that were asked.

    With `breaks_after`, the first download is cut off after that many bytes.
    """
    log: list[str] = []

    class Handler(_Quiet):
        def do_HEAD(self) -> None:
            moved = self.path.startswith("/some/")
            self.send_response(307 if moved else 302)
            if moved:
                self.send_header("Location", self.path.replace("/some/", "/renamed/"))
            else:
                self.send_header("X-Linked-ETag", f'"{etag}"')
                self.send_header("Location", "http://storage.invalid/file")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()

        def do_GET(self) -> None:
            if self.path.startswith("/api/"):  # the hub's client asks for more than the file
                self.send_error(404)
                return
            asked = self.headers.get("Range", "")
            log.append(asked)
            start = int(asked.removeprefix("bytes=").rstrip("-")) if asked else 0
            self.send_response(206 if asked else 200)
            self.send_header("Content-Length", str(len(content) - start))
            self.end_headers()
            stop = breaks_after if breaks_after and len(log) == 2 else len(content)
            self.wfile.write(content[start:stop])

    with _serving(Handler) as address:
        log.append(address)
        yield log


class _Quiet(BaseHTTPRequestHandler):
    def send(self, reply: Reply) -> None:
        body = reply.body if isinstance(reply.body, bytes) else json.dumps(reply.body).encode()
        self.send_response(reply.status)
        for name, value in {"Content-Type": "application/json", **reply.headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        return None


@contextlib.contextmanager
def _serving(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
