"""Patterns in the data: what leads from the resources of a question to the rows of its answer.

Learning from question-answer pairs searches for the query behind an answer (Berant et al., Semantic
parsing on Freebase from question-answer pairs, EMNLP 2013). Here the search ends with patterns:
writing a query from them is left to an agent.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import product

from pyoxigraph import Literal, NamedNode

from reasoningbank.errors import QueryError
from reasoningbank.sparql import SPARQLClient
from reasoningbank.sparql.terms import RDF_TYPE, Term, last_part, string_literal, written

#: Values that a path must reach, and rows that patterns must have.
MOST_VALUES = 5
#: Paths of one shape and classes that are counted, and paths returned.
MOST_COUNTED = 8
MOST_PATHS = 2
MOST_HOPS = 4
#: Nodes that are looked at to see of what classes they are.
SAMPLE = 200
#: Seconds for one query; they only guard against hanging, a busy machine must find the same.
TIMEOUT_S = 30.0
#: Directions of paths to values from what they have in common: at most three steps from a value,
#: of which only the first may be against its property. Others lead through hubs.
_IN_COMMON = (
    (False,), (False, True), (False, False), (False, True, True), (False, False, True),
    (False, False, False),
)  # fmt: skip
_WORD = re.compile(r"[A-Z]?[a-z]{3,}")


#: Properties, each with whether it is followed forwards.
Hops = tuple[tuple[str, bool], ...]


@dataclass(frozen=True)
class DataPath:
    """A path from a term to values.

    Examples:
        >>> hops = (("http://e/in", False), ("http://e/sequence", True), ("http://e/mass", True))
        >>> path = DataPath("taxon:9606", hops, 20)
        >>> Patterns((path.tree("mass"),)).text({"": "http://e/"})
        '?x1 :in taxon:9606 . ?x1 :sequence/:mass ?mass'
        >>> typed = replace(path, of=(2, "http://e/Sequence"))
        >>> Patterns((typed.tree("mass"),)).text({"": "http://e/"})
        '?x1 :in taxon:9606 . ?x1 :sequence ?x2 . ?x2 a :Sequence . ?x2 :mass ?mass'
    """

    start: str  #: The term as a query writes it
    hops: Hops
    reached: int  #: Distinct values at its end
    #: After how many hops all nodes have this class, if that tells the values from others
    of: tuple[int, str] | None = None

    def tree(self, variable: str) -> Tree:
        """Return the path as a tree from its start."""
        classes = ((self.hops[: self.of[0]], self.of[1]),) if self.of else ()
        return Tree(self.start, ((self.hops, f"?{variable}"),), classes)

    def reversed(self, variable: str) -> Tree:
        """Return the path as a tree from its end."""
        hops = tuple((name, not ahead) for name, ahead in self.hops[::-1])
        classes = ((hops[: len(hops) - self.of[0]], self.of[1]),) if self.of else ()
        return Tree(f"?{variable}", ((hops, self.start),), classes)


@dataclass(frozen=True)
class Tree:
    """Paths from one term, which share what they have in common.

    Examples:
        >>> paper, title = ("http://e/citation", True), ("http://e/title", True)
        >>> tree = Tree(":P1", (((paper,), "?paper"), ((paper, title), "?title")))
        >>> Patterns((tree,)).text({"": "http://e/"})
        ':P1 :citation ?paper . ?paper :title ?title'
    """

    start: str  #: A term or variable
    ends: tuple[tuple[Hops, str], ...]  #: Where each path ends
    classes: tuple[tuple[Hops, str], ...] = ()  #: The class of the nodes that hops lead to

    def triples(self, prefixes: Mapping[str, str], numbers: Iterator[int]) -> Iterator[str]:
        """Yield triple patterns; further variables are numbered."""
        variables = {hops: end for hops, end in self.ends if end.startswith("?")}
        classes = dict(self.classes)
        # By the same hops, paths may end at different terms.
        inner = {(hops[:n], "") for hops, _ in self.ends for n in range(1, len(hops))}
        nodes = inner | {(hops, "" if hops in variables else end) for hops, end in self.ends}
        branches = Counter(hops[:-1] for hops, _ in nodes)
        named: dict[tuple[Hops, str], str] = {}
        if () in classes:
            yield f"{self.start} a {written(classes[()], prefixes)}"
        for hops, end in self.ends:
            done, here = 0, self.start
            for n, (_, ahead) in enumerate(hops, 1):
                node, last = hops[:n], n == len(hops)
                turns = not last and hops[n][1] != ahead
                joint = node in variables or node in classes or branches[node] > 1
                if not (last or turns or joint):
                    continue
                key = (node, end if last and node not in variables else "")
                if key not in named:
                    known = end if last else variables.get(node)
                    named[key] = there = known or f"?x{next(numbers)}"
                    names = [written(name, prefixes) for name, _ in hops[done:n]]
                    way = "/".join(names if ahead else names[::-1])
                    yield f"{here} {way} {there}" if ahead else f"{there} {way} {here}"
                    if node in classes:
                        yield f"{there} a {written(classes[node], prefixes)}"
                done, here = n, named[key]


@dataclass(frozen=True)
class Patterns:
    """Triple patterns and filters that lead to the columns of an answer."""

    trees: tuple[Tree, ...] = ()
    filters: tuple[str | Tree, ...] = ()  #: Filters, and what does not exist
    order: str = ""  #: What follows the WHERE clause: ORDER BY and LIMIT
    service: str = ""  #: Address of the federated endpoint that has the data

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the paths lead to."""
        ends = (end for tree in self.trees for end in (tree.start, *(end for _, end in tree.ends)))
        return tuple(dict.fromkeys(end[1:] for end in ends if end.startswith("?")))

    def __add__(self, other: Patterns) -> Patterns:
        trees = {tree.start: tree for tree in self.trees}
        for tree in other.trees:
            known = trees.get(tree.start, Tree(tree.start, ()))
            ends = tuple(dict.fromkeys(known.ends + tree.ends))
            trees[tree.start] = Tree(tree.start, ends, known.classes + tree.classes)
        return Patterns(tuple(trees.values()), self.filters + other.filters)

    def text(self, prefixes: Mapping[str, str]) -> str:
        """Return the patterns as the inside of a WHERE clause."""
        numbers = itertools.count(1)
        triples = [line for tree in self.trees for line in tree.triples(prefixes, numbers)]
        parts = [" . ".join(triples)]
        for one in self.filters:
            if isinstance(one, Tree):
                one = f"FILTER NOT EXISTS {{ {' . '.join(one.triples(prefixes, numbers))} }}"
            parts.append(one)
        text = " ".join(parts)
        return f"SERVICE <{self.service}> {{ {text} }}" if self.service else text


