"""What a vocabulary holds, and where that comes from: a schema, statistics, samples.

A pack's schema gives labels, comments, domains and ranges; VoID statistics say what the data
really hold, and how often; where an endpoint publishes neither, bounded samples are taken.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from pyoxigraph import Literal, NamedNode, RdfFormat, parse

from reasoningbank.errors import EndpointError, QueryError, UsageError
from reasoningbank.sparql import (
    STANDARD_PREFIXES,
    EndpointConfig,
    VoidDescription,
    void_description,
)
from reasoningbank.tools.exploring import schema_queries
from reasoningbank.tools.exploring.schema_queries import Counted
from reasoningbank.tools.exploring.survey import Survey
from reasoningbank.tools.side_client import bounded_client

__all__ = ["Contents", "NamedTerm", "of_endpoint", "of_schema"]

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
class Contents:
    """Classes and properties, and where they come from.

    Attributes:
        classes: The classes by IRI, the most frequent first where counts are known.
        properties: The properties by IRI, likewise.
        of_class: Class → the properties that its instances have, the most used first.
        via: Where they come from.
        complete: Whether a name that is missing is not in the data either.
    """

    classes: Mapping[str, NamedTerm] = field(default_factory=dict)
    properties: Mapping[str, NamedTerm] = field(default_factory=dict)
    of_class: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    via: str = "nothing"
    complete: bool = False


def of_endpoint(config: EndpointConfig, schema: Path | None) -> Contents:
    """Return what a schema, VoID statistics and, where neither is there, samples tell.

    Raises:
        UsageError: The schema cannot be read or parsed.
    """
    declared = of_schema(schema) if schema is not None else Contents()
    with bounded_client(config, STATISTICS_TIMEOUT_S) as client:
        try:
            counted = _of_void(void_description(client))
        except (EndpointError, QueryError):
            counted = Contents()
        if not counted.properties and schema is None:
            return _of_samples(config)
    return _joined(declared, counted)


def of_schema(file: Path) -> Contents:
    """Return what a Turtle file declares.

    Raises:
        UsageError: It cannot be read or parsed.
    """
    try:
        triples = [quad.triple for quad in parse(path=str(file), format=RdfFormat.TURTLE)]
    except (OSError, SyntaxError, ValueError) as error:
        raise UsageError(
            f"the schema cannot be read: {error}", where=str(file), hint="give a Turtle file"
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
    return Contents(classes, properties, of_class, "schema")


def _of_void(void: VoidDescription) -> Contents:
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
        return Contents()
    return Contents(
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


def _of_samples(config: EndpointConfig) -> Contents:
    survey = Survey(config)
    classes = _sampled(lambda: schema_queries.classes(survey, MOST_SAMPLED))
    properties = _sampled(lambda: schema_queries.properties(survey, MOST_SAMPLED))
    whole = [found.via.startswith("all ") for found in (classes, properties)]
    cut = max(len(classes.items), len(properties.items)) >= MOST_SAMPLED
    return Contents(
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


def _joined(declared: Contents, counted: Contents) -> Contents:
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
    return Contents(
        merged(declared.classes, counted.classes),
        merged(declared.properties, counted.properties),
        of_class,
        "schema and void",
        counted.complete,
    )
