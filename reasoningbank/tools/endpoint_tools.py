"""`EndpointTools`: how an agent finds out which endpoints there are, and what each one is."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from reasoningbank.corpus import Pack, known_packs, load_pack
from reasoningbank.corpus.registry import Registry, RegistryEndpoint, read_registry
from reasoningbank.errors import EndpointError, ToolError, UsageError
from reasoningbank.refs import Ref, RefLike, RefStore
from reasoningbank.sparql import (
    Discovery,
    EndpointConfig,
    NamedGraph,
    SPARQLClient,
    compact,
    discover,
    full,
)
from reasoningbank.sparql.terms import Term
from reasoningbank.tools.addresses import Addresses, known_endpoints, public_endpoints
from reasoningbank.tools.bounds import told
from reasoningbank.tools.handle import Handle
from reasoningbank.tools.paging import page
from reasoningbank.tools.registry_view import endpoint_in_full, endpoint_named
from reasoningbank.tools.service_view import description_in_brief, features

__all__ = ["EndpointTools"]

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
#: Seconds and tries that discovery spends on an endpoint; an agent is waiting.
DEADLINE_S = 30.0
RETRIES = 1

_SHORT = {
    "formats": "http://www.w3.org/ns/formats/",
    "ent": "http://www.w3.org/ns/entailment/",
    "geof": "http://www.opengis.net/def/function/geosparql/",
}


class EndpointTools:
    """The discovery tools: endpoints that examples name, and what endpoints say of themselves.

    Args:
        endpoints: The endpoints that may be asked, with those they federate with, in any
            spelling. None, as in a notebook, allows what `packs` and the known packs name and,
            as soon as `federated_endpoints` has found them, the public ones that examples name.
        store: Where what was found is kept; an own one by default, released by `close`.
        packs: The packs whose examples may be read. With `endpoints` given they are the only
            ones, since `hidden` holds ids of their tasks alone; without, the known ones may be
            read too by name, and others by folder.
        hidden: Ids of tasks of which discovery shows nothing: those of the evaluation split,
            and in a trial those of its task's own group.

    Examples:
        >>> tools = EndpointTools()
        >>> ref = tools.federated_endpoints("ontology/uniprot")
        >>> ref.dtype, tools.endpoints_list(ref, limit=1)["endpoints"][0]["name"]
        ('registry', 'UniProt')
    """

    def __init__(
        self,
        endpoints: Sequence[EndpointConfig] | None = None,
        *,
        store: RefStore | None = None,
        packs: Sequence[Pack | str | Path] = (),
        hidden: Collection[str] = (),
    ) -> None:
        self._own_store = store is None
        self.store = store if store is not None else RefStore()
        self._open = endpoints is None
        self._packs = tuple(p if isinstance(p, Pack) else load_pack(p) for p in packs)
        allowed = known_endpoints(self._packs) if endpoints is None else endpoints
        self._addresses = Addresses(allowed)
        self._hidden = frozenset(hidden)
        self._asked: dict[EndpointConfig, Ref] = {}

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
            raise ToolError(error.what, where=error.where, hint=error.hint) from error
        if self._open:
            self._addresses.add(public_endpoints(registry))
        size = len(json.dumps(asdict(registry), ensure_ascii=False))
        return self._keep(registry, "registry", len(registry.endpoints), size, registry.source)

    def endpoints_list(self, ref: RefLike, limit: int = 10, start: int = 0) -> dict[str, Any]:
        """List the endpoints of a handle, with how many examples reach each."""
        registry = self._registry(ref)
        return page(
            "endpoints_list",
            self.store.ref(ref).key,
            "endpoints",
            registry.endpoints,
            self._in_brief,
            limit=limit,
            start=start,
            source=registry.source,
            empty="the examples name no endpoint",
            extra={"unread_examples": registry.unread} if registry.unread else None,
        )

    def endpoint_detail(self, ref: RefLike, name: str) -> dict[str, Any]:
        """Show one endpoint, by name or address: prefixes, graphs, some questions."""
        registry = self._registry(ref)
        endpoint = endpoint_named(registry, name)
        shown, notes = endpoint_in_full(endpoint)
        detail = {
            "source": registry.source,
            **shown,
            "may_be_asked": self._addresses.allows(endpoint.url),
            "truncated": bool(notes),
        }
        return detail | ({"note": "; ".join(notes)} if notes else {})

    def data_graphs(self, ref: RefLike, limit: int = 20, start: int = 0) -> dict[str, Any]:
        """List the graphs that examples name, the most used first."""
        registry = self._registry(ref)
        graphs = [(e.name, graph) for e in registry.endpoints for graph in e.graphs]
        graphs.sort(key=lambda pair: (-pair[1].tasks, pair[1].graph))
        return page(
            "data_graphs",
            self.store.ref(ref).key,
            "graphs",
            graphs,
            lambda pair: {"graph": pair[1].graph, "endpoint": pair[0], "count": pair[1].tasks},
            limit=limit,
            start=start,
            source=registry.source,
            empty="no example names a graph",
        )

    def service_desc(self, url: str) -> Ref:
        """Ask an endpoint what it is and holds; returns a handle for service_desc_stats."""
        config = self._addresses.find(url)
        if config in self._asked:
            return self._asked[config]
        waiting = replace(
            config,
            retries=min(config.retries, RETRIES),
            deadline_s=min(config.deadline_s, DEADLINE_S),
        )
        try:
            with SPARQLClient(waiting) as client:
                found = discover(client)
        except EndpointError as error:
            raise ToolError(error.what, where=config.source, hint="try again once") from error
        triples = found.triples
        size = sum(len(full(part)) for triple in triples for part in triple)
        ref = self._keep(found, "service_desc", len(triples), size, config.source)
        self._asked[config] = ref
        return ref

    def service_desc_stats(self, ref: RefLike) -> dict[str, Any]:
        """Say what an endpoint tells of itself: sizes, numbers of graphs and features."""
        found = self._discovery(ref)
        return description_in_brief(found, self.store.ref(ref).rows)

    def service_desc_graphs(self, ref: RefLike, limit: int = 20, start: int = 0) -> dict[str, Any]:
        """List an endpoint's named graphs with their sizes, the largest first."""
        found = self._discovery(ref)

        def show(graph: NamedGraph) -> dict[str, Any]:
            size = {} if graph.triples is None else {"triples": graph.triples}
            return {"graph": graph.name, **size}

        return page(
            "service_desc_graphs",
            self.store.ref(ref).key,
            "graphs",
            found.named_graphs,
            show,
            limit=limit,
            start=start,
            source=found.service.source,
            empty="the endpoint names no graphs, and a sample of its data is in none",
            extra={"via": found.graphs_via} if found.graphs_via else None,
        )

    def service_desc_features(
        self, ref: RefLike, limit: int = 50, start: int = 0
    ) -> dict[str, Any]:
        """List what an endpoint supports: languages, features, formats, functions."""
        found = self._discovery(ref)
        return page(
            "service_desc_features",
            self.store.ref(ref).key,
            "features",
            features(found),
            lambda item: {"kind": item[0], "feature": self._show(found, item[1])},
            limit=limit,
            start=start,
            source=found.service.source,
            empty="the endpoint does not say what it supports; service_desc_stats says what came",
        )

    def service_desc_sample(self, ref: RefLike, n: int = 10, start: int = 0) -> dict[str, Any]:
        """Show triples that an endpoint says of itself."""
        found = self._discovery(ref)
        return page(
            "service_desc_sample",
            self.store.ref(ref).key,
            "triples",
            found.triples,
            lambda triple: {
                name: self._show(found, part)
                for name, part in zip(("s", "p", "o"), triple, strict=True)
            },
            limit=n,
            start=start,
            source=found.service.source,
            empty="the endpoint says nothing of itself; service_desc_stats says what came",
            parameter="n",
        )

    def _pack(self, path: str | Path) -> Pack:
        if not isinstance(path, str | Path):
            path = told(path)
        text = str(path).strip().rstrip("/")
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
                return load_pack(path)
        except UsageError as error:
            raise ToolError(error.what, where=error.where, hint=error.hint) from error
        choices = ", ".join(sorted({*names, *known})) or "none"
        what = f"unknown pack {text[:200]!r}" if text else "no pack was named"
        raise ToolError(what, hint=f"packs at hand: {choices}")

    def _registry(self, ref: RefLike) -> Registry:
        registry: Registry = self.store.get(ref, "registry")
        return registry

    def _discovery(self, ref: RefLike) -> Discovery:
        found: Discovery = self.store.get(ref, "service_desc")
        return found

    def _keep(self, value: Any, dtype: str, rows: int, sz: int, source: str) -> Ref:
        return Handle(self.store.put(value, dtype=dtype, rows=rows, sz=sz, source=source))

    def _in_brief(self, endpoint: RegistryEndpoint) -> dict[str, Any]:
        return {
            "name": endpoint.name,
            "url": endpoint.url,
            "authority": endpoint.authority,
            "count": endpoint.tasks,
            "may_be_asked": self._addresses.allows(endpoint.url),
        }

    def _show(self, found: Discovery, term: Term) -> Any:
        prefixes = self._addresses.find(found.service.endpoint).namespaces
        return compact(term, {**_SHORT, **prefixes})
