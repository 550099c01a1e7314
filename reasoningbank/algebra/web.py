"""HTTP of a run: addresses and credentials, requests within budgets, documents as graphs."""

from __future__ import annotations

import base64
import json
import os
import re
import ssl
import threading
import time
import urllib.request
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import httpx
import pyoxigraph
from pyoxigraph import RdfFormat
from rdflib import Graph

from reasoningbank.algebra.evaluation import Limits
from reasoningbank.algebra.terms import graph_from_quads, names_of
from reasoningbank.errors import BudgetError, EndpointError, QueryError, UsageError, read_toml
from reasoningbank.http import ExchangeError, Reply, Unreachable, retrying, send
from reasoningbank.ldp.exchange import GRAPH_FORMATS
from reasoningbank.sparql.formats import parse_rdf
from reasoningbank.version import __version__

#: Dot segments, and what some servers take for them: with parameters (``..;x``), and between
#: slashes that are percent-encoded or backslashes.
_DOTS = re.compile(r"(?:/|%2f|\\|%5c)(?:\.|%2e){1,2}(?:;[^/]*)?(?:/|%2f|\\|%5c|$)", re.IGNORECASE)


def checked(url: str, *, exactly: bool = False) -> str:
    """Return an address as it is sent: percent-encoded, without dot segments and fragment."""
    try:
        parsed = httpx.URL(url.strip())
    except (httpx.InvalidURL, ValueError, UnicodeError) as error:
        raise _bad(f"not a web address: {error}", url) from None
    if parsed.scheme not in ("http", "https") or not parsed.host:
        hint = "give one that begins with http:// or https://"
        raise _bad("not a web address", url or "''", hint)
    if parsed.userinfo:
        # The address itself is kept out of the message: it holds a password.
        hint = "give the name and password as a credential"
        raise _bad("an address may not hold a user name", parsed.host, hint)
    if exactly and parsed.fragment:
        hint = "write to its document, the part before #"
        raise _bad("a fragment of a document cannot be written", url, hint)
    # httpx has resolved the plain dot segments, but not those that are percent-encoded.
    paths = [parsed.raw_path.decode(), *([url.partition("#")[0]] if exactly else [])]
    if any(_DOTS.search(path.partition("?")[0]) for path in paths):
        raise _bad("an address may not have . or .. as a name", url)
    return str(parsed.copy_with(fragment=None, raw_path=parsed.raw_path))


def _bad(what: str, url: str, hint: str = "") -> UsageError:
    return UsageError(what, where=url[:200], hint=hint, code="bad-url")


def inside(base: str, url: str) -> bool:
    """Return whether an address is `base` or below it; both as `checked` returns them."""
    one, other = httpx.URL(base), httpx.URL(url)
    if (one.scheme, one.host, one.port) != (other.scheme, other.host, other.port):
        return False
    outer, path = one.raw_path.decode(), other.raw_path.decode()
    return path == outer or path.startswith(outer if outer.endswith("/") else f"{outer}/")


def within(bases: Iterable[str], url: str) -> str | None:
    """Return the longest of the bases that an address is inside; None if there is none."""
    return max((base for base in bases if inside(base, url)), key=len, default=None)


def moved(prefixes: Mapping[str, str], url: str) -> str:
    """Return an address with the longest of the prefixes replaced by what it is mapped to."""
    base = within(prefixes, url)
    if base is None:
        return url
    rest, target = url.removeprefix(base), prefixes[base]
    # One of the two may end with a slash where the other does not.
    if rest and base.endswith("/") != target.endswith("/"):
        return f"{target.removesuffix('/')}/{rest.removeprefix('/')}"
    return target + rest


@dataclass(frozen=True)
class Credential:
    """The identity of a run for the servers under one address; it is never sent anywhere else."""

    base: str  #: The address that it is for, and all below
    user: str = field(default="", repr=False)  #: A name for HTTP Basic, with `password`
    password: str = field(default="", repr=False)  #: Its password
    token: str = field(default="", repr=False)  #: A bearer token instead
    #: A client certificate in PEM, with its key unless `key` holds it
    certificate: Path | None = field(default=None, repr=False)
    key: Path | None = field(default=None, repr=False)  #: The certificate's key in PEM
    #: Certificates in PEM of a private authority that signed the server's own, in addition to the
    #: system's
    authorities: Path | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "base", checked(self.base))
        what = ""
        if self.token and (self.user or self.password):
            what = "a token and a password exclude one another"
        elif self.password and not self.user:
            what = "a password needs a user"
        elif self.key is not None and self.certificate is None:
            what = "a key needs a certificate"
        elif not (self.token.isprintable() and self.token.isascii()) or ":" in self.user:
            what = "it has characters that HTTP cannot send"
        if what:
            raise UsageError(what, where=f"credential for {self.base}", code="bad-credential")

    @property
    def headers(self) -> dict[str, str]:
        if self.token:
            return {"Authorization": f"Bearer {self.token}"}
        if self.user:
            pair = base64.b64encode(f"{self.user}:{self.password}".encode()).decode()
            return {"Authorization": f"Basic {pair}"}
        return {}


