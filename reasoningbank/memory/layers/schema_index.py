"""Which classes and properties a question is about: their descriptions, found by hybrid search."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from reasoningbank.memory.layers.schema_map import SchemaMap
from reasoningbank.retrieval import Embedder, TextIndex
from reasoningbank.schema import NamedTerm, Schema, local_name

__all__ = ["SchemaIndex", "description"]

#: Names that are indexed, the most used first: embedding one takes 10 ms.
MOST_NAMES = 1_000


class SchemaIndex:
    """The names of an endpoint by what is said of them; built once, for all questions.

    Args:
        schema: The links: only names that occur in them are indexed.
        vocabularies: Where labels and comments are; the first that knows a name describes it.
        embedder: What turns texts into vectors; the one that comes with the package by default.
    """

    def __init__(
        self,
        schema: SchemaMap,
        vocabularies: Iterable[Schema],
        embedder: Embedder | None = None,
    ) -> None:
        known: dict[str, NamedTerm] = {}
        for vocabulary in vocabularies:
            for iri, term in (*vocabulary.classes.items(), *vocabulary.properties.items()):
                known.setdefault(iri, term)
        used = [name for link in schema.links for name in (link.subject, link.property)]
        used += [target for link in schema.links for target in link.objects]
        wanted = [name for name in dict.fromkeys(used) if name in known]
        wanted.sort(key=lambda name: (-(known[name].count or 0), name))
        names = wanted[:MOST_NAMES]
        self._index = TextIndex(embedder)
        self._index.add(names, [description(known[name], known) for name in names])

    def scores(self, question: str) -> Mapping[str, float]:
        """Return how near each name is to a question, from 0 to 1."""
        found = self._index.search(question, len(self._index))
        return {match.id: match.score for match in found}


def description(term: NamedTerm, known: Mapping[str, NamedTerm]) -> str:
    """Say in words what a class or property is.

    Examples:
        >>> tall = NamedTerm("http://e/maxHeight", comment="How tall it grows.",
        ...     domain=("http://e/Tree",))
        >>> description(tall, {})
        'max height. How tall it grows. Of: tree.'
    """

    def called(iri: str) -> str:
        return known[iri].label if iri in known and known[iri].label else _spoken(iri)

    spoken = _spoken(term.iri)
    parts = [spoken]
    if term.label and term.label.casefold() != spoken:
        parts.append(term.label)
    if term.comment:
        parts.append(term.comment.rstrip("."))
    if term.domain:
        parts.append("Of: " + ", ".join(called(iri) for iri in term.domain))
    classes = [iri for iri in term.range if "XMLSchema#" not in iri]
    if classes:
        parts.append("Gives: " + ", ".join(called(iri) for iri in classes))
    return ". ".join(parts) + "."


def _spoken(iri: str) -> str:
    words = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", local_name(iri))
    return " ".join(words).casefold() or local_name(iri)
