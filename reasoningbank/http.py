"""HTTP with deadlines, byte caps, checked redirects and retries.

`send` bounds the whole exchange: a server that sends a byte now and then cannot outlast its
timeout, because a timer shuts the socket. `retrying` repeats an exchange while the server is busy.
"""

from __future__ import annotations

import errno
import http.client
import math
import random
import re
import socket
import ssl
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from email.message import Message
from email.utils import parsedate_to_datetime
from html import unescape
from typing import Any
from urllib.parse import urljoin, urlsplit

from reasoningbank.errors import SetupError, UsageError
from reasoningbank.spill import Spool

#: Statuses of a server that may answer later.
BUSY = frozenset({429, 502, 503, 504})
#: Bytes read of a response whose status is not 2xx.
ERROR_BYTES = 64 * 1024
#: Bytes kept of a body that goes to a sink, to recognise what it is.
HEAD_BYTES = 4 * 1024
MESSAGE_CHARS = 300
_CHUNK = 256 * 1024
_MOST_REDIRECTS = 10
_TITLE = re.compile(r"<title[^>]*>(.*?)</title>|<h1[^>]*>(.*?)</h1>", re.I | re.S)


class ExchangeError(Exception):
    """An exchange that gave no whole response; the caller maps it to an error."""


class Unreachable(ExchangeError):  # noqa: N818
    """No connection was made, so the request was not sent."""


class Dropped(ExchangeError):  # noqa: N818
    """The connection ended before the response did."""


class TimedOut(ExchangeError):  # noqa: N818
    """The time ran out after the connection was made."""


#: Returns, from the headers of a response, what takes its body; None to have it in the reply.
SinkFor = Callable[[Message], Spool | None]


@dataclass(frozen=True)
class Reply:
    status: int
    headers: Message
    body: bytes = field(repr=False)
    cut: bool = False
    sink: Spool | None = field(default=None, repr=False)
    url: str = ""

    @property
    def media_type(self) -> str:
        return media_type(self.headers)

    @property
    def is_html(self) -> bool:
        """Whether the body is a web page."""
        start = self.body[:200].lstrip().lower()
        return start.startswith((b"<!doctype html", b"<html")) or (
            self.media_type == "text/html" and not start.startswith(b"<?xml")
        )

    @property
    def message(self) -> str:
        """What the body says, in one line: the title of a page, otherwise the text."""
        text = self.body[:ERROR_BYTES].decode("utf-8", "replace")
        if self.is_html:
            title = _TITLE.search(text)
            text = unescape(title[1] or title[2] or "") if title else ""
        text = " ".join(text.split())
        return text if len(text) <= MESSAGE_CHARS else text[:MESSAGE_CHARS] + "…"


def media_type(headers: Message) -> str:
    """Return the content type without parameters, in lower case."""
    return (headers.get("Content-Type") or "").split(";")[0].strip().lower()


def retry_after(headers: Mapping[str, Any] | Message) -> float | None:
    """Return the seconds of a Retry-After header, at least 0; None without one."""
    text = str(headers.get("Retry-After") or "").strip()
    if text.isdigit():
        return float(text)
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - time.time())
    except (TypeError, ValueError):
        return None


def same_origin(old: str, new: str) -> bool:
    """Return whether a redirect stays on its host, where http may become https."""
    one, other = urlsplit(old), urlsplit(new)
    # Only to the usual ports: another port of the same host may be another service.
    upgraded = (one.scheme, other.scheme) == ("http", "https") and (
        one.port in (None, 80) and other.port in (None, 443)
    )
    same = (other.scheme, other.port) == (one.scheme, one.port)
    return other.hostname == one.hostname and (upgraded or same)


def send(
    request: urllib.request.Request,
    *,
    timeout_s: float,
    max_bytes: int,
    tls: ssl.SSLContext | None = None,
    proxies: bool = True,
    follow: Callable[[str, str], bool] | None = None,
    sink_for: SinkFor = lambda _: None,
) -> Reply:
    """Send one request and read the response, all within `timeout_s`; otherwise `ExchangeError`.

    `follow` decides from old and new address whether a redirect is followed; without it, the
    redirect is the reply. `sink_for` may raise to end the exchange; more than `max_bytes` is cut.
    """
    end = time.monotonic() + timeout_s
    sockets: list[socket.socket] = []
    ended = threading.Event()
    opener = urllib.request.OpenerDirector()
    opener.add_handler(urllib.request.ProxyHandler(None if proxies else {}))
    opener.add_handler(_Recording(sockets, tls))

    def shut() -> None:
        ended.set()
        for sock in sockets:
            with suppress(OSError):
                # Below any TLS layer, so that the reading thread is not disturbed midway.
                socket.socket.shutdown(sock, socket.SHUT_RDWR)

    def failed(reason: ExchangeError) -> ExchangeError:
        if not sockets:
            return Unreachable(str(reason) or "no answer to the attempt to connect")
        return TimedOut() if ended.is_set() or time.monotonic() >= end else reason

    timer = threading.Timer(timeout_s, shut)
    timer.daemon = True
    timer.start()
    try:
        for _ in range(_MOST_REDIRECTS):
            url = request.full_url
            if urlsplit(url).scheme not in ("http", "https"):
                raise UsageError("not an http or https address", where=url)
            with opener.open(request, timeout=max(0.1, end - time.monotonic())) as response:
                reply = _read(response, url, max_bytes, sink_for, ended)
            new = urljoin(url, reply.headers.get("Location") or "")
            redirected = reply.status in (301, 302, 303, 307, 308) and "Location" in reply.headers
            if not redirected or follow is None or not follow(url, new):
                break
            request = urllib.request.Request(
                new, data=request.data, headers=dict(request.headers), method=request.get_method()
            )
        return reply
    except (OSError, http.client.HTTPException, ValueError) as error:
        # ValueError: a TLS socket that was shut while it was read.
        reason = error.reason if isinstance(error, urllib.error.URLError) else error
        late = isinstance(reason, TimeoutError)
        ending = TimedOut() if late else Dropped(f"{reason}" or type(reason).__name__)
        raise failed(ending) from error
    finally:
        timer.cancel()


