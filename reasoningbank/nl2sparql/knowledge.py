"""What a pack knows of its endpoints' names: where each is used, its classes, its direction.

Read from ``schema.ttl`` (RDFS, with schema.org's ``domainIncludes`` and ``rangeIncludes``) and from
the VoID files, whose partitions tell which properties each graph and each class has.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

import pyoxigraph
from pyoxigraph import NamedNode, RdfFormat, Triple

from reasoningbank.corpus import FederatedEndpoint, Pack
from reasoningbank.errors import UsageError
from reasoningbank.sparql import STANDARD_PREFIXES, address_key
from reasoningbank.sparql.descriptions import read_void

__all__ = ["Knowledge", "Source", "load_knowledge"]

_RDF = STANDARD_PREFIXES["rdf"]
_RDFS = STANDARD_PREFIXES["rdfs"]
_OWL = STANDARD_PREFIXES["owl"]
_DOMAINS = (
    _RDFS + "domain",
    "https://schema.org/domainIncludes",
    "http://schema.org/domainIncludes",
)
_RANGES = (_RDFS + "range", "https://schema.org/rangeIncludes", "http://schema.org/rangeIncludes")
_CLASSES = (_OWL + "Class", _RDFS + "Class")
_PROPERTIES = (
    _RDF + "Property",
    _OWL + "ObjectProperty",
    _OWL + "DatatypeProperty",
    _OWL + "AnnotationProperty",
)
#: Classes that everything may belong to.
_ANYTHING = frozenset((_OWL + "Thing", _RDFS + "Resource", _OWL + "NamedIndividual"))


@dataclass(frozen=True)
class Source:
    """What is used at one endpoint.

    Attributes:
        address: Its public address; ``''`` for the endpoint that is asked.
        name: What people call it.
        properties: IRIs of the properties in use; empty where nothing is known.
        classes: IRIs of the classes in use.
        graphs: Properties in use by named graph.
        has: Properties in use by class.
        union: Whether a pattern outside of GRAPH matches the named graphs as well.
    """

    address: str = ""
    name: str = ""
    properties: frozenset[str] = frozenset()
    classes: frozenset[str] = frozenset()
    graphs: Mapping[str, frozenset[str]] = field(default_factory=dict)
    has: Mapping[str, frozenset[str]] = field(default_factory=dict)
    union: bool = True

    def graphs_of(self, name: str) -> tuple[str, ...]:
        """Return the named graphs that a property is used in."""
        return tuple(graph for graph, used in sorted(self.graphs.items()) if name in used)


@dataclass(frozen=True)
class Knowledge:
    """All names of a pack.

    Attributes:
        sources: The endpoint that is asked, then those it federates with.
        domains: Classes that have a property, by property; as the schema says.
        ranges: Classes and datatypes that it leads to.
        above: Every class with itself and all classes above it.
        names: All properties and classes that the schema tells of.
    """

    sources: tuple[Source, ...] = (Source(),)
    domains: Mapping[str, frozenset[str]] = field(default_factory=dict)
    ranges: Mapping[str, frozenset[str]] = field(default_factory=dict)
    above: Mapping[str, frozenset[str]] = field(default_factory=dict)
    names: frozenset[str] = frozenset()

    def source_at(self, address: str | None) -> Source | None:
        """Return what is known of an endpoint; None for an unknown address.

        Args:
            address: A public address; None or ``''`` for the endpoint that is asked.
        """
        if not address:
            return self.sources[0]
        wanted = address_key(address)
        return next((s for s in self.sources[1:] if address_key(s.address) == wanted), None)

    def subjects_of(self, name: str) -> frozenset[str]:
        """Return the classes that have a property, as schema and statistics say; maybe none."""
        used = {of for source in self.sources for of, has in source.has.items() if name in has}
        return (self.domains.get(name, frozenset()) | used) - _ANYTHING

    def objects_of(self, name: str) -> frozenset[str]:
        """Return the classes and datatypes that a property leads to; maybe none."""
        return self.ranges.get(name, frozenset()) - _ANYTHING

    def fit(self, one: Iterable[str], other: Iterable[str]) -> bool:
        """Say whether something can be of a class of both; nothing known fits everything."""
        first, second = frozenset(one), frozenset(other)
        if not first or not second:
            return True
        return any(
            a in self.above.get(b, frozenset((b,))) or b in self.above.get(a, frozenset((a,)))
            for a in first
            for b in second
        )


def load_knowledge(pack: Pack) -> Knowledge:
    """Read what a pack knows of names, once a process; a pack without schema knows nothing.

    Raises:
        UsageError: A file cannot be read.
    """
    return _load(_Files.of(pack))


@dataclass(frozen=True)
class _Files:
    """What knowledge is read from; a pack itself cannot be a key."""

    schema: Path | None
    main: tuple[str, bool, Path | None]
    others: tuple[tuple[str, str, bool, Path | None], ...]

    @classmethod
    def of(cls, pack: Pack) -> _Files:
        def other(one: FederatedEndpoint) -> tuple[str, str, bool, Path | None]:
            return one.url, one.name, one.union_default_graph, one.void

        main = (pack.name, pack.union_default_graph, pack.void)
        return cls(pack.schema, main, tuple(other(one) for one in pack.federated))


@lru_cache(maxsize=16)
def _load(files: _Files) -> Knowledge:
    main = _source("", *files.main)
    others = [_source(*one) for one in files.others]
    domains: dict[str, set[str]] = defaultdict(set)
    ranges: dict[str, set[str]] = defaultdict(set)
    parents: dict[str, set[str]] = defaultdict(set)
    names: set[str] = set()
    for triple in _triples(files.schema):
        subject, value = triple.subject, triple.object
        if not isinstance(subject, NamedNode) or not isinstance(value, NamedNode):
            continue
        name, predicate = subject.value, triple.predicate.value
        if predicate in _DOMAINS:
            domains[name].add(value.value)
        elif predicate in _RANGES:
            ranges[name].add(value.value)
        elif predicate == _RDFS + "subClassOf":
            parents[name].add(value.value)
        elif predicate == _RDF + "type" and value.value in (*_CLASSES, *_PROPERTIES):
            names.add(name)
    return Knowledge(
        (main, *others),
        {name: frozenset(of) for name, of in domains.items()},
        {name: frozenset(of) for name, of in ranges.items()},
        {name: frozenset(_above(name, parents)) for name in (*parents, *names)},
        frozenset(names),
    )


def _source(address: str, name: str, union: bool, void: Path | None) -> Source:
    datasets = read_void(_triples(void))
    graphs = {
        dataset.graph: frozenset(part.property for part in dataset.properties)
        for dataset in datasets
        if dataset.graph and dataset.properties
    }
    has: dict[str, set[str]] = defaultdict(set)
    for dataset in datasets:
        for part in dataset.classes:
            has[part.class_].update(of.property for of in part.properties)
    used = {part.property for dataset in datasets for part in dataset.properties}
    return Source(
        address,
        name,
        frozenset(used),
        frozenset(has),
        graphs,
        {of: frozenset(names) for of, names in has.items()},
        union,
    )


def _triples(file: Path | None) -> list[Triple]:
    if file is None or not file.is_file():
        return []
    try:
        parsed = pyoxigraph.parse(path=str(file), format=RdfFormat.TURTLE)
        return [quad.triple for quad in parsed]
    except (OSError, SyntaxError) as error:
        raise UsageError(f"cannot be read: {error}", where=str(file)) from None


def _above(name: str, parents: Mapping[str, set[str]]) -> set[str]:
    found = {name}
    left = [name]
    while left:
        new = parents.get(left.pop(), set()) - found
        found |= new
        left += new
    return found
