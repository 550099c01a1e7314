"""The classes of an endpoint and what leads from one to the next, as schema and statistics tell."""

from __future__ import annotations

import heapq
import itertools
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

from reasoningbank.memory.layers.schema_probe import Seen
from reasoningbank.schema import Schema
from reasoningbank.sparql import STANDARD_PREFIXES, VoidDescription

__all__ = ["Link", "SchemaMap", "Step"]

#: How many steps one against the direction of its property counts for.
BACKWARDS = 3.0
#: How much further a step is that hardly any instance can take.
RARE = 0.3

_TYPE = STANDARD_PREFIXES["rdf"] + "type"


@dataclass(frozen=True)
class Link:
    """A property as the instances of one class have it.

    Attributes:
        subject: The class; empty where it is not known.
        property: The property.
        objects: Classes or datatypes of its values; empty where they are not known.
        triples: How often instances of the class have it; None where untold.
        service: Address of the endpoint it is found at; empty for the endpoint that is asked.
    """

    subject: str
    property: str
    objects: tuple[str, ...] = ()
    triples: int | None = None
    service: str = ""


@dataclass(frozen=True)
class Step:
    """One step of a way through the schema: from a class by a property to the next class.

    Attributes:
        source: The class it starts from.
        property: The property.
        target: The class it leads to.
        backwards: Whether the property points from the target to the source.
        share: Of the instances that the property is of, the share that has it at most.
    """

    source: str
    property: str
    target: str
    backwards: bool = False
    share: float = 1.0


@dataclass(frozen=True)
class SchemaMap:
    """All links of an endpoint, and the steps from each class to those next to it.

    Attributes:
        links: The links, by class.
        instances: Number of instances by class, where it is known.
        steps: Steps by the class that they start from, the best used first.
        hub: The class that most others are next to; empty where no class is known.
    """

    links: tuple[Link, ...]
    instances: Mapping[str, int] = field(default_factory=dict)
    steps: Mapping[str, tuple[Step, ...]] = field(default_factory=dict)
    hub: str = ""

    @classmethod
    def of(
        cls,
        vocabulary: Schema,
        void: VoidDescription | None = None,
        services: Mapping[str, Schema] | None = None,
        seen: Seen | None = None,
    ) -> SchemaMap:
        """Put together what is known.

        Args:
            vocabulary: Classes and properties of the endpoint.
            void: Its statistics: how often each class has each property.
            services: Classes and properties of the endpoints it federates with, by address.
            seen: What some properties lead to in the data; decides over what a schema declares.
        """
        seen = seen or {}
        links = _links(vocabulary, _counts(void), seen)
        instances = {c: t.count for c, t in vocabulary.classes.items() if t.count is not None}
        steps = _steps(links, vocabulary, instances, seen)
        for address, other in (services or {}).items():
            links += [replace(link, service=address) for link in _links(other, {}, {})]
        return cls(tuple(links), instances, steps, _hub(steps))

    def way(
        self, begin: Collection[str], target: str, detour: Callable[[str], float] = lambda _: 0.0
    ) -> tuple[Step, ...] | None:
        """Return the shortest way from one of some classes to another; None where there is none.

        A step against the direction of its property counts three times, since people seldom
        mean it.

        Args:
            begin: The classes to start from.
            target: The class to reach; the way is empty if it is one of them.
            detour: What passing through a class costs more, from 0 to 1.
        """
        if target in begin:
            return ()
        numbers = itertools.count()
        todo = [(0.0, next(numbers), name, cast(tuple[Step, ...], ())) for name in sorted(begin)]
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


def _counts(void: VoidDescription | None) -> dict[tuple[str, str], int]:
    found: dict[tuple[str, str], int] = {}
    for dataset in void.datasets if void is not None else ():
        for part in dataset.classes:
            for used in part.properties:
                key = part.class_, used.property
                found[key] = max(found.get(key, 0), used.triples or 0)
    return found


def _links(vocabulary: Schema, counts: Mapping[tuple[str, str], int], seen: Seen) -> list[Link]:
    """Return the links of the classes that the data hold, then properties of no known class."""
    classes, properties = vocabulary.classes, vocabulary.properties

    def link(subject: str, used: str, triples: int | None) -> Link:
        values = properties[used].range if used in properties else ()
        # A property of several classes that leads back to them leads each to itself.
        values = (subject,) if subject in values else values
        return Link(subject, used, seen.get(used, {}).get(subject) or values, triples)

    present = [c for c, term in classes.items() if term.in_data] or list(classes)
    found = []
    placed = {_TYPE}
    for name in present:
        for used in vocabulary.properties_of(name):
            # What a schema declares and no instance has would only mislead.
            if used == _TYPE or (counts and (name, used) not in counts):
                continue
            placed.add(used)
            found.append(link(name, used, counts.get((name, used))))
    for iri, term in properties.items():
        if iri not in placed and (term.in_data or not vocabulary.complete):
            # Nobody counted it by class: the data or the schema may tell of which it is.
            subjects = tuple(seen.get(iri, ())) or term.domain or ("",)
            found += [
                link(name, iri, term.count if len(subjects) == 1 else None) for name in subjects
            ]
    return found


def _steps(
    links: Sequence[Link], vocabulary: Schema, instances: Mapping[str, int], seen: Seen
) -> dict[str, tuple[Step, ...]]:
    """Return the steps from each class, those that most of its instances have first."""

    def share(link: Link) -> float:
        number = instances.get(link.subject)
        return min(1.0, (link.triples or 0) / number) if number else 1.0

    present = {link.subject for link in links}
    found: dict[str, list[Step]] = defaultdict(list)
    for link in sorted(links, key=lambda one: (share(one), one.triples or 0), reverse=True):
        exact = bool(seen.get(link.property, {}).get(link.subject))
        for target in _targets(link.objects, vocabulary, present, exact=exact):
            if link.subject and target != link.subject:
                forwards = Step(link.subject, link.property, target, share=share(link))
                found[link.subject].append(forwards)
                back = replace(forwards, source=target, target=link.subject, backwards=True)
                found[target].append(back)
    return {name: tuple(steps) for name, steps in found.items()}


def _targets(
    objects: Sequence[str], vocabulary: Schema, present: Collection[str], *, exact: bool
) -> dict[str, None]:
    """Return the classes that values are of: those named, and those below them."""
    known = vocabulary.classes
    found: dict[str, None] = {}
    for name in objects:
        if name not in known:
            continue
        if exact:
            found[name] = None
            continue
        below = vocabulary.below(name)
        if name in present or not below:
            found[name] = None
        # What has properties and no type is not one of the classes below either.
        if name not in present or known[name].in_data:
            found |= dict.fromkeys(below)
    return found


def _hub(steps: Mapping[str, Sequence[Step]]) -> str:
    def forward(name: str) -> int:
        return len({step.property for step in steps[name] if not step.backwards})

    return min(steps, key=lambda name: (-forward(name), name), default="")