def _read(
    response: Any, url: str, max_bytes: int, sink_for: SinkFor, ended: threading.Event
) -> Reply:
    good = 200 <= response.status < 300
    most = max_bytes if good else ERROR_BYTES
    sink = sink_for(response.headers) if good else None
    kept: list[bytes] = []
    size = 0
    cut = False
    try:
        while not cut and (chunk := response.read1(_CHUNK)):
            wanted = chunk[: most - size]
            if sink is None or not size:
                kept.append(wanted if sink is None else wanted[:HEAD_BYTES])
            size += len(chunk)
            cut = (sink is not None and sink.feed(wanted)) or size > most
        if ended.is_set() and not cut:
            raise TimedOut
        if response.length and not cut:
            raise Dropped(f"{response.length:,} bytes did not arrive")
    except BaseException:
        if sink is not None:
            sink.close()
        raise
    return Reply(response.status, response.headers, b"".join(kept), cut and good, sink, url)


def retrying(
    exchange: Callable[[], Reply],
    *,
    retries: int,
    until: float,
    backoff_s: float = 0.5,
    statuses: Collection[int] = BUSY,
    repeat: type[Exception] | tuple[type[Exception], ...] = Dropped,
    pause: Callable[[float], None] = time.sleep,
) -> Reply:
    """Repeat an exchange until its reply is worth reading."""
    attempt = 0
    while True:
        wait = backoff_s * 2**attempt * random.uniform(0.75, 1.25)
        try:
            reply = exchange()
            if reply.status not in statuses:
                return reply
            wait = max(wait, retry_after(reply.headers) or 0.0)
            if attempt == retries or time.monotonic() + wait >= until:
                return reply
        except repeat:
            if attempt == retries or time.monotonic() + wait >= until:
                raise
        pause(wait)
        attempt += 1


@contextmanager
def binding(port: int, where: str, hint: str) -> Iterator[None]:
    """Report a port that a server cannot listen on."""
    try:
        yield
    except OSError as error:
        used = error.errno == errno.EADDRINUSE
        what = f"port {port} {'is in use' if used else f'is unavailable: {error.strerror}'}"
        code = "port-in-use" if used else "no-port"
        raise SetupError(what, where=where, hint=hint, code=code) from error


@contextmanager
def listening(host: str, port: int, where: str, hint: str) -> Iterator[socket.socket]:
    """Listen on a port of a host, 0 for a free one, for the length of a block."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with binding(port, where, hint):
        bound = socket.create_server((host, port), family=family)
    with bound:
        yield bound


class _Recording(urllib.request.HTTPSHandler):
    """Opens http and https; the socket of each connection is recorded as soon as there is one."""

    http_request = urllib.request.HTTPSHandler.https_request

    def __init__(self, sockets: list[socket.socket], tls: ssl.SSLContext | None) -> None:
        super().__init__(context=tls)
        self._sockets = sockets

    def http_open(self, req: urllib.request.Request) -> Any:
        return self.do_open(http.client.HTTPConnection, req)

    def do_open(self, http_class: Any, req: Any, **options: Any) -> Any:
        def connection(host: str, **settings: Any) -> Any:
            made = http_class(host, **settings)
            connect = made.connect

            def connect_and_record() -> None:
                connect()
                self._sockets.append(made.sock)

            made.connect = connect_and_record
            return made

        return super().do_open(connection, req, **options)


class Gate:
    """Limits simultaneous requests to one address and spaces their starts."""

    def __init__(self) -> None:
        #: Processes that send there; each keeps to its part of the limits.
        self.sharers = 1
        self._changed = threading.Condition()
        self._running = 0
        self._next = 0.0

    @contextmanager
    def slot(self, connections: int, interval_s: float, wait_s: float) -> Iterator[None]:
        """Hold a place while a request runs, which starts `interval_s` after the last one did."""
        end = time.monotonic() + wait_s

        def free() -> bool:
            return self._running < max(1, connections // self.sharers)

        with self._changed:
            if not self._changed.wait_for(free, timeout=max(0.0, wait_s)):
                raise TimeoutError
            self._running += 1
        try:
            self.start(interval_s, end)
            yield
        finally:
            with self._changed:
                self._running -= 1
                # Of those that wait, some may have a lower limit than others.
                self._changed.notify_all()

    def start(self, interval_s: float, end: float = math.inf) -> None:
        """Wait for a turn, which keeps the next start `interval_s` away; not beyond `end`."""
        with self._changed:
            now = time.monotonic()
            start = max(now, self._next)
            if start > max(now, end):
                raise TimeoutError
            self._next = start + interval_s * self.sharers
        time.sleep(start - now)

    def correct(self, interval_s: float) -> None:
        """Move the next start by the interval that a request took more, or less, than expected."""
        with self._changed:
            self._next += interval_s * self.sharers


_gates: dict[str, Gate] = {}


def gate_for(address: str) -> Gate:
    """Return the gate that all clients of this process share for an address."""
    return _gates.setdefault(address, Gate())
