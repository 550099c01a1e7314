"""`EndpointTools`: how an agent finds out which endpoints exist, and what each one is."""

from __future__ import annotations

import contextlib
import ipaddress
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pyoxigraph import NamedNode

from reasoningbank import sparql
from reasoningbank.corpus import Pack, endpoint_config, known_packs, load_pack
from reasoningbank.corpus.registry import Registry, RegistryEndpoint, read_registry
from reasoningbank.errors import EndpointError, ToolError, UsageError
from reasoningbank.refs import Ref, RefLike, RefStore
from reasoningbank.sparql.terms import Term, cut
from reasoningbank.tools.returns import Handle, brief_repr, noted, page, some, tool_error

#: What agents see of each tool, in the order in which they need them.
TOOL_NAMES = (
    "federated_endpoints",
    "endpoints_list",
    "endpoint_detail",
    "data_graphs",
    "service_desc",
    "service_desc_stats",
    "service_desc_graphs",
    "service_desc_features",
    "service_desc_sample",
)
#: Seconds and retries that discovery spends on an endpoint; an agent is waiting.
DEADLINE_S = 30.0
RETRIES = 1
#: Characters of a name, a question or a note.
MOST_TEXT = 300

_SHORT = {
    "formats": "http://www.w3.org/ns/formats/",
    "ent": "http://www.w3.org/ns/entailment/",
    "geof": "http://www.opengis.net/def/function/geosparql/",
}
#: Last labels of host names that no public machine has.
_PRIVATE = frozenset(
    ("local", "localhost", "localdomain", "internal", "intranet", "lan", "home", "corp", "arpa")
)


