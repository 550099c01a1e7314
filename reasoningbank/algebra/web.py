"""One request of a run over HTTP: retried, redirected, bounded, and its failure told in a line."""

from __future__ import annotations

import random
import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from html import unescape
from typing import Any
from urllib.parse import urljoin

import httpcore
import httpx

from reasoningbank.algebra.runtime_limits import Limits, Spent
from reasoningbank.algebra.web_address import Addresses, checked, inside
from reasoningbank.algebra.web_credentials import Credential, tls_context
from reasoningbank.algebra.web_transport import DeadlineTransport, deadline
from reasoningbank.errors import EndpointError
from reasoningbank.http import retry_after

__all__ = ["Lost", "NotSent", "Web", "WebReply"]

USER_AGENT = "reasoningbank/0.1 (Web Algebra)"
_MOST_REDIRECTS = 10
_ERROR_BYTES = 64 * 1024
_BACKOFF_S = 0.5
_READING = ("GET", "HEAD")
#: The request was not carried out, and may be later.
_LATER = frozenset({408, 425, 429, 503})
#: A server between us and the document gave up waiting; or the document's own failed midway.
_UNCLEAR = frozenset({500, 502, 504})
_NOT_SENT = (httpcore.ConnectError, httpcore.ConnectTimeout, httpcore.PoolTimeout)
_FAILED = (httpcore.TimeoutException, httpcore.NetworkError, httpcore.ProtocolError)


class Lost(Exception):  # noqa: N818 - an outcome, not a defect
    """A request was sent, and whether it was carried out is not known."""


class NotSent(Exception):  # noqa: N818
    """A request did not leave: there is no connection."""


@dataclass(frozen=True)
class WebReply:
    """What came back.

    Attributes:
        status: The HTTP status.
        url: The public address that answered, redirects followed.
        headers: Its headers.
        body: Its body.
    """

    status: int
    url: str
    headers: httpx.Headers
    body: bytes = field(repr=False)

    @property
    def media_type(self) -> str:
        """The content type without parameters, in lower case."""
        return str(self.headers.get("Content-Type", "")).partition(";")[0].strip().lower()

    @property
    def said(self) -> str:
        """What the body tells people, in one line."""
        text = self.body[:_ERROR_BYTES].decode("utf-8", "replace")
        if "html" in self.media_type or text.lstrip()[:1] == "<":
            title = re.search(r"<title[^>]*>(.*?)</title>|<h1[^>]*>(.*?)</h1>", text, re.I | re.S)
            text = unescape(title[1] or title[2] or "") if title else ""
        text = " ".join(text.split())
        return text if len(text) <= 300 else f"{text[:300]}…"

    @property
    def told(self) -> str:
        """The status with what the body tells."""
        return f"HTTP {self.status}" + (f": {self.said}" if self.said else "")