@lru_cache(maxsize=64)
def tls_context(credential: Credential | None) -> ssl.SSLContext:
    """Return the TLS context for the servers of a credential, which always verifies them."""
    context = ssl.create_default_context()
    if credential is None:
        return context
    try:
        if credential.authorities is not None:
            context.load_verify_locations(credential.authorities)
        if credential.certificate is not None:
            # The empty password prevents a prompt on the terminal.
            context.load_cert_chain(credential.certificate, credential.key, lambda: "")
    except (OSError, ValueError) as error:
        what = f"a certificate or key cannot be read: {error}"
        hint = "give PEM files, the key without a password"
        where = f"credential for {credential.base}"
        raise UsageError(what, where=where, hint=hint, code="bad-credential") from None
    return context


def credentials_from(file: Path) -> tuple[Credential, ...]:
    """Read credentials from a TOML file of ``[[credential]]`` tables.

    The keys are the fields of `Credential`; paths are relative to the TOML file. ``password_env``
    and ``token_env`` name environment variables that hold the secrets.
    """

    def bad(what: str) -> UsageError:
        return UsageError(what, where=str(file), code="bad-credential")

    tables = read_toml(file, "bad-credential").get("credential", [])
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise bad("expected [[credential]] tables")
    found: list[Credential] = []
    known = {one.name: one.type for one in fields(Credential)}
    for table in tables:
        given: dict[str, Any] = {}
        for key, value in table.items():
            name = key.removesuffix("_env") if key in ("password_env", "token_env") else key
            if not isinstance(value, str):
                raise bad(f"{key} must be a string")
            if name not in known:
                raise bad(f"unknown key {key!r}")
            if name != key and value not in os.environ:
                raise bad(f"the environment variable {value} is not set")
            text = value if name == key else os.environ[value]
            given[name] = file.parent / text if known[name] == "Path | None" else text
        if "base" not in given:
            raise bad("a credential needs a base")
        found.append(Credential(**given))
    return tuple(found)


USER_AGENT = f"reasoningbank/{__version__} (Web Algebra)"
#: The formats that are read fastest and with least loss come first. Other formats are rejected, so
#: they are not asked for: servers without RDF then say so.
ACCEPT = (
    "application/n-triples, text/turtle;q=0.95, application/ld+json;q=0.8, "
    "application/rdf+xml;q=0.7, application/n-quads;q=0.6, application/trig;q=0.6"
)
#: Others, such as JSON and plain XML, hold no RDF, though a parser would find an empty graph there.
_FORMATS = {
    **GRAPH_FORMATS,
    "application/x-turtle": RdfFormat.TURTLE,
    "application/n-quads": RdfFormat.N_QUADS,
    "application/trig": RdfFormat.TRIG,
    "text/n3": RdfFormat.N3,
}
_MOST_REDIRECTS = 10
_READING = ("GET", "HEAD")
#: The request was not carried out, and may be later.
_LATER = frozenset({408, 425, 429, 503})
#: A gateway gave up waiting; reading may be repeated.
_GATEWAY = frozenset({502, 504})

Record = Callable[[Mapping[str, Any]], None]


def summary(reply: Reply) -> str:
    """Return the status of a reply with what its body says, on one line."""
    return f"HTTP {reply.status}" + (f": {reply.message}" if reply.message else "")


