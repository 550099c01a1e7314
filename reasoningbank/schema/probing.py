"""Probes: finding where a query loses its rows by a few small, bounded queries.

A probe asks for one row of a part of the query as written, or of one step of its property paths.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import count

from reasoningbank.schema.lookups import Lookups
from reasoningbank.sparql.terms import RDF_TYPE
from reasoningbank.sparql.tokens import split_at, tokenize, variables_in
from reasoningbank.sparql.tree import Clause, Group, TriplePattern

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


#: Parts that one request may test on their own.
_MOST_TOGETHER = 40


@dataclass(frozen=True)
class Failure:
    """A part of the query after which no row is left."""

    unit: Unit
    look: Lookups  #: Its context is the GRAPH or SERVICE that the part is in
    before: tuple[Unit, ...] = ()
    alone: bool = False


def find_failures(look: Lookups, unknown: Collection[str] = ()) -> list[Failure]:
    """Return the parts that leave a query without rows, in order; not those of unknown names."""
    query = look.query
    if query.where is None:
        return []
    tail = [unit_of(query.text, query.values)] if query.values is not None else []
    return _failures(look, unknown, query.where, tail)


def _failures(
    look: Lookups, unknown: Collection[str], group: Group, tail: Sequence[Unit] = ()
) -> list[Failure]:
    # A model that loops writes one pattern fifty times.
    distinct = {unit.text: unit for unit in reversed((*units_of(look.query.text, group), *tail))}
    written = list(reversed(distinct.values()))
    every = [unit for unit in written if not _hopeless(unit, unknown, look)]
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
        if unit.kind not in ("values", *_PASSIVE) and (bound[unit] or not _vouched(unit, look))
    ][:_MOST_TOGETHER]
    found = look.which([joined((*bound[unit], unit)) for unit in suspects])
    empty = [u for u, has_rows in zip(suspects, found or (), strict=False) if not has_rows]
    if empty:
        return [failure for u in empty for failure in _within(look, unknown, u, bound[u])]
    failing = _first_failing(units, lambda parts: look.ask(joined(parts)))
    if failing is not None:
        return [Failure(units[failing], look, tuple(units[:failing]), True)]
    removers = [*filters, *minus]
    found = look.which([joined((*units, remover)) for remover in removers])
    # The FILTER or MINUS that removes all rows, by itself or after others.
    culprits = [r for r, has_rows in zip(removers, found or (), strict=False) if not has_rows]
    if culprits:
        return [Failure(unit, look, tuple(units), True) for unit in culprits]
    for at in range(1, len(removers) if found else 0):
        if look.ask(joined((*units, *removers[: at + 1]))) is False:
            return [Failure(removers[at], look, (*units, *removers[:at]), True)]
    return []


def _within(
    look: Lookups, unknown: Collection[str], unit: Unit, bound: Sequence[Unit]
) -> list[Failure]:
    """Search inside a part that matches nothing: GRAPH, SERVICE, a group, a subquery."""
    inside = look
    if unit.kind in ("graph", "service"):
        head = look.query.text[unit.clause.start : unit.clause.groups[0].start]
        inside = replace(look, context=look.context.replace("%s", f"{head}{{ %s }}"))
    if unit.kind in ("graph", "service", "union", "subselect") and unit.clause.groups:
        inner = _failures(inside, unknown, unit.clause.groups[0])
        if inner:
            return inner
    return [Failure(unit, look, tuple(bound))]


def _vouched(unit: Unit, look: Lookups) -> bool:
    """Return whether the schema knows that a part matches."""
    pattern = unit.pattern
    # A schema describes all graphs of the endpoint itself together.
    if pattern is None or look.query.dataset or look.context != "%s":
        return False
    if pattern.subject[:1] not in "?$" or pattern.subject == pattern.object:
        return False
    predicate, is_open = look.name(pattern.predicate), pattern.object[:1] in "?$"
    known = look.schema.properties.get(predicate or "") if is_open else None
    if predicate == RDF_TYPE:
        if is_open:
            return True
        known = look.schema.classes.get(look.name(pattern.object) or "")
    return known is not None and known.in_data


def _hopeless(unit: Unit, unknown: Collection[str], look: Lookups) -> bool:
    """Return whether a part matches nothing because of an unknown name in it."""
    # Names are unknown at the endpoint itself, not inside a SERVICE.
    if unit.pattern is None or look.service:
        return False
    if any(token.text in ("|", "*", "?", "!") for token in tokenize(unit.pattern.predicate)):
        return False  # it can match without the name
    terms = [t.text for t in tokenize(str(unit.pattern)) if t.kind in ("iri", "name")]
    return any(look.name(text) in unknown for text in terms)


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
        own = unit.variables - _variables(units[:at])
        if unit.kind != "optional" or own & _variables((*units[at + 1 :], *filters)):
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
