"""The triple patterns of a query, and the query without one of them."""

from __future__ import annotations

from reasoningbank.errors import QueryError
from reasoningbank.sparql.tree import TriplePattern, read_query

__all__ = ["TriplePattern", "triple_patterns", "without_pattern"]


def triple_patterns(query: str) -> list[TriplePattern]:
    """Return the triple patterns of a query's WHERE clause, in written order.

    Args:
        query: A SELECT, ASK, CONSTRUCT or DESCRIBE query; subqueries, EXISTS and SERVICE
            are looked into, the template of CONSTRUCT is not.

    Raises:
        QueryError: The query is no SPARQL, or has a collection in a pattern.

    Examples:
        >>> for p in triple_patterns("ASK { ?p a up:Protein ; up:organism/up:rank ?r , ?q }"):
        ...     print(p)
        ?p a up:Protein
        ?p up:organism/up:rank ?r
        ?p up:organism/up:rank ?q
    """
    return [pattern for clause in read_query(query).statements() for pattern in clause.patterns]


def without_pattern(query: str, index: int) -> str:
    """Return the query without its `index`-th triple pattern.

    Args:
        query: As for `triple_patterns`.
        index: A position in what `triple_patterns` returns.

    Raises:
        QueryError: As for `triple_patterns`, or there is no such pattern.

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
