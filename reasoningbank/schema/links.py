"""`SchemaMap`: the classes of an endpoint, and the properties that lead from one to the next."""

from __future__ import annotations

import heapq
import itertools
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from pyoxigraph import NamedNode

from reasoningbank.errors import QueryError
from reasoningbank.schema.schema import Schema
from reasoningbank.sparql import SPARQLClient, iri
from reasoningbank.sparql.terms import RDF_TYPE

#: What a step against the direction of its property costs, compared with one along it.
BACKWARDS = 3.0
#: Additional cost of a step that almost no instance can take.
RARE = 0.3
#: Triples of one property that are looked at, and properties.
MOST_TRIPLES = 200_000
MOST_PROPERTIES = 150

#: By property and class: the classes and datatypes of the values.
Observed = Mapping[str, Mapping[str, tuple[str, ...]]]


@dataclass(frozen=True)
class Link:
    """A property as the instances of one class have it; what is unknown is empty or None."""

    subject: str
    property: str
    objects: tuple[str, ...] = ()  #: Classes or datatypes of its values
    triples: int | None = None
    service: str = ""  #: Address of the endpoint that has it; empty for the one that is asked


@dataclass(frozen=True)
class SchemaStep:
    """One step through the schema: from a class by a property to the next class."""

    source: str
    property: str
    target: str
    backwards: bool = False  #: Whether the property points from the target to the source
    share: float = 1.0  #: The share of the subject class's instances that have it, at most


@dataclass(frozen=True)
class SchemaMap:
    """All links of an endpoint, and the steps from each class to its neighbours."""

    links: tuple[Link, ...]  #: By class
    #: Number of instances by class, where known.
    instances: Mapping[str, int] = field(default_factory=dict)
    #: By the class that they start from, the most used first.
    steps: Mapping[str, tuple[SchemaStep, ...]] = field(default_factory=dict)
    hub: str = ""  #: The class with the most properties to other classes; empty if there is none

    @classmethod
    def of(cls, schema: Schema, observed: Observed | None = None) -> SchemaMap:
        """Combine a schema with those of its federated endpoints, and observed values.

        Observed values (see `observed_values`) override what the schema declares.
        """
        observed = observed or {}
        links = list(_links(schema, observed))
        instances = {c: t.count for c, t in schema.classes.items() if t.count is not None}
        steps = _steps(links, schema, instances, observed)
        for address, other in schema.services.items():
            links += [replace(link, service=address) for link in _links(other, {})]

        def forward(name: str) -> int:
            return len({step.property for step in steps[name] if not step.backwards})

        hub = min(steps, key=lambda name: (-forward(name), name), default="")
        return cls(tuple(links), instances, steps, hub)

    def way(
        self, begin: Collection[str], target: str, detour: Callable[[str], float] = lambda _: 0.0
    ) -> tuple[SchemaStep, ...] | None:
        """Return the cheapest way from one of some classes to another; None if there is none.

        A step against the direction of its property counts three times: questions rarely mean it.
        `detour` is the additional cost of passing through a class, from 0 to 1.
        """
        numbers = itertools.count()
        todo: list[tuple[float, int, str, tuple[SchemaStep, ...]]]
        todo = [(0.0, next(numbers), name, ()) for name in sorted(begin)]
        done: set[str] = set()
        while todo:
            cost, _, here, way = heapq.heappop(todo)
            if here == target:
                return way
            if here in done:
                continue
            done.add(here)
            for step in self.steps.get(here, ()):
                if step.target not in done:
                    more = (BACKWARDS if step.backwards else 1.0) + detour(step.target)
                    more += RARE * (1 - step.share)
                    item = (cost + more, next(numbers), step.target, (*way, step))
                    heapq.heappush(todo, item)
        return None


