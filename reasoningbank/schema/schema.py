"""`Schema`: the classes and properties of an endpoint, from its schema, VoID statistics or samples.

A pack's schema gives labels, comments, domains and ranges. VoID statistics say what the data hold
and how often. Where an endpoint publishes neither, bounded samples are taken.
"""

from __future__ import annotations

import functools
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pyoxigraph import Literal, NamedNode, RdfFormat, Triple, parse

from reasoningbank.errors import EndpointError, QueryError, UsageError
from reasoningbank.schema import sampling
from reasoningbank.schema.sampling import Counted, EndpointProfile, side_client
from reasoningbank.sparql import (
    STANDARD_PREFIXES,
    EndpointConfig,
    address_key,
    same_address,
    void_description,
)
from reasoningbank.sparql.discovery import VoidDataset, by_size, read_void
from reasoningbank.sparql.terms import RDF_TYPE

_RDF, _RDFS, _OWL = (STANDARD_PREFIXES[name] for name in ("rdf", "rdfs", "owl"))
_SCHEMA_ORG = ("https://schema.org/", "http://schema.org/")
_CLASSES = frozenset(sampling.CLASS_TYPES)
_PROPERTIES = frozenset((*sampling.PROPERTY_TYPES, _OWL + "AnnotationProperty"))
_DOMAINS = (_RDFS + "domain", *(space + "domainIncludes" for space in _SCHEMA_ORG))
_RANGES = (_RDFS + "range", *(space + "rangeIncludes" for space in _SCHEMA_ORG))
#: Classes that everything may belong to.
_ANYTHING = frozenset((_OWL + "Thing", _RDFS + "Resource", _OWL + "NamedIndividual"))
#: Names taken from samples where an endpoint publishes nothing about itself.
MOST_SAMPLED = 300
#: Seconds one request for statistics may take; queries still run without them.
STATISTICS_TIMEOUT_S = 20.0


@dataclass(frozen=True)
class NamedTerm:
    """A class or property; what is unknown is empty or None."""

    iri: str
    label: str = ""
    comment: str = ""
    #: Of a property: the classes whose instances have it, and those or the datatypes of its values.
    domain: tuple[str, ...] = ()
    range: tuple[str, ...] = ()
    parents: tuple[str, ...] = ()  #: Of a class: its direct superclasses
    count: int | None = None  #: Instances of the class, or triples with the property
    in_data: bool = False  #: Whether statistics or a sample saw it in the data


@dataclass(frozen=True)
class Contents:
    classes: dict[str, NamedTerm] = field(default_factory=dict)
    properties: dict[str, NamedTerm] = field(default_factory=dict)
    of_class: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    counts: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    of_graph: Mapping[str, frozenset[str]] = field(default_factory=dict)
    via: str = "nothing"
    complete: bool = False
    sampled: bool = False

    def holders(self, property_iri: str) -> set[str]:
        """Return the classes whose instances have a property."""
        term = self.properties.get(property_iri)
        declared = term.domain if term is not None else ()
        return {*declared, *(c for c, has in self.of_class.items() if property_iri in has)}