def paths_to(
    client: SPARQLClient,
    start: str,
    values: Sequence[str],
    *,
    most_hops: int = MOST_HOPS,
    question: str = "",
) -> tuple[DataPath, ...]:
    """Return the shortest paths that lead from a term to all of some values, at most two.

    Preferred are those at whose ends the number of values is nearest to that of the given ones, and
    of equal ones those whose properties and classes the question names; they are of two lengths if
    the shortest lead to others too. No path leads through a literal, or back by the property that
    it came by. Start and values are written as in a query; the first five values must be reached.
    Sends up to 2 + 4 + 8 + 16 queries, each with a limit of 30 seconds, and a few for each path.
    """
    wanted = tuple(dict.fromkeys(values))
    some, found = wanted[:MOST_VALUES], list[DataPath]()

    def fit(path: DataPath) -> tuple[int, int]:
        return abs(path.reached - len(wanted)), -_said(path, question)

    for length in range(1, most_hops + 1) if wanted else ():
        more = [
            replace(path, reached=_reached(client, path))
            for way in product((True, False), repeat=length)
            for path in _leading(client, start, some, way)
        ]
        is_last = bool(found) or any(path.reached == len(wanted) for path in more)
        found += more
        if is_last:
            break
    best = sorted(found, key=fit)[:MOST_PATHS]
    best = [_typed(client, path, some, len(wanted), question) for path in best]
    return tuple(sorted(best, key=fit))


