"""What of a schema goes on a card, and in which order: links near the question, ways to them."""

from __future__ import annotations

import heapq
import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from reasoningbank.memory.layers.schema_map import Link, SchemaMap

__all__ = ["WEIGHTS", "Choice", "Part", "Weights"]

#: Links that are tried for a card, the nearest first; a large budget holds no more.
MOST_PARTS = 100


@dataclass(frozen=True)
class Weights:
    """What makes a link near to a question; the values were found on train and dev tasks.

    Attributes:
        property: Times the score of the property.
        subject: Times the score of the class that has it.
        target: Times the score of the class that it leads to.
        use: Times the logarithm of how often it is used, from 0 to 1.
        share: Times the share of the class's instances that have it.
        again: What is left of a score, or of the use, where the name is on the card already.
        service: Added for a federated endpoint that the question names.
        elsewhere: Subtracted for one that it does not.
        detour: How much further a class is that has nothing to do with the question.
    """

    property: float = 1.0
    subject: float = 0.3
    target: float = 0.2
    use: float = 0.3
    share: float = 0.2
    again: float = 0.5
    service: float = 0.5
    elsewhere: float = 0.3
    detour: float = 0.9


#: What the schema card uses.
WEIGHTS = Weights()


@dataclass(frozen=True)
class Part:
    """A link with one of the classes it leads to; none where it leads to literals."""

    link: Link
    target: str = ""


class Choice:
    """The parts of one card by class, each with the rank it comes in with.

    Attributes:
        parts: By class, its parts with their ranks.
        services: Links with ranks, by address of the endpoint that they are found at.
    """

    def __init__(
        self,
        schema: SchemaMap,
        scores: Mapping[str, float],
        labels: Sequence[str],
        weights: Weights,
        named: Collection[str] = (),
    ) -> None:
        self._schema = schema
        self._scores = scores
        self._weights = weights
        self._labels = labels
        self._most = math.log1p(max((link.triples or 0 for link in schema.links), default=0)) or 1.0
        self._links = {(link.subject, link.property): link for link in schema.links}
        self._of_class: dict[str, list[Link]] = defaultdict(list)
        for link in schema.links:
            if not link.service:
                self._of_class[link.subject].append(link)
        self._reached = {schema.hub}
        self.parts: dict[str, dict[Part, float]] = defaultdict(dict)
        self.services: dict[str, dict[Link, float]] = defaultdict(dict)
        self._named = frozenset(named)
        # The hub is on every card: that a link leads back to it says little.
        self._shown = Counter({schema.hub: 2})
        for rank, part in enumerate(itertools.islice(self._nearest(), MOST_PARTS)):
            self._add(part, float(rank))
            self._shown.update({part.link.property, part.target} - {""})

    def rank_of(self, names: Collection[str]) -> float:
        """Return the rank with which the first of some names comes in."""
        found = [
            rank
            for subject, parts in self.parts.items()
            for part, rank in parts.items()
            if not {subject, part.link.property, part.target}.isdisjoint(names)
        ]
        found += [
            rank
            for links in self.services.values()
            for link, rank in links.items()
            if link.property in names
        ]
        return min(found, default=math.inf)

    def _nearest(self) -> Iterator[Part]:
        """Yield the part that is nearest beside those that were taken, again and again."""
        parts = self._parts()
        heap = [(-self._nearness(part), at) for at, part in enumerate(parts)]
        heapq.heapify(heap)
        while heap:
            _, at = heapq.heappop(heap)
            # What was taken meanwhile can only have made it less near.
            now = (-self._nearness(parts[at]), at)
            if heap and now > heap[0]:
                heapq.heappush(heap, now)
            else:
                yield parts[at]

    def _parts(self) -> list[Part]:
        """Return all parts, in an order that decides between equals."""
        parts = []
        for link in self._schema.links:
            parts += [Part(link, target) for target in self._targets(link)] or [Part(link)]
        return sorted(
            parts, key=lambda one: (-(one.link.triples or 0), one.link.property, one.target)
        )

    def _targets(self, link: Link) -> list[str]:
        steps = () if link.service else self._schema.steps.get(link.subject, ())
        return [s.target for s in steps if s.property == link.property and not s.backwards]

    def _nearness(self, part: Part) -> float:
        link, of = part.link, self._weights
        used = math.log1p(link.triples or 0) / self._most
        return (
            of.property * self._score(link.property)
            + of.subject * self._scores.get(link.subject, 0.0)
            + of.target * self._score(part.target or link.property)
            + (of.use * used + of.share * self._share(link))
            * of.again ** self._shown[link.property]
            + (of.service if link.service in self._named else -of.elsewhere * bool(link.service))
        )

    def _share(self, link: Link) -> float:
        instances = self._schema.instances.get(link.subject)
        return min(1.0, (link.triples or 0) / instances) if instances else 0.0

    def _score(self, name: str) -> float:
        return self._scores.get(name, 0.0) * self._weights.again ** self._shown[name]

    def _add(self, part: Part, rank: float) -> None:
        link = part.link
        if link.service:
            self.services[link.service].setdefault(link, rank)
            return
        self._reach(link.subject, rank)
        self.parts[link.subject].setdefault(part, rank)
        if part.target and part.target not in self._reached:
            self._reached.add(part.target)
            self._name(part.target, rank)

    def _name(self, subject: str, rank: float) -> None:
        """Bring along what tells the instances of a class: their name, else the text they have."""
        links = [link for link in self._of_class[subject] if not self._targets(link)]
        known = {link.property: link for link in links}
        best = next((known[label] for label in self._labels if label in known), None)
        best = best or max(links, key=lambda link: link.triples or 0, default=None)
        if best is not None:
            self.parts[subject].setdefault(Part(best), rank + 0.25)

    def _reach(self, name: str, rank: float) -> None:
        """Bring along the steps that lead to a class from those that are reached already."""
        detour = self._weights.detour
        steps = self._schema.way(
            self._reached, name, lambda passed: detour * (1 - self._scores.get(passed, 0.0))
        )
        for step in steps or ():
            ends = (step.target, step.source) if step.backwards else (step.source, step.target)
            link = self._links[ends[0], step.property]
            self.parts[ends[0]].setdefault(Part(link, ends[1]), rank)
        self._reached |= {name, *(step.target for step in steps or ())}
