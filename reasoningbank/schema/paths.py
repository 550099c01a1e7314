"""Patterns in the data: what leads from the resources of a question to the rows of its answer.

Learning from question-answer pairs searches for the query behind an answer (Berant et al., Semantic
parsing on Freebase from question-answer pairs, EMNLP 2013). Here the search ends with patterns:
writing a query from them is left to an agent.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import combinations, product

from pyoxigraph import Literal, NamedNode

from reasoningbank.errors import QueryError
from reasoningbank.sparql import SPARQLClient
from reasoningbank.sparql.terms import RDF_TYPE, Term, string_literal, written

#: Values that a path must reach, and rows that patterns must have.
MOST_VALUES = 5
#: Paths of one shape and classes that are counted, paths returned, constants that are combined.
MOST_COUNTED = 8
MOST_PATHS = 2
MOST_CONSTANTS = 12
MOST_HOPS = 4
#: What fewer rows have in common they may have by accident.
FEW = 3
#: Nodes that are looked at to see of what classes they are.
SAMPLE = 200
#: Seconds for one query of the search.
TIMEOUT_S = 5.0
#: Directions of paths to values from what they have in common: at most three steps from a value,
#: of which only the first may be against its property. Others lead through hubs.
_IN_COMMON = (
    (False,), (False, True), (False, False), (False, True, True), (False, False, True),
    (False, False, False),
)  # fmt: skip
_FILTERS: Mapping[str, Callable[[str, str], bool]] = {
    "STRSTARTS": str.startswith,
    "STRENDS": str.endswith,
    "CONTAINS": str.__contains__,
}
_STRING = re.compile(r'"(.*)"(?:@[\w-]+)?', re.DOTALL)
_LAST_PART = re.compile(r"[:/#]")
_WORD = re.compile(r"[A-Z]?[a-z]{3,}")
_NUMBER = re.compile(r"[+-]?\d+(?:\.\d+)?")
_NUMERIC = re.compile(r'"?([+-]?[\d.]+(?:[eE][+-]?\d+)?)(?:"\^\^\S*)?')


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
            yield f"{self.start} a {written(NamedNode(classes[()]), prefixes)}"
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
                    names = [written(NamedNode(name), prefixes) for name, _ in hops[done:n]]
                    way = "/".join(names if ahead else names[::-1])
                    yield f"{here} {way} {there}" if ahead else f"{there} {way} {here}"
                    if node in classes:
                        yield f"{there} a {written(NamedNode(classes[node]), prefixes)}"
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


# -- paths ----------------------------------------------------------------------------------------


def paths_to(
    client: SPARQLClient,
    start: str,
    values: Sequence[str],
    *,
    most_hops: int = MOST_HOPS,
    question: str = "",
) -> tuple[DataPath, ...]:
    """Return the shortest paths that lead from a term to all of some values, at most two.

    Args:
        client: Sends up to 2 + 4 + 8 + 16 queries, each with a limit of five seconds, and a few
            for each path.
        start: The term as a query writes it, with the endpoint's prefixes.
        values: The values as a query writes them. The first five must be reached.
        most_hops: Longest path searched for.
        question: Of equal paths those are preferred whose properties and classes it names.

    Returns:
        The paths at whose ends the number of values is nearest to that of the given ones; of two
        lengths if the shortest lead to others too. No path leads through a literal, or back by the
        property that it came by.
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
    """Return a path to all of some values from what they have in common: resources.

    Args:
        client: Sends a query for each shape of path, and one for each path.
        values: The values as a query writes them.
        question: Texts that are in it count as well.

    Returns:
        The shortest paths from each resource, at most three. Only five values are looked at.
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
    """Return a path from a term to as many values as a number says, if a question names these.

    Returns:
        The shortest path whose last property, or class of the values, the question names; none if
        there is no such path of at most three hops.
    """
    for length in range(1, MOST_HOPS):
        found: list[tuple[int, DataPath]] = []
        for way, typed in product(product((True, False), repeat=length), (True, False)):
            hops = [(f"?p{n}", ahead) for n, ahead in enumerate(way)]
            names = " ".join([name for name, _ in hops] + ["?class"] * typed)
            body = f"{_chain(start, hops)} FILTER(?p{length - 1} != <{RDF_TYPE}>)"
            body += " ?v a ?class" * typed
            query = f"SELECT {names} WHERE {{ {body} }} GROUP BY {names}"
            for row in _rows(client, f"{query} HAVING (COUNT(DISTINCT ?v) = {number})"):
                taken = [one.value for one in row if isinstance(one, NamedNode)]
                if said := _words(taken[-1], question):
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
    """Return a path with a class of a node that leaves at most half of the values.

    Or with a class of the values that the question names, if their property leads to others too:
    that there are no other values may be an accident.
    """
    best = path
    for at in range(1, len(path.hops) + 1):
        node = f"{_chain(path.start, path.hops)} {_node(path, at)} a ?class"
        for (of,) in _reaching(client, "?class", values, node):
            if not isinstance(of, NamedNode):
                continue
            one = replace(path, of=(at, of.value))
            n, is_end = _reached(client, one), at == len(path.hops)
            tells = n < best.reached and 2 * n <= path.reached
            if n == path.reached and best is path and is_end and _words(of.value, question):
                tells = _is_choice(client, path.hops[-1], of.value)
            if least <= n and tells:
                best = replace(one, reached=n)
    return best


def _is_choice(client: SPARQLClient, hop: tuple[str, bool], of: str) -> bool:
    """Return whether less than nine tenths of what a property leads to is of a class."""
    some = f"SELECT DISTINCT ?v WHERE {{ {_chain('?s', (hop,))} }} LIMIT {SAMPLE}"
    own = _count(client, "?v", f"{{ {some} }} ?v a <{of}>")
    return 10 * own < 9 * _count(client, "?v", f"{{ {some} }}")


def _reached(client: SPARQLClient, path: DataPath) -> int:
    typed = f" {_node(path, path.of[0])} a <{path.of[1]}>" if path.of else ""
    return _count(client, "?v", _chain(path.start, path.hops) + typed)


def _node(path: DataPath, at: int) -> str:
    return f"?x{at}" if at < len(path.hops) else "?v"


def _said(path: DataPath, question: str) -> int:
    """Return how many of a path's names the question has."""
    names = [name for name, _ in path.hops] + ([path.of[1]] if path.of else [])
    return sum(_words(name, question) for name in names)


