"""L0, the sense card: what an endpoint holds, in a few lines that are the same for every question.

It is read from the endpoint's service description, its VoID statistics or the counts of a sample,
and from the pack if there is one. Missing facts are said to be unknown.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from os.path import commonprefix

from pyoxigraph import NamedNode

from reasoningbank.corpus import Pack
from reasoningbank.corpus.registry import read_registry
from reasoningbank.memory.layer import Entry, Layer, Line, about, pack_lines
from reasoningbank.schema import Schema
from reasoningbank.sparql import STANDARD_PREFIXES, Discovery, EndpointConfig, NamedGraph, compact

#: Maximum entries of one line, whatever the budget.
MOST_CLASSES = 12
MOST_LABELS = 6
MOST_GRAPHS = 12
#: Classes named beside a label property.
MOST_LABELLED = 3
#: Classes that type everything in some data say nothing about it.
_OF_SCHEMAS = tuple(STANDARD_PREFIXES[name] for name in ("rdf", "rdfs", "owl"))


def sense_card(
    endpoint: EndpointConfig,
    discovery: Discovery | None,
    vocabulary: Schema,
    *,
    pack: Pack | None = None,
    hidden: Collection[str] = (),
    tools: bool = False,
    budget: int = 150,
) -> Layer:
    """Return the sense card of an endpoint."""
    namespaces = endpoint.namespaces

    def short(iri: str) -> str:
        return str(compact(NamedNode(iri), namespaces))

    lines = [
        _size(endpoint, discovery, pack),
        _classes(endpoint, vocabulary, short),
        _labels(endpoint, vocabulary, short),
        _federated(endpoint, pack, hidden),
        _graphs(discovery.named_graphs if discovery is not None else ()),
    ]
    if prefixes := " ".join(f"{name}:" for name in sorted(endpoint.prefixes)):
        lines.insert(4, Line(f"Declared prefixes: {prefixes}", rank=10))
    if tools and pack is not None:
        source = read_registry(pack).source
        lines.append(Line(f'Example questions: federated_endpoints("{source}").', rank=11))
    return pack_lines("L0", [line for line in lines if line is not None], budget)


def _size(endpoint: EndpointConfig, discovery: Discovery | None, pack: Pack | None) -> Line:
    datasets = discovery.void.datasets if discovery is not None else ()
    triples = max((d.triples for d in datasets if d.triples), default=None)
    graphs = discovery.named_graphs if discovery is not None else ()
    said = [f"{about(triples)} triples" if triples else "its size is unknown"]
    if graphs:
        number = f"{len(graphs)} named graph{'s' if len(graphs) > 1 else ''}"
        # Only a pack says whether the default graph holds them.
        needed = "" if pack is None else f" ({'no ' * pack.union_default_graph}GRAPH needed)"
        said.append(number + needed)
    return Line(f"{endpoint.source} <{endpoint.url}>: {', '.join(said)}.", rank=0)


def _classes(endpoint: EndpointConfig, vocabulary: Schema, short: Callable[[str], str]) -> Line:
    """Name the main classes with their numbers of instances: named things and rich ones first."""
    known = {iri: term for iri, term in vocabulary.classes.items() if term.count or term.in_data}
    chosen = [iri for iri in known if not iri.startswith(_OF_SCHEMAS)] or list(known)
    labels = set(endpoint.label_properties)

    def weight(iri: str) -> tuple[bool, float]:
        has = vocabulary.properties_of(iri)
        return not labels.isdisjoint(has), math.log1p(known[iri].count or 0) * (1 + len(has))

    def counted(iri: str) -> str:
        count = known[iri].count
        return short(iri) if count is None else f"{short(iri)} {about(count)}"

    main = sorted(sorted(chosen), key=weight, reverse=True)[:MOST_CLASSES]
    if not main:
        return Line("Its classes are not known.", rank=1)
    sampled = vocabulary.via.startswith("sample")
    head = f"Classes, in a {vocabulary.via}" if sampled else "Main classes"
    entries = tuple(Entry(counted(iri), 1 + n) for n, iri in enumerate(main))
    return Line(head, entries, alone=False)


def _labels(
    endpoint: EndpointConfig, vocabulary: Schema, short: Callable[[str], str]
) -> Line | None:
    """Say which properties name things, and of which classes."""
    known, classes = vocabulary.properties, vocabulary.classes
    entries = []
    used = [name for name in endpoint.label_properties if name in known and known[name].in_data]
    for n, name in enumerate(used[:MOST_LABELS]):
        named = [c for c in classes if name in vocabulary.properties_of(c)]
        # A schema may describe classes without instances.
        named = [c for c in named if classes[c].in_data] or named
        of = ", ".join(short(c) for c in named[:MOST_LABELLED])
        more = ", …" if len(named) > MOST_LABELLED else ""
        entries.append(Entry(f"{short(name)} of {of}{more}" if of else short(name), 1.5 + n))
    return Line("Names", tuple(entries), alone=False, between="; ") if entries else None


def _federated(endpoint: EndpointConfig, pack: Pack | None, hidden: Collection[str]) -> Line | None:
    found = {other.url: other.source for other in endpoint.federated}
    if pack is not None:
        registry = read_registry(pack, hidden)
        found |= {e.url: e.name for e in registry.endpoints if e.by_service}
    found.pop(endpoint.url, None)
    entries = [Entry(f"{name} <{url}>", 2.2 + n / 2) for n, (url, name) in enumerate(found.items())]
    return Line("By SERVICE", tuple(entries), alone=False) if entries else None


def _graphs(graphs: Sequence[NamedGraph]) -> Line | None:
    if not graphs:
        return None
    shared = commonprefix([graph.name for graph in graphs]) if len(graphs) > 1 else ""  # noqa: RUF071
    base = shared[: max(shared.rfind("/"), shared.rfind("#")) + 1]
    entries = []
    for n, graph in enumerate(graphs[:MOST_GRAPHS]):
        size = f" {about(graph.triples)}" if graph.triples else ""
        entries.append(Entry(graph.name.removeprefix(base) + size, 12 + n))
    return Line(f"Graphs <{base}…>" if base else "Graphs", tuple(entries), alone=False)
