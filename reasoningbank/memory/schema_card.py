"""L1, the schema card: the classes and properties near a question, and the links that join them.

A line is a class with the properties of its instances, as a query writes them. The nearest come
first, and a class brings the steps that lead to it, so everything on the card is connected.
"""

from __future__ import annotations

import heapq
import itertools
import math
import sqlite3
import threading
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from reasoningbank.corpus import Pack
from reasoningbank.memory.layer import Entry, Layer, Line, Note, about, load_notes, pack_lines
from reasoningbank.retrieval import Embedder, VectorTable, WordIndex, best_first, open_embedder
from reasoningbank.schema import Link, NamedTerm, Schema, SchemaMap, observed_values
from reasoningbank.schema.names import spoken
from reasoningbank.sparql import STANDARD_PREFIXES, EndpointConfig, SPARQLClient, is_loopback
from reasoningbank.sparql.terms import written

TITLE = "Schema. Class (instances): property ×values each -> class of the value."
#: Values per instance that are not shown.
USUAL = (0.5, 2.0)
#: A note's rank is twice that of its name, plus this: links come first.
NOTE_RANK = 6.0

_XSD = STANDARD_PREFIXES["xsd"]
#: Links that are tried for a card, the nearest first; a large budget holds no more.
MOST_PARTS = 100
#: Names that are indexed, the most used first: embedding one takes 10 ms.
MOST_NAMES = 1_000

# How a link is ranked for a question; the values were tuned on train and dev tasks.
#: Of the similarity of its property, its class and what it leads to.
PROPERTY, SUBJECT, TARGET = 1.0, 0.3, 0.2
#: Of how often it is used, and by which share of the instances.
USE, SHARE = 0.3, 0.2
#: Of a federated endpoint that the question names, and against any other.
SERVICE, ELSEWHERE = 0.5, 0.3
#: What a name counts once more if the card shows it already, and what a step costs.
AGAIN, DETOUR = 0.5, 0.9


@dataclass(frozen=True, eq=False)
class SchemaCard:
    """Writes the schema cards of one endpoint; several threads may use it."""

    endpoint: EndpointConfig
    schema: SchemaMap
    index: SchemaIndex
    notes: Sequence[Note] = ()

    @property
    def _services(self) -> dict[str, str]:
        return {other.url: other.source for other in self.endpoint.federated}

    @classmethod
    def of(
        cls,
        endpoint: EndpointConfig,
        schema: Schema,
        *,
        pack: Pack | None = None,
        embedder: Embedder | None = None,
    ) -> SchemaCard:
        """Collect what an endpoint's cards need: once, before any question."""
        notes = load_notes(pack)
        observed = None
        if is_loopback(endpoint.address):
            with SPARQLClient(endpoint) as client:
                observed = observed_values(client, schema)
        links = SchemaMap.of(schema, observed)
        index = SchemaIndex(links, [schema, *schema.services.values()], embedder)
        return cls(endpoint, links, index, notes)

    def about(self, question: str, budget: int = 400) -> Layer:
        folded = question.casefold()
        named = [url for url, name in self._services.items() if name.casefold() in folded]
        return self.of_scores(self.index.scores(question), budget, named)

    def of_scores(
        self, scores: Mapping[str, float], budget: int = 400, named: Collection[str] = ()
    ) -> Layer:
        chosen = _Selection(self.schema, scores, self.endpoint.label_properties, named)
        heads = sorted(chosen.parts, key=lambda head: head in self._services)
        lines = [self._line(head, chosen.parts[head]) for head in heads]
        for note in self.notes:
            ranked = (item for parts in chosen.parts.values() for item in parts.items())
            found = (rank for part, rank in ranked if not part.names.isdisjoint(note.about))
            rank = 2 * min(found, default=math.inf) + NOTE_RANK
            lines.append(Line(note.text, rank=rank, about=note.about))
        return pack_lines(lines, budget, title=TITLE)

    def _short(self, iri: str) -> str:
        return written(iri, self.endpoint.namespaces)

    def _line(self, name: str, parts: Mapping[_Part, float]) -> Line:
        """Return the line of a class, or of a federated endpoint."""
        first = {part.link.property: rank for part, rank in reversed(list(parts.items()))}
        # The classes that one property leads to are next to each other.
        ordered = sorted(parts.items(), key=lambda item: (first[item[0].link.property], item[1]))
        entries = tuple(self._entry(part, rank) for part, rank in ordered)
        instances = self.schema.instances.get(name)
        head = self._short(name) if name else "Properties"
        if name in self._services:
            head = f"In SERVICE <{name}>"
        elif name and instances is not None:
            head += f" ({about(instances)})"
        return Line(head, entries)

    def _entry(self, part: _Part, rank: float) -> Entry:
        link = part.link
        stem = self._short(link.property)
        if link.service:
            return Entry(stem, rank, names=part.names)
        instances = self.schema.instances.get(link.subject)
        each = (link.triples or 0) / (instances or 1)
        if link.triples and instances and not USUAL[0] <= each <= USUAL[1]:
            stem += f" ×{each:.0f}" if each >= 10 else f" ×{each:.1g}"
        if part.target:
            return Entry(self._short(part.target), rank, f"{stem} -> ", part.names)
        value = link.objects[0] if link.objects else ""
        if value.startswith(_XSD):
            kind = value.removeprefix(_XSD)
            stem += f" {'text' if kind == 'string' else kind}"
        elif value:
            stem += f" -> {self._short(value)}"
        return Entry(stem, rank, names=part.names)


