"""Probes: finding where a query loses its rows by a few small, bounded queries.

A probe asks for one row of a part of the query as written, or of one step of its property paths.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import count

from pyoxigraph import Literal

from reasoningbank.errors import EndpointError, QueryError, ToolError
from reasoningbank.sparql.results import BooleanResult, Result, TableResult
from reasoningbank.sparql.terms import Term
from reasoningbank.sparql.tokens import split_at, tokenize, variables_in
from reasoningbank.sparql.tree import Clause, Group, QueryTree, TriplePattern

#: Kinds of parts that can never lose rows.
_PASSIVE = ("optional", "bind")
_GENERATED = re.compile(r"\?(?:path\d+_step\d+|blank_\w+)")


@dataclass(frozen=True)
class Unit:
    """A part of a group that can lose rows, or that other parts need."""

    text: str
    shown: str
    kind: str
    clause: Clause = field(repr=False)
    pattern: TriplePattern | None = None
    whole: TriplePattern | None = None

    @cached_property
    def variables(self) -> frozenset[str]:
        return frozenset(variables_in(self.text))


def joined(units: Iterable[Unit | str]) -> str:
    return " ".join(unit if isinstance(unit, str) else unit.text for unit in units)


def units_of(text: str, group: Group) -> list[Unit]:
    """Return the parts of a group in written order, paths split into their steps."""
    found: list[Unit] = []
    numbers = count()
    for clause in group.clauses:
        for pattern in clause.patterns:
            steps = steps_of(pattern, next(numbers))
            whole = None
            if len(steps) > 1:
                whole = TriplePattern(steps[0].subject, pattern.predicate, steps[-1].object)
            found += (
                Unit(f"{step} .", str(pattern), "triples", clause, step, whole) for step in steps
            )
        if not clause.patterns:
            found.append(unit_of(text, clause))
    return found


def unit_of(text: str, clause: Clause) -> Unit:
    """Return a clause as one part."""
    written = text[clause.start : clause.end]
    sparql = f"{{ {written} }}" if clause.kind == "subselect" else written
    return Unit(sparql, written, clause.kind, clause)


def steps_of(pattern: TriplePattern, number: int = 0) -> list[TriplePattern]:
    """Split the path of a pattern into its steps, and turn blank nodes into variables."""
    path = tokenize(pattern.predicate)
    steps = split_at(path, "/") if len(split_at(path, "|")) == 1 else [path]
    texts = [pattern.predicate[s[0].start : s[-1].end] for s in steps]
    between = (f"?path{number}_step{at}" for at in range(1, len(texts)))
    ends = [pattern.subject, *between, pattern.object]
    named = [f"?blank_{end[2:]}" if end.startswith("_:") else end for end in ends]
    return list(map(TriplePattern, named, texts, named[1:]))


def is_generated(name: str) -> bool:
    """Return whether a variable was generated for the step of a path or a blank node."""
    return _GENERATED.fullmatch(f"?{name}") is not None


def written_text(text: str) -> str:
    """Return a part of a query without the variables that its author does not know."""
    return _GENERATED.sub("…", text)


#: Requests one search may send, and seconds it may take in total.
MOST_PROBES = 16
MOST_SECONDS = 8.0

Run = Callable[[str], Result]


class Prober:
    """Sends probes of one query until its requests or seconds are used up; none without `run`."""

    def __init__(self, query: QueryTree, run: Run | None, *, most: int = MOST_PROBES) -> None:
        self._prologue = query.text[: query.body[0].start]
        #: The FROM clauses of the query.
        self.dataset = query.dataset
        self._run = run
        self._left = most
        self._end = time.monotonic() + MOST_SECONDS

    def ask(self, body: str) -> bool | None:
        """Return whether a group has a row; None if that is unknown."""
        result = self._send(f"ASK {self._where(body)}")
        return result.value if isinstance(result, BooleanResult) else None

    def rows(
        self,
        variables: Sequence[str],
        body: str,
        limit: int = 1,
        *,
        distinct: bool = False,
        anywhere: bool = False,
    ) -> list[tuple[Term | None, ...]] | None:
        """Return a few rows of a group; None if they are unknown."""
        names = " ".join(f"?{name}" for name in variables)
        kind = "DISTINCT " if distinct else ""
        result = self._send(f"SELECT {kind}{names} {self._where(body, anywhere)} LIMIT {limit}")
        return result.rows(0, limit) if isinstance(result, TableResult) else None

    def which(self, bodies: Sequence[str]) -> list[bool] | None:
        """Return, with one request, which of several groups have a row; None if it failed."""
        if not bodies:
            return []
        parts = (
            f"{{ SELECT ({at} AS ?part) {{ {body} }} LIMIT 1 }}" for at, body in enumerate(bodies)
        )
        found = self.rows(["part"], " UNION ".join(parts), len(bodies))
        if found is None:
            return None
        seen = {int(term.value) for (term,) in found if isinstance(term, Literal)}
        return [at in seen for at in range(len(bodies))]

    def _where(self, body: str, anywhere: bool = False) -> str:
        return f"{'' if anywhere else self.dataset} WHERE {{ {body} }}"

    def _send(self, query: str) -> Result | None:
        if self._run is None or self._left <= 0 or time.monotonic() >= self._end:
            return None
        self._left -= 1
        try:
            return self._run(self._prologue + query)
        except (QueryError, EndpointError, ToolError):
            return None


#: Parts that one request may test on their own.
_MOST_TOGETHER = 40


@dataclass(frozen=True)
class Failure:
    """A part of the query after which no row is left."""

    unit: Unit
    before: tuple[Unit, ...] = ()
    alone: bool | None = False
    context: str = "%s"


def find_failures(
    query: QueryTree,
    prober: Prober,
    *,
    vouched: Callable[[TriplePattern], bool] = lambda pattern: False,
    hopeless: Callable[[Unit], bool] = lambda unit: False,
) -> list[Failure]:
    """Return the parts that leave a query without rows, the first one first."""
    if query.where is None:
        return []
    tail = [unit_of(query.text, query.values)] if query.values is not None else []
    # A vocabulary describes all graphs together.
    search = _Search(query.text, prober, hopeless, None if query.dataset else vouched)
    return search.failures(query.where, tail)


@dataclass(frozen=True)
class _Search:
    text: str
    prober: Prober
    hopeless: Callable[[Unit], bool]
    vouched: Callable[[TriplePattern], bool] | None
    context: str = "%s"

    def _inside(self, *parts: Unit) -> str:
        return self.context.replace("%s", joined(parts))

    def _vouches(self, pattern: TriplePattern | None) -> bool:
        return pattern is not None and self.vouched is not None and self.vouched(pattern)

    def failures(self, group: Group, tail: Sequence[Unit] = ()) -> list[Failure]:
        # A model that loops writes one pattern fifty times.
        distinct = {unit.text: unit for unit in reversed((*units_of(self.text, group), *tail))}
        written = list(reversed(distinct.values()))
        # Names are unknown at the endpoint itself, not inside a SERVICE.
        here = re.search(r"\bSERVICE\s", self.context, re.IGNORECASE) is None
        every = [unit for unit in written if not (here and self.hopeless(unit))]
        # A condition on variables of a part left out says nothing about the rest.
        lost = _variables(u for u in written if u not in every) - _variables(
            u for u in every if u.kind != "filter"
        )
        filters = [u for u in every if u.kind == "filter" and not u.variables & lost]
        units = _needed([u for u in every if u.kind not in ("filter", "minus")], filters)
        minus = [unit for unit in every if unit.kind == "minus"]
        bound = {unit: _bound(unit, units) for unit in units}
        suspects = [
            unit
            for unit in units
            if unit.kind not in ("values", *_PASSIVE)
            and (bound[unit] or not self._vouches(unit.pattern))
        ][:_MOST_TOGETHER]
        found = self.prober.which([self._inside(*bound[unit], unit) for unit in suspects])
        empty = [u for u, has_rows in zip(suspects, found or (), strict=False) if not has_rows]
        if empty:
            return [failure for unit in empty for failure in self._within(unit, bound[unit])]
        failing = _first_failing(units, lambda parts: self.prober.ask(self._inside(*parts)))
        if failing is not None:
            return [Failure(units[failing], tuple(units[:failing]), True, self.context)]
        removers = [*filters, *minus]
        found = self.prober.which([self._inside(*units, remover) for remover in removers])
        # The FILTER or MINUS that removes all rows, by itself or after others.
        culprits = [r for r, has_rows in zip(removers, found or (), strict=False) if not has_rows]
        if culprits:
            return [Failure(unit, tuple(units), True, self.context) for unit in culprits]
        for at in range(1, len(removers) if found else 0):
            if self.prober.ask(self._inside(*units, *removers[: at + 1])) is False:
                return [Failure(removers[at], (*units, *removers[:at]), True, self.context)]
        return []

    def _within(self, unit: Unit, bound: Sequence[Unit]) -> list[Failure]:
        """Search inside a part that matches nothing: GRAPH, SERVICE, a group, a subquery."""
        inside = self
        if unit.kind in ("graph", "service"):
            head = self.text[unit.clause.start : unit.clause.groups[0].start]
            context = self.context.replace("%s", f"{head}{{ %s }}")
            inside = replace(self, vouched=None, context=context)
        if unit.kind in ("graph", "service", "union", "subselect") and unit.clause.groups:
            inner = inside.failures(unit.clause.groups[0])
            if inner:
                return inner
        return [Failure(unit, tuple(bound), False, self.context)]


def _variables(units: Iterable[Unit]) -> frozenset[str]:
    return frozenset(name for unit in units for name in unit.variables)


def _first_failing(
    units: Sequence[Unit], ask: Callable[[Sequence[Unit]], bool | None]
) -> int | None:
    """Return the index of the part after which no row is left; None if rows are left."""
    counted = [at for at, unit in enumerate(units) if unit.kind not in _PASSIVE]
    if len(counted) < 2 or ask(units) is not False:
        return None
    low, high = 0, len(counted) - 1  # the first alone matches, all together do not
    while high - low > 1:
        middle = (low + high) // 2
        answer = ask(units[: counted[middle] + 1])
        if answer is None:
            return None
        low, high = (middle, high) if answer else (low, middle)
    return counted[high]


def _needed(units: Sequence[Unit], filters: Sequence[Unit]) -> list[Unit]:
    """Leave out each OPTIONAL whose variables no other part uses."""
    kept: list[Unit] = []
    for at, unit in enumerate(units):
        others = [*units[at + 1 :], *filters]
        own = unit.variables - {v for other in units[:at] for v in other.variables}
        if unit.kind != "optional" or any(own & other.variables for other in others):
            kept.append(unit)
    return kept


def _bound(unit: Unit, units: Sequence[Unit]) -> list[Unit]:
    """Return the BIND and VALUES before a part that give constants to its variables."""
    return [
        other
        for other in units[: units.index(unit)]
        if (other.kind == "values" or (other.kind == "bind" and len(other.variables) == 1))
        and other.variables & unit.variables
    ]
