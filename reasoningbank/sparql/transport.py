"""One HTTP exchange: built and sent by SPARQLWrapper, within a deadline, to one origin only.

SPARQLWrapper's own sending follows redirects anywhere, bounds each read and not the whole, and
keeps no headers of a failure; so the request goes through an opener of ours.
"""

from __future__ import annotations

import http.client
import socket
import ssl
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from email.message import Message
from email.utils import parsedate_to_datetime
from typing import Any, Protocol
from urllib.parse import urlsplit

from SPARQLWrapper import POST, SPARQLWrapper

from reasoningbank.sparql.endpoint import EndpointConfig, is_loopback

__all__ = [
    "Dropped",
    "Reply",
    "Sink",
    "TimedOut",
    "Unreachable",
    "get",
    "media_type",
    "retry_after",
    "send_query",
]

#: Queries longer than this are sent by POST; servers bound the length of an address.
MOST_GET_CHARS = 1_500
ERROR_BYTES = 64 * 1024
#: Of a body that goes to a sink, so many bytes are kept to tell what it is.
HEAD_BYTES = 4 * 1024
CHUNK = 256 * 1024


class Unreachable(Exception):  # noqa: N818 - an outcome of an exchange, mapped by the client
    """No connection came about."""


class Dropped(Exception):  # noqa: N818
    """The connection ended before the answer did."""


class TimedOut(Exception):  # noqa: N818
    """The time was up after the request had been sent."""


class Sink(Protocol):
    """Takes a body as it comes, so that it is never held whole."""

    def feed(self, chunk: bytes) -> bool:
        """Take some bytes; returns whether no more are wanted."""

    def close(self) -> None:
        """Give up what was taken: the exchange failed."""


@dataclass(frozen=True)
class Reply:
    """What came back.

    Attributes:
        status: HTTP status.
        headers: Response headers.
        body: The bytes read; where they went to a sink, the first few thousand of them.
        cut: Whether reading stopped at a bound, with more to come.
        sink: What took the body, where something did.
    """

    status: int
    headers: Message
    body: bytes = field(repr=False)
    cut: bool = False
    sink: Sink | None = field(default=None, repr=False)

    @property
    def media_type(self) -> str:
        """The content type without parameters, in lower case."""
        return media_type(self.headers)


def media_type(headers: Message) -> str:
    """Return the content type without parameters, in lower case."""
    return (headers.get("Content-Type") or "").split(";")[0].strip().lower()


def send_query(
    config: EndpointConfig,
    text: str,
    form: str,
    accept: str,
    *,
    timeout_s: float,
    sink_for: Callable[[Message], Sink | None] = lambda _: None,
) -> Reply:
    """Send a query and read the answer.

    Args:
        config: Where to, and with which headers and bounds.
        text: The query.
        form: Its form.
        accept: The Accept header.
        timeout_s: Seconds for the exchange as a whole.
        sink_for: Gives, by the headers of an answer with status 2xx, what takes its body as it
            comes; None to have it in the reply.

    Raises:
        Unreachable: No connection came about.
        Dropped: The connection ended too early.
        TimedOut: The time was up.
    """
    exchange = _Exchange(config, timeout_s)
    wrapper = _Wrapper(config, text, form, accept, exchange.open)
    return exchange.read(lambda: wrapper.query().response, sink_for)


def get(config: EndpointConfig, url: str, accept: str, *, timeout_s: float) -> Reply:
    """GET an address of the endpoint's own origin; raises as `send_query` does."""
    headers = {"User-Agent": config.user_agent, **config.headers, "Accept": accept}
    request = urllib.request.Request(url, headers=headers)
    exchange = _Exchange(config, timeout_s)
    return exchange.read(lambda: exchange.open(request), lambda _: None)


class _Wrapper(SPARQLWrapper):  # type: ignore[misc]
    def __init__(
        self,
        config: EndpointConfig,
        text: str,
        form: str,
        accept: str,
        opener: Callable[[urllib.request.Request], Any],
    ) -> None:
        super().__init__(config.address, agent=config.user_agent)
        # Not by setQuery: it guesses the form by a regular expression that long queries stall.
        self.queryString = text
        self.queryType = form
        self.setOnlyConneg(True)
        if len(text) > MOST_GET_CHARS:
            self.setMethod(POST)
        for name, value in {**config.headers, "Accept": accept}.items():
            self.addCustomHttpHeader(name, value)
        self._open = opener

    def _query(self) -> tuple[Any, str]:
        return self._open(self._createRequest()), self.returnFormat


