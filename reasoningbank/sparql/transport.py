"""One HTTP exchange: built and sent by SPARQLWrapper, within a deadline, to one origin only.

SPARQLWrapper's own sending follows redirects anywhere, bounds each read and not the whole, and
keeps no headers of a failure; so the request goes through an opener of ours.
"""

from __future__ import annotations

import http.client
import socket
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from email.message import Message
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit

from SPARQLWrapper import POST, SPARQLWrapper

from reasoningbank.sparql.endpoint import EndpointConfig, is_loopback

__all__ = ["Dropped", "Reply", "TimedOut", "Unreachable", "get", "retry_after", "send_query"]

#: Queries longer than this are sent by POST; servers bound the length of an address.
MOST_GET_CHARS = 1_500
ERROR_BYTES = 64 * 1024
CHUNK = 256 * 1024


class Unreachable(Exception):  # noqa: N818 - an outcome of an exchange, mapped by the client
    """No connection came about."""


class Dropped(Exception):  # noqa: N818
    """The connection ended before the answer did."""


class TimedOut(Exception):  # noqa: N818
    """The time was up after the request had been sent."""


@dataclass(frozen=True)
class Reply:
    """What came back.

    Attributes:
        status: HTTP status.
        headers: Response headers.
        body: The bytes read.
        cut: Whether reading stopped at a bound, with more to come.
    """

    status: int
    headers: Message
    body: bytes = field(repr=False)
    cut: bool = False

    @property
    def media_type(self) -> str:
        """The content type without parameters, in lower case."""
        return (self.headers.get("Content-Type") or "").split(";")[0].strip().lower()


def send_query(
    config: EndpointConfig,
    text: str,
    form: str,
    accept: str,
    *,
    timeout_s: float,
    max_lines: int | None = None,
) -> Reply:
    """Send a query and read the answer.

    Args:
        config: Where to, and with which headers and bounds.
        text: The query.
        form: Its form.
        accept: The Accept header.
        timeout_s: Seconds for the exchange as a whole.
        max_lines: Stop reading after so many lines; None for no bound.

    Raises:
        Unreachable: No connection came about.
        Dropped: The connection ended too early.
        TimedOut: The time was up.
    """
    exchange = _Exchange(config, timeout_s)
    wrapper = _Wrapper(config, text, form, accept, exchange.open)
    return exchange.read(lambda: wrapper.query().response, max_lines)


def get(config: EndpointConfig, url: str, accept: str, *, timeout_s: float) -> Reply:
    """GET an address of the endpoint's own origin; raises as `send_query` does."""
    headers = {"User-Agent": config.user_agent, **config.headers, "Accept": accept}
    request = urllib.request.Request(url, headers=headers)
    exchange = _Exchange(config, timeout_s)
    return exchange.read(lambda: exchange.open(request), None)


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
        upgraded = (old.scheme, new.scheme) == ("http", "https") and old.port is None
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
            _Https(self._sockets),
            urllib.request.HTTPDefaultErrorHandler(),
            urllib.request.HTTPErrorProcessor(),
            _SameOrigin(),
        ):
            self._opener.add_handler(handler)

    def open(self, request: urllib.request.Request) -> Any:
        return self._opener.open(request, timeout=self._timeout)

    def read(self, send: Callable[[], Any], max_lines: int | None) -> Reply:
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
                body, cut = self._body(response, max_lines)
                return Reply(response.status, response.headers, body, cut)
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

    def _body(self, response: Any, max_lines: int | None) -> tuple[bytes, bool]:
        chunks: list[bytes] = []
        size = lines = 0
        while chunk := response.read1(CHUNK):
            chunks.append(chunk)
            size += len(chunk)
            if size > self._config.max_bytes:
                return b"".join(chunks)[: self._config.max_bytes], True
            if max_lines is not None:
                lines += chunk.count(b"\n")
                if lines > max_lines:
                    return b"".join(chunks), True
        if self._late:
            raise TimedOut
        announced = response.headers.get("Content-Length")
        if announced is not None and announced.isdigit() and size < int(announced):
            raise Dropped(f"{size:,} of {announced} bytes arrived")
        return b"".join(chunks), False

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

    def __init__(self, sockets: list[socket.socket]) -> None:
        super().__init__()
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