def _words(name: str, question: str) -> int:
    """Return how many words of a name a question has; a plural has them too."""
    words = _WORD.findall(_LAST_PART.split(name)[-1])
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
    return _rows(
        client,
        f"SELECT {names} WHERE {{ VALUES ?v {{ {' '.join(values)} }} {body} }} "
        f"GROUP BY {names} HAVING (COUNT(DISTINCT ?v) = {len(values)}) LIMIT {most}",
    )


def _count(client: SPARQLClient, variables: str, body: str) -> int:
    """Return the number of distinct rows of a pattern; 0 if it takes too long."""
    inside = f"SELECT DISTINCT {variables} WHERE {{ {body} }}"
    rows = _rows(client, f"SELECT (COUNT(*) AS ?n) WHERE {{ {{ {inside} }} }}")
    return int(rows[0][0].value) if rows and isinstance(rows[0][0], Literal) else 0


def _number(term: str) -> float | None:
    """Return the value of a number as a query writes it; None for other terms."""
    match = _NUMERIC.fullmatch(term)
    with suppress(ValueError):
        return float(match[1]) if match else None
    return None


def _rows(client: SPARQLClient, query: str) -> list[tuple[Term | None, ...]]:
    # A path that is not found in time is not offered.
    with suppress(QueryError):
        return client.rows(query, timeout_s=TIMEOUT_S)
    return []


# -- patterns that together have the rows ---------------------------------------------------------

#: Patterns, and how many rows they have; None if they lack some of the answer's.
_Sized = tuple[Patterns, int | None]