class Schema:
    """The classes and properties of an endpoint, and what leads where.

    It is filled when first used, once, and is safe to share between threads.

    Args:
        fill: Computes the contents; called once.
        name: What people call the endpoint.
        address: Its public address; empty if unknown.
        union: Whether a pattern outside GRAPH also matches the named graphs.
        services: Schemas of the endpoints it federates with, by public address.
    """

    def __init__(
        self,
        fill: Callable[[], Contents],
        *,
        name: str = "",
        address: str = "",
        union: bool = True,
        services: Mapping[str, Schema] | None = None,
    ) -> None:
        self.name = name
        self.address = address
        self.union = union
        self.services: Mapping[str, Schema] = dict(services or {})
        self._fill = fill
        self._lock = threading.Lock()
        self._contents: Contents | None = None

    @classmethod
    def of(cls, config: EndpointConfig, schema: Path | None = None) -> Schema:
        """Return the schema of an endpoint, from a file and its VoID statistics, or from samples.

        The file declares classes and properties in Turtle, as that of a pack does. The endpoints
        that it federates with have schemas of their own. Nothing is requested before a schema is
        used. If its endpoint fails then, what it would have contributed is missing, and nothing
        else.
        """
        fill = functools.partial(_of_endpoint, config, schema)
        services = {other.url: cls.of(other) for other in config.federated}
        return cls(fill, name=config.name, address=config.url, services=services)

    @classmethod
    def of_files(cls, schema: Path | None, void: Path | None = None, **about: Any) -> Schema:
        """Return what Turtle files say: a schema, and VoID statistics of the data.

        Without statistics the data may hold more than the schema declares, or less. `about` sets
        `name`, `address`, `union` and `services`.
        """

        def fill() -> Contents:
            described = _triples(void) if void is not None and void.is_file() else []
            return _joined(_declared(schema), _of_void(read_void(described)))

        return cls(fill, **about)

    @classmethod
    def of_terms(cls, classes: Iterable[str], properties: Iterable[str]) -> Schema:
        """Return a schema of exactly these IRIs."""

        def terms(names: Iterable[str]) -> dict[str, NamedTerm]:
            return {iri: NamedTerm(iri, in_data=True) for iri in names}

        given = Contents(terms(classes), terms(properties), via="given", complete=True)
        return cls(lambda: given)

    @property
    def classes(self) -> Mapping[str, NamedTerm]:
        """The classes by IRI, the most frequent first where counts are known."""
        return MappingProxyType(self._read().classes)

    @property
    def properties(self) -> Mapping[str, NamedTerm]:
        """The properties by IRI, the most frequent first where counts are known."""
        return MappingProxyType(self._read().properties)

    @property
    def via(self) -> str:
        """Where it comes from, such as ``schema and void`` or ``sample of 10000 triples``."""
        return self._read().via

    @property
    def sampled(self) -> bool:
        """Whether counts are those in a sample."""
        return self._read().sampled

    @property
    def complete(self) -> bool:
        """Whether a name that is missing here is not in the data either."""
        return self._read().complete

    @property
    def counts_by_class(self) -> Mapping[str, Mapping[str, int]]:
        """Class → property → triples, as statistics count them; empty without statistics."""
        return self._read().counts

    @property
    def graphs(self) -> tuple[str, ...]:
        """The named graphs whose properties are known."""
        return tuple(self._read().of_graph)

    def term(self, iri: str) -> NamedTerm | None:
        contents = self._read()
        return contents.classes.get(iri) or contents.properties.get(iri)

    def properties_of(self, class_iri: str) -> tuple[str, ...]:
        """Return the properties that instances of a class have, the most used first."""
        return self._read().of_class.get(class_iri, ())

    def graphs_of(self, property_iri: str) -> tuple[str, ...]:
        """Return the named graphs that a property is used in, by name."""
        return tuple(g for g, used in sorted(self._read().of_graph.items()) if property_iri in used)

    def is_at(self, address: str) -> bool:
        """Return whether an address is the endpoint's own, in any spelling."""
        return bool(self.address) and same_address(address, self.address)

    def service(self, address: str) -> Schema | None:
        """Return the schema of a federated endpoint by its address, in any spelling."""
        wanted = address_key(address)
        return next((s for a, s in self.services.items() if address_key(a) == wanted), None)

    def subjects_of(self, property_iri: str) -> frozenset[str]:
        """Return the classes whose instances have a property; empty if unknown."""
        every = (self, *self.services.values())
        return frozenset().union(*(s._read().holders(property_iri) for s in every)) - _ANYTHING

    def objects_of(self, property_iri: str) -> frozenset[str]:
        """Return the classes and datatypes that a property leads to; empty if unknown."""
        term = self._read().properties.get(property_iri)
        return frozenset(term.range if term is not None else ()) - _ANYTHING

    def compatible(self, one: Iterable[str], other: Iterable[str]) -> bool:
        """Return whether something can be of a class of both; True if either is unknown."""
        first, second = frozenset(one), frozenset(other)
        if not first or not second:
            return True
        above = {name: {name, *self._above(name)} for name in first | second}
        return any(a in above[b] or b in above[a] for a in first for b in second)

    def link(self, class_iri: str, property_iri: str) -> str:
        """Return a property that leads, in one step, from a class to what has another property.

        Empty if no such property is known.
        """
        return self._leading(self.properties_of(class_iri), self._read().holders(property_iri))

    def leading_to(self, class_iri: str, classes: Iterable[str] = ()) -> str:
        """Return a property whose values are of a class, preferably one that some classes have.

        Empty if no such property is known.
        """
        own = [p for name in classes for p in self.properties_of(name)]
        return self._leading([*own, *self._read().properties], {class_iri})

    def below(self, class_iri: str) -> tuple[str, ...]:
        """Return the subclasses of a class that the data hold, by IRI."""
        classes = self._read().classes
        return tuple(c for c, t in classes.items() if t.in_data and class_iri in self._above(c))

    def _leading(self, properties: Iterable[str], classes: set[str]) -> str:
        """Return the first property with one of the classes, or a superclass, as range."""
        known = self._read().properties
        ranges = {p: set(known[p].range) for p in properties if p in known}
        for wanted in (classes, {above for c in classes for above in self._above(c)}):
            found = next((p for p, targets in ranges.items() if targets & wanted), "")
            if found:
                return found
        return ""

    def _above(self, class_iri: str) -> set[str]:
        classes, found, todo = self._read().classes, set[str](), [class_iri]
        while todo:
            term = classes.get(todo.pop())
            new = set(term.parents if term is not None else ()) - found
            found |= new
            todo += new
        return found

    def _read(self) -> Contents:
        with self._lock:
            if self._contents is None:
                self._contents = self._fill()
            return self._contents


def _of_endpoint(config: EndpointConfig, schema: Path | None) -> Contents:
    declared, counted = _declared(schema), Contents()
    with side_client(config, STATISTICS_TIMEOUT_S) as client:
        with suppress(EndpointError, QueryError):
            void = void_description(client)
            counted = _of_void(void.datasets, cut=void.truncated)
        if not counted.properties and schema is None:
            return _of_samples(config)
    return _joined(declared, counted)