@dataclass(frozen=True)
class _Part:
    """A link with one of the classes it leads to; empty if it leads to literals."""

    link: Link
    target: str = ""

    @property
    def names(self) -> frozenset[str]:
        """The names that it shows; a line of a federated endpoint shows properties only."""
        subject = () if self.link.service else (self.link.subject,)
        return frozenset({self.link.property, self.target, *subject})


@dataclass(eq=False)
class _Selection:
    """The parts of one card by class or federated endpoint, each with its rank."""

    schema: SchemaMap
    scores: Mapping[str, float]
    labels: Sequence[str]
    named: Collection[str]

    def __post_init__(self) -> None:
        schema = self.schema
        self._most = math.log1p(max((link.triples or 0 for link in schema.links), default=0)) or 1.0
        #: By class and property, those of the endpoint itself.
        self._links: dict[str, dict[str, Link]] = defaultdict(dict)
        for link in schema.links:
            if not link.service:
                self._links[link.subject][link.property] = link
        self._reached = {schema.hub}
        self.parts: dict[str, dict[_Part, float]] = defaultdict(dict)
        # The hub is on every card, so a link back to it says little.
        self._shown = Counter({schema.hub: 2})
        for rank, part in enumerate(itertools.islice(self._nearest(), MOST_PARTS)):
            self._add(part, float(rank))
            self._shown.update({part.link.property, part.target} - {""})

    def _nearest(self) -> Iterator[_Part]:
        """Yield the parts, always the nearest given those already taken."""
        parts = self._parts()
        heap = [(-self._nearness(part), at) for at, part in enumerate(parts)]
        heapq.heapify(heap)
        while heap:
            _, at = heapq.heappop(heap)
            # Parts taken since can only have lowered its score.
            now = (-self._nearness(parts[at]), at)
            if heap and now > heap[0]:
                heapq.heappush(heap, now)
            else:
                yield parts[at]

    def _parts(self) -> list[_Part]:
        links = self.schema.links
        parts = [_Part(link, to) for link in links for to in self._targets(link) or [""]]
        return sorted(
            parts, key=lambda one: (-(one.link.triples or 0), one.link.property, one.target)
        )

    def _targets(self, link: Link) -> list[str]:
        steps = () if link.service else self.schema.steps.get(link.subject, ())
        return [s.target for s in steps if s.property == link.property and not s.backwards]

    def _nearness(self, part: _Part) -> float:
        link = part.link
        triples = link.triples or 0
        instances = self.schema.instances.get(link.subject)
        share = min(1.0, triples / instances) if instances else 0.0
        return (
            PROPERTY * self._score(link.property)
            + SUBJECT * self.scores.get(link.subject, 0.0)
            + TARGET * self._score(part.target or link.property)
            + (USE * math.log1p(triples) / self._most + SHARE * share)
            * AGAIN ** self._shown[link.property]
            + (SERVICE if link.service in self.named else -ELSEWHERE * bool(link.service))
        )

    def _score(self, name: str) -> float:
        return self.scores.get(name, 0.0) * AGAIN ** self._shown[name]

    def _add(self, part: _Part, rank: float) -> None:
        link = part.link
        if link.service:
            self.parts[link.service].setdefault(part, rank)
            return
        self._reach(link.subject, rank)
        self.parts[link.subject].setdefault(part, rank)
        if part.target and part.target not in self._reached:
            self._reached.add(part.target)
            # What names its instances: a label, else the most used text.
            links = self._links[part.target].items()
            texts = {name: one for name, one in links if not self._targets(one)}
            best = next((texts[label] for label in self.labels if label in texts), None)
            best = best or max(texts.values(), key=lambda one: one.triples or 0, default=None)
            if best is not None:
                self.parts[part.target].setdefault(_Part(best), rank + 0.25)

    def _reach(self, name: str, rank: float) -> None:
        """Add the steps that lead to a class from those already reached."""
        steps = self.schema.way(
            self._reached, name, lambda to: DETOUR * (1 - self.scores.get(to, 0.0))
        )
        for step in steps or ():
            ends = (step.target, step.source) if step.backwards else (step.source, step.target)
            link = self._links[ends[0]][step.property]
            self.parts[ends[0]].setdefault(_Part(link, ends[1]), rank)
        self._reached |= {name, *(step.target for step in steps or ())}