def paths_in_common(
    client: SPARQLClient, values: Sequence[str], question: str = ""
) -> tuple[DataPath, ...]:
    """Return the shortest paths to all of some values from each resource they have in common.

    At most three from each, and from texts that are in the question; only five values are looked
    at. Sends a query for each shape of path, and one for each path.
    """
    wanted = tuple(dict.fromkeys(values))
    found: dict[str, list[DataPath]] = {}
    for way in _IN_COMMON if wanted else ():
        for path in _leading(client, "?start", wanted[:MOST_VALUES], way, question):
            known = found.setdefault(path.start, [])
            if len(known) <= MOST_PATHS:
                known.append(replace(path, reached=_reached(client, path)))
    return tuple(itertools.chain(*found.values()))


def paths_that_count(
    client: SPARQLClient, start: str, number: int, question: str
) -> tuple[DataPath, ...]:
    """Return the shortest path from a term to as many values as a number says, if there is one.

    The question must name its last property, or a class of the values; it has three hops at most.
    """
    for length in range(1, MOST_HOPS):
        found: list[tuple[int, DataPath]] = []
        for way, typed in product(product((True, False), repeat=length), (True, False)):
            hops = [(f"?p{n}", ahead) for n, ahead in enumerate(way)]
            names = " ".join([name for name, _ in hops] + ["?class"] * typed)
            body = f"{_chain(start, hops)} FILTER(?p{length - 1} != <{RDF_TYPE}>)"
            body += " ?v a ?class" * typed
            query = f"SELECT {names} WHERE {{ {body} }} GROUP BY {names}"
            for row in rows_of(client, f"{query} HAVING (COUNT(DISTINCT ?v) = {number})"):
                taken = [one.value for one in row if isinstance(one, NamedNode)]
                if said := words_said(taken[-1], question):
                    of = (length, taken[-1]) if typed else None
                    path = DataPath(start, tuple(zip(taken[:length], way, strict=True)), number, of)
                    found.append((said, path))
        if found:
            return (max(found, key=lambda one: one[0])[1],)
    return ()


def _leading(
    client: SPARQLClient, start: str, values: Sequence[str], way: Sequence[bool], question: str = ""
) -> Iterator[DataPath]:
    """Yield paths of one shape; if the start is a variable, from each resource or named text."""
    hops = [(f"?p{n}", ahead) for n, ahead in enumerate(way)]
    tests = [f"?p{n} != <{RDF_TYPE}>" for n in range(len(way))]
    tests += [f"!isLiteral(?x{n})" for n in range(1, len(way))]
    tests += [f"?p{n} != ?p{n + 1}" for n in range(len(way) - 1) if way[n] != way[n + 1]]
    names, most, is_open = " ".join(name for name, _ in hops), MOST_COUNTED, start.startswith("?")
    if is_open:
        names, most = f"{names} {start}", 10 * MOST_COUNTED
        named = f"CONTAINS({string_literal(question.lower())}, LCASE(STR({start})))"
        tests.append(f"(isIRI({start}) || (STRLEN(STR({start})) > 2 && {named}))")
    body = f"{_chain(start, hops)} FILTER({' && '.join(tests)})"
    for row in _reaching(client, names, values, body, most):
        taken = [one.value for one in row[: len(way)] if isinstance(one, NamedNode)]
        begin = row[-1] if is_open else None
        known = written(begin, client.config.namespaces) if begin is not None else start
        yield DataPath(known, tuple(zip(taken, way, strict=True)), 0)


