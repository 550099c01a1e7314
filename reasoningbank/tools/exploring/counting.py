"""Counting where counting all takes too long: how many there are at least."""

from __future__ import annotations

from collections.abc import Sequence

from reasoningbank.sparql.tokens import Token, tokenize

__all__ = ["MOST_COUNTED", "bounded_count"]

#: Solutions that a bounded count looks at.
MOST_COUNTED = 100_000

_SHAPES = (
    ("SELECT", "(", "COUNT", "(", "*", ")", "AS", "?", ")"),
    ("SELECT", "(", "COUNT", "(", "?", ")", "AS", "?", ")"),
    ("SELECT", "(", "COUNT", "(", "DISTINCT", "?", ")", "AS", "?", ")"),
)


def bounded_count(query: str, most: int = MOST_COUNTED) -> str | None:
    """Return a query that counts the same among the first `most` solutions.

    Returns None for what is no plain count: several columns, groups, modifiers.

    Examples:
        >>> bounded_count("SELECT (COUNT(*) AS ?n) WHERE { ?s a ?c }", 10)
        'SELECT (COUNT(*) AS ?n) WHERE { { SELECT * WHERE { ?s a ?c } LIMIT 10 } }'
        >>> bounded_count("SELECT (COUNT(DISTINCT ?c) AS ?n) { ?s a ?c }", 10)
        'SELECT (COUNT(DISTINCT ?c) AS ?n) WHERE { { SELECT ?c WHERE { ?s a ?c } LIMIT 10 } }'
        >>> bounded_count("SELECT ?c (COUNT(*) AS ?n) { ?s a ?c } GROUP BY ?c") is None
        True
    """
    tokens = tokenize(query)
    start = next((i for i, t in enumerate(tokens) if t.text.upper() == "SELECT"), None)
    if start is None:
        return None
    for shape in _SHAPES:
        head = tokens[start : start + len(shape)]
        if len(head) < len(shape) or not all(map(_fits, head, shape)):
            continue
        rest = tokens[start + len(shape) :]
        if rest and rest[0].text.upper() == "WHERE":
            rest = rest[1:]
        # Something after the last brace would be a modifier, or a FROM before the first.
        if not rest or rest[0].text != "{" or rest[-1].text != "}" or not _one_group(rest):
            return None
        column = next((t.text for t in head[3:] if t.kind == "variable"), "*")
        inner = column if "DISTINCT" in shape else "*"
        where = query[rest[0].start : rest[-1].end]
        count = query[head[0].start : head[-1].end]
        prologue = query[: head[0].start]
        return f"{prologue}{count} WHERE {{ {{ SELECT {inner} WHERE {where} LIMIT {most} }} }}"
    return None


def _fits(token: Token, wanted: str) -> bool:
    return token.kind == "variable" if wanted == "?" else token.text.upper() == wanted


def _one_group(tokens: Sequence[Token]) -> bool:
    depth = 0
    for at, token in enumerate(tokens):
        depth += {"{": 1, "}": -1}.get(token.text, 0)
        if depth == 0:
            return at == len(tokens) - 1
    return False
