"""An agent's context: up to four layers, those that never change first.

L0: what the endpoint holds. L3: a guide written by people. L1: the classes and properties near
the question. L2: what earlier tasks taught.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from os.path import commonprefix

from reasoningbank.corpus import Pack
from reasoningbank.corpus.registry import read_registry
from reasoningbank.errors import UsageError
from reasoningbank.findings import counted
from reasoningbank.lm.tokens import count_tokens
from reasoningbank.memory.layer import Entry, Layer, Line, about, guide, pack_lines
from reasoningbank.memory.schema_card import SchemaCard
from reasoningbank.memory.search import Retrieval, pack
from reasoningbank.schema import Schema
from reasoningbank.sparql import Discovery, EndpointConfig, NamedGraph, SPARQLClient, discover
from reasoningbank.sparql.terms import SCHEMA_NAMESPACES, written

#: The layers in the order of the context: those that are the same for every question first.
LAYERS = ("L0", "L3", "L1", "L2")
_TITLE = "From earlier tasks:"


@dataclass(frozen=True)
class Budgets:
    """Maximum tokens of each layer; the title of L2 is extra."""

    L0: int = 150
    L1: int = 400
    L2: int = 600
    L3: int = 200


@dataclass(frozen=True)
class Context:
    """What an agent is given before a question."""

    text: str = ""
    static: str = ""
    tokens: int = 0
    by_layer: Mapping[str, int] = field(default_factory=dict)
    retrieval: Retrieval | None = None


@dataclass(eq=False)
class ContextBuilder:
    """Builds the contexts of one endpoint; several threads may use it.

    Everything static is made once, when the builder is made: the endpoint is asked then, and never
    again. Two builders with the same arguments build the same contexts.
    """

    layers: Collection[str]  #: The enabled layers, of ``L0``, ``L1``, ``L2`` and ``L3``
    _: KW_ONLY
    endpoint: EndpointConfig
    vocabulary: Schema
    #: The endpoint's pack; without one there is no guide and there are no warnings
    pack: Pack | None = None
    #: The endpoint's service description, which L0 needs; if None, requested then
    discovery: Discovery | None = None
    #: Writes the schema cards, if several builders share one
    schema_card: SchemaCard | None = None
    budgets: Budgets = Budgets()
    hidden: Collection[str] = ()  #: Ids of the tasks of which nothing may be shown
    tools: bool = False  #: Whether the agent can call the tools for exploring

    def __post_init__(self) -> None:
        for name in self.layers:
            if name not in LAYERS:
                hint = f"choose from {', '.join(sorted(LAYERS))}"
                raise UsageError(f"unknown layer {name!r}", hint=hint, code="unknown-layer")
        self.layers = layers = tuple(name for name in LAYERS if name in self.layers)
        self._static: dict[str, Layer] = {}
        if "L0" in layers:
            if self.discovery is None:
                with SPARQLClient(self.endpoint) as client:
                    self.discovery = discover(client)
            self._static["L0"] = sense_card(
                self.endpoint,
                self.discovery,
                self.vocabulary,
                pack=self.pack,
                hidden=self.hidden,
                tools=self.tools,
                budget=self.budgets.L0,
            )
        if "L3" in layers:
            self._static["L3"] = guide(self.pack, self.budgets.L3)
        if "L1" in layers and self.schema_card is None:
            self.schema_card = SchemaCard.of(self.endpoint, self.vocabulary, pack=self.pack)

    @property
    def static(self) -> str:
        return _joined([layer.text for layer in self._static.values()])

    def build(self, question: str, retrieval: Retrieval | None = None) -> Context:
        """Return the context of a question, with what was found for it if L2 is enabled."""
        layers = dict(self._static)
        if "L1" in self.layers and self.schema_card is not None:
            layers["L1"] = self.schema_card.about(question, self.budgets.L1)
        shown: Retrieval | None = None
        if "L2" in self.layers:
            layers["L2"], shown = procedures(retrieval, self.budgets.L2)
        text = _joined([layers[name].text for name in self.layers])
        by_layer = {name: layers[name].tokens for name in sorted(self.layers)}
        return Context(text, self.static, count_tokens(text), by_layer, shown)


def procedures(retrieval: Retrieval | None, budget: int = 600) -> tuple[Layer, Retrieval | None]:
    """Return the items of a search as layer L2, each whole, and the search as it is shown."""
    if retrieval is None:
        return Layer(), None
    packed = pack(retrieval.found, items=len(retrieval.found), tokens=budget)
    if packed.skipped:
        skipped = (*retrieval.skipped, *packed.skipped)
        retrieval = replace(retrieval, found=packed.chosen, skipped=skipped)
    texts = [found.text.strip() for found in retrieval.found if found.example is None]
    text = "\n\n".join([_TITLE, *texts]) if texts else ""
    return Layer(text, count_tokens(text)), retrieval


def _joined(texts: Collection[str]) -> str:
    return "\n\n".join(text for text in texts if text)


# -- L0: what an endpoint holds, the same for every question -------------------------------

#: Maximum entries of one line, whatever the budget.
MOST_CLASSES = 12
MOST_LABELS = 6
MOST_GRAPHS = 12
#: Classes named beside a label property.
MOST_LABELLED = 3


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
    prefixes = " ".join(f"{name}:" for name in sorted(endpoint.prefixes))
    lines = [
        _size(endpoint, discovery, pack),
        _classes(endpoint, vocabulary),
        _labels(endpoint, vocabulary),
        _federated(endpoint, pack, hidden),
        Line(f"Declared prefixes: {prefixes}", rank=10) if prefixes else None,
        _graphs(discovery.named_graphs if discovery is not None else ()),
    ]
    if tools and pack is not None:
        source = read_registry(pack).source
        lines.append(Line(f'Example questions: federated_endpoints("{source}").', rank=11))
    return pack_lines([line for line in lines if line is not None], budget)


def _size(endpoint: EndpointConfig, discovery: Discovery | None, pack: Pack | None) -> Line:
    datasets = discovery.void.datasets if discovery is not None else ()
    triples = max((d.triples for d in datasets if d.triples), default=None)
    graphs = discovery.named_graphs if discovery is not None else ()
    said = [f"{about(triples)} triples" if triples else "its size is unknown"]
    if graphs:
        number = counted(len(graphs), "named graph")
        # Only a pack says whether the default graph holds them.
        needed = "" if pack is None else f" ({'no ' * pack.union_default_graph}GRAPH needed)"
        said.append(number + needed)
    return Line(f"{endpoint.source} <{endpoint.url}>: {', '.join(said)}.", rank=0)


def _classes(endpoint: EndpointConfig, vocabulary: Schema) -> Line:
    """Name the main classes with their numbers of instances: named things and rich ones first."""
    known = {iri: term for iri, term in vocabulary.classes.items() if term.count or term.in_data}
    chosen = [iri for iri in known if not iri.startswith(SCHEMA_NAMESPACES)] or list(known)
    labels = set(endpoint.label_properties)

    def weight(iri: str) -> tuple[bool, float]:
        has = vocabulary.properties_of(iri)
        return not labels.isdisjoint(has), math.log1p(known[iri].count or 0) * (1 + len(has))

    def with_count(iri: str) -> str:
        name, count = written(iri, endpoint.namespaces), known[iri].count
        return name if count is None else f"{name} {about(count)}"

    main = sorted(sorted(chosen), key=weight, reverse=True)[:MOST_CLASSES]
    if not main:
        return Line("Its classes are not known.", rank=1)
    head = f"Classes, in a {vocabulary.via}" if vocabulary.sampled else "Main classes"
    entries = tuple(Entry(with_count(iri), 1 + n) for n, iri in enumerate(main))
    return Line(head, entries)


def _labels(endpoint: EndpointConfig, vocabulary: Schema) -> Line | None:
    """Say which properties name things, and of which classes."""
    known, classes = vocabulary.properties, vocabulary.classes
    entries = []
    used = [name for name in endpoint.label_properties if name in known and known[name].in_data]
    for n, name in enumerate(used[:MOST_LABELS]):
        named = [c for c in classes if name in vocabulary.properties_of(c)]
        # A schema may describe classes without instances.
        named = [c for c in named if classes[c].in_data] or named
        of = ", ".join(written(c, endpoint.namespaces) for c in named[:MOST_LABELLED])
        more = ", …" if len(named) > MOST_LABELLED else ""
        label = written(name, endpoint.namespaces)
        entries.append(Entry(f"{label} of {of}{more}" if of else label, 1.5 + n))
    return Line("Names", tuple(entries), between="; ") if entries else None


def _federated(endpoint: EndpointConfig, pack: Pack | None, hidden: Collection[str]) -> Line | None:
    found = {other.url: other.source for other in endpoint.federated}
    if pack is not None:
        registry = read_registry(pack, hidden)
        found |= {e.url: e.name for e in registry.endpoints if e.by_service}
    found.pop(endpoint.url, None)
    entries = [Entry(f"{name} <{url}>", 2.2 + n / 2) for n, (url, name) in enumerate(found.items())]
    return Line("By SERVICE", tuple(entries)) if entries else None


def _graphs(graphs: Sequence[NamedGraph]) -> Line | None:
    if not graphs:
        return None
    shared = commonprefix([graph.name for graph in graphs]) if len(graphs) > 1 else ""  # noqa: RUF071
    base = shared[: max(shared.rfind("/"), shared.rfind("#")) + 1]
    entries = []
    for n, graph in enumerate(graphs[:MOST_GRAPHS]):
        size = f" {about(graph.triples)}" if graph.triples else ""
        entries.append(Entry(graph.name.removeprefix(base) + size, 12 + n))
    return Line(f"Graphs <{base}…>" if base else "Graphs", tuple(entries))
