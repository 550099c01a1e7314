"""Which endpoints may be asked: an address, in any spelling, is looked up and never followed."""

from __future__ import annotations

import contextlib
import ipaddress
from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path
from urllib.parse import urlsplit

from reasoningbank.corpus import Pack, endpoint_config, known_packs, load_pack
from reasoningbank.corpus.pack import federated_config
from reasoningbank.corpus.registry import Registry
from reasoningbank.errors import ToolError, UsageError
from reasoningbank.sparql import EndpointConfig, address_key
from reasoningbank.tools.bounds import told

__all__ = ["Addresses", "is_public", "known_endpoints", "public_endpoints"]


#: Last labels of names that no public machine has.
_PRIVATE = frozenset(
    ("local", "localhost", "localdomain", "internal", "intranet", "lan", "home", "corp", "arpa")
)


class Addresses:
    """The endpoints that may be asked, found by public address or by name.

    A request goes to the configuration's own address, whatever spelling was looked up: http for
    https or a trailing slash lead to no other place.

    Args:
        configs: The endpoints; those they federate with belong to them.
    """

    def __init__(self, configs: Iterable[EndpointConfig]) -> None:
        self._by_key: dict[str, EndpointConfig] = {}
        self.add(configs)

    def add(self, configs: Iterable[EndpointConfig]) -> None:
        """Allow further endpoints; one that is known already stays as it is."""
        for config in _with_federated(configs):
            for url in (config.url, config.address):
                if key := address_key(url):
                    self._by_key.setdefault(key, config)

    def allows(self, url: str) -> bool:
        """Say whether an address, in any spelling, may be asked."""
        return (address_key(url) or "") in self._by_key

    def find(self, wanted: str) -> EndpointConfig:
        """Return the endpoint at an address or of a name.

        Raises:
            ToolError: It may not be asked; the error names what may.
        """
        configs = list(dict.fromkeys(self._by_key.values()))
        if not isinstance(wanted, str):
            raise ToolError(f"{told(wanted)} is no address", hint=f"ask one of: {_shown(configs)}")
        found = self._by_key.get(address_key(wanted.strip().strip("<>")) or "")
        named = {config.source.casefold(): config for config in configs}
        found = found or named.get(wanted.strip().casefold())
        if found is not None:
            return found
        urls = {config.url: config for config in configs}
        close = get_close_matches(wanted[:300], [*urls, *named], n=1, cutoff=0.8)
        hint = f"did you mean {(urls | named)[close[0]].url}, or " if close else "ask "
        raise ToolError(
            f"{wanted.strip()[:200]!r} may not be asked here",
            hint=f"{hint}one of: {_shown(configs) or 'none'}",
        )


def known_endpoints(packs: Iterable[Pack] = ()) -> list[EndpointConfig]:
    """Return the endpoints that packs, and all known packs, name, as they are asked publicly."""
    found: list[EndpointConfig] = []
    for pack in (*packs, *_loaded(known_packs().values())):
        # A pack that is broken says so where it is loaded by name.
        with contextlib.suppress(UsageError):
            found += [federated_config(pack, other) for other in pack.federated]
            found += [endpoint_config(pack)] if pack.endpoint else []
    return found


def public_endpoints(registry: Registry) -> list[EndpointConfig]:
    """Return the endpoints of a registry that are public."""
    return [
        EndpointConfig(e.url, e.name, e.authority) for e in registry.endpoints if is_public(e.url)
    ]


def _loaded(folders: Iterable[Path]) -> Iterator[Pack]:
    for folder in folders:
        with contextlib.suppress(UsageError):
            yield load_pack(folder)


def _with_federated(configs: Iterable[EndpointConfig]) -> Iterator[EndpointConfig]:
    """Yield each endpoint, and those it federates with."""
    for config in configs:
        yield config
        yield from _with_federated(config.federated)


def is_public(url: str) -> bool:
    """Say whether an address is http or https and names no private machine.

    Only what is written is judged. DNS is not looked at: a public name may lead to a private
    machine, which a network's own rules must keep from being reached.

    Examples:
        >>> [is_public(url) for url in ("https://example.org/sparql", "http://127.0.0.1/sparql",
        ...     "http://10.0.0.7/", "http://localhost:3030/ds", "file:///etc/passwd")]
        [True, False, False, False, False]
    """
    host = (urlsplit(url).hostname or "") if address_key(url) else ""
    try:
        return ipaddress.ip_address(host).is_global
    except ValueError:
        # Decimal and hexadecimal forms of an IP address have a last label that begins with a digit.
        last = host.rstrip(".").rpartition(".")[2]
        return "." in host.strip(".") and last not in _PRIVATE and not last[:1].isdigit()


def _shown(configs: Sequence[EndpointConfig]) -> str:
    names = [f"{c.source} {c.url}" for c in configs]
    return "; ".join(names[:12]) + (f"; and {len(names) - 12} more" if len(names) > 12 else "")