class SchemaIndex:
    """The descriptions of an endpoint's names; built once, for all questions."""

    def __init__(
        self, links: SchemaMap, schemas: Iterable[Schema], embedder: Embedder | None = None
    ) -> None:
        known: dict[str, NamedTerm] = {}
        for one in schemas:
            for name, term in (*one.classes.items(), *one.properties.items()):
                known.setdefault(name, term)
        linked = {name for x in links.links for name in (x.subject, x.property, *x.objects)}
        used = sorted(linked & known.keys(), key=lambda name: (-(known[name].count or 0), name))
        names = used[:MOST_NAMES]
        texts = [description(known[name], known) for name in names]
        self._names = dict(enumerate(names))
        self._embedder = embedder or open_embedder()
        self._vectors = VectorTable()
        self._vectors.put(range(len(names)), self._embedder.passages(texts))
        self._words = WordIndex(sqlite3.connect(":memory:", check_same_thread=False))
        self._words.add(enumerate(texts))
        self._lock = threading.Lock()

    def scores(self, question: str) -> Mapping[str, float]:
        """Return the similarity of each name to a question, from 0 to 1."""
        if not question.strip():
            return {}
        vector = self._embedder.queries([question])[0]
        with self._lock:
            cosines, words = self._vectors.cosines(vector), self._words.scores(question)
        return {match.id: match.score for match in best_first(self._names, cosines, words)}


def description(term: NamedTerm, known: Mapping[str, NamedTerm]) -> str:

    def called(iri: str) -> str:
        return known[iri].label if iri in known and known[iri].label else spoken(iri)

    said = spoken(term.iri)
    parts = [said]
    if term.label and term.label.casefold() != said:
        parts.append(term.label)
    if term.comment:
        parts.append(term.comment.rstrip("."))
    if term.domain:
        parts.append("Of: " + ", ".join(called(iri) for iri in term.domain))
    classes = [iri for iri in term.range if "XMLSchema#" not in iri]
    if classes:
        parts.append("Gives: " + ", ".join(called(iri) for iri in classes))
    return ". ".join(parts) + "."
