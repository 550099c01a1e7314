"""Patterns that differ in the order of their triples, too, are the same pattern."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache

from reasoningbank.errors import QueryError
from reasoningbank.memory.consolidation.canonical import canonical_pattern
from reasoningbank.memory.naming import Bag, Name, Node, Row, words_of
from reasoningbank.sparql.clauses import Clause, Group, TriplePattern, WrittenQuery, read_clauses
from reasoningbank.sparql.tokens import Token, tokenize

__all__ = ["pattern_key"]

_SLOT = re.compile(r"<<(\d+)")
#: What a slot is for the tokenizer: a variable that nobody writes.
_SLOT_VARIABLE = re.compile(r"(\?slot\u00b7\d+)")
#: What is joined with what stood before it in its group, not with the group.
_IN_PLACE = ("optional", "minus")


def pattern_key(pattern: str, prefixes: Mapping[str, str] | None = None) -> str:
    """Return a key that two patterns share if wording and the order of triples tell them apart.

    Names of variables and slots are wording too, see `words_of`. Groups, filters and what follows
    the WHERE clause keep their order, OPTIONAL and MINUS their place among the triples. What is no
    query has its words for a key.

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


# Reading a pattern takes milliseconds, and each is read at every step of a stream.
@lru_cache(maxsize=32_768)
def _key(canonical: str) -> str:
    try:
        query = read_clauses(_SLOT.sub("?slot\u00b7\\1", canonical))
    except QueryError:
        return canonical
    if query.where is None:
        return canonical
    return " ".join(words_of(Row(tuple(_whole(query, query.where)))))


def _whole(query: WrittenQuery, where: Group) -> Iterator[Node]:
    text = query.text
    yield from _plain(text[: where.start])
    yield from _group(text, where)
    yield from _plain(text[where.end :])


def _group(text: str, group: Group) -> Iterator[Node]:
    triples: list[Node] = []
    others: list[Node] = []
    yield "{"
    for clause in group.clauses:
        if clause.kind in _IN_PLACE:
            yield from (Bag(tuple(triples)), *others, *_clause(text, clause))
            triples, others = [], []
        elif clause.kind == "triples":
            triples += map(_triple, clause.patterns)
        else:
            others += _clause(text, clause)
    yield from (Bag(tuple(triples)), *others, "}")


def _clause(text: str, clause: Clause) -> Iterator[Node]:
    yield clause.kind
    at = clause.start
    for inner in clause.groups:
        yield from _plain(text[at : inner.start])
        yield from _group(text, inner)
        at = inner.end
    yield from _plain(text[at : clause.end])


def _triple(pattern: TriplePattern) -> Node:
    return Row((*(node for part in pattern for node in _plain(part)), "."))


def _plain(text: str) -> Iterator[Node]:
    for token in tokenize(text):
        if token.text not in (".", "{", "}"):
            yield from _named(token)


def _named(token: Token) -> Iterator[Node]:
    if token.kind == "blank":
        yield Name(token.text)
    elif token.kind == "variable":
        yield Name(token.text, "<<" if _SLOT_VARIABLE.match(token.text) else "?")
    elif token.kind in ("string", "iri") and _SLOT_VARIABLE.search(token.text):
        # A text or an IRI around a slot.
        for part in _SLOT_VARIABLE.split(token.text):
            yield Name(part, "<<") if _SLOT_VARIABLE.match(part) else part
    else:
        yield token.text
