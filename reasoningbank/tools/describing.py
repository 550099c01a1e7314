"""Describe a resource, sample a class, and count, in bounded queries."""

from __future__ import annotations

import contextlib
import re
from dataclasses import dataclass, replace
from typing import NamedTuple

from pyoxigraph import Literal, NamedNode

from reasoningbank.errors import QueryError
from reasoningbank.schema.sampling import Ask, EndpointProfile, brief
from reasoningbank.sparql import TableResult, Term, compact, iri
from reasoningbank.sparql.tokens import tokenize
from reasoningbank.sparql.tree import read_query

#: Triples of one resource that are looked at; half a store can point to one resource.
MOST_TRIPLES = 10_000
#: Properties of one resource that are counted.
MOST_PROPERTIES = 1_000
#: Solutions that a bounded count looks at.
MOST_COUNTED = 100_000

_COUNT = re.compile(
    r"(?P<head>SELECT\s*\(\s*COUNT\s*\(\s*(?P<distinct>DISTINCT)?\s*(?P<column>\*|[?$]\w+)\s*\)"
    r"\s*AS\s*[?$]\w+\s*\))\s*(WHERE\s*)?",
    re.IGNORECASE,
)
#: What parentheses hold, with others inside, three deep.
_INSIDE = r"(?:[^()]|\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\))*"
_GROUPED = re.compile(r"\bGROUP\s+BY\b", re.IGNORECASE)
_COUNT_COLUMN = re.compile(rf"\(\s*COUNT\s*\({_INSIDE}\)\s*AS\s*[?$](\w+)\s*\)", re.IGNORECASE)


@dataclass(frozen=True)
class Said:
    """A property of a resource: some of its values, and how many there are."""

    property: Term
    side: str
    values: tuple[Term, ...]
    count: int


class About(NamedTuple):
    """The properties of a resource, the rarest first, then what points to it; notes."""

    said: tuple[Said, ...] = ()
    notes: tuple[str, ...] = ()


def describe(profile: EndpointProfile, uri: str, limit: int) -> About:
    """Return the triples of a resource: first one of each property, and of what points to it.

    Where `limit` leaves room, further values of its properties follow, the fewest first.
    """
    ask = profile.ask()
    outgoing, notes = _about(ask, "o", profile.within(f"{iri(uri)} ?p ?o"))
    incoming: tuple[Said, ...] = ()
    try:
        incoming, more = _about(ask, "s", profile.within(f"?s ?p {iri(uri)}"))
        notes = (*notes, *more)
    except QueryError as error:
        notes = (*notes, f"what points to it is not shown: {brief(error)}")
    room = max(0, limit - len(outgoing) - len(incoming))
    rows: list[tuple[Term | None, ...]] = []
    # Of a property whose IRI has characters that IRIs forbid, one value is enough.
    with contextlib.suppress(QueryError):
        several = [iri(str(one.property)[1:-1]) for one in outgoing if one.count > 1 and room]
        branches = " UNION ".join(
            f"{{ SELECT ({p} AS ?p) ?o WHERE {{ {profile.within(f'{iri(uri)} {p} ?o')} }} "
            f"LIMIT {room + 1} }}"
            for p in several
        )
        rows = ask(f"SELECT ?p ?o WHERE {{ {branches} }}").rows() if branches else []
    whole = []
    for one in outgoing:
        others = [value for p, value in rows if p == one.property and value is not None]
        shown = tuple(dict.fromkeys((*one.values, *others)))[: room + 1]
        room -= len(shown) - 1
        whole.append(replace(one, values=shown))
    return About((*whole, *incoming), notes)


def sample(profile: EndpointProfile, class_iri: str, n: int) -> tuple[list[Term], About]:
    """Return `n` instances of a class, and the properties of the first of them."""
    ask = profile.ask()
    members = profile.within(f"?s a {iri(class_iri)}")
    rows = ask(f"SELECT ?s WHERE {{ {members} }} LIMIT {n}").rows()
    instances = [row[0] for row in rows if row[0] is not None]
    if not instances:
        return [], About()
    pattern = f"{{ SELECT ?s WHERE {{ {members} }} LIMIT 1 }} {profile.within('?s ?p ?o')}"
    # A blank node, and an IRI with characters that IRIs forbid, cannot stand in a query.
    with contextlib.suppress(QueryError):
        if isinstance(instances[0], NamedNode):
            pattern = profile.within(f"{iri(instances[0])} ?p ?o")
    try:
        return instances, _about(ask, "o", pattern)
    except QueryError as error:
        return instances, About((), (f"the first is not described: {brief(error)}",))


def _about(ask: Ask, side: str, pattern: str) -> About:
    rows = ask(
        f"SELECT ?p (SAMPLE(?{side}) AS ?example) (COUNT(?{side}) AS ?count) WHERE {{\n"
        f"  {{ SELECT ?p ?{side} WHERE {{ {pattern} }} LIMIT {MOST_TRIPLES} }}\n"
        f"}} GROUP BY ?p ORDER BY ?count ?p LIMIT {MOST_PROPERTIES}"
    ).rows()
    said = tuple(
        Said(name, side, (example,), int(count.value))
        for name, example, count in rows
        if name is not None and example is not None and isinstance(count, Literal)
    )
    if sum(one.count for one in said) < MOST_TRIPLES:
        return About(said)
    direction = "it has" if side == "o" else "point to it"
    note = f"counts are those of the first {MOST_TRIPLES:,} triples that {direction}"
    return About(said, (note,))


def counted(query: str, result: TableResult) -> tuple[int | float, str]:
    """Return the number that a result says (of its COUNT, its one value, its rows), and of what."""
    counts = [name for name in _COUNT_COLUMN.findall(query) if name in result.variables]
    row = dict(zip(result.variables, result.rows(0, 1)[0], strict=True)) if result.n_rows else {}
    if result.n_rows == 1:
        name = next(iter(row)) if len(row) == 1 else ""
        if len(counts) == 1 or (counts and not _GROUPED.search(query)):
            name = counts[0]
        number = compact(row.get(name))
        if isinstance(number, int | float) and not isinstance(number, bool):
            if name not in counts:
                return number, f"this is the value of ?{name}, which is not a COUNT"
            others = (f"; ?{other} is {compact(row[other])}" for other in counts if other != name)
            return number, f"this is ?{name}{''.join(others)}" if len(row) > 1 else ""
    what = "groups, not what is in them" if counts else "rows: the query has no COUNT"
    capped = ", cut at the endpoint's cap" if result.truncated else ""
    return result.n_rows, f"this is the number of {what}{capped}"


def bounded_count(query: str, most: int = MOST_COUNTED) -> str | None:
    """Return a query that counts among the first `most` solutions; None if it is no plain count."""
    try:
        tree = read_query(query)
    except QueryError:
        return None
    if tree.where is None or tree.dataset or tokenize(query[tree.where.end :]):
        return None
    count = _COUNT.fullmatch(query[tree.body[0].start : tree.where.start])
    if count is None:
        return None
    inner = count["column"] if count["distinct"] else "*"
    where = query[tree.where.start : tree.where.end]
    prologue = query[: tree.body[0].start]
    return f"{prologue}{count['head']} WHERE {{ {{ SELECT {inner} WHERE {where} LIMIT {most} }} }}"