class EndpointTools:
    """The discovery tools: endpoints that examples name, and what endpoints say of themselves.

    Args:
        endpoints: The endpoints that may be asked, with those they federate with. None, as in a
            notebook, allows what `packs` and the known packs name and, once `federated_endpoints`
            has found them, the public ones that examples name.
        store: Where results are kept; its own by default, released by `close`.
        packs: The packs whose examples may be read. With `endpoints` given they are the only
            ones, since `hidden` holds ids of their tasks alone; otherwise the known ones may be
            read by name, and others by folder.
        hidden: Ids of tasks that discovery never shows: those of the evaluation split, and in a
            trial those of its task's own group.

    Examples:
        >>> tools = EndpointTools()
        >>> ref = tools.federated_endpoints("ontology/uniprot")
        >>> ref.dtype, tools.endpoints_list(ref, limit=1)["endpoints"][0]["name"]
        ('registry', 'UniProt')
    """

    def __init__(
        self,
        endpoints: Sequence[sparql.EndpointConfig] | None = None,
        *,
        store: RefStore | None = None,
        packs: Sequence[Pack | str | Path] = (),
        hidden: Collection[str] = (),
    ) -> None:
        self._own_store = store is None
        self.store = store if store is not None else RefStore()
        self._open = endpoints is None
        self._packs = tuple(p if isinstance(p, Pack) else load_pack(p) for p in packs)
        self._addresses = Addresses(_known(self._packs) if endpoints is None else endpoints)
        self._hidden = frozenset(hidden)
        self._asked: dict[sparql.EndpointConfig, Ref] = {}

    def close(self) -> None:
        """Release the handles, unless the store was given."""
        if self._own_store:
            self.store.close()

    def as_dspy_tools(self) -> dict[str, Callable[..., Any]]:
        """Return the tools by name, for `dspy.RLM(tools=[...])` and `dspy.ReAct`."""
        return {name: getattr(self, name) for name in TOOL_NAMES}

    def federated_endpoints(self, path: str = "") -> Ref:
        """Find the endpoints that a pack's examples reach; returns a handle for endpoints_list."""
        pack = self._pack(path)
        try:
            registry = read_registry(pack, self._hidden)
        except UsageError as error:
            raise tool_error(error) from error
        if self._open:
            public = (e for e in registry.endpoints if is_public(e.url))
            self._addresses.add(sparql.EndpointConfig(e.url, e.name, e.authority) for e in public)
        size = len(json.dumps(asdict(registry), ensure_ascii=False))
        return self._keep(registry, "registry", len(registry.endpoints), size, registry.source)

    def endpoints_list(self, ref: RefLike, limit: int = 10, start: int = 0) -> dict[str, Any]:
        """List the endpoints of a handle, with the number of examples that reach each."""
        registry: Registry = self.store.get(ref, "registry")
        endpoints = [
            {
                "name": endpoint.name,
                "url": endpoint.url,
                "authority": endpoint.authority,
                "count": endpoint.tasks,
                "may_be_asked": self._addresses.allows(endpoint.url),
            }
            for endpoint in registry.endpoints
        ]
        unread = {"unread_examples": registry.unread} if registry.unread else {}
        empty = "the examples name no endpoint"
        named = self.store.ref(ref)
        return page("endpoints_list", named, "endpoints", endpoints, limit, start, empty, **unread)

    def endpoint_detail(self, ref: RefLike, name: str) -> dict[str, Any]:
        """Show one endpoint, by name or address: prefixes, graphs, some questions."""
        registry: Registry = self.store.get(ref, "registry")
        endpoint = _named(registry, name)
        shown, notes = endpoint_in_full(endpoint)
        asked = {"may_be_asked": self._addresses.allows(endpoint.url), "truncated": bool(notes)}
        return noted({"source": registry.source, **shown, **asked}, notes)

    def data_graphs(self, ref: RefLike, limit: int = 20, start: int = 0) -> dict[str, Any]:
        """List the graphs that examples name, the most used first."""
        registry: Registry = self.store.get(ref, "registry")
        used = [(n, graph, e.name) for e in registry.endpoints for graph, n in e.graphs.items()]
        used.sort(key=lambda one: (-one[0], one[1]))
        graphs = [{"graph": graph, "endpoint": name, "count": n} for n, graph, name in used]
        empty, named = "no example names a graph", self.store.ref(ref)
        return page("data_graphs", named, "graphs", graphs, limit, start, empty)

    def service_desc(self, url: str) -> Ref:
        """Ask an endpoint what it is and has; returns a handle for service_desc_stats."""
        config = self._addresses.find(url)
        if config in self._asked:
            return self._asked[config]
        patient = replace(
            config,
            retries=min(config.retries, RETRIES),
            deadline_s=min(config.deadline_s, DEADLINE_S),
        )
        try:
            with sparql.SPARQLClient(patient) as client:
                found = sparql.discover(client)
        except EndpointError as error:
            raise tool_error(error, "try again once").at(config.source) from error
        size = sum(len(sparql.full(part)) for triple in found.triples for part in triple)
        ref = self._keep(found, "service_desc", len(found.triples), size, config.source)
        self._asked[config] = ref
        return ref

    def service_desc_stats(self, ref: RefLike) -> dict[str, Any]:
        """Return what an endpoint says of itself: sizes, numbers of graphs and features."""
        found: sparql.Discovery = self.store.get(ref, "service_desc")
        service, void = found.service, found.void
        stats: dict[str, Any] = {
            "source": service.source,
            "url": service.endpoint,
            "described": service.offered,
            "triples": self.store.ref(ref).rows,
            "features": len(_features(found)),
            "graphs": len(found.named_graphs),
            "statistics": void.origin or "none",
        }
        if void.offered:
            stats["data"] = _sizes(found)
        if found.notes:
            stats["tried"] = [note[:MOST_TEXT] for note in found.notes]
        stats["truncated"] = void.truncated
        cut_off = "the statistics are longer than what was read: ask with sparql_query"
        return noted(stats, [cut_off if void.truncated else ""])

    def service_desc_graphs(self, ref: RefLike, limit: int = 20, start: int = 0) -> dict[str, Any]:
        """List an endpoint's named graphs with their sizes, the largest first."""
        found: sparql.Discovery = self.store.get(ref, "service_desc")
        graphs = [
            {"graph": graph.name} | ({} if graph.triples is None else {"triples": graph.triples})
            for graph in found.named_graphs
        ]
        via = {"via": found.graphs_via} if found.graphs_via else {}
        empty = "the endpoint names no graphs, and a sample of its data is in none"
        named = self.store.ref(ref)
        return page("service_desc_graphs", named, "graphs", graphs, limit, start, empty, **via)

    def service_desc_features(
        self, ref: RefLike, limit: int = 50, start: int = 0
    ) -> dict[str, Any]:
        """List what an endpoint supports: languages, features, formats, functions."""
        found: sparql.Discovery = self.store.get(ref, "service_desc")
        show = self._shower(found)
        features = [{"kind": kind, "feature": show(name)} for kind, name in _features(found)]
        empty = "the endpoint does not say what it supports; service_desc_stats says what came"
        named = self.store.ref(ref)
        return page("service_desc_features", named, "features", features, limit, start, empty)

    def service_desc_sample(self, ref: RefLike, n: int = 10, start: int = 0) -> dict[str, Any]:
        """Show triples of an endpoint's description of itself."""
        found: sparql.Discovery = self.store.get(ref, "service_desc")
        show = self._shower(found)
        triples = [dict(zip("spo", map(show, triple), strict=True)) for triple in found.triples]
        empty = "the endpoint says nothing of itself; service_desc_stats says what came"
        named = self.store.ref(ref)
        return page("service_desc_sample", named, "triples", triples, n, start, empty)

    def _pack(self, path: str | Path) -> Pack:
        text = str(path if isinstance(path, str | Path) else brief_repr(path)).strip().rstrip("/")
        names = {pack.key: pack for pack in self._packs}
        known = known_packs() if self._open else {}
        if not text and len(names or known) == 1:
            text = next(iter(names or known))
        name = text.removeprefix("ontology/")
        for pack in self._packs:
            if name == pack.key or text == str(pack.root):
                return pack
        try:
            if name in known:
                return load_pack(known[name])
            if text and self._open:
                return load_pack(text)
        except UsageError as error:
            raise tool_error(error) from error
        choices = ", ".join(sorted({*names, *known})) or "none"
        what = f"unknown pack {text[:200]!r}" if text else "no pack was named"
        raise ToolError(what, hint=f"available packs: {choices}", code="unknown-pack")

    def _keep(self, value: Any, dtype: str, rows: int, sz: int, source: str) -> Ref:
        return Handle(self.store.put(value, dtype=dtype, rows=rows, sz=sz, source=source))

    def _shower(self, found: sparql.Discovery) -> Callable[[Term], Any]:
        prefixes = {**_SHORT, **self._addresses.find(found.service.endpoint).namespaces}
        return lambda term: sparql.compact(term, prefixes)


