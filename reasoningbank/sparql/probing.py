"""Where a query loses its rows: the first part that fails, found by a few bounded probes.

A probe asks for one row of a part of the query. Parts are taken from the query as it is written
(`clauses.py`), property paths split into their steps, so that the answer can be told in the
writer's own words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from reasoningbank.sparql.clauses import Group, TriplePattern, WrittenQuery
from reasoningbank.sparql.prober import Prober
from reasoningbank.sparql.units import Unit, joined, unit_of, units_of, variables_in

__all__ = ["Failure", "find_failures"]

#: Parts that one request may test by themselves.
_MOST_TOGETHER = 40


@dataclass(frozen=True)
class Failure:
    """A part of the query after which no row is left.

    Attributes:
        unit: The part.
        before: What stands before it and has rows by itself; where `alone` is False, only the
            VALUES and BIND that give it constants.
        alone: Whether the part has rows by itself; None where it was not found out.
        context: What the group stands in, such as ``GRAPH ?g { … }``, with ``%s`` for the inside.
    """

    unit: Unit
    before: tuple[Unit, ...] = ()
    alone: bool | None = False
    context: str = "%s"

    def body(self, *units: Unit | str) -> str:
        """Return parts as the inside of a group, in the failing part's context."""
        return self.context.replace("%s", joined(units))


def _nothing(pattern: TriplePattern) -> bool:
    return False


def find_failures(
    query: WrittenQuery,
    prober: Prober,
    *,
    vouched: Callable[[TriplePattern], bool] = _nothing,
    hopeless: Callable[[Unit], bool] = lambda unit: False,
) -> list[Failure]:
    """Return the parts that leave a query without rows, the first one first.

    Parts that match nothing by themselves are told, all of them; where there are none, the one
    part after which no row is left.

    Args:
        query: The query; its WHERE group is searched.
        prober: What sends the probes.
        vouched: Whether a pattern is known to match, so that it need not be asked for alone.
        hopeless: Whether a part is known to match nothing; it is neither probed nor told.
    """
    if query.where is None:
        return []
    tail = [unit_of(query.text, query.values)] if query.values is not None else []
    if query.dataset:
        vouched = _nothing
    return _search(query.text, query.where, prober, vouched, hopeless, "%s", tail)


def _search(
    text: str,
    group: Group,
    prober: Prober,
    vouched: Callable[[TriplePattern], bool],
    hopeless: Callable[[Unit], bool],
    context: str,
    tail: Sequence[Unit] = (),
) -> list[Failure]:
    # A model that loops writes one pattern fifty times.
    distinct = {unit.text: unit for unit in reversed((*units_of(text, group), *tail))}
    written = list(reversed(distinct.values()))
    every = [unit for unit in written if not hopeless(unit)]
    # A condition on what a part left out would have bound says nothing about the rest.
    lost = variables_in(u for u in written if u not in every) - variables_in(
        u for u in every if u.kind != "filter"
    )
    filters = [u for u in every if u.kind == "filter" and not u.variables & lost]
    units = _needed([unit for unit in every if unit.kind not in ("filter", "minus")], filters)
    minus = [unit for unit in every if unit.kind == "minus"]

    def inside(parts: Iterable[Unit]) -> str:
        return context.replace("%s", joined(parts))

    bound = {unit: _bound(unit, units) for unit in units}
    suspects = [
        unit
        for unit in units
        if not unit.passive
        and unit.kind != "values"
        and (bound[unit] or unit.pattern is None or not vouched(unit.pattern))
    ][:_MOST_TOGETHER]
    found = prober.which([inside([*bound[unit], unit]) for unit in suspects])
    has_rows = dict(zip(suspects, found, strict=True)) if found is not None else {}
    empty = [unit for unit in suspects if not has_rows.get(unit, True)]
    if empty:
        return [
            failure
            for unit in empty
            for failure in _within(text, unit, bound[unit], prober, vouched, hopeless, context)
        ]
    failing = _first_failing(units, lambda parts: prober.ask(inside(parts)))
    if failing is not None:
        return [Failure(units[failing], tuple(units[:failing]), True, context)]
    return _removing([*filters, *minus], units, prober, inside, context)


def _within(
    text: str,
    unit: Unit,
    bound: Sequence[Unit],
    prober: Prober,
    vouched: Callable[[TriplePattern], bool],
    hopeless: Callable[[Unit], bool],
    context: str,
) -> list[Failure]:
    """Look into a part that matches nothing: GRAPH, SERVICE, a group, a subquery."""
    if unit.kind in ("graph", "service", "union", "subselect") and unit.clause.groups:
        head = text[unit.clause.start : unit.clause.groups[0].start]
        outer = f"{head}{{ %s }}" if unit.kind in ("graph", "service") else "%s"
        # What a vocabulary knows, it knows of all graphs together.
        known = vouched if unit.kind in ("union", "subselect") else _nothing
        inner = _search(
            text, unit.clause.groups[0], prober, known, hopeless, context.replace("%s", outer)
        )
        if inner:
            return inner
    return [Failure(unit, tuple(bound), False, context)]


def _first_failing(
    units: Sequence[Unit], ask: Callable[[Sequence[Unit]], bool | None]
) -> int | None:
    """Return the index of the part after which no row is left; None if rows are left."""
    counted = [at for at, unit in enumerate(units) if not unit.passive]
    if len(counted) < 2 or ask(units) is not False:
        return None
    low, high = 0, len(counted) - 1  # the first by itself matches, all together do not
    while high - low > 1:
        middle = (low + high) // 2
        answer = ask(units[: counted[middle] + 1])
        if answer is None:
            return None
        low, high = (middle, high) if answer else (low, middle)
    return counted[high]


def _removing(
    removers: Sequence[Unit],
    units: Sequence[Unit],
    prober: Prober,
    inside: Callable[[Iterable[Unit]], str],
    context: str,
) -> list[Failure]:
    """Return the FILTER or MINUS that takes all rows away."""
    if not removers:
        return []
    found = prober.which([inside([*units, remover]) for remover in removers])
    if found is None:
        return []
    culprits = [r for r, has_rows in zip(removers, found, strict=True) if not has_rows]
    if culprits:
        return [Failure(unit, tuple(units), True, context) for unit in culprits]
    for at in range(1, len(removers)):
        if prober.ask(inside([*units, *removers[: at + 1]])) is False:
            return [Failure(removers[at], (*units, *removers[:at]), True, context)]
    return []


def _needed(units: Sequence[Unit], filters: Sequence[Unit]) -> list[Unit]:
    """Leave OPTIONALs out whose variables nobody else uses."""
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