@dataclass(frozen=True)
class PatternSearch:
    """Searches for patterns that have all rows of an answer and, if possible, no others.

    Attributes:
        client: Sends some hundred small queries, each with a limit of five seconds.
        columns: The distinct rows of the answer, by column, as a query writes their terms.
        starts: What the question names, as a query writes it: for each mention what it may mean.
        question: The question: numbers in it may be bounds, and a resource whose name is in it is
            preferred.
        texts: Texts in the question by which values may be filtered.
    """

    client: SPARQLClient
    columns: Mapping[str, Sequence[str | None]]
    starts: Sequence[Sequence[str]]
    question: str = ""
    texts: Sequence[str] = ()

    def found(self) -> tuple[Patterns, bool] | None:
        """Return the patterns, and whether they have exactly the rows; None if there are none."""
        named = ([part for one in mention for part in self._from(one)] for mention in self.starts)
        best, size = self._joined((Patterns(), None), named, keep=True)
        if best.trees:
            best, size = self._joined((best, size), ([one] for one in self._filters))
            best, size = self._ordered((best, size))
            best, size = self._without((best, size), self._from_others(best))
        if size != self._n:
            best, size = self._with_common((best, size))
            best, size = self._without((best, size), self._in_common)
        return (best, size == self._n) if best.trees else None

    def counted(self) -> Patterns | None:
        """Return patterns with as many ``?each`` as the answer, a number, says."""
        numbers = [
            int(value) for some in self._whole.values() for value in map(_number, some) if value
        ]
        starts = (one for mention in self.starts for one in mention)
        for start in starts if len(numbers) == self._n == 1 else ():
            for path in paths_that_count(self.client, start, numbers[0], self.question):
                return Patterns((path.tree("each"),))
        return None

    def connected(self) -> Patterns | None:
        """Return patterns that connect two things that the question names."""
        for one, other in combinations(self.starts, 2):
            for start, end in product(one, other):
                if paths := paths_to(self.client, start, [end], question=self.question):
                    return Patterns((Tree(start, ((paths[0].hops, end),)),))
        return None

    @functools.cached_property
    def _whole(self) -> dict[str, list[str]]:
        return {name: [one for one in some if one] for name, some in self.columns.items()}

    @property
    def _n(self) -> int:
        return max(map(len, self.columns.values()), default=0)

    def _from(self, start: str) -> list[Patterns]:
        """Return a path for each column that a start leads to, in all combinations."""
        # A text is one step away from what it names.
        hops = MOST_HOPS + start.startswith('"')
        ways = {
            name: paths_to(self.client, start, some, most_hops=hops, question=self.question)
            for name, some in self._whole.items()
        }
        ways = {name: paths for name, paths in ways.items() if paths}
        if len(ways) == 1:
            return [
                Patterns((path.reversed(name),)) for name, some in ways.items() for path in some
            ]
        return [
            _together(
                Patterns((path.tree(name),)) for name, path in zip(ways, combined, strict=True)
            )
            for combined in (product(*ways.values()) if ways else ())
            if len({path.hops for path in combined}) == len(combined)
        ]

    @functools.cached_property
    def _filters(self) -> list[Patterns]:
        """Filters by a text or number of the question that all values of a column pass."""
        found = list[str]()
        for name, some in self._whole.items():
            plain = [match[1] for one in some if (match := _STRING.fullmatch(one))]
            for text in self.texts if plain and len(plain) == len(some) else ():
                for function, holds in _FILTERS.items():
                    if all(holds(one, text) for one in plain):
                        found.append(f"{function}(?{name}, {string_literal(text)})")
                        break
            numbers = list(map(_number, some))
            for bound in _NUMBER.findall(self.question) if None not in numbers else ():
                above = {one > float(bound) for one in numbers if one is not None}
                if len(above) == 1:
                    found.append(f"?{name} {'>' if above.pop() else '<'} {bound}")
        return [Patterns(filters=(f"FILTER({test})",)) for test in found]

    def _size(self, patterns: Patterns) -> int | None:
        names = patterns.columns
        body = patterns.text(self.client.config.namespaces)
        variables = " ".join(f"?{name}" for name in names)
        rows = zip(*(self.columns[name] for name in names), strict=True)
        some = list(dict.fromkeys(row for row in rows if all(row)))[:MOST_VALUES]
        given = " ".join(f"({' '.join(map(str, row))})" for row in some)
        inside = f"VALUES ({variables}) {{ {given} }} {body}"
        if not names or _count(self.client, variables, inside) < len(some):
            return None
        n = _count(self.client, variables, body)
        # Patterns for some of the columns are never right.
        missing = len(names) < len(self.columns)
        return n + missing if missing or n >= self._n else None

    def _joined(
        self, best: _Sized, parts: Iterable[Sequence[Patterns]], *, keep: bool = False
    ) -> _Sized:
        """Add what leaves the fewest rows, of each choice one at most, while it leaves fewer.

        What all right rows have may be kept too: the rows of another question may not have it.
        """
        (patterns, size), left = best, list(parts)
        while left and (keep or size != self._n):
            sized = [
                (n, one, choice)
                for choice in left
                for part in choice
                if (n := self._size(one := patterns + part))
            ]
            wider = [one for one in sized if len(one[1].columns) > len(patterns.columns)]
            fewer = [one for one in sized if size is None or one[0] < size]
            same = [one for one in sized if one[0] == size == self._n and keep]
            if not (wider or fewer or same):
                break
            size, patterns, choice = min(wider or fewer or same, key=lambda one: one[0])
            left.remove(choice)
        return patterns, size

    def _ordered(self, best: _Sized) -> _Sized:
        """Take the first row by a number, if it is the only one with the highest or lowest."""
        patterns, size = best
        body = patterns.text(self.client.config.namespaces)
        names = " ".join(f"?{one}" for one in patterns.columns)
        numbers = [name for name in patterns.columns if None not in map(_number, self._whole[name])]
        if self._n == 1 != size and len(patterns.columns) == len(self.columns):
            for name, (order, beyond) in product(numbers, (("DESC", ">="), ("ASC", "<="))):
                inside = f"{body} FILTER(?{name} {beyond} {self._whole[name][0]})"
                if _count(self.client, names, inside) == 1:
                    return replace(patterns, order=f"ORDER BY {order}(?{name}) LIMIT 1"), 1
        return best

    def _without(
        self, best: _Sized, leading: Callable[[Sequence[str]], Iterable[DataPath]]
    ) -> _Sized:
        """Leave out what paths to rows that are too many lead to, if that leaves the right ones."""
        patterns, size = best
        body = patterns.text(self.client.config.namespaces)
        for name in patterns.columns if size != self._n else ():
            others = f"FILTER(?{name} NOT IN ({', '.join(self._whole[name])}))"
            query = f"SELECT DISTINCT ?{name} WHERE {{ {body} {others} }} LIMIT {MOST_VALUES}"
            surplus = [str(one) for (one,) in _rows(self.client, query) if one is not None]
            for path in leading(surplus):
                less = patterns + Patterns(filters=(path.reversed(name),))
                if self._size(less) == self._n:
                    return less, self._n
        return best

    def _from_others(self, best: Patterns) -> Callable[[Sequence[str]], Iterator[DataPath]]:
        """Return what leads to values from the starts that some patterns do not use."""
        text = best.text(self.client.config.namespaces)
        starts = [
            one for some in self.starts if not any(one in text for one in some) for one in some
        ]
        return lambda some: (path for one in starts for path in paths_to(self.client, one, some))

    def _in_common(self, values: Sequence[str]) -> Iterator[DataPath]:
        """Yield paths from what values have in common by more than accident."""
        paths = paths_in_common(self.client, values, self.question)
        named = self._named(paths)
        return (one for one in paths if one in named or _tells(one, values))

    def _named(self, paths: Sequence[DataPath]) -> set[DataPath]:
        """Return the paths from texts of the question, and resources whose name or label it has."""
        question, config = self.question.lower(), self.client.config
        starts = " ".join(dict.fromkeys(path.start for path in paths))
        labels = "|".join(f"<{name}>" for name in config.label_properties)
        query = f"SELECT ?r ?l WHERE {{ VALUES ?r {{ {starts} }} ?r {labels} ?l }}"
        names = {one.start: _LAST_PART.split(one.start.strip("<>"))[-1] for one in paths}
        known = {
            start
            for start, name in names.items()
            if name.lower() in question or _words(name, question)
        }
        known |= {start for start in names if start.startswith('"')}
        for one, label in _rows(self.client, query) if starts else ():
            if (
                isinstance(one, NamedNode)
                and isinstance(label, Literal)
                and label.value.lower() in question
            ):
                known.add(written(one, config.namespaces))
        return {path for path in paths if path.start in known}

    def _with_common(self, best: _Sized) -> _Sized:
        """Add one or two resources that all rows have in common."""
        patterns, size = best
        base = _together([patterns, *(() if patterns.trees else self._filters)])
        parts, named = list[tuple[DataPath, Patterns]](), set[DataPath]()
        sized: list[tuple[tuple[float, ...], Patterns, int]] = []
        for column, some in self._whole.items():
            if None in map(_number, some):
                common = paths_in_common(self.client, some, self.question)
                named |= self._named(common)
                # Rows that pass a filter need not have more than a general resource in common.
                paths = [one for one in common if base.filters or one in named or _tells(one, some)]
                paths.sort(key=lambda one: (one not in named, one.reached != self._n, -one.reached))
                some_parts = [(one, Patterns((one.reversed(column),))) for one in paths]
                if size is not None:
                    # What all rows so far have tells none from others.
                    sizes = ((one, self._size(base + one[1])) for one in some_parts)
                    some_parts = [one for one, n in sizes if n is not None and n < size]
                parts += some_parts[:MOST_CONSTANTS]
        if len(self.columns) > 1:
            starts = {path.start: path for path, _ in parts[:MOST_COUNTED]}
            parts += [(path, part) for path in starts.values() for part in self._from(path.start)]
        for chosen in [*((one,) for one in parts), *combinations(parts, 2)]:
            joined = _together([base, *(part for _, part in chosen)])
            n = self._size(joined)
            if n and (size is None or n < size):
                missing = len(self.columns) - len(joined.columns)
                unnamed = len(chosen) - len({path.start for path, _ in chosen if path in named})
                reach = sum(path.reached for path, _ in chosen)
                rank = missing, n != self._n, unnamed, len(chosen), n, -reach
                sized.append((rank, joined, n))
        return min(sized, key=lambda one: one[0])[1:] if sized else best


def _tells(path: DataPath, values: Sequence[str]) -> bool:
    """Return whether values have a resource in common by more than accident."""
    return len(values) >= FEW and path.reached >= FEW


def _together(parts: Iterable[Patterns]) -> Patterns:
    return functools.reduce(Patterns.__add__, parts)