class Addresses:
    """The endpoints that may be asked, found by public address or by name."""

    def __init__(self, configs: Iterable[sparql.EndpointConfig]) -> None:
        self._by_key: dict[str, sparql.EndpointConfig] = {}
        self.add(configs)

    def add(self, configs: Iterable[sparql.EndpointConfig]) -> None:
        """Allow further endpoints; one that is already known is kept."""
        for config in configs:
            for url in (config.url, config.address):
                if key := sparql.address_key(url):
                    self._by_key.setdefault(key, config)
            self.add(config.federated)

    def allows(self, url: str) -> bool:
        """Return whether an address, in any spelling, may be asked."""
        return (sparql.address_key(url) or "") in self._by_key

    def find(self, wanted: str) -> sparql.EndpointConfig:
        """Return the endpoint with an address or a name."""
        configs = list(dict.fromkeys(self._by_key.values()))
        listed = "; ".join(f"{c.source} {c.url}" for c in configs[:12]) or "none"
        listed += f"; and {len(configs) - 12} more" if len(configs) > 12 else ""
        if not isinstance(wanted, str):
            what = f"{brief_repr(wanted)} is not an address"
            raise ToolError(what, hint=f"ask one of: {listed}", code="unknown-endpoint")
        found = self._by_key.get(sparql.address_key(wanted.strip().strip("<>")) or "")
        named = {config.source.casefold(): config for config in configs}
        found = found or named.get(wanted.strip().casefold())
        if found is not None:
            return found
        urls = {config.url: config for config in configs}
        close = get_close_matches(wanted[:300], [*urls, *named], n=1, cutoff=0.8)
        hint = f"did you mean {(urls | named)[close[0]].url}, or " if close else "ask "
        what = f"{wanted.strip()[:200]!r} may not be asked here"
        raise ToolError(what, hint=f"{hint}one of: {listed}", code="unknown-endpoint")


def _known(packs: Iterable[Pack]) -> Iterator[sparql.EndpointConfig]:
    """Yield the endpoints that packs, and all known packs, name, at their public addresses."""
    every: list[Pack | Path] = [*packs, *known_packs().values()]
    for one in every:
        # A broken pack is reported when it is loaded by name.
        with contextlib.suppress(UsageError):
            pack = one if isinstance(one, Pack) else load_pack(one)
            yield from [endpoint_config(pack, of=other) for other in pack.federated]
            if pack.endpoint:
                yield endpoint_config(pack)


