"""HTTP requests of a run: retried, redirected and bounded; and documents on the Web as graphs."""

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
import pyoxigraph
from pyoxigraph import RdfFormat
from rdflib import Graph

from reasoningbank.algebra.addresses import Addresses, Credential, checked, inside, tls_context
from reasoningbank.algebra.evaluation import Limits
from reasoningbank.algebra.jsonld import graph_from_quads
from reasoningbank.algebra.web_transport import DeadlineTransport, deadline
from reasoningbank.errors import BudgetError, EndpointError, ReasoningBankError
from reasoningbank.http import retry_after
from reasoningbank.sparql.formats import blows_up
from reasoningbank.sparql.tokens import check_terms

__all__ = ["ACCEPT", "Lost", "NotSent", "Record", "Spent", "Web", "WebReply", "graph_of"]

USER_AGENT = "reasoningbank/0.1 (Web Algebra)"
#: The formats that are read fastest and with least loss come first. Other formats are rejected, so
#: they are not asked for: servers without RDF then say so.
ACCEPT = (
    "application/n-triples, text/turtle;q=0.95, application/ld+json;q=0.8, "
    "application/rdf+xml;q=0.7, application/n-quads;q=0.6, application/trig;q=0.6"
)
_MISNAMED = {"application/x-turtle": RdfFormat.TURTLE, "application/json": RdfFormat.JSON_LD}
_MOST_REDIRECTS = 10
_ERROR_BYTES = 64 * 1024
_BACKOFF_S = 0.5
_READING = ("GET", "HEAD")
#: The request was not carried out, and may be later.
_LATER = frozenset({408, 425, 429, 503})
#: A gateway gave up waiting; reading may be repeated.
_GATEWAY = frozenset({502, 504})
_NOT_SENT = (httpcore.ConnectError, httpcore.ConnectTimeout, httpcore.PoolTimeout)
_FAILED = (httpcore.TimeoutException, httpcore.NetworkError, httpcore.ProtocolError)

Record = Callable[[Mapping[str, Any]], None]


class Lost(Exception):  # noqa: N818 - an outcome, not a defect
    """A request was sent, and it is unknown whether it was carried out."""


class NotSent(Exception):  # noqa: N818
    """A request was not sent: there is no connection."""


class Spent:
    """The requests and seconds that a run has used; threads may share it."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._began = time.monotonic()
        self._lock = threading.Lock()
        self.requests = 0

    @property
    def left_s(self) -> float:
        """The seconds that are left."""
        if self._limits.seconds is None:
            return float("inf")
        return self._limits.seconds - (time.monotonic() - self._began)

    def request(self, url: str) -> None:
        """Count a request that is about to be sent.

        Raises:
            BudgetError: If the run may send no more.
        """
        with self._lock:
            most = self._limits.requests
            if self.left_s <= 0:
                name, used = "seconds", f"{self._limits.seconds:g} seconds"
            elif most is not None and self.requests >= most:
                name, used = "requests", f"{most:,} requests"
            else:
                self.requests += 1
                return
        hint = f"allow it more {name}, or let it do less"
        what = f"the run's {used} are used up"
        raise BudgetError(what, where=url, hint=hint, budget=name)


@dataclass(frozen=True)
class WebReply:
    """The reply to a request.

    Attributes:
        status: The HTTP status.
        url: The public address that replied, redirects followed.
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
    def summary(self) -> str:
        """The status with what the body says, on one line."""
        text = self.body[:_ERROR_BYTES].decode("utf-8", "replace")
        if "html" in self.media_type or text.lstrip()[:1] == "<":
            title = re.search(r"<title[^>]*>(.*?)</title>|<h1[^>]*>(.*?)</h1>", text, re.I | re.S)
            text = unescape(title[1] or title[2] or "") if title else ""
        text = " ".join(text.split())
        text = text if len(text) <= 300 else f"{text[:300]}…"
        return f"HTTP {self.status}" + (f": {text}" if text else "")


