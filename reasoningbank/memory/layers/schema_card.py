"""L1: the part of the schema that a question is about, with the ways that join it.

A line is a class with what its instances have, names written as a query writes them. What the
question is nearest to comes first, and a class brings along the steps that lead to it, so that
nothing on the card hangs in the air.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence

from pyoxigraph import NamedNode

from reasoningbank.corpus import Pack
from reasoningbank.memory.hints import Note, load_notes
from reasoningbank.memory.layer import Entry, Layer, Line, about, pack_lines
from reasoningbank.memory.layers.schema_choice import WEIGHTS, Choice, Part, Weights
from reasoningbank.memory.layers.schema_index import SchemaIndex
from reasoningbank.memory.layers.schema_map import SchemaMap
from reasoningbank.memory.layers.schema_probe import Seen, look, unsure
from reasoningbank.retrieval import Embedder
from reasoningbank.schema import Schema
from reasoningbank.sparql import (
    STANDARD_PREFIXES,
    EndpointConfig,
    SPARQLClient,
    VoidDescription,
    compact,
    is_loopback,
)

__all__ = ["SchemaCard"]

TITLE = "Schema. Class (instances): property ×values each -> class of the value."
#: Values for each instance that go without saying.
USUAL = (0.5, 2.0)
#: A note's rank is twice that of the name it is about, and this: links come first.
NOTE_RANK = 6.0

_XSD = STANDARD_PREFIXES["xsd"]


class SchemaCard:
    """Writes the schema cards of one endpoint; several threads may use it.

    Args:
        endpoint: The endpoint, whose prefixes shorten the names.
        schema: Its classes and what leads from one to the next.
        index: Finds the names that a question is about.
        notes: Warnings, shown with the names that they are about.
        weights: What makes a part of the schema near to a question.
    """

    def __init__(
        self,
        endpoint: EndpointConfig,
        schema: SchemaMap,
        index: SchemaIndex,
        notes: Sequence[Note] = (),
        weights: Weights = WEIGHTS,
    ) -> None:
        self._namespaces = endpoint.namespaces
        self._labels = endpoint.label_properties
        self._services = {other.url: other.source for other in endpoint.federated}
        self._schema = schema
        self._index = index
        self._notes = tuple(notes)
        self._weights = weights

    @classmethod
    def of(
        cls,
        endpoint: EndpointConfig,
        vocabulary: Schema,
        void: VoidDescription | None = None,
        *,
        pack: Pack | None = None,
        embedder: Embedder | None = None,
    ) -> SchemaCard:
        """Find out what an endpoint's cards need: once, before any question.

        An endpoint on this machine is asked what the properties lead to of which the schema does
        not tell; of a public one that would be too much. The endpoints that it federates with are
        asked for their statistics.

        Args:
            endpoint: The endpoint.
            vocabulary: Its classes and properties.
            void: Its statistics, where there are any.
            pack: The pack that the warnings are of.
            embedder: What finds the names near a question; the one of the package by default.

        Raises:
            UsageError: The pack's warnings cannot be read.
            EndpointError: The endpoint cannot be reached.
        """
        notes = load_notes(pack)
        others = {other.url: Schema.of(other) for other in endpoint.federated}
        seen: Seen = {}
        if is_loopback(endpoint.address):
            with SPARQLClient(endpoint) as client:
                seen = look(client, unsure(vocabulary))
        schema = SchemaMap.of(vocabulary, void, others, seen)
        index = SchemaIndex(schema, [vocabulary, *others.values()], embedder)
        return cls(endpoint, schema, index, notes)

    def fingerprint(self) -> str:
        """Return a hash of the schema and of how it is ranked, 16 hexadecimal digits."""
        decides = repr((self._schema.links, self._weights, TITLE, NOTE_RANK))
        return hashlib.sha256(decides.encode()).hexdigest()[:16]

    def about(self, question: str, budget: int = 400) -> Layer:
        """Return the card for a question.

        Args:
            question: The question, in any language that the index's embedder reads.
            budget: Tokens at most, title and warnings included.
        """
        folded = question.casefold()
        named = [url for url, name in self._services.items() if name.casefold() in folded]
        return self.of_scores(self._index.scores(question), budget, named)

    def of_scores(
        self, scores: Mapping[str, float], budget: int = 400, named: Collection[str] = ()
    ) -> Layer:
        """Return the card for names that have scores from 0 to 1, whatever these come from.

        Args:
            scores: Score by name.
            budget: Tokens at most.
            named: Addresses of federated endpoints that the question names.
        """
        chosen = Choice(self._schema, scores, self._labels, self._weights, named)
        lines = [
            *(self._class_line(name, parts) for name, parts in chosen.parts.items()),
            *(
                Line(
                    f"In SERVICE <{address}>",
                    tuple(
                        Entry(self._short(link.property), rank, names=frozenset({link.property}))
                        for link, rank in links.items()
                    ),
                    alone=False,
                )
                for address, links in chosen.services.items()
            ),
            *(
                Line(note.text, rank=2 * chosen.rank_of(note.about) + NOTE_RANK, about=note.about)
                for note in self._notes
            ),
        ]
        return pack_lines("L1", lines, budget, title=TITLE)

    def _short(self, iri: str) -> str:
        return str(compact(NamedNode(iri), self._namespaces))

    def _class_line(self, name: str, parts: Mapping[Part, float]) -> Line:
        instances = self._schema.instances.get(name)
        number = f" ({about(instances)})" if instances is not None else ""
        first = {part.link.property: rank for part, rank in reversed(list(parts.items()))}
        # The classes that one property leads to stand together.
        ordered = sorted(parts.items(), key=lambda item: (first[item[0].link.property], item[1]))
        return Line(
            self._short(name) + number if name else "Properties",
            tuple(self._entry(part, rank, instances) for part, rank in ordered),
            alone=False,
            names=frozenset({name}),
        )

    def _entry(self, part: Part, rank: float, instances: int | None) -> Entry:
        link = part.link
        stem = self._short(link.property) + _each(link.triples, instances)
        names = frozenset({link.property, part.target})
        if part.target:
            return Entry(self._short(part.target), rank, f"{stem} -> ", names)
        if not link.objects:
            return Entry(stem, rank, names=names)
        value = link.objects[0]
        if value.startswith(_XSD):
            kind = value.removeprefix(_XSD)
            return Entry(f"{stem} {'text' if kind == 'string' else kind}", rank, names=names)
        return Entry(f"{stem} -> {self._short(value)}", rank, names=names)


def _each(triples: int | None, instances: int | None) -> str:
    if not triples or not instances or USUAL[0] <= triples / instances <= USUAL[1]:
        return ""
    each = triples / instances
    return f" ×{each:.0f}" if each >= 10 else f" ×{each:.1g}"
