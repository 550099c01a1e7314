"""HTTP requests of a run: retried, redirected and bounded; and documents on the Web as graphs."""

from __future__ import annotations

import threading
import time
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any
from urllib.parse import urljoin

import pyoxigraph
from pyoxigraph import RdfFormat
from rdflib import Graph

from reasoningbank.algebra.addresses import AddressMap, Credential, checked, inside, tls_context
from reasoningbank.algebra.evaluation import Limits
from reasoningbank.algebra.jsonld import graph_from_quads
from reasoningbank.errors import BudgetError, EndpointError, ReasoningBankError
from reasoningbank.http import ExchangeError, Reply, Unreachable, retrying, send
from reasoningbank.sparql.formats import blows_up
from reasoningbank.sparql.tokens import check_terms

USER_AGENT = "reasoningbank/0.1 (Web Algebra)"
#: The formats that are read fastest and with least loss come first. Other formats are rejected, so
#: they are not asked for: servers without RDF then say so.
ACCEPT = (
    "application/n-triples, text/turtle;q=0.95, application/ld+json;q=0.8, "
    "application/rdf+xml;q=0.7, application/n-quads;q=0.6, application/trig;q=0.6"
)
_MISNAMED = {"application/x-turtle": RdfFormat.TURTLE, "application/json": RdfFormat.JSON_LD}
_MOST_REDIRECTS = 10
_READING = ("GET", "HEAD")
#: The request was not carried out, and may be later.
_LATER = frozenset({408, 425, 429, 503})
#: A gateway gave up waiting; reading may be repeated.
_GATEWAY = frozenset({502, 504})

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
        """Count a request that is about to be sent, or raise BudgetError."""
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
        raise BudgetError(f"the run's {used} are used up", where=url, hint=hint, budget=name)


def summary(reply: Reply) -> str:
    """Return the status of a reply with what its body says, on one line."""
    return f"HTTP {reply.status}" + (f": {reply.message}" if reply.message else "")


class Web:
    """Sends the requests of one run; threads may share it."""

    def __init__(
        self,
        limits: Limits,
        spent: Spent,
        *,
        addresses: AddressMap,
        credentials: Sequence[Credential],
        record: Record,
        pause: Callable[[float], None],
    ) -> None:
        self._limits = limits
        self._spent = spent
        self._addresses = addresses
        self._credentials = tuple(credentials)
        self._record = record
        self._pause = pause

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
    ) -> Reply:
        """Send a request until there is a reply to it, following redirects.

        Reading is repeated also when its reply is lost; for writing the caller decides that. Writes
        follow 307 and 308 only. `may_follow` raises if the address of a redirect may not be asked.

        Raises:
            Lost: If a write was sent, and its reply was lost.
            NotSent: If there is no connection, after all tries.
            EndpointError: If reading got no reply, a redirect leads nowhere, or a body is too
                large.
            BudgetError: If the run may send no more.
        """
        until = time.monotonic() + min(self._limits.wait_seconds, max(0.0, self._spent.left_s))
        reading = method in _READING
        for _ in range(_MOST_REDIRECTS + 1):
            try:
                reply = retrying(
                    partial(self._exchange, method, url, headers, body, until),
                    retries=self._limits.tries - 1,
                    until=until,
                    statuses=_LATER | _GATEWAY if reading else _LATER,
                    repeat=(NotSent, Lost) if reading else NotSent,
                    pause=self._pause,
                )
            except Lost as lost:
                if not reading:
                    raise
                hint = "try again later"
                raise EndpointError(f"{lost}", where=url, hint=hint, code="no-reply") from None
            target = reply.headers.get("Location")
            follows = (301, 302, 303, 307, 308) if reading else (307, 308)
            if reply.status not in follows or target is None:
                return reply
            # A relative address is relative to the public one.
            onward = self.known_as(urljoin(url, target))
            if url.startswith("https:") and onward.startswith("http:"):
                hint = "ask the server's owner, or give the address without TLS yourself"
                what = f"redirects from TLS to {onward}"
                raise EndpointError(what, where=url, hint=hint, code="insecure-redirect")
            url = onward
            may_follow(url)
        hint = "ask for the document's own address"
        what = f"more than {_MOST_REDIRECTS} redirects"
        raise EndpointError(what, where=url, hint=hint, code="too-many-redirects")

    def _exchange(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes, until: float
    ) -> Reply:
        credential = self.credential(url)
        self._spent.request(url)
        began = time.monotonic()
        timeout = min(self._limits.request_seconds, until - began)
        # A small compressed body could unpack to any size.
        sent = {"User-Agent": USER_AGENT, "Accept-Encoding": "identity", **headers}
        sent |= {} if credential is None else credential.headers
        request = urllib.request.Request(
            self._addresses.asked_at(url),
            data=None if method in _READING else body,
            headers=sent,
            method=method,
        )
        event: dict[str, Any] = {"event": "request", "method": method, "url": url}
        try:
            reply = send(
                request,
                timeout_s=timeout,
                max_bytes=self._limits.document_bytes,
                tls=tls_context(credential),
                proxies=False,
            )
            event |= {"status": reply.status, "bytes": len(reply.body)}
        except Unreachable as error:
            event["error"] = "no connection"
            raise NotSent(f"no connection: {error}") from None
        except ExchangeError as error:
            event["error"] = "no answer"
            what = f"no complete reply within {timeout:.3g} s"
            raise Lost(f"{what}: {error}" if str(error) else what) from None
        finally:
            self._record({**event, "seconds": time.monotonic() - began})
        coding = (reply.headers.get("Content-Encoding") or "identity").lower()
        if coding != "identity" and method == "GET" and reply.status < 300:
            what = f"the reply is compressed ({coding[:40]}), which was not asked for"
            raise EndpointError(what, where=url, code="compressed")
        if reply.cut and method in _READING:
            what = f"the document is larger than {self._limits.document_bytes:,} bytes"
            hint = "raise the limit on bytes, or query an endpoint for the part you need"
            raise EndpointError(what, where=url, hint=hint, code="too-large")
        return replace(reply, url=url)


def graph_of(reply: Reply, most: int | None = None) -> Graph:
    """Return the graph of a document, including the statements of its named graphs."""
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