def _triples(file: Path) -> list[Triple]:
    try:
        return [quad.triple for quad in parse(path=str(file), format=RdfFormat.TURTLE)]
    except (OSError, SyntaxError, ValueError) as error:
        what = f"the file cannot be read: {error}"
        hint = "give a Turtle file"
        raise UsageError(what, where=str(file), hint=hint, code="unreadable-file") from None


def _declared(file: Path | None) -> Contents:
    if file is None:
        return Contents()
    types: dict[str, set[str]] = defaultdict(set)
    texts: dict[tuple[str, str], str] = {}
    links: dict[tuple[str, str], list[str]] = defaultdict(list)
    implied = dict.fromkeys((*_DOMAINS, *_RANGES), _RDF + "Property")
    implied[_RDFS + "subClassOf"] = _OWL + "Class"
    for subject, predicate, object_ in _triples(file):
        if not isinstance(subject, NamedNode):
            continue
        place = subject.value, predicate.value
        if isinstance(object_, Literal):
            texts.setdefault(place, object_.value)
        elif isinstance(object_, NamedNode):
            links[place].append(object_.value)
            kind = object_.value if place[1] == RDF_TYPE else implied.get(place[1])
            types[place[0]] |= {kind} if kind else set()

    def term(iri: str) -> NamedTerm:
        label, comment = (texts.get((iri, _RDFS + name), "") for name in ("label", "comment"))
        domain, range_, parents = (
            tuple(x for predicate in sorted(predicates) for x in links.get((iri, predicate), ()))
            for predicates in (_DOMAINS, _RANGES, (_RDFS + "subClassOf",))
        )
        return NamedTerm(iri, label, comment, domain, range_, parents)

    classes = {iri: term(iri) for iri, kinds in types.items() if kinds & _CLASSES}
    properties = {iri: term(iri) for iri, kinds in types.items() if kinds & _PROPERTIES}
    of_class: dict[str, tuple[str, ...]] = defaultdict(tuple)
    for item in properties.values():
        for class_iri in item.domain:
            of_class[class_iri] += (item.iri,)
    return Contents(classes, properties, of_class, via="schema")


def _of_void(datasets: Iterable[VoidDataset], *, cut: bool = False) -> Contents:
    classes: dict[str, int | None] = {}
    properties: dict[str, int | None] = {}
    of_class: dict[str, dict[str, int]] = defaultdict(dict)
    of_graph: dict[str, frozenset[str]] = {}
    for dataset in datasets:
        if dataset.graph and dataset.properties:
            of_graph[dataset.graph] = frozenset(dataset.properties)
        _add(classes, dataset.classes)
        for used in (dataset.properties, *dataset.of_class.values()):
            _add(properties, used)
        for name, used in dataset.of_class.items():
            has = of_class[name]
            has |= {p: max(has.get(p, 0), n or 0) for p, n in used.items()}
    if not properties:
        return Contents()
    return Contents(
        _counted(classes),
        _counted(properties),
        {c: tuple(by_size(has)) for c, has in of_class.items()},
        of_class,
        of_graph,
        "void",
        complete=bool(classes) and not cut,
    )


def _add(counts: dict[str, int | None], more: Mapping[str, int | None]) -> None:
    """Add further counts, the higher where a name has two."""
    for iri, count in more.items():
        known = counts.get(iri)
        counts[iri] = count if known is None else max(known, count or 0)


def _counted(counts: Mapping[str, int | None]) -> dict[str, NamedTerm]:
    return {iri: NamedTerm(iri, count=n, in_data=True) for iri, n in by_size(counts).items()}


def _of_samples(config: EndpointConfig) -> Contents:
    classes = properties = Counted((), "nothing")
    with closing(EndpointProfile(config)) as profile:
        with suppress(EndpointError, QueryError):
            classes = sampling.classes(profile, MOST_SAMPLED)
        with suppress(EndpointError, QueryError):
            properties = sampling.properties(profile, MOST_SAMPLED)
    cut = max(len(classes.items), len(properties.items)) >= MOST_SAMPLED
    return Contents(
        _counted(dict(classes.items)),
        _counted(dict(properties.items)),
        via=properties.via,
        complete=classes.whole and properties.whole and not cut,
        sampled=properties.sampled,
    )


def _joined(declared: Contents, counted: Contents) -> Contents:
    if not counted.properties:
        return declared
    if not declared.properties and not declared.classes:
        return counted

    def merged(
        known: Mapping[str, NamedTerm], seen: Mapping[str, NamedTerm]
    ) -> dict[str, NamedTerm]:
        return {
            iri: replace(term, count=seen[iri].count, in_data=True) if iri in seen else term
            for iri, term in {**seen, **known}.items()
        }

    of_class = {
        c: tuple(dict.fromkeys((*counted.of_class.get(c, ()), *declared.of_class.get(c, ()))))
        for c in {*declared.of_class, *counted.of_class}
    }
    return Contents(
        merged(declared.classes, counted.classes),
        merged(declared.properties, counted.properties),
        of_class,
        counted.counts,
        counted.of_graph,
        "schema and void",
        counted.complete,
    )