class _SameOrigin(urllib.request.HTTPRedirectHandler):
    """Follows redirects within the host (http → https included), keeping method and body."""

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: Any,
        code: int,
        msg: str,
        headers: Message,
        newurl: str,
    ) -> urllib.request.Request | None:
        old, new = urlsplit(req.full_url), urlsplit(newurl)
        # To the usual ports alone: another one of the same host may be another service.
        upgraded = (old.scheme, new.scheme) == ("http", "https") and (
            old.port in (None, 80) and new.port in (None, 443)
        )
        if new.hostname != old.hostname or not (
            upgraded or (new.scheme, new.port) == (old.scheme, old.port)
        ):
            raise urllib.error.HTTPError(newurl, code, "redirect elsewhere", headers, fp)
        return urllib.request.Request(newurl, data=req.data, headers=dict(req.headers))


class _Exchange:
    """One request in flight, whose socket is shut when its time is up."""

    def __init__(self, config: EndpointConfig, timeout_s: float) -> None:
        self._config = config
        self._timeout = timeout_s
        self._end = time.monotonic() + timeout_s
        self._late = False
        self._sockets: list[socket.socket] = []
        proxies: dict[str, str] | None = {} if is_loopback(config.address) else None
        self._opener = urllib.request.OpenerDirector()
        for handler in (
            urllib.request.ProxyHandler(proxies),
            _Http(self._sockets),
            _Https(self._sockets, config.tls),
            urllib.request.HTTPDefaultErrorHandler(),
            urllib.request.HTTPErrorProcessor(),
            _SameOrigin(),
        ):
            self._opener.add_handler(handler)

    def open(self, request: urllib.request.Request) -> Any:
        return self._opener.open(request, timeout=self._timeout)

    def read(self, send: Callable[[], Any], sink_for: Callable[[Message], Sink | None]) -> Reply:
        timer = threading.Timer(self._timeout, self._shut)
        timer.daemon = True
        timer.start()
        try:
            try:
                response = send()
            except urllib.error.HTTPError as error:
                with error:
                    return Reply(error.code, error.headers, error.read(ERROR_BYTES))
            with response:
                sink = sink_for(response.headers)
                body, cut = self._body(response, sink)
                return Reply(response.status, response.headers, body, cut, sink)
        except TimeoutError as error:
            raise self._reason(TimedOut(str(error))) from error
        except urllib.error.URLError as error:
            late = isinstance(error.reason, TimeoutError)
            raise self._reason(TimedOut() if late else Dropped(str(error.reason))) from error
        except (OSError, http.client.HTTPException, ValueError) as error:
            # ValueError: a TLS socket that was shut while it was read.
            raise self._reason(Dropped(f"{error}" or type(error).__name__)) from error
        finally:
            timer.cancel()

    def _body(self, response: Any, sink: Sink | None) -> tuple[bytes, bool]:
        kept: list[bytes] = []
        size = 0
        most = self._config.max_bytes
        try:
            while chunk := response.read1(CHUNK):
                wanted = chunk[: most - size]
                if sink is None or not size:
                    kept.append(wanted if sink is None else wanted[:HEAD_BYTES])
                size += len(chunk)
                if (sink is not None and sink.feed(wanted)) or size > most:
                    return b"".join(kept), True
            if self._late:
                raise TimedOut
            announced = response.headers.get("Content-Length")
            if announced is not None and announced.isdigit() and size < int(announced):
                raise Dropped(f"{size:,} of {announced} bytes arrived")
        except BaseException:
            if sink is not None:
                sink.close()
            raise
        return b"".join(kept), False

    def _shut(self) -> None:
        self._late = True
        for sock in self._sockets:
            try:
                # Past any TLS layer, so that the thread that reads is not disturbed midway.
                socket.socket.shutdown(sock, socket.SHUT_RDWR)
            except OSError:
                continue

    def _reason(self, otherwise: Exception) -> Exception:
        if not self._sockets:
            return Unreachable(str(otherwise) or "no answer to the attempt to connect")
        return TimedOut() if self._late or time.monotonic() >= self._end else otherwise


class _Recording:
    """Makes connections whose socket is left in `sockets` as soon as there is one."""

    def __init__(self, sockets: list[socket.socket], tls: ssl.SSLContext | None = None) -> None:
        super().__init__(**({} if tls is None else {"context": tls}))
        self._sockets = sockets

    def do_open(self, http_class: Any, req: Any, **options: Any) -> Any:
        def connection(host: str, **settings: Any) -> Any:
            made = http_class(host, **settings)
            connect = made.connect

            def connect_and_record() -> None:
                connect()
                self._sockets.append(made.sock)

            made.connect = connect_and_record
            return made

        return super().do_open(connection, req, **options)  # type: ignore[misc]


class _Http(_Recording, urllib.request.HTTPHandler):
    pass


class _Https(_Recording, urllib.request.HTTPSHandler):
    pass


def retry_after(headers: Mapping[str, Any] | Message) -> float | None:
    """Read a Retry-After header: seconds from now, at least 0; None where there is none."""
    text = str(headers.get("Retry-After") or "").strip()
    if text.isdigit():
        return float(text)
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - time.time())
    except (TypeError, ValueError):
        return None