class Web:
    """Sends the requests of one run; safe to share between threads.

    Args:
        limits: What one request may take.
        spent: Where requests are counted.
        addresses: Which addresses are asked elsewhere.
        credentials: Who the run is to whom.
        record: Called with what happened, request by request.
        pause: Waits so many seconds; tests give another one.
    """

    def __init__(
        self,
        limits: Limits,
        spent: Spent,
        *,
        addresses: Addresses | None = None,
        credentials: Sequence[Credential] = (),
        record: Callable[[Mapping[str, Any]], None] = lambda _: None,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._limits = limits
        self._spent = spent
        self._addresses = addresses or Addresses()
        self._credentials = tuple(credentials)
        self._record = record
        self._pause = pause
        self._lock = threading.Lock()
        self._open = ExitStack()
        self._clients: dict[Credential | None, httpx.Client] = {}

    def close(self) -> None:
        """Close all connections."""
        with self._lock:
            self._open.close()
            self._clients.clear()

    def known_as(self, url: str) -> str:
        """Return the public address of a real one."""
        return self._addresses.known_as(checked(url))

    def credential(self, url: str) -> Credential | None:
        """Return what the run has to show at an address."""
        fitting = [known for known in self._credentials if inside(known.base, url)]
        return max(fitting, key=lambda known: len(known.base), default=None)

    def ask(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        body: bytes = b"",
        may_follow: Callable[[str], None] = lambda _: None,
    ) -> WebReply:
        """Send a request until there is an answer to it.

        What reads is repeated when its answer is lost, too; what writes is then left to the caller.

        Args:
            method: GET or HEAD, which follow redirects; otherwise 307 and 308 alone are followed.
            url: Where to, as `checked` returns it.
            headers: Its headers.
            body: Its body.
            may_follow: Raises where the address of a redirect may not be asked.

        Raises:
            Lost: A request that writes was sent, and its answer did not come.
            NotSent: There is no connection, after all tries.
            EndpointError: What reads had no answer; a redirect leads nowhere; a body is too large.
            BudgetError: The run may send no more.
        """
        until = time.monotonic() + min(self._limits.wait_seconds, max(0.0, self._spent.left_s))
        for _ in range(_MOST_REDIRECTS + 1):
            reply = self._answered(method, url, headers or {}, body, until)
            target = reply.headers.get("Location")
            follows = (301, 302, 303, 307, 308) if method in _READING else (307, 308)
            if reply.status not in follows or target is None:
                return reply
            url = self._redirected(url, target)
            may_follow(url)
        hint = "ask for the document's own address"
        raise EndpointError(f"more than {_MOST_REDIRECTS} redirects", where=url, hint=hint)

    def _redirected(self, url: str, target: str) -> str:
        # The public address is what a relative one is relative to.
        onward = self._addresses.known_as(checked(urljoin(url, target)))
        if url.startswith("https:") and onward.startswith("http:"):
            hint = "ask the server's owner, or give the address without TLS yourself"
            raise EndpointError(f"redirects from TLS to {onward}", where=url, hint=hint)
        return onward

    def _answered(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes, until: float
    ) -> WebReply:
        for attempt in range(1, self._limits.tries + 1):
            last = attempt == self._limits.tries
            pause = _BACKOFF_S * 2 ** (attempt - 1) * random.uniform(0.75, 1.25)
            try:
                reply = self._exchange(method, url, headers, body, until)
            except NotSent:
                if last or time.monotonic() + pause >= until:
                    raise
            except Lost as lost:
                if method not in _READING:
                    raise
                if last or time.monotonic() + pause >= until:
                    hint = "try again later"
                    raise EndpointError(f"{lost}", where=url, hint=hint) from None
            else:
                again = _LATER | _UNCLEAR - {500} if method in _READING else _LATER
                if reply.status not in again or last:
                    return reply
                pause = max(pause, retry_after(reply.headers) or 0.0)
                if time.monotonic() + pause >= until:
                    return reply
            self._pause(pause)
        raise AssertionError("the last attempt returns or raises")

    def _exchange(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes, until: float
    ) -> WebReply:
        credential = self.credential(url)
        client = self._client(credential)
        self._spent.request(url)
        began = time.monotonic()
        end = min(began + self._limits.request_seconds, until)
        # Compressed, a small body can unpack to any size.
        sent = {"User-Agent": USER_AGENT, "Accept-Encoding": "identity", **headers}
        sent |= {} if credential is None else credential.headers
        event: dict[str, Any] = {"event": "request", "method": method, "url": url}
        try:
            with deadline(end):
                reply = self._read(client, method, url, sent, body, end)
            event |= {"status": reply.status, "bytes": len(reply.body)}
            return reply
        except _NOT_SENT as error:
            event["error"] = "no connection"
            raise NotSent(f"no connection: {error}") from None
        except _FAILED as error:
            event["error"] = "no answer"
            if isinstance(error, httpcore.TimeoutException):
                raise Lost(f"no whole answer within {end - began:.3g} s") from None
            raise Lost(f"the connection was dropped: {error or type(error).__name__}") from None
        finally:
            self._record({**event, "seconds": time.monotonic() - began})

    def _read(
        self,
        client: httpx.Client,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: bytes,
        end: float,
    ) -> WebReply:
        content = body if method not in _READING else None
        asked_at = self._addresses.asked_at(url)
        with client.stream(method, asked_at, headers=headers, content=content) as response:
            good = response.status_code < 300
            coding = (response.headers.get("Content-Encoding") or "identity").lower()
            if coding != "identity" and method == "GET" and good:
                what = f"the answer is compressed ({coding[:40]}), which was not asked for"
                raise EndpointError(what, where=url)
            most = self._limits.document_bytes if good else _ERROR_BYTES
            parts: list[bytes] = []
            size = 0
            for part in response.iter_raw():
                parts.append(part)
                size += len(part)
                if size > most:
                    break
                if time.monotonic() > end:
                    raise httpcore.ReadTimeout("the time for the exchange is up")
            if size > most and good and method in _READING:
                what = f"the document is larger than {most:,} bytes"
                hint = "raise the limit on bytes, or ask an endpoint for the part you need"
                raise EndpointError(what, where=url, hint=hint)
            return WebReply(response.status_code, url, response.headers, b"".join(parts))

    def _client(self, credential: Credential | None) -> httpx.Client:
        # A certificate is shown only where it belongs, so those servers have a client of their own.
        plain = credential is None or not (credential.certificate or credential.authorities)
        key = None if plain else credential
        with self._lock:
            if key not in self._clients:
                client = httpx.Client(
                    transport=DeadlineTransport(tls_context(key)),
                    timeout=httpx.Timeout(self._limits.request_seconds),
                    follow_redirects=False,
                )
                self._clients[key] = self._open.enter_context(client)
            return self._clients[key]
