"""Search for triple patterns that together have exactly the rows of an answer.

They are made of paths from what a question names (`reasoningbank.schema.paths`), of what all rows
have in common, and of filters.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain, combinations, product

from pyoxigraph import Literal, NamedNode

from reasoningbank.schema.paths import (
    MOST_COUNTED,
    MOST_HOPS,
    MOST_VALUES,
    DataPath,
    Patterns,
    Tree,
    count_rows,
    paths_in_common,
    paths_that_count,
    paths_to,
    rows_of,
    words_said,
)
from reasoningbank.sparql import SPARQLClient
from reasoningbank.sparql.terms import last_part, string_literal, written

#: Constants that are combined.
MOST_CONSTANTS = 12
#: What fewer rows have in common they may have by accident.
FEW = 3
_FILTERS: Mapping[str, Callable[[str, str], bool]] = {
    "STRSTARTS": str.startswith,
    "STRENDS": str.endswith,
    "CONTAINS": str.__contains__,
}
_STRING = re.compile(r'"(.*)"(?:@[\w-]+)?', re.DOTALL)
_NUMBER = re.compile(r"[+-]?\d+(?:\.\d+)?")
_NUMERIC = re.compile(r'"?([+-]?[\d.]+(?:[eE][+-]?\d+)?)(?:"\^\^\S*)?')

#: Patterns, and how many rows they have; None if they lack some of the answer's.
_Sized = tuple[Patterns, int | None]


@dataclass(frozen=True)
class PatternSearch:
    """Searches for patterns that have all rows of an answer and, if possible, no others.

    Attributes:
        client: Sends some hundred small queries, each with a limit of 30 seconds.
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
        values = map(_number, chain.from_iterable(self._whole.values()))
        numbers = [int(value) for value in values if value]
        for start in chain.from_iterable(self.starts) if len(numbers) == self._n == 1 else ():
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
            ((name, paths),) = ways.items()
            return [Patterns((path.reversed(name),)) for path in paths]
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

    @functools.cached_property
    def _size(self) -> Callable[[Patterns], int | None]:
        return functools.cache(self._counted)  # The same patterns are met again and again.

    def _counted(self, patterns: Patterns) -> int | None:
        names = patterns.columns
        body = patterns.text(self.client.config.namespaces)
        variables = " ".join(f"?{name}" for name in names)
        rows = zip(*(self.columns[name] for name in names), strict=True)
        some = list(dict.fromkeys(row for row in rows if all(row)))[:MOST_VALUES]
        given = " ".join(f"({' '.join(map(str, row))})" for row in some)
        inside = f"VALUES ({variables}) {{ {given} }} {body}"
        if not names or count_rows(self.client, variables, inside) < len(some):
            return None
        n = count_rows(self.client, variables, body)
        # Patterns for some of the columns are never right.
        missing = len(names) < len(self.columns)
        return n + missing if missing or n >= self._n else None

    def _joined(
        self, best: _Sized, parts: Iterable[Sequence[Patterns]], *, keep: bool = False
    ) -> _Sized:
        """Add what leaves the fewest rows, of each choice one at most, while it leaves fewer."""
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
            # What all right rows have: those of another question may not have it.
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
                if count_rows(self.client, names, inside) == 1:
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
            surplus = [str(one) for (one,) in rows_of(self.client, query) if one is not None]
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
        names = {one.start: last_part(one.start.strip("<>")) for one in paths}
        known = {
            start
            for start, name in names.items()
            if start[0] == '"' or name.lower() in question or words_said(name, question)
        }
        for one, label in rows_of(self.client, query) if starts else ():
            is_named = isinstance(label, Literal) and label.value.lower() in question
            if is_named and isinstance(one, NamedNode):
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
                    some_parts = [p for p in some_parts if (self._size(base + p[1]) or size) < size]
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


def _number(term: str) -> float | None:
    """Return the value of a number as a query writes it; None for other terms."""
    match = _NUMERIC.fullmatch(term)
    with suppress(ValueError):
        return float(match[1]) if match else None
    return None
