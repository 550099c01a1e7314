"""Paths in the data from a resource to the values of an answer.

They say which properties the query of an answered question needs (Berant et al., Semantic parsing
on Freebase from question-answer pairs, EMNLP 2013).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import product

from pyoxigraph import Literal, NamedNode

from reasoningbank.errors import QueryError
from reasoningbank.sparql import SPARQLClient
from reasoningbank.sparql.terms import RDF_TYPE, Term, written

#: Values that a path must reach, paths of one shape and classes that are counted, paths returned.
MOST_VALUES = 5
MOST_COUNTED = 8
MOST_PATHS = 2
#: Seconds for one query of the search.
TIMEOUT_S = 5.0


@dataclass(frozen=True)
class DataPath:
    """A path from a term to values: properties, each with whether it is followed forwards.

    Examples:
        >>> hops = (("http://e/in", False), ("http://e/sequence", True), ("http://e/mass", True))
        >>> path = DataPath("taxon:9606", hops, 20)
        >>> path.pattern("mass", {"": "http://e/"})
        '?x1 :in taxon:9606 . ?x1 :sequence/:mass ?mass'
        >>> replace(path, of=(2, "http://e/Sequence")).pattern("mass", {"": "http://e/"})
        '?x1 :in taxon:9606 . ?x1 :sequence ?x2 . ?x2 a :Sequence . ?x2 :mass ?mass'
    """

    start: str  #: The term as a query writes it
    hops: tuple[tuple[str, bool], ...]
    reached: int  #: Distinct values at its end
    #: After how many hops all nodes have this class, if that leaves fewer values
    of: tuple[int, str] | None = None

    def pattern(self, variable: str, prefixes: Mapping[str, str]) -> str:
        """Return the path as triple patterns that end at a variable."""
        triples, names, here, n = list[str](), list[str](), self.start, 0
        for done, (name, ahead) in enumerate(self.hops, 1):
            names.append(written(NamedNode(name), prefixes))
            last, typed = done == len(self.hops), self.of is not None and self.of[0] == done
            if not last and not typed and self.hops[done][1] == ahead:
                continue
            n += 1
            there = f"?{variable}" if last else f"?x{n}"
            path = "/".join(names if ahead else names[::-1])
            triples.append(f"{here} {path} {there}" if ahead else f"{there} {path} {here}")
            if self.of is not None and typed:
                triples.append(f"{there} a {written(NamedNode(self.of[1]), prefixes)}")
            names, here = [], there
        return " . ".join(triples)


def paths_to(
    client: SPARQLClient, start: str, values: Sequence[str], *, most_hops: int = 4
) -> tuple[DataPath, ...]:
    """Return the shortest paths that lead from a term to all of some values, at most two.

    Args:
        client: Sends up to 2 + 4 + 8 + 16 queries, each with a limit of five seconds, and a few
            for each path.
        start: The term as a query writes it, with the endpoint's prefixes.
        values: The values as a query writes them. The first five must be reached.
        most_hops: Longest path searched for.

    Returns:
        The paths at whose ends the number of values is nearest to that of the given ones. No path
        leads through a literal, or back by the property that it came by.
    """
    wanted = tuple(dict.fromkeys(values))
    some = wanted[:MOST_VALUES]
    for length in range(1, most_hops + 1) if wanted else ():
        found = [
            replace(path, reached=_reached(client, path))
            for way in product((True, False), repeat=length)
            for path in _leading(client, start, some, way)
        ]
        if found:
            found.sort(key=lambda path: abs(path.reached - len(wanted)))
            best = found[:MOST_PATHS]
            if best[0].reached > len(wanted):
                typed = [_typed(client, path, some, len(wanted)) for path in best]
                best = sorted(typed, key=lambda path: abs(path.reached - len(wanted)))
            return tuple(best)
    return ()


def _leading(
    client: SPARQLClient, start: str, values: Sequence[str], way: Sequence[bool]
) -> Iterator[DataPath]:
    hops = [(f"?p{n}", ahead) for n, ahead in enumerate(way)]
    tests = [f"?p{n} != <{RDF_TYPE}>" for n in range(len(way))]
    tests += [f"!isLiteral(?x{n})" for n in range(1, len(way))]
    tests += [f"?p{n} != ?p{n + 1}" for n in range(len(way) - 1) if way[n] != way[n + 1]]
    names = " ".join(name for name, _ in hops)
    rows = _rows(
        client,
        f"SELECT {names} WHERE {{ {_values(values)} {_chain(start, hops)} "
        f"FILTER({' && '.join(tests)}) }} "
        f"GROUP BY {names} HAVING (COUNT(DISTINCT ?v) = {len(values)}) LIMIT {MOST_COUNTED}",
    )
    for row in rows:
        taken = [one.value for one in row if isinstance(one, NamedNode)]
        yield DataPath(start, tuple(zip(taken, way, strict=True)), 0)


def _typed(client: SPARQLClient, path: DataPath, values: Sequence[str], least: int) -> DataPath:
    """Return a path with the class of one of its nodes that leaves at most half of its values."""
    best = path
    for at in range(1, len(path.hops)):
        node = f"{_chain(path.start, _named(path))} ?x{at} a ?class"
        rows = _rows(
            client,
            f"SELECT ?class WHERE {{ {_values(values)} {node} }} GROUP BY ?class "
            f"HAVING (COUNT(DISTINCT ?v) = {len(values)}) LIMIT {MOST_COUNTED}",
        )
        for (of,) in rows:
            if isinstance(of, NamedNode):
                one = replace(path, of=(at, of.value))
                if least <= (n := _reached(client, one)) < best.reached and 2 * n <= path.reached:
                    best = replace(one, reached=n)
    return best


def _reached(client: SPARQLClient, path: DataPath) -> int:
    typed = f" ?x{path.of[0]} a <{path.of[1]}>" if path.of else ""
    chain = _chain(path.start, _named(path)) + typed
    rows = _rows(client, f"SELECT (COUNT(DISTINCT ?v) AS ?n) WHERE {{ {chain} }}")
    return int(rows[0][0].value) if rows and isinstance(rows[0][0], Literal) else 0


def _named(path: DataPath) -> list[tuple[str, bool]]:
    return [(f"<{name}>", ahead) for name, ahead in path.hops]


def _chain(start: str, hops: Sequence[tuple[str, bool]]) -> str:
    ends = [start, *(f"?x{n}" for n in range(1, len(hops))), "?v"]
    steps = zip(ends, hops, ends[1:], strict=False)
    return " ".join(f"{a} {p} {b} ." if ahead else f"{b} {p} {a} ." for a, (p, ahead), b in steps)


def _values(values: Sequence[str]) -> str:
    return f"VALUES ?v {{ {' '.join(values)} }}"


def _rows(client: SPARQLClient, query: str) -> list[tuple[Term | None, ...]]:
    # A path that is not found in time is not offered.
    with suppress(QueryError):
        return client.rows(query, timeout_s=TIMEOUT_S)
    return []
