"""Service descriptions and VoID statistics as plain values, read from RDF.

Vocabularies: SPARQL 1.1 Service Description (sd:) and VoID.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from pyoxigraph import BlankNode, Literal, NamedNode, Triple

from reasoningbank.sparql.terms import STANDARD_PREFIXES, Term

_SD = STANDARD_PREFIXES["sd"]
_VOID = STANDARD_PREFIXES["void"]
_TYPE = NamedNode(STANDARD_PREFIXES["rdf"] + "type")
_TITLE = NamedNode(STANDARD_PREFIXES["dcterms"] + "title")


@dataclass(frozen=True)
class NamedGraph:
    """A named graph and its number of triples, None if unknown."""

    name: str
    triples: int | None = None


@dataclass(frozen=True)
class PropertyPartition:
    """How often a property is used; None if unknown."""

    property: str
    triples: int | None = None


@dataclass(frozen=True)
class ClassPartition:
    """How many instances a class has (None if unknown), and their properties."""

    class_: str
    entities: int | None = None
    properties: tuple[PropertyPartition, ...] = ()


@dataclass(frozen=True)
class VoidDataset:
    """One void:Dataset with its statistics; counts are None if unknown.

    Attributes:
        iri: IRI or blank node label of the dataset.
        title: Its dcterms:title.
        graph: The named graph that holds it, if the description names it.
        triples: void:triples.
        entities: void:entities.
        classes: Class partitions, the largest first.
        properties: Property partitions, the most used first.
    """

    iri: str
    title: str = ""
    graph: str = ""
    triples: int | None = None
    entities: int | None = None
    classes: tuple[ClassPartition, ...] = ()
    properties: tuple[PropertyPartition, ...] = ()


@dataclass(frozen=True)
class ServiceDescription:
    """The service description of an endpoint.

    Attributes:
        endpoint: Public address of the endpoint.
        source: Name of the endpoint.
        offered: Whether the endpoint offers one; all else is empty if not.
        languages: Supported query languages, by IRI.
        features: sd:feature IRIs.
        result_formats: Format IRIs.
        functions: IRIs of extension functions and aggregates.
        entailment: Default entailment regime IRI.
        named_graphs: The named graphs it lists.
        triples: All its triples.
        notes: Why something is missing.
    """

    endpoint: str
    source: str
    offered: bool
    languages: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    result_formats: tuple[str, ...] = ()
    functions: tuple[str, ...] = ()
    entailment: str = ""
    named_graphs: tuple[NamedGraph, ...] = ()
    triples: tuple[Triple, ...] = field(default=(), repr=False)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class VoidDescription:
    """The VoID statistics of an endpoint.

    Attributes:
        endpoint: Public address of the endpoint.
        source: Name of the endpoint.
        offered: Whether there are any.
        origin: ``store``, ``well-known``, ``service description``, or empty.
        datasets: The datasets described, the largest first.
        named_graphs: Named graphs with their sizes.
        triples: The statistics as RDF.
        truncated: Whether the description was longer than the part read.
        notes: Why something is missing.
    """

    endpoint: str
    source: str
    offered: bool
    origin: str = ""
    datasets: tuple[VoidDataset, ...] = ()
    named_graphs: tuple[NamedGraph, ...] = ()
    triples: tuple[Triple, ...] = field(default=(), repr=False)
    truncated: bool = False
    notes: tuple[str, ...] = ()


class _Graph:
    """Triples by subject and predicate."""

    def __init__(self, triples: Iterable[Triple]) -> None:
        self._objects: dict[tuple[Term, str], list[Term]] = defaultdict(list)
        self.subjects: dict[Term, None] = {}
        for triple in triples:
            self.subjects[triple.subject] = None
            self._objects[triple.subject, triple.predicate.value].append(triple.object)

    def all(self, subject: Term, predicate: str) -> list[Term]:
        return self._objects.get((subject, predicate), [])

    def having(self, *predicates: str) -> list[Term]:
        return [s for s in self.subjects if any(self.all(s, p) for p in predicates)]

    def iris(self, subject: Term, predicate: str) -> tuple[str, ...]:
        found = {t.value for t in self.all(subject, predicate) if isinstance(t, NamedNode)}
        return tuple(sorted(found))

    def count(self, subject: Term, *predicates: str) -> int | None:
        for predicate in predicates:
            for term in self.all(subject, predicate):
                if isinstance(term, Literal) and term.value.strip().isdigit():
                    return int(term.value)
        return None


def read_service(
    triples: Iterable[Triple], endpoint: str, source: str, notes: tuple[str, ...] = ()
) -> ServiceDescription:
    """Read a service description; `offered` is False if the triples contain none."""
    kept = tuple(triples)
    graph = _Graph(kept)
    services = [
        s
        for s in graph.subjects
        if NamedNode(_SD + "Service") in graph.all(s, _TYPE.value)
        or graph.all(s, _SD + "supportedLanguage")
        or graph.all(s, _SD + "endpoint")
    ]

    def of(*names: str) -> tuple[str, ...]:
        found = {iri for s in services for name in names for iri in graph.iris(s, _SD + name)}
        return tuple(sorted(found))

    return ServiceDescription(
        endpoint=endpoint,
        source=source,
        offered=bool(services),
        languages=of("supportedLanguage"),
        features=of("feature"),
        result_formats=of("resultFormat"),
        functions=of("extensionFunction", "extensionAggregate"),
        entailment=next(iter(of("defaultEntailmentRegime")), ""),
        named_graphs=read_named_graphs(kept),
        triples=kept,
        notes=notes,
    )


def read_named_graphs(triples: Iterable[Triple]) -> tuple[NamedGraph, ...]:
    """Read the named graphs of a description, the largest first."""
    graph = _Graph(triples)
    sizes: dict[str, int | None] = {}
    for node in graph.having(_SD + "name"):
        for name in graph.iris(node, _SD + "name"):
            counts = [graph.count(d, _VOID + "triples") for d in graph.all(node, _SD + "graph")]
            known = [n for n in (graph.count(node, _VOID + "triples"), *counts) if n is not None]
            sizes[name] = max(known) if known else sizes.get(name)
    order = sorted(sizes.items(), key=lambda item: (-(item[1] or 0), item[0]))
    return tuple(NamedGraph(name, n) for name, n in order)


def read_void(triples: Iterable[Triple]) -> tuple[VoidDataset, ...]:
    """Read the datasets of a VoID description, the largest first."""
    graph = _Graph(triples)
    partitions = {
        part
        for node in graph.subjects
        for link in ("classPartition", "propertyPartition")
        for part in graph.all(node, _VOID + link)
    }
    graphs = {
        dataset: name
        for node in graph.having(_SD + "graph")
        for dataset in graph.all(node, _SD + "graph")
        for name in graph.iris(node, _SD + "name")
    }
    counted = graph.having(*(_VOID + n for n in ("triples", "classPartition", "propertyPartition")))
    datasets = [_dataset(graph, node, graphs) for node in counted if node not in partitions]
    return tuple(sorted(datasets, key=lambda d: (-(d.triples or 0), d.iri)))


def _dataset(graph: _Graph, node: Term, graphs: dict[Term, str]) -> VoidDataset:
    titles = [t.value for t in graph.all(node, _TITLE.value) if isinstance(t, Literal)]
    classes = []
    for part in graph.all(node, _VOID + "classPartition"):
        for name in graph.iris(part, _VOID + "class"):
            entities = graph.count(part, _VOID + "entities", _VOID + "triples")
            classes.append(ClassPartition(name, entities, _properties(graph, part)))
    return VoidDataset(
        iri=node.value if isinstance(node, NamedNode | BlankNode) else str(node),
        title=next(iter(titles), ""),
        graph=graphs.get(node, ""),
        triples=graph.count(node, _VOID + "triples"),
        entities=graph.count(node, _VOID + "entities", _VOID + "distinctSubjects"),
        classes=tuple(sorted(classes, key=lambda c: (-(c.entities or 0), c.class_))),
        properties=_properties(graph, node),
    )


def _properties(graph: _Graph, node: Term) -> tuple[PropertyPartition, ...]:
    found = [
        PropertyPartition(name, graph.count(part, _VOID + "triples"))
        for part in graph.all(node, _VOID + "propertyPartition")
        for name in graph.iris(part, _VOID + "property")
    ]
    return tuple(sorted(found, key=lambda p: (-(p.triples or 0), p.property)))
