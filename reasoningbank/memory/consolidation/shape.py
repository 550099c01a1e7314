"""Patterns that differ in the order of their triples, too, are the same pattern."""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import lru_cache

from reasoningbank.errors import QueryError
from reasoningbank.memory.consolidation.canonical import canonical_pattern
from reasoningbank.sparql.clauses import Clause, Group, WrittenQuery, read_clauses
from reasoningbank.sparql.tokens import tokenize

__all__ = ["pattern_key"]

_SLOT = re.compile(r"<<(\d+)")
_VARIABLE = re.compile(r"[?_]")
#: What a variable stands beside counts so many steps around it.
_STEPS = 3


def pattern_key(pattern: str, prefixes: Mapping[str, str] | None = None) -> str:
    """Return a key that two patterns share if wording and the order of triples tell them apart.

    A variable is known by what it stands beside, as far as three triples away, and by its place
    among the columns (colour refinement, Weisfeiler and Leman 1968). Groups, filters and what
    follows the WHERE clause keep their order. What is no query has its words for a key.

    Args:
        pattern: A query or code skeleton with slots; empty for none, whose key is empty.
        prefixes: Prefixes that are declared without being written.

    Examples:
        >>> one = pattern_key("SELECT ?p { ?p up:mass ?m ; up:name <<name>> }")
        >>> two = pattern_key("SELECT ?x { ?x up:name <<label>> . ?x up:mass ?y . }")
        >>> three = pattern_key("SELECT ?x { ?x up:mass <<label>> . ?x up:name ?y . }")
        >>> one == two, one == three
        (True, False)
    """
    return _key(canonical_pattern(pattern, prefixes))


# Reading a pattern takes a millisecond, and each is read at every step of a stream.
@lru_cache(maxsize=32_768)
def _key(canonical: str) -> str:
    try:
        query = read_clauses(_SLOT.sub(r"?SLOT\1", canonical))
    except QueryError:
        return canonical
    if query.where is None:
        return canonical
    words = _Words(query)
    return " ".join(words.all(query.where))


class _Words:
    """Writes a query with its variables replaced by what they are known by."""

    def __init__(self, query: WrittenQuery) -> None:
        self._text = query.text
        patterns = [pattern for clause in query.statements() for pattern in clause.patterns]
        named = {part for pattern in patterns for part in pattern if _VARIABLE.match(part)}
        named |= {token.text for token in tokenize(self._text) if token.kind == "variable"}
        head = self._text[: query.where.start] if query.where else ""
        places: dict[str, list[int]] = defaultdict(list)
        for at, token in enumerate(tokenize(head)):
            places[token.text].append(at)
        self._known = {
            name: f"{'slot' if name.startswith('?SLOT') else ''}{places.get(name, '')}"
            for name in named
        }
        for _ in range(_STEPS):
            beside: dict[str, list[str]] = defaultdict(list)
            for subject, predicate, object_ in patterns:
                beside[subject].append(f"> {predicate} {self._name(object_)}")
                beside[object_].append(f"< {predicate} {self._name(subject)}")
            self._known = {
                name: _short(" ".join((known, *sorted(beside[name]))))
                for name, known in self._known.items()
            }

    def all(self, where: Group) -> Iterator[str]:
        """Yield the words of the whole query."""
        yield from self._plain(0, where.start)
        yield from self._group(where)
        yield from self._plain(where.end, len(self._text))

    def _group(self, group: Group) -> Iterator[str]:
        triples = [
            " ".join(self._name(part) for part in pattern)
            for clause in group.clauses
            for pattern in clause.patterns
        ]
        yield "{"
        yield from sorted(triples)
        for clause in group.clauses:
            if clause.kind != "triples":
                yield from self._clause(clause)
        yield "}"

    def _clause(self, clause: Clause) -> Iterator[str]:
        yield clause.kind
        at = clause.start
        for inner in clause.groups:
            yield from self._plain(at, inner.start)
            yield from self._group(inner)
            at = inner.end
        yield from self._plain(at, clause.end)

    def _plain(self, start: int, end: int) -> Iterator[str]:
        for token in tokenize(self._text[start:end]):
            if token.text not in (".", "{", "}"):
                yield self._name(token.text)

    def _name(self, part: str) -> str:
        return self._known.get(part, part)


def _short(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]