@dataclass
class Web:
    """Sends the requests of one run and counts what they use; threads may share it."""

    limits: Limits
    # Public prefix → the real one, which requests are sent to.
    addresses: Mapping[str, str]
    credentials: tuple[Credential, ...]
    record: Record
    pause: Callable[[float], None]
    requests: int = 0
    began: float = field(default_factory=time.monotonic)
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def left_s(self) -> float:
        if self.limits.seconds is None:
            return float("inf")
        return self.limits.seconds - (time.monotonic() - self.began)

    def count(self, url: str) -> None:
        """Count a request that is about to be sent, or raise BudgetError."""
        with self.lock:
            most = self.limits.requests
            if self.left_s <= 0:
                name, used = "seconds", f"{self.limits.seconds:g} seconds"
            elif most is not None and self.requests >= most:
                name, used = "requests", f"{most:,} requests"
            else:
                self.requests += 1
                return
        hint = f"allow it more {name}, or let it do less"
        raise BudgetError(f"the run's {used} are used up", where=url, hint=hint, budget=name)

    def known_as(self, url: str) -> str:
        return moved({real: public for public, real in self.addresses.items()}, checked(url))

    def credential(self, url: str) -> Credential | None:
        base = within((known.base for known in self.credentials), url)
        return next((known for known in self.credentials if known.base == base), None)

    def ask(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str],
        body: bytes = b"",
        may_follow: Callable[[str], None] = lambda _: None,
    ) -> Reply:
        """Send a request until there is a reply to it, following redirects."""
        until = time.monotonic() + min(self.limits.wait_seconds, max(0.0, self.left_s))
        reading = method in _READING
        for _ in range(_MOST_REDIRECTS + 1):
            try:
                reply = retrying(
                    partial(self._exchange, method, url, headers, body, until),
                    retries=self.limits.tries - 1,
                    until=until,
                    statuses=_LATER | _GATEWAY if reading else _LATER,
                    repeat=ExchangeError if reading else Unreachable,
                    pause=self.pause,
                )
            except ExchangeError as lost:
                if not reading:
                    raise
                hint, code = "try again later", "no-reply"
                if isinstance(lost, Unreachable):
                    hint, code = "check the address and that its server is up", "no-connection"
                raise EndpointError(f"{lost}", where=url, hint=hint, code=code) from None
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
        self.count(url)
        began = time.monotonic()
        timeout = min(self.limits.request_seconds, until - began)
        # A small compressed body could unpack to any size.
        sent = {"User-Agent": USER_AGENT, "Accept-Encoding": "identity", **headers}
        sent |= {} if credential is None else credential.headers
        request = urllib.request.Request(
            moved(self.addresses, url),
            data=None if method in _READING else body,
            headers=sent,
            method=method,
        )
        event: dict[str, Any] = {"event": "request", "method": method, "url": url}
        try:
            reply = send(
                request,
                timeout_s=timeout,
                max_bytes=self.limits.document_bytes,
                tls=tls_context(credential),
                proxies=False,
            )
            event |= {"status": reply.status, "bytes": len(reply.body)}
        except Unreachable as error:
            event["error"] = "no connection"
            raise Unreachable(f"no connection: {error}") from None
        except ExchangeError as error:
            event["error"] = "no answer"
            what = f"no complete reply within {timeout:.3g} s"
            raise ExchangeError(f"{what}: {error}" if str(error) else what) from None
        finally:
            self.record({**event, "seconds": time.monotonic() - began})
        coding = (reply.headers.get("Content-Encoding") or "identity").lower()
        if coding != "identity" and method == "GET" and reply.status < 300:
            what = f"the reply is compressed ({coding[:40]}), which was not asked for"
            raise EndpointError(what, where=url, code="compressed")
        if reply.cut and method in _READING:
            what = f"the document is larger than {self.limits.document_bytes:,} bytes"
            hint = "raise the limit on bytes, or query an endpoint for the part you need"
            raise EndpointError(what, where=url, hint=hint, code="too-large")
        return replace(reply, url=url)


def graph_of(reply: Reply, most: int | None = None) -> Graph:
    """Return the graph of a document, including the statements of its named graphs."""
    declared = reply.media_type
    kind = _FORMATS.get(declared)

    def bad(what: str, hint: str = "", code: str = "bad-rdf") -> EndpointError:
        return EndpointError(what, where=reply.url, hint=hint, code=code)

    if kind is None:
        hint = "ask for an address that has RDF, or query an endpoint for it"
        raise bad(f"the reply is {declared or 'of unknown type'}, not RDF", hint, "not-rdf")
    if not reply.body.strip() and kind in (RdfFormat.JSON_LD, RdfFormat.RDF_XML):
        raise bad(f"the reply is empty, which is not valid {declared}")
    quads: list[pyoxigraph.Quad] = []
    try:
        for quad in parse_rdf(reply.body, kind, base_iri=reply.url):
            if most is not None and len(quads) >= most:
                what = f"the document has more than {most:,} triples"
                raise BudgetError(what, where=reply.url, hint="allow more rows", budget="rows")
            quads.append(quad)
        is_silent = kind == RdfFormat.JSON_LD and not quads
        if is_silent and any(is_key for *_, is_key in names_of(json.loads(reply.body), "")):
            hint = "give it a @context that maps its keys to IRIs"
            raise bad("none of the keys of the JSON-LD is mapped to an IRI", hint, "unmapped-key")
        return graph_from_quads(quads)
    except (SyntaxError, ValueError) as error:
        hint = "report it to the document's owner; nothing of it was used"
        raise bad(f"the reply is not valid {declared}: {error}", hint) from None
    except QueryError as error:
        raise bad(f"the document is not supported: {error.what}", code=error.code) from None