def is_public(url: str) -> bool:
    """Return whether an address is http or https and names no private machine."""
    host = (urlsplit(url).hostname or "") if sparql.address_key(url) else ""
    try:
        return ipaddress.ip_address(host).is_global
    except ValueError:
        # Decimal and hexadecimal forms of an IP address have a last label that begins with a digit.
        last = host.rstrip(".").rpartition(".")[2]
        return "." in host.strip(".") and last not in _PRIVATE and not last[:1].isdigit()


def _named(registry: Registry, wanted: str) -> RegistryEndpoint:
    """Return an endpoint of a registry by name, or by address in any spelling."""
    text = brief_repr(wanted) if not isinstance(wanted, str) else wanted.strip().strip("<>")[:2_000]
    names = {endpoint.name.casefold(): endpoint for endpoint in registry.endpoints}
    # The scheme may be left out, and the path too.
    hosts = {(sparql.address_key(e.url) or "").partition("/")[0]: e for e in registry.endpoints}
    found = names.get(text.casefold()) or registry.at(text)
    if found is None and sparql.address_key(text) is None:
        found = registry.at(f"https://{text}") or hosts.get(text.casefold().rstrip("/"))
    if found is not None and text:
        return found
    within = [name for name in names if text and text.casefold() in name][:3]
    near = [*within, *get_close_matches(text.casefold()[:300], names, n=3)]
    listed = ", ".join(endpoint.name for endpoint in registry.endpoints[:20]) or "none"
    listed += f" and {len(names) - 20} more" if len(names) > 20 else ""
    hint = f"did you mean {', '.join(names[one].name for one in dict.fromkeys(near))}?"
    what = f"{registry.source} names no endpoint {text[:200]!r}"
    raise ToolError(what, hint=hint if near else f"it names {listed}", code="unknown-endpoint")


def endpoint_in_full(endpoint: RegistryEndpoint) -> tuple[dict[str, Any], list[str]]:
    """Return what is known of an endpoint, bounded, and notes on what was left out."""
    notes: list[str] = []
    lists: tuple[tuple[Sequence[Any], int, int, str], ...] = (
        (endpoint.spellings, 10, 600, "spellings: all are the same endpoint"),
        (endpoint.prefixes, 40, 1_500, "prefixes: less used; a full IRI needs none"),
        (list(endpoint.graphs), 20, 1_800, "graphs: data_graphs(ref) lists them"),
    )
    spellings, prefixes, graphs = (
        some(items, chars, more, notes, most) for items, most, chars, more in lists
    )
    shown = {
        "name": cut(endpoint.name, MOST_TEXT),
        "url": endpoint.url,
        "authority": cut(endpoint.authority, MOST_TEXT),
        "spellings": spellings,
        "tasks": {
            "all": endpoint.tasks,
            "as_target": endpoint.as_target,
            "by_service": endpoint.by_service,
            "declared": endpoint.declared,
        },
        "prefixes": dict(prefixes),
        "graphs": graphs,
        "questions": [cut(question, MOST_TEXT) for question in endpoint.questions],
    }
    return shown, notes


def _features(found: sparql.Discovery) -> list[tuple[str, NamedNode]]:
    """Return what an endpoint supports: the kind of a feature, and its name."""
    service = found.service
    kinds = (
        ("language", service.languages),
        ("feature", service.features),
        ("result format", service.result_formats),
        ("entailment", (service.entailment,) if service.entailment else ()),
        ("function", service.functions),
    )
    return [(kind, NamedNode(name)) for kind, names in kinds for name in names]


def _sizes(found: sparql.Discovery) -> dict[str, int]:
    """Return how much data the statistics describe, as far as they say."""
    datasets = found.void.datasets
    whole = max((d.triples or 0 for d in datasets if not d.graph), default=0)
    properties = {
        p for d in datasets for used in (d.properties, *d.of_class.values()) for p in used
    }
    sizes = {
        "triples": whole or sum(d.triples or 0 for d in datasets if d.graph),
        "classes": len({name for d in datasets for name in d.classes}),
        "properties": len(properties),
    }
    return {name: size for name, size in sizes.items() if size}