class Web:
    """Sends the requests of one run; threads may share it.

    Args:
        limits: The limits of one request.
        spent: Counts requests.
        addresses: Public and real addresses.
        credentials: The identities of the run.
        record: Called with an event for each request.
        pause: Waits so many seconds; tests replace it.
    """

    def __init__(
        self,
        limits: Limits,
        spent: Spent,
        *,
        addresses: Addresses,
        credentials: Sequence[Credential] = (),
        record: Record,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._limits = limits
        self._spent = spent
        self._addresses = addresses
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
        """Return the credential for an address."""
        fitting = [known for known in self._credentials if inside(known.base, url)]
        return max(fitting, key=lambda known: len(known.base), default=None)

    def ask(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str],
        body: bytes = b"",
        may_follow: Callable[[str], None] = lambda _: None,
    ) -> WebReply:
        """Send a request until there is a reply to it.

        Reading is repeated also when its reply is lost; for writing the caller decides that.

        Args:
            method: GET or HEAD, which follow redirects; others follow 307 and 308 only.
            url: The address, as `checked` returns it.
            headers: The headers.
            body: The body.
            may_follow: Raises if the address of a redirect may not be asked.

        Raises:
            Lost: If a write was sent, and its reply was lost.
            NotSent: If there is no connection, after all tries.
            EndpointError: If reading got no reply, a redirect leads nowhere, or a body is too
                large.
            BudgetError: If the run may send no more.
        """
        until = time.monotonic() + min(self._limits.wait_seconds, max(0.0, self._spent.left_s))
        for _ in range(_MOST_REDIRECTS + 1):
            reply = self._replied(method, url, headers, body, until)
            target = reply.headers.get("Location")
            follows = (301, 302, 303, 307, 308) if method in _READING else (307, 308)
            if reply.status not in follows or target is None:
                return reply
            # A relative address is relative to the public one.
            onward = self._addresses.known_as(checked(urljoin(url, target)))
            if url.startswith("https:") and onward.startswith("http:"):
                hint = "ask the server's owner, or give the address without TLS yourself"
                what = f"redirects from TLS to {onward}"
                raise EndpointError(what, where=url, hint=hint, code="insecure-redirect")
            url = onward
            may_follow(url)
        hint = "ask for the document's own address"
        what = f"more than {_MOST_REDIRECTS} redirects"
        raise EndpointError(what, where=url, hint=hint, code="too-many-redirects")

    def _replied(
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
                    raise EndpointError(f"{lost}", where=url, hint=hint, code="no-reply") from None
            else:
                again = _LATER | _GATEWAY if method in _READING else _LATER
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
        # A small compressed body could unpack to any size.
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
                raise Lost(f"no complete reply within {end - began:.3g} s") from None
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
                what = f"the reply is compressed ({coding[:40]}), which was not asked for"
                raise EndpointError(what, where=url, code="compressed")
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
                hint = "raise the limit on bytes, or query an endpoint for the part you need"
                raise EndpointError(what, where=url, hint=hint, code="too-large")
            return WebReply(response.status_code, url, response.headers, b"".join(parts))

    def _client(self, credential: Credential | None) -> httpx.Client:
        # A certificate is sent only to its own servers, so these have a client of their own.
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


def graph_of(reply: WebReply, most: int | None = None) -> Graph:
    """Return the graph of a document, including the statements of its named graphs.

    Relative IRIs are resolved against the address that replied.

    Args:
        reply: The reply.
        most: Most triples.

    Raises:
        EndpointError: If it is not RDF, or not the format that it claims to be.
        BudgetError: If it holds more triples.
    """
    declared = reply.media_type
    kind = _MISNAMED.get(declared) or (RdfFormat.from_media_type(declared) if declared else None)

    def bad(what: str, hint: str = "", code: str = "bad-rdf") -> EndpointError:
        return EndpointError(what, where=reply.url, hint=hint, code=code)

    if kind is None:
        hint = "ask for an address that has RDF, or query an endpoint for it"
        raise bad(f"the reply is {declared or 'of unknown type'}, not RDF", hint, "not-rdf")
    if kind == RdfFormat.RDF_XML and blows_up(reply.body):
        raise bad("the XML's entities expand to far more than was sent")
    if not reply.body.strip() and kind in (RdfFormat.JSON_LD, RdfFormat.RDF_XML):
        raise bad(f"the reply is empty, which is not valid {declared}")
    quads: list[pyoxigraph.Quad] = []
    try:
        check_terms(reply.body)
        for quad in pyoxigraph.parse(reply.body, kind, base_iri=reply.url):
            if most is not None and len(quads) >= most:
                what = f"the document has more than {most:,} triples"
                raise BudgetError(what, where=reply.url, hint="allow more rows", budget="rows")
            quads.append(quad)
        return graph_from_quads(quads)
    except (SyntaxError, ValueError) as error:
        hint = "report it to the document's owner; nothing of it was used"
        raise bad(f"the reply is not valid {declared}: {error}", hint) from None
    except BudgetError:
        raise
    except ReasoningBankError as error:
        raise bad(f"the document is not supported: {error.what}", code=error.code) from None
