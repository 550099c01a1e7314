"""What a query is made of, and how hard it is: read from its algebra, not from its length.

rdflib takes about 18 ms to parse a query, so results are cached by content hash. A query that
rdflib rejects (an engine's extension, a broken example) is described from its keywords.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any, Literal

from rdflib.paths import AlternativePath, InvPath, MulPath, NegatedPath, Path, SequencePath
from rdflib.plugins.sparql.parserutils import CompValue

from reasoningbank.cache import DiskCache
from reasoningbank.errors import QueryError
from reasoningbank.sparql.query import parse_algebra
from reasoningbank.sparql.shape import group_id, triples_of
from reasoningbank.sparql.tokens import tokenize
from reasoningbank.sparql.tree import TriplePattern, read_query

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

#: Part of the cache key: raised when this module's results change.
VERSION = 2

# rdflib leaves the insides of EXISTS and SERVICE as parse trees: both vocabularies occur.
_FEATURE_OF_NODE = {
    "LeftJoin": "optional",
    "OptionalGraphPattern": "optional",
    "Union": "union",
    "Graph": "graph",
    "GraphGraphPattern": "graph",
    "ServiceGraphPattern": "service",
    "Minus": "minus",
    "MinusGraphPattern": "minus",
    "Filter": "filter",
    "Builtin_NOTEXISTS": "not-exists",
    "AggregateJoin": "aggregate",
    "SubSelect": "subquery",
    "InlineData": "values",
    "Bind": "bind",
    "OrderBy": "order",
    "Slice": "limit",
    "Distinct": "distinct",
}

_FEATURE_OF_WORD = {
    "OPTIONAL": "optional",
    "UNION": "union",
    "GRAPH": "graph",
    "SERVICE": "service",
    "MINUS": "minus",
    "FILTER": "filter",
    "VALUES": "values",
    "BIND": "bind",
    "COUNT": "aggregate",
    "SUM": "aggregate",
    "AVG": "aggregate",
    "GROUP": "aggregate",
    "ORDER": "order",
    "LIMIT": "limit",
    "DISTINCT": "distinct",
}


@dataclass(frozen=True)
class QueryFeatures:
    """What a query is made of.

    Attributes:
        patterns: Triple patterns, a path counted as its steps.
        features: The names in `FEATURES` that occur, in that order.
        score: Weighted sum of patterns and features, at least 0.
        template: Hash of the query's shape: equal for queries that differ in constants only.
        parsed: False if the query was described from its keywords.
    """

    patterns: int
    features: tuple[str, ...]
    score: float
    template: str
    parsed: bool = True

    @property
    def complexity(self) -> Complexity:
        """``simple``, ``moderate`` or ``complex``, by the score."""
        if self.score <= SIMPLE_UP_TO:
            return "simple"
        return "moderate" if self.score <= MODERATE_UP_TO else "complex"


@lru_cache(maxsize=8192)
def query_features(query: str) -> QueryFeatures:
    """Return the features of a query; empty text has none.

    Args:
        query: SPARQL text with its prefixes.

    Examples:
        >>> f = query_features("SELECT ?p WHERE { ?p a/<http://e/sub>* <http://e/T> }")
        >>> f.patterns, f.features, f.complexity
        (2, ('path', 'recursion'), 'simple')
        >>> query_features("SELECT ?p WHERE { ?p").parsed
        False
    """
    if not query.strip():
        return QueryFeatures(0, (), 0.0, "")
    key = hashlib.sha256(f"{VERSION}\n{query}".encode()).hexdigest()
    cache = DiskCache.of_user("query-features")
    kept = cache.get([key]).get(key)
    if kept is not None:
        stored = json.loads(kept)
        return QueryFeatures(**{**stored, "features": tuple(stored["features"])})
    found = _compute(query)
    cache.put({key: json.dumps(asdict(found)).encode()})
    return found


def _compute(query: str) -> QueryFeatures:
    try:
        algebra = parse_algebra(query).algebra
    # rdflib raises pyparsing errors, plain Exception, AttributeError or RecursionError.
    except Exception:
        return _from_keywords(query)
    counts: Counter[str] = Counter()
    try:
        for node in _nodes(algebra):
            _count(node, counts)
        template = group_id(algebra)
    except RecursionError:
        return _from_keywords(query)
    return _scored(counts, template, parsed=True)


def _scored(counts: Counter[str], template: str, *, parsed: bool) -> QueryFeatures:
    patterns = counts["pattern"]
    score = patterns + sum(weight * counts[name] for name, weight in FEATURES.items())
    present = tuple(name for name in FEATURES if counts[name])
    return QueryFeatures(patterns, present, score, template, parsed)


def _nodes(part: Any) -> Iterator[CompValue]:
    if isinstance(part, CompValue):
        yield part
        for key, value in part.items():
            # Templates of DESCRIBE and CONSTRUCT do not make a query hard.
            if key not in ("_vars", "template", "PV"):
                yield from _nodes(value)
    elif isinstance(part, (list, tuple)):
        for item in part:
            yield from _nodes(item)


def _count(node: CompValue, counts: Counter[str]) -> None:
    name = _FEATURE_OF_NODE.get(node.name)
    if name:
        counts[name] += 1
    if node.name in ("BGP", "TriplesBlock"):
        for _, predicate, _ in triples_of(node):
            _count_path(predicate, counts)
    # A filter may be a bare variable or constant, which has no name.
    elif node.name == "LeftJoin" and getattr(node.expr, "name", "") != "TrueFilter":
        counts["filter"] += 1
    elif node.name == "ToMultiSet":
        counts["values" if node.p.name == "values" else "subquery"] += 1
    elif node.name == "GroupOrUnionGraphPattern" and len(node.graph) > 1:
        counts["union"] += len(node.graph) - 1
    elif node.name == "Extend" and not str(node.expr).startswith("__agg_"):
        counts["bind"] += 1


def _count_path(predicate: Any, counts: Counter[str]) -> None:
    steps, recursive = _steps(predicate)
    counts["pattern"] += steps
    counts["recursion"] += recursive
    if isinstance(predicate, (SequencePath, MulPath, AlternativePath, NegatedPath)):
        counts["path"] += 1


def _steps(path: Any) -> tuple[int, int]:
    if not isinstance(path, Path):
        return 1, 0
    if isinstance(path, InvPath):
        return _steps(path.arg)
    if isinstance(path, MulPath):
        steps, recursive = _steps(path.path)
        return steps, recursive + 1
    if not isinstance(path, (AlternativePath, SequencePath)):
        return 1, 1
    parts = [_steps(arg) for arg in path.args]
    if isinstance(path, AlternativePath):
        return max(s for s, _ in parts), sum(r for _, r in parts) + 1
    return sum(s for s, _ in parts), sum(r for _, r in parts)


def _from_keywords(query: str) -> QueryFeatures:
    tokens = tokenize(query)
    counts: Counter[str] = Counter()
    for before, token in zip([None, *tokens], tokens, strict=False):
        if token.kind == "word":
            name = _FEATURE_OF_WORD.get(token.text.upper())
            if name:
                counts[name] += 1
            if token.is_word("EXISTS") and before and before.is_word("NOT"):
                counts["not-exists"] += 1
            if token.is_word("SELECT") and before and before.text == "{":
                counts["subquery"] += 1
    counts["aggregate"] = min(counts["aggregate"], 1)
    # A rough count: a pattern ends at a period or a semicolon.
    counts["pattern"] = sum(t.text in (".", ";") for t in tokens) or 1
    words = " ".join(t.kind if t.kind in ("string", "number") else t.text for t in tokens)
    template = "text-" + hashlib.sha256(words.encode()).hexdigest()[:12]
    return _scored(counts, template, parsed=False)


def triple_patterns(query: str) -> list[TriplePattern]:
    """Return the triple patterns of a query's WHERE clause, in written order.

    Those of subqueries, EXISTS and SERVICE are included, those of a CONSTRUCT template are not.

    Raises:
        QueryError: If the query is not SPARQL, or has a collection in a pattern.
    """
    return read_query(query).triple_patterns()


def without_pattern(query: str, index: int) -> str:
    """Return the query without the pattern at `index` of its `triple_patterns`.

    Examples:
        >>> without_pattern("ASK { ?p a up:Protein ; up:mass 3 . FILTER(?p != 4) }", 0)
        'ASK { ?p up:mass 3 . FILTER(?p != 4) }'
    """
    left = index
    for clause in read_query(query).statements():
        if 0 <= left < len(clause.patterns):
            rest = [pattern for i, pattern in enumerate(clause.patterns) if i != left]
            text = " ".join(f"{pattern} ." for pattern in rest)
            return query[: clause.start] + text + query[clause.end :]
        left -= len(clause.patterns)
    raise QueryError(f"the query has no triple pattern {index}")
