"""Configuration of endpoints, and comparison of addresses."""

from __future__ import annotations

import ipaddress
import ssl
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from reasoningbank.errors import UsageError
from reasoningbank.sparql.terms import STANDARD_PREFIXES
from reasoningbank.version import __version__

DEFAULT_LABELS = (
    "http://www.w3.org/2000/01/rdf-schema#label",
    "http://www.w3.org/2004/02/skos/core#prefLabel",
    "http://purl.org/dc/terms/title",
    "http://schema.org/name",
)
USER_AGENT = (
    f"reasoningbank/{__version__} (SPARQL research harness; contact: set EndpointConfig.user_agent)"
)


def is_loopback(address: str) -> bool:
    """Return whether a URL, or the name or address of a host, is this machine's own.

    Examples:
        >>> [is_loopback(one) for one in ("127.0.0.1", "::1", "localhost", "http://[::1]:80/")]
        [True, True, True, True]
        >>> is_loopback("0.0.0.0"), is_loopback("https://evil.example/")
        (False, False)
    """
    host = address
    try:
        if "//" in address:
            host = urlsplit(address).hostname or ""
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def address_key(url: str) -> str | None:
    """Return a normal form of an address, equal for all its spellings; None for other text."""
    try:
        parts = urlsplit(url.strip())
    except ValueError:
        return None
    if parts.scheme not in ("http", "https") or not parts.netloc or len(url.split()) > 1:
        return None
    host = parts.netloc.lower().removesuffix(":443").removesuffix(":80")
    query = f"?{parts.query}" if parts.query else ""
    return f"{host}{parts.path.rstrip('/')}{query}"


def same_address(one: str, other: str) -> bool:
    """Return whether two addresses differ only in spelling."""
    key = address_key(one)
    return one == other or (key is not None and key == address_key(other))


@dataclass(frozen=True)
class EndpointConfig:
    """An endpoint: its public identity, its real address, and its limits.

    Raises:
        UsageError: If an address is not http or https, or a number is out of bounds.

    Examples:
        >>> config = EndpointConfig("https://example.org/sparql/", "Example", "Example Org")
        >>> config.address, config.source
        ('https://example.org/sparql/', 'Example')
    """

    url: str  #: The public address, which tasks, memory and records use
    name: str = ""  #: Short name, shown as the source of results; the host of `url` if empty
    authority: str = ""  #: Who publishes the data
    _: KW_ONLY
    #: Prefix → namespace, added to queries that use them undeclared
    prefixes: Mapping[str, str] = field(default_factory=dict, hash=False)
    #: Where requests go; `url` if None. A pack served on loopback sets it.
    query_url: str | None = None
    #: Public address → real address, for SERVICE clauses
    aliases: Mapping[str, str] = field(default_factory=dict, hash=False)
    federated: tuple[EndpointConfig, ...] = ()  #: The endpoints it federates with, queried directly
    #: Addresses that SERVICE may name besides the aliases and the endpoint itself. None allows any
    #: on a remote endpoint, and no other on loopback. A run always sets it: an agent must not make
    #: a public server send data anywhere.
    services: tuple[str, ...] | None = None
    max_rows: int = 10_000  #: Most rows, or triples, of one result
    max_bytes: int = 64 * 1024 * 1024  #: Most bytes read of one response
    timeout_s: float = 30.0  #: Seconds of one request, as a whole
    #: IRIs of properties with readable names, the best first
    label_properties: tuple[str, ...] = DEFAULT_LABELS
    #: Sent with every request; public endpoints expect a contact in it
    user_agent: str = USER_AGENT
    #: Further request headers (e.g. ``Authorization``); never shown in the repr.
    headers: Mapping[str, str] = field(default_factory=dict, hash=False, repr=False)
    max_connections: int = 4  #: Simultaneous requests of this process to this address
    min_interval_s: float = 0.0  #: Fewest seconds between the starts of two requests there
    #: File for answers of a public endpoint; no cache by default, and never one for an endpoint on
    #: loopback
    cache: Path | None = None
    cache_age_s: float = 30 * 86_400.0  #: Seconds after which a cached answer is not used
    #: How often a request is repeated after 429, 502, 503, 504 or a lost connection
    retries: int = 3
    backoff_s: float = 0.5  #: Wait before the first retry; doubles with each
    deadline_s: float = 120.0  #: Seconds of all tries of one query together
    tsv: bool = True  #: Whether the engine's TSV results are faithful; if not, JSON is requested
    #: TLS settings, e.g. a client certificate; the system's by default.
    tls: ssl.SSLContext | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        for label, url in (("url", self.url), ("query_url", self.query_url or self.url)):
            parts = urlsplit(url)
            if parts.scheme not in ("http", "https") or not parts.hostname:
                what = f"not the address of an endpoint: {url!r}"
                hint = "give one that starts with http:// or https://"
                raise UsageError(what, where=f"EndpointConfig.{label}", hint=hint)
        for name, value in {**self.headers, "User-Agent": self.user_agent}.items():
            if not f"{name}{value}".isprintable() or not f"{name}{value}".isascii():
                # The value is kept out of the message: it may be a secret.
                raise UsageError(
                    f"the header {name!r} contains characters that headers cannot have",
                    where="EndpointConfig.headers",
                )
        least = {"max_rows": 1, "max_bytes": 1, "max_connections": 1, "retries": 0}
        for label, bound in least.items():
            if getattr(self, label) < bound:
                raise UsageError(f"must be at least {bound}", where=f"EndpointConfig.{label}")
        for label in ("timeout_s", "deadline_s"):
            if not getattr(self, label) > 0:
                raise UsageError("must be above 0 seconds", where=f"EndpointConfig.{label}")
        for label in ("min_interval_s", "backoff_s", "cache_age_s"):
            if not getattr(self, label) >= 0:
                raise UsageError("must not be negative", where=f"EndpointConfig.{label}")

    @property
    def address(self) -> str:
        return self.query_url or self.url

    @property
    def reached(self) -> dict[str, str]:
        """Public address → real address, of this endpoint and those it federates with.

        Each public address is listed with and without a trailing slash.

        Examples:
            >>> EndpointConfig("https://e.example/q/", query_url="http://127.0.0.1:1/q").reached
            {'https://e.example/q': 'http://127.0.0.1:1/q', 'https://e.example/q/': 'http://127.0.0.1:1/q'}
        """
        known = {self.url: self.address, **self.aliases}
        known |= {other.url: other.address for other in self.federated}
        return {url.rstrip("/") + end: real for url, real in known.items() for end in ("", "/")}

    def is_at(self, address: str) -> bool:
        """Return whether an address is this endpoint's public or real one.

        Examples:
            >>> EndpointConfig("https://e.example/sparql").is_at("https://E.example/sparql/")
            True
        """
        return any(same_address(address, own) for own in (self.url, self.address))

    @property
    def source(self) -> str:
        """The name to attribute results to."""
        return self.name or urlsplit(self.url).hostname or self.url

    @property
    def namespaces(self) -> dict[str, str]:
        """The endpoint's prefixes together with the W3C's common ones."""
        return {**STANDARD_PREFIXES, **self.prefixes}

    @property
    def allowed_services(self) -> tuple[str, ...] | None:
        """Addresses SERVICE may name; None means any."""
        if self.services is None and not is_loopback(self.address):
            return None
        own = (self.url, self.address, *self.aliases, *self.aliases.values())
        return tuple(dict.fromkeys((*own, *(self.services or ()))))