def _links(schema: Schema, observed: Observed) -> Iterator[Link]:
    """Yield the links of the classes in the data, then properties whose class is unknown."""
    classes, properties = schema.classes, schema.properties

    def link(subject: str, used: str, triples: int | None) -> Link:
        values = properties[used].range if used in properties else ()
        # A property of several classes that leads back to them leads each to itself.
        values = (subject,) if subject in values else values
        return Link(subject, used, observed.get(used, {}).get(subject) or values, triples)

    counted = schema.counts_by_class
    placed = {RDF_TYPE}
    for name in [c for c, term in classes.items() if term.in_data] or list(classes):
        for used in schema.properties_of(name):
            # A declared property that no instance has would mislead.
            if used == RDF_TYPE or (counted and used not in counted.get(name, {})):
                continue
            placed.add(used)
            yield link(name, used, counted.get(name, {}).get(used))
    for name, term in properties.items():
        if name not in placed and (term.in_data or not schema.complete):
            # Not counted by class: the data or the schema may say which class has it.
            subjects = tuple(observed.get(name, ())) or term.domain or ("",)
            for subject in subjects:
                yield link(subject, name, term.count if len(subjects) == 1 else None)


def _steps(
    links: Sequence[Link], schema: Schema, instances: Mapping[str, int], observed: Observed
) -> dict[str, tuple[SchemaStep, ...]]:
    """Return the steps from each class, those that most of its instances have first."""

    def share(link: Link) -> float:
        number = instances.get(link.subject)
        return min(1.0, (link.triples or 0) / number) if number else 1.0

    present = {link.subject for link in links}
    found: dict[str, list[SchemaStep]] = defaultdict(list)
    for link in sorted(links, key=lambda one: (share(one), one.triples or 0), reverse=True):
        exact = bool(observed.get(link.property, {}).get(link.subject))
        for target in _targets(link.objects, schema, present, exact=exact):
            if link.subject and target != link.subject:
                forwards = SchemaStep(link.subject, link.property, target, share=share(link))
                found[link.subject].append(forwards)
                back = replace(forwards, source=target, target=link.subject, backwards=True)
                found[target].append(back)
    return {name: tuple(steps) for name, steps in found.items()}


def _targets(
    objects: Sequence[str], schema: Schema, present: Collection[str], *, exact: bool
) -> dict[str, None]:
    """Return the classes of values: those named, and their subclasses."""
    found: dict[str, None] = {}
    for name in objects:
        term = schema.classes.get(name)
        if term is None:
            continue
        below = () if exact else schema.below(name)
        if exact or name in present or not below:
            found[name] = None
        # What has properties but no instances is not one of its subclasses either.
        if name not in present or term.in_data:
            found |= dict.fromkeys(below)
    return found


def observed_values(client: SPARQLClient, schema: Schema) -> Observed:
    """Ask which classes subjects have, and what their values are, where a range does not tell.

    It reads up to 200,000 triples of each such property, so ask only an endpoint on this machine. A
    property that the endpoint cannot answer for is left out.
    """
    found: dict[str, Mapping[str, tuple[str, ...]]] = {}
    unsure = [
        name
        for name, term in schema.properties.items()
        if name != RDF_TYPE
        and (term.in_data or not schema.complete)
        and (not term.range or any(schema.below(of) for of in term.range))
    ]
    for name in unsure[:MOST_PROPERTIES]:
        query = f"""SELECT DISTINCT ?class ?value WHERE {{
            {{ SELECT ?s ?o WHERE {{ ?s {iri(name)} ?o }} LIMIT {MOST_TRIPLES} }}
            ?s a ?class . OPTIONAL {{ ?o a ?type }}
            BIND(COALESCE(?type, DATATYPE(?o)) AS ?value) }}"""
        values: dict[str, set[str]] = defaultdict(set)
        with suppress(QueryError):
            for of, value in client.rows(query):
                if isinstance(of, NamedNode):
                    values[of.value] |= {value.value} if isinstance(value, NamedNode) else set()
        if values:
            found[name] = {of: tuple(sorted(kinds)) for of, kinds in sorted(values.items())}
    return found
