"""Frequent mistakes of form in queries that models write, repaired without guessing at content.

A repair is used only if the query parses with it and did not parse without it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise

from reasoningbank.lm.reply import is_query
from reasoningbank.sparql.tokens import Edit, Token, apply_edits, closing, tokenize

_AGGREGATES = ("COUNT", "SUM", "MIN", "MAX", "AVG", "SAMPLE", "GROUP_CONCAT")
_MODIFIERS = ("GROUP", "HAVING", "ORDER", "LIMIT", "OFFSET")
_GOES_ON = ("FILTER", "OPTIONAL", "BIND", "MINUS", "VALUES")

Edits = Iterator[Edit]
Repair = Callable[[tuple[Token, ...]], Edits]


def repaired(query: str) -> str:
    """Return a query with the repairs that make it parse; as it is if it parses, or none do.

    Examples:
        >>> repaired("SELECT count(*) WHERE { ?s ?p ?o }")
        'SELECT (count(*) AS ?count) WHERE { ?s ?p ?o }'
        >>> repaired("SELECT ?s WHERE { ?s a ?c } ?s ?p ?o ORDER BY ?s DESC }")
        'SELECT ?s WHERE { ?s a ?c . ?s ?p ?o } ORDER BY DESC(?s) '
    """
    text = query
    for repair in () if is_query(query) else _REPAIRS:
        edits = list(repair(tokenize(text)))
        if edits:
            text = apply_edits(text, edits)
            if is_query(text):
                return text
    return query


def _name_aggregates(tokens: tuple[Token, ...]) -> Edits:
    """``SELECT COUNT(?x)`` and ``SELECT COUNT(?x) AS ?n`` become ``SELECT (COUNT(?x) AS ?n)``."""
    at = next((n + 1 for n, token in enumerate(tokens) if token.is_word("SELECT")), len(tokens))
    while at < len(tokens) and tokens[at].text != "{" and not tokens[at].is_word("WHERE", "FROM"):
        token, then = tokens[at], tokens[min(at + 1, len(tokens) - 1)]
        at += 1
        if token.text == "(":
            at = closing(tokens, at - 1)
        elif token.is_word(*_AGGREGATES) and then.text == "(":
            at = closing(tokens, at)
            named = [t.is_word("AS") or t.kind == "variable" for t in tokens[at : at + 2]]
            yield Edit(token.start, token.start, "(")
            if named == [True, True]:
                at += 2
            name = "" if named == [True, True] else f" AS ?{token.text.lower()}"
            yield Edit(tokens[at - 1].end, tokens[at - 1].end, f"{name})")


def _order_outside(tokens: tuple[Token, ...]) -> Edits:
    """Solution modifiers before the last brace move behind it."""
    last = max((n for n, token in enumerate(tokens) if token.text == "}"), default=-1)
    depth = 0
    for token in tokens[: max(last, 0)]:
        depth += (token.text == "{") - (token.text == "}")
        if depth == 1 and token.is_word(*_MODIFIERS):
            yield Edit(token.start, token.start, "} ")
            yield Edit(tokens[last].start, tokens[last].end, "")
            return


def _order_direction(tokens: tuple[Token, ...]) -> Edits:
    """``ORDER BY ?x DESC`` becomes ``ORDER BY DESC(?x)``."""
    for before, token in pairwise(tokens):
        if token.is_word("ASC", "DESC") and before.kind == "variable":
            yield Edit(before.start, token.end, f"{token.text.upper()}({before.text})")


def _one_group(tokens: tuple[Token, ...]) -> Edits:
    """Patterns after a group that was closed too early belong to it."""
    last = max((n for n, token in enumerate(tokens) if token.text == "}"), default=-1)
    depth = 0
    for at, token in enumerate(tokens[: max(last, 0)]):
        depth += (token.text == "{") - (token.text == "}")
        if token.text == "}" and depth == 0:
            then = tokens[at + 1]
            if then.kind in ("variable", "name", "iri") or then.is_word(*_GOES_ON):
                yield Edit(token.start, token.end, ".")
                depth = 1


_REPAIRS: tuple[Repair, ...] = (_name_aggregates, _one_group, _order_outside, _order_direction)
