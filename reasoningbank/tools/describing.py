"""Describe a resource, sample a class, and count, in bounded queries."""

from __future__ import annotations

import contextlib
import re
from dataclasses import dataclass
from typing import NamedTuple

from pyoxigraph import Literal, NamedNode

from reasoningbank.errors import QueryError
from reasoningbank.schema.profile import Ask, EndpointProfile, brief
from reasoningbank.sparql import Term, iri
from reasoningbank.sparql.tokens import tokenize
from reasoningbank.sparql.tree import read_query

#: Triples of one resource that are looked at; half a store can point to one resource.
MOST_TRIPLES = 10_000
#: Solutions that a bounded count looks at.
MOST_COUNTED = 100_000

_COUNT = re.compile(
    r"(?P<head>SELECT\s*\(\s*COUNT\s*\(\s*(?P<distinct>DISTINCT)?\s*(?P<column>\*|[?$]\w+)\s*\)"
    r"\s*AS\s*[?$]\w+\s*\))\s*(WHERE\s*)?",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Said:
    """One property of a resource."""

    property: Term
    side: str
    example: Term
    count: int


class About(NamedTuple):
    """The properties of a resource, the rarest first, then what points to it; notes."""

    said: tuple[Said, ...] = ()
    notes: tuple[str, ...] = ()


def describe(profile: EndpointProfile, uri: str, limit: int) -> About:
    """Return the properties of a resource with an example each, and what points to it."""
    ask = profile.ask()
    outgoing, notes = _about(ask, "o", profile.within(f"{iri(uri)} ?p ?o"), limit)
    try:
        incoming, more = _about(ask, "s", profile.within(f"?s ?p {iri(uri)}"), limit)
    except QueryError as error:
        return About(outgoing, (*notes, f"what points to it is not shown: {brief(error)}"))
    return About((*outgoing, *incoming), tuple(dict.fromkeys((*notes, *more))))


def sample(
    profile: EndpointProfile, class_iri: str, n: int, properties: int
) -> tuple[list[Term], About]:
    """Return `n` instances of a class and `properties` properties of the first of them."""
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
        return instances, _about(ask, "o", pattern, properties)
    except QueryError as error:
        return instances, About((), (f"the first is not described: {brief(error)}",))


def _about(ask: Ask, side: str, pattern: str, limit: int) -> About:
    rows = ask(
        f"SELECT ?p (SAMPLE(?{side}) AS ?example) (COUNT(?{side}) AS ?count) WHERE {{\n"
        f"  {{ SELECT ?p ?{side} WHERE {{ {pattern} }} LIMIT {MOST_TRIPLES} }}\n"
        f"}} GROUP BY ?p ORDER BY ?count ?p LIMIT {limit + 1}"
    ).rows()
    said = tuple(
        Said(name, side, example, int(count.value))
        for name, example, count in rows
        if name is not None and example is not None and isinstance(count, Literal)
    )
    # Beyond the limit there may be properties with any number of triples.
    if len(said) <= limit and sum(one.count for one in said) < MOST_TRIPLES:
        return About(said)
    direction = "it has" if side == "o" else "point to it"
    return About(
        said, (f"counts are those of the first {MOST_TRIPLES:,} triples that {direction}",)
    )


def bounded_count(query: str, most: int = MOST_COUNTED) -> str | None:
    """Return a query that counts the same among the first `most` solutions.

    None if it is not a plain count: several columns, groups, modifiers.
    """
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