def _typed(
    client: SPARQLClient, path: DataPath, values: Sequence[str], least: int, question: str
) -> DataPath:
    """Return a path with a class of a node that halves the values at least, or is asked for."""
    best = path
    for at in range(1, len(path.hops) + 1):
        node = f"{_chain(path.start, path.hops)} {_node(path, at)} a ?class"
        for (of,) in _reaching(client, "?class", values, node):
            if not isinstance(of, NamedNode):
                continue
            one = replace(path, of=(at, of.value))
            n, is_end = _reached(client, one), at == len(path.hops)
            tells = n < best.reached and 2 * n <= path.reached
            # That the property leads to no other values here may be an accident.
            if n == path.reached and best is path and is_end and words_said(of.value, question):
                tells = _is_choice(client, path.hops[-1], of.value)
            if least <= n and tells:
                best = replace(one, reached=n)
    return best


def _is_choice(client: SPARQLClient, hop: tuple[str, bool], of: str) -> bool:
    """Return whether less than nine tenths of what a property leads to is of a class."""
    some = f"SELECT DISTINCT ?v WHERE {{ {_chain('?s', (hop,))} }} LIMIT {SAMPLE}"
    own = count_rows(client, "?v", f"{{ {some} }} ?v a <{of}>")
    return 10 * own < 9 * count_rows(client, "?v", f"{{ {some} }}")


def _reached(client: SPARQLClient, path: DataPath) -> int:
    typed = f" {_node(path, path.of[0])} a <{path.of[1]}>" if path.of else ""
    return count_rows(client, "?v", _chain(path.start, path.hops) + typed)


def _node(path: DataPath, at: int) -> str:
    return f"?x{at}" if at < len(path.hops) else "?v"


def _said(path: DataPath, question: str) -> int:
    """Return how many of a path's names the question has."""
    names = [name for name, _ in path.hops] + ([path.of[1]] if path.of else [])
    return sum(words_said(name, question) for name in names)


def words_said(name: str, question: str) -> int:
    """Return how many words of a name a question has; a plural has them too."""
    words = _WORD.findall(last_part(name))
    return sum(word.lower() in question.lower() for word in words)


def _chain(start: str, hops: Sequence[tuple[str, bool]]) -> str:
    ends = [start, *(f"?x{n}" for n in range(1, len(hops))), "?v"]
    names = (name if name.startswith("?") else f"<{name}>" for name, _ in hops)
    steps = zip(ends, names, ends[1:], hops, strict=False)
    return " ".join(
        f"{a} {p} {b} ." if ahead else f"{b} {p} {a} ." for a, p, b, (_, ahead) in steps
    )


def _reaching(
    client: SPARQLClient, names: str, values: Sequence[str], body: str, most: int = MOST_COUNTED
) -> list[tuple[Term | None, ...]]:
    """Return what some variables are where a pattern reaches all values."""
    return rows_of(
        client,
        f"SELECT {names} WHERE {{ VALUES ?v {{ {' '.join(values)} }} {body} }} "
        f"GROUP BY {names} HAVING (COUNT(DISTINCT ?v) = {len(values)}) LIMIT {most}",
    )


def count_rows(client: SPARQLClient, variables: str, body: str) -> int:
    """Return the number of distinct rows of a pattern; 0 if it takes too long."""
    inside = f"SELECT DISTINCT {variables} WHERE {{ {body} }}"
    rows = rows_of(client, f"SELECT (COUNT(*) AS ?n) WHERE {{ {{ {inside} }} }}")
    return int(rows[0][0].value) if rows and isinstance(rows[0][0], Literal) else 0


def rows_of(client: SPARQLClient, query: str) -> list[tuple[Term | None, ...]]:
    """Return the rows of a query; none if it takes too long, so what it finds is not offered."""
    with suppress(QueryError):
        return client.rows(query, timeout_s=TIMEOUT_S)
    return []
