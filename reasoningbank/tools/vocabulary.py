"""The classes and properties of an endpoint: computed once, lazily, for all trials of a run.

A pack's schema gives labels, comments, domains and ranges; VoID statistics say what the data
really hold, and how often; where an endpoint publishes neither, bounded samples are taken.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType

from pyoxigraph import Literal, NamedNode, RdfFormat, parse

from reasoningbank.errors import EndpointError, QueryError, UsageError
from reasoningbank.sparql import (
    STANDARD_PREFIXES,
    EndpointConfig,
    SPARQLClient,
    VoidDescription,
    void_description,
)
from reasoningbank.tools.exploring import schema_queries
from reasoningbank.tools.exploring.schema_queries import Counted
from reasoningbank.tools.exploring.survey import Survey

__all__ = ["NamedTerm", "Vocabulary", "bounded_client"]

_RDF, _RDFS, _OWL = (STANDARD_PREFIXES[name] for name in ("rdf", "rdfs", "owl"))
_SCHEMA = "https://schema.org/"
_CLASSES = frozenset({_OWL + "Class", _RDFS + "Class"})
_PROPERTIES = frozenset(
    {
        _RDF + "Property",
        *(_OWL + f"{kind}Property" for kind in ("Object", "Datatype", "Annotation")),
    }
)
_DOMAINS = frozenset({_RDFS + "domain", _SCHEMA + "domainIncludes"})
_RANGES = frozenset({_RDFS + "range", _SCHEMA + "rangeIncludes"})

#: Names taken from samples where an endpoint publishes nothing about itself.
MOST_SAMPLED = 300
#: Seconds one request for statistics may take; without them queries still run.
STATISTICS_TIMEOUT_S = 20.0


@dataclass(frozen=True)
class NamedTerm:
    """A class or property.

    Attributes:
        iri: Its IRI.
        label: Its name for people; empty where untold.
        comment: A line on it; empty where untold.
        domain: Of a property: the classes whose instances have it.
        range: Of a property: the classes or datatypes of its values.
        parents: Of a class: the classes right above it.
        count: Instances of the class, or triples with the property; None where untold.
        in_data: Whether statistics or a sample saw it in the data.
    """

    iri: str
    label: str = ""
    comment: str = ""
    domain: tuple[str, ...] = ()
    range: tuple[str, ...] = ()
    parents: tuple[str, ...] = ()
    count: int | None = None
    in_data: bool = False


@dataclass(frozen=True)
class _Contents:
    classes: Mapping[str, NamedTerm] = field(default_factory=dict)
    properties: Mapping[str, NamedTerm] = field(default_factory=dict)
    of_class: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    via: str = "nothing"
    complete: bool = False


class Vocabulary:
    """What classes and properties an endpoint has; filled when first asked, safe between threads.

    Args:
        fill: Computes the contents; called once, by the first who asks.

    Examples:
        >>> names = Vocabulary.of_terms(["http://e/Tree"], ["http://e/height"])
        >>> list(names.properties), names.via, names.complete
        (['http://e/height'], 'given', True)
    """

    def __init__(self, fill: Callable[[], _Contents]) -> None:
        self._fill = fill
        self._lock = threading.Lock()
        self._contents: _Contents | None = None

    @classmethod
    def of(cls, config: EndpointConfig, schema: Path | None = None) -> Vocabulary:
        """Return the vocabulary of an endpoint: its schema, its VoID statistics, or samples.

        Nothing is asked before the vocabulary is used. An endpoint that fails then costs what
        it would have told, and nothing else.

        Args:
            config: The endpoint.
            schema: Classes and properties as Turtle, e.g. those of a pack.
        """
        return cls(lambda: _of_endpoint(config, schema))

    @classmethod
    def of_schema(cls, schema: Path) -> Vocabulary:
        """Return the vocabulary that a Turtle file declares; the data may hold more, or less.

        Raises:
            UsageError: When it is first used, if the file cannot be read or parsed.
        """
        return cls(lambda: _of_schema(schema))

    @classmethod
    def of_void(cls, void: VoidDescription) -> Vocabulary:
        """Return the vocabulary that VoID statistics count."""
        return cls(lambda: _of_void(void))

    @classmethod
    def of_terms(cls, classes: Iterable[str], properties: Iterable[str]) -> Vocabulary:
        """Return a vocabulary of exactly these IRIs."""
        given = _Contents(
            {iri: NamedTerm(iri, in_data=True) for iri in classes},
            {iri: NamedTerm(iri, in_data=True) for iri in properties},
            via="given",
            complete=True,
        )
        return cls(lambda: given)

    @property
    def classes(self) -> Mapping[str, NamedTerm]:
        """The classes by IRI, the most frequent first where counts are known."""
        return MappingProxyType(dict(self._read().classes))

    @property
    def properties(self) -> Mapping[str, NamedTerm]:
        """The properties by IRI, the most frequent first where counts are known."""
        return MappingProxyType(dict(self._read().properties))

    @property
    def via(self) -> str:
        """Where it comes from, such as ``schema and void`` or ``sample of 10000 triples``."""
        return self._read().via

    @property
    def complete(self) -> bool:
        """Whether a name that is not in it is not in the data either."""
        return self._read().complete

    def term(self, iri: str) -> NamedTerm | None:
        """Return the class or property with this IRI."""
        contents = self._read()
        return contents.classes.get(iri) or contents.properties.get(iri)

    def properties_of(self, class_iri: str) -> tuple[str, ...]:
        """Return the properties that instances of a class have, the most used first."""
        return self._read().of_class.get(class_iri, ())

    def link(self, class_iri: str, property_iri: str) -> str:
        """Return a property that leads from a class to what has another property.

        It takes one step; empty where no such property is known.
        """
        contents = self._read()
        wanted = contents.properties.get(property_iri)
        holders = {c for c, has in contents.of_class.items() if property_iri in has}
        holders |= set(wanted.domain) if wanted is not None else set()
        return self._leading(self.properties_of(class_iri), holders)

    def leading_to(self, class_iri: str, classes: Iterable[str] = ()) -> str:
        """Return a property whose values are of a class, one of some classes' own if there is.

        Empty where no such property is known.
        """
        own = [p for name in classes for p in self.properties_of(name)]
        return self._leading([*own, *self._read().properties], {class_iri})

    def below(self, class_iri: str) -> tuple[str, ...]:
        """Return the classes below a class that the data hold, by IRI."""
        classes = self._read().classes
        return tuple(c for c, t in classes.items() if t.in_data and class_iri in self._above(c))

    def _leading(self, properties: Iterable[str], classes: set[str]) -> str:
        """Return the first property with one of the classes, else with one above it, as range."""
        known = self._read().properties
        ranges = {p: set(known[p].range) for p in properties if p in known}
        for wanted in (classes, {above for c in classes for above in self._above(c)}):
            found = next((p for p, targets in ranges.items() if targets & wanted), "")
            if found:
                return found
        return ""

    def _above(self, class_iri: str) -> set[str]:
        classes = self._read().classes
        found: set[str] = set()
        todo = [class_iri]
        while todo:
            term = classes.get(todo.pop())
            new = set(term.parents) - found if term is not None else set()
            found |= new
            todo += new
        return found

    def _read(self) -> _Contents:
        with self._lock:
            if self._contents is None:
                self._contents = self._fill()
            return self._contents


def bounded_client(config: EndpointConfig, timeout_s: float) -> SPARQLClient:
    """Return a client of the same endpoint whose requests end within so many seconds.

    What is asked on the side must not hold up an agent: nothing is tried twice.
    """
    return SPARQLClient(replace(config, retries=0, timeout_s=timeout_s, deadline_s=timeout_s))


def _of_endpoint(config: EndpointConfig, schema: Path | None) -> _Contents:
    declared = _of_schema(schema) if schema is not None else _Contents()
    with bounded_client(config, STATISTICS_TIMEOUT_S) as client:
        try:
            counted = _of_void(void_description(client))
        except (EndpointError, QueryError):
            counted = _Contents()
        if not counted.properties and schema is None:
            return _of_samples(config)
    return _joined(declared, counted)


def _of_schema(file: Path) -> _Contents:
    try:
        triples = [quad.triple for quad in parse(path=str(file), format=RdfFormat.TURTLE)]
    except (OSError, SyntaxError, ValueError) as error:
        raise UsageError(
            f"the schema cannot be read: {error}", where=str(file), mend="give a Turtle file"
        ) from None
    types: dict[str, set[str]] = defaultdict(set)
    texts: dict[tuple[str, str], str] = {}
    links: dict[tuple[str, str], list[str]] = defaultdict(list)
    for subject, predicate, object_ in triples:
        if not isinstance(subject, NamedNode):
            continue
        if isinstance(object_, Literal):
            texts.setdefault((subject.value, predicate.value), object_.value)
        elif isinstance(object_, NamedNode):
            links[subject.value, predicate.value].append(object_.value)
            if predicate.value == _RDF + "type":
                types[subject.value].add(object_.value)

    def term(iri: str) -> NamedTerm:
        def linked(predicates: Iterable[str]) -> tuple[str, ...]:
            return tuple(x for p in sorted(predicates) for x in links.get((iri, p), ()))

        return NamedTerm(
            iri,
            texts.get((iri, _RDFS + "label"), ""),
            texts.get((iri, _RDFS + "comment"), ""),
            linked(_DOMAINS),
            linked(_RANGES),
            linked((_RDFS + "subClassOf",)),
        )

    classes = {iri: term(iri) for iri, kinds in types.items() if kinds & _CLASSES}
    properties = {iri: term(iri) for iri, kinds in types.items() if kinds & _PROPERTIES}
    of_class: dict[str, tuple[str, ...]] = defaultdict(tuple)
    for item in properties.values():
        for class_iri in item.domain:
            of_class[class_iri] += (item.iri,)
    return _Contents(classes, properties, of_class, "schema")


def _of_void(void: VoidDescription) -> _Contents:
    classes: dict[str, int | None] = {}
    properties: dict[str, int | None] = {}
    of_class: dict[str, dict[str, int]] = defaultdict(dict)
    for dataset in void.datasets:
        for part in dataset.properties:
            _most(properties, part.property, part.triples)
        for kind in dataset.classes:
            _most(classes, kind.class_, kind.entities)
            for part in kind.properties:
                _most(properties, part.property, part.triples)
                known = of_class[kind.class_].get(part.property, 0)
                of_class[kind.class_][part.property] = max(known, part.triples or 0)
    if not properties:
        return _Contents()
    return _Contents(
        _counted(classes),
        _counted(properties),
        {c: tuple(sorted(has, key=lambda p: (-has[p], p))) for c, has in of_class.items()},
        "void",
        complete=bool(classes) and not void.truncated,
    )


def _most(counts: dict[str, int | None], iri: str, count: int | None) -> None:
    known = counts.get(iri)
    counts[iri] = count if known is None else max(known, count or 0)


def _counted(counts: Mapping[str, int | None]) -> dict[str, NamedTerm]:
    order = sorted(counts, key=lambda iri: (-(counts[iri] or 0), iri))
    return {iri: NamedTerm(iri, count=counts[iri], in_data=True) for iri in order}


def _of_samples(config: EndpointConfig) -> _Contents:
    survey = Survey(config)
    classes = _sampled(lambda: schema_queries.classes(survey, MOST_SAMPLED))
    properties = _sampled(lambda: schema_queries.properties(survey, MOST_SAMPLED))
    whole = [found.via.startswith("all ") for found in (classes, properties)]
    cut = max(len(classes.items), len(properties.items)) >= MOST_SAMPLED
    return _Contents(
        _counted(dict(classes.items)),
        _counted(dict(properties.items)),
        via=properties.via,
        complete=all(whole) and not cut,
    )


def _sampled(ask: Callable[[], Counted]) -> Counted:
    try:
        return ask()
    except (EndpointError, QueryError):
        return Counted((), "nothing")


def _joined(declared: _Contents, counted: _Contents) -> _Contents:
    """Put what a schema tells beside what statistics count."""
    if not counted.properties:
        return declared
    if not declared.properties and not declared.classes:
        return counted

    def merged(
        told: Mapping[str, NamedTerm], seen: Mapping[str, NamedTerm]
    ) -> dict[str, NamedTerm]:
        both = {
            iri: replace(told[iri], count=term.count, in_data=True) if iri in told else term
            for iri, term in seen.items()
        }
        return both | {iri: term for iri, term in told.items() if iri not in both}

    of_class = {
        c: tuple(dict.fromkeys((*counted.of_class.get(c, ()), *declared.of_class.get(c, ()))))
        for c in {*declared.of_class, *counted.of_class}
    }
    return _Contents(
        merged(declared.classes, counted.classes),
        merged(declared.properties, counted.properties),
        of_class,
        "schema and void",
        counted.complete,
    )
