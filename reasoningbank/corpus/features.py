"""What a query is made of, and how hard it is: read from its tree, not from its length.

A query that the tree does not read (an engine's extension, a broken example) is described from its
keywords.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import Literal

from reasoningbank.cache import kept
from reasoningbank.errors import QueryError
from reasoningbank.sparql.query import MOST_TOKENS, parse_algebra
from reasoningbank.sparql.shape import content_key, group_id
from reasoningbank.sparql.tokens import AGGREGATES, Token, closing, split_at, tokenize
from reasoningbank.sparql.tree import Group, QueryTree, read_query

Complexity = Literal["simple", "moderate", "complex"]

#: Every feature and what one occurrence adds to the score; a triple pattern adds 1, a path its
#: steps. ``recursion`` is a repeated step or a choice of steps.
FEATURES: dict[str, float] = {
    "path": 0.0,
    "recursion": 1.5,
    "optional": 1.0,
    "union": 1.5,
    "aggregate": 2.0,
    "subquery": 3.0,
    "graph": 1.5,
    "service": 3.0,
    "filter": 1.0,
    "not-exists": 2.5,
    "minus": 2.5,
    "values": 0.5,
    "bind": 1.0,
    "order": 0.5,
    "limit": 0.0,
    "distinct": 0.0,
}

SIMPLE_UP_TO = 4.0
MODERATE_UP_TO = 6.5

_FEATURE_OF_WORD = {name.upper(): name for name in FEATURES} | dict.fromkeys(
    ("COUNT", "SUM", "AVG", "GROUP"), "aggregate"
)


@dataclass(frozen=True)
class QueryFeatures:
    """What a query is made of."""

    patterns: int  #: Triple patterns, a path counted as its steps
    features: tuple[str, ...]  #: The names in `FEATURES` that occur, in that order
    score: float  #: Weighted sum of patterns and features, at least 0
    parsed: bool = True  #: False if the query was described from its keywords

    @property
    def complexity(self) -> Complexity:
        """``simple``, ``moderate`` or ``complex``, by the score."""
        if self.score <= SIMPLE_UP_TO:
            return "simple"
        return "moderate" if self.score <= MODERATE_UP_TO else "complex"


@lru_cache(maxsize=8192)
def query_features(query: str) -> QueryFeatures:
    """Return the features of a query; empty text has none."""
    if not query.strip():
        return QueryFeatures(0, (), 0.0)
    try:
        counts, parsed = _of_tree(read_query(query)), True
    except QueryError:
        counts, parsed = _of_keywords(query), False
    score = counts["pattern"] + sum(weight * counts[name] for name, weight in FEATURES.items())
    present = tuple(name for name in FEATURES if counts[name])
    return QueryFeatures(counts["pattern"], present, score, parsed)


@lru_cache(maxsize=8192)
def query_template(query: str) -> str:
    """Return the hash of a query's shape, equal for queries that differ in constants only.

    It is a hash of rdflib's algebra, on which the splits of corpora without groups depend.
    """
    if not query.strip():
        return ""
    return kept("queries", content_key("template", query), lambda: _template(query))


def _template(query: str) -> str:
    words = [t.kind if t.kind in ("string", "number") else t.text for t in tokenize(query)]
    # rdflib raises pyparsing errors, plain Exception, AttributeError or RecursionError, and takes
    # time by the square of a long list.
    with suppress(Exception):
        if len(words) <= MOST_TOKENS:
            return group_id(parse_algebra(query).algebra)
    return "text-" + hashlib.sha256(" ".join(words).encode()).hexdigest()[:12]


def _of_tree(tree: QueryTree) -> Counter[str]:
    counts: Counter[str] = Counter()
    _count_level(tree.body, counts)
    counts["not-exists"] += _not_exists(tree.body)
    # The resources that a WHERE clause finds are described once each.
    counts["distinct"] += tree.form == "DESCRIBE" and tree.where is not None
    for group in tree.others:
        _count_group(group, tree, counts, condition=True)
    if tree.where is not None:
        _count_group(tree.where, tree, counts, condition=False)
    return counts


def _count_group(
    group: Group, tree: QueryTree, counts: Counter[str], *, condition: bool, remote: bool = False
) -> None:
    """Count what is in a group: of EXISTS if it is a `condition`, inside SERVICE if `remote`."""
    filters = 0
    for clause in group.clauses:
        if clause.kind == "triples":
            for pattern in clause.patterns:
                _count_path(pattern.predicate, counts)
        elif clause.kind == "union":
            counts["union"] += len(clause.groups) - 1
        elif clause.kind == "filter":
            filters += 1
        elif clause.kind == "subselect":
            counts["subquery"] += 1
            if not remote:
                begin = bisect_left(tree.body, clause.start, key=lambda token: token.start)
                end = bisect_left(tree.body, clause.end, key=lambda token: token.start)
                _count_level(tree.body[begin:end], counts)
        else:
            counts[clause.kind] += 1
        for inner in clause.groups:
            exists = clause.kind in ("filter", "bind")
            beyond = remote or clause.kind == "service"
            _count_group(inner, tree, counts, condition=exists, remote=beyond)
    # Together they are one condition, of which those of an EXISTS are part.
    counts["filter"] += filters if remote else min(filters, not condition)


def _count_level(tokens: Sequence[Token], counts: Counter[str]) -> None:
    """Count the modifiers and the computed columns of a query or subquery."""
    depths = accumulate((token.text == "{") - (token.text == "}") for token in tokens)
    # The tokens outside all braces.
    level = [t for t, depth in zip(tokens, depths, strict=True) if depth == 0 and t.text != "}"]
    words = {token.text.upper() for token in level if token.kind == "word"}
    counts["aggregate"] += not words.isdisjoint(("GROUP", *AGGREGATES))
    counts["order"] += "ORDER" in words
    counts["limit"] += not words.isdisjoint(("LIMIT", "OFFSET"))
    counts["filter"] += "HAVING" in words
    counts["distinct"] += len(level) > 1 and level[1].is_word("DISTINCT")
    counts["values"] += "VALUES" in words
    opened: list[int] = []
    for at, token in enumerate(level):
        if token.text == "(":
            opened.append(at)
        elif token.text == ")" and opened:
            opened.pop()
        elif token.is_word("AS") and opened:
            column = level[opened[-1] + 1 : at]
            aggregate = column[0].is_word(*AGGREGATES) and closing(column, 1) == len(column)
            counts["bind"] += not aggregate


def _count_path(predicate: str, counts: Counter[str]) -> None:
    if predicate.startswith(("?", "$")):
        counts["pattern"] += 1
        return
    steps, recursions, kind = _path(tokenize(predicate))
    counts["pattern"] += steps
    counts["recursion"] += recursions
    counts["path"] += kind not in ("", "^")


def _path(tokens: Sequence[Token]) -> tuple[int, int, str]:
    """Return a path's steps, its repeated steps and choices, and its outermost operator."""
    for sign, longest in (("|", max), ("/", sum)):
        sides = split_at(tokens, sign)
        if len(sides) > 1:
            parts = [_path(side) for side in sides]
            again = sum(recursions for _, recursions, _ in parts) + (sign == "|")
            return longest(steps for steps, *_ in parts), again, sign
    if tokens[0].text == "^":
        return *_path(tokens[1:])[:2], "^"
    if tokens[0].text == "!":
        return 1, 1, "!"
    if tokens[-1].text in ("*", "+", "?"):
        steps, recursions, _ = _path(tokens[:-1])
        return steps, recursions + 1, "*"
    return _path(tokens[1:-1]) if tokens[0].text == "(" else (1, 0, "")


def _not_exists(tokens: Sequence[Token]) -> int:
    return sum(a.is_word("NOT") and b.is_word("EXISTS") for a, b in pairwise(tokens))


def _of_keywords(query: str) -> Counter[str]:
    tokens = tokenize(query)
    counts = Counter(_FEATURE_OF_WORD.get(t.text.upper(), "") for t in tokens if t.kind == "word")
    counts["not-exists"] = _not_exists(tokens)
    counts["subquery"] = sum(a.text == "{" and b.is_word("SELECT") for a, b in pairwise(tokens))
    counts["aggregate"] = min(counts["aggregate"], 1)
    # A rough count: a pattern ends at a period or a semicolon.
    counts["pattern"] = sum(t.text in (".", ";") for t in tokens) or 1
    return counts
