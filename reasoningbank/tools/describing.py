"""Describe a resource, sample a class, and count, in bounded queries."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass

from pyoxigraph import Literal, NamedNode

from reasoningbank.errors import QueryError
from reasoningbank.schema.profile import Ask, EndpointProfile, brief
from reasoningbank.sparql import Term, iri
from reasoningbank.sparql.tokens import Token, tokenize

__all__ = ["MOST_COUNTED", "About", "Said", "Sample", "bounded_count", "describe", "sample"]

#: Triples of one resource that are looked at; half a store can point to one resource.
MOST_TRIPLES = 10_000
#: Solutions that a bounded count looks at.
MOST_COUNTED = 100_000

_SHAPES = (
    ("SELECT", "(", "COUNT", "(", "*", ")", "AS", "?", ")"),
    ("SELECT", "(", "COUNT", "(", "?", ")", "AS", "?", ")"),
    ("SELECT", "(", "COUNT", "(", "DISTINCT", "?", ")", "AS", "?", ")"),
)


@dataclass(frozen=True)
class Said:
    """One property of a resource."""

    property: Term
    side: str
    example: Term
    count: int


@dataclass(frozen=True)
class About:
    """The properties of a resource, the rarest first, then what points to it."""

    said: tuple[Said, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Sample:
    """Instances of a class, and the properties of the first."""

    instances: tuple[Term, ...]
    first: About


def describe(profile: EndpointProfile, uri: str, limit: int) -> About:
    """Return the properties of a resource with an example each, and what points to it."""
    ask = profile.ask()
    outgoing, notes = _about(profile, ask, "o", f"{iri(uri)} ?p ?o", limit)
    try:
        incoming, more = _about(profile, ask, "s", f"?s ?p {iri(uri)}", limit)
    except QueryError as error:
        return About(outgoing, (*notes, f"what points to it is not shown: {brief(error)}"))
    return About((*outgoing, *incoming), tuple(dict.fromkeys((*notes, *more))))


def sample(profile: EndpointProfile, class_iri: str, n: int, properties: int) -> Sample:
    """Return `n` instances of a class and `properties` properties of the first of them."""
    ask = profile.ask()
    members = profile.within(f"?s a {iri(class_iri)}")
    rows = ask(f"SELECT ?s WHERE {{ {members} }} LIMIT {n}").rows()
    instances = tuple(row[0] for row in rows if row[0] is not None)
    if not instances:
        return Sample((), About(()))
    pattern = f"{{ SELECT ?s WHERE {{ {members} }} LIMIT 1 }} {profile.within('?s ?p ?o')}"
    # A blank node, and an IRI with characters that IRIs forbid, cannot stand in a query.
    with contextlib.suppress(QueryError):
        if isinstance(instances[0], NamedNode):
            pattern = profile.within(f"{iri(instances[0])} ?p ?o")
    try:
        said, notes = _about(profile, ask, "o", pattern, properties, ready=True)
    except QueryError as error:
        said, notes = (), (f"the first is not described: {brief(error)}",)
    return Sample(instances, About(said, notes))


def _about(
    profile: EndpointProfile, ask: Ask, side: str, pattern: str, limit: int, *, ready: bool = False
) -> tuple[tuple[Said, ...], tuple[str, ...]]:
    where = pattern if ready else profile.within(pattern)
    rows = ask(
        f"SELECT ?p (SAMPLE(?{side}) AS ?example) (COUNT(?{side}) AS ?count) WHERE {{\n"
        f"  {{ SELECT ?p ?{side} WHERE {{ {where} }} LIMIT {MOST_TRIPLES} }}\n"
        f"}} GROUP BY ?p ORDER BY ?count ?p LIMIT {limit + 1}"
    ).rows()
    said = tuple(
        Said(name, side, example, int(count.value))
        for name, example, count in rows
        if name is not None and example is not None and isinstance(count, Literal)
    )
    # Beyond the limit there may be properties with any number of triples.
    if len(said) <= limit and sum(one.count for one in said) < MOST_TRIPLES:
        return said, ()
    direction = "it has" if side == "o" else "point to it"
    return said, (f"counts are those of the first {MOST_TRIPLES:,} triples that {direction}",)


def bounded_count(query: str, most: int = MOST_COUNTED) -> str | None:
    """Return a query that counts the same among the first `most` solutions."""
    tokens = tokenize(query)
    start = next((i for i, t in enumerate(tokens) if t.text.upper() == "SELECT"), None)
    if start is None:
        return None
    for shape in _SHAPES:
        head = tokens[start : start + len(shape)]
        if len(head) < len(shape) or not all(map(_fits, head, shape)):
            continue
        rest = tokens[start + len(shape) :]
        if rest and rest[0].text.upper() == "WHERE":
            rest = rest[1:]
        # Something after the last brace would be a modifier, or a FROM before the first.
        if not rest or rest[0].text != "{" or rest[-1].text != "}" or not _one_group(rest):
            return None
        column = next((t.text for t in head[3:] if t.kind == "variable"), "*")
        inner = column if "DISTINCT" in shape else "*"
        where = query[rest[0].start : rest[-1].end]
        count = query[head[0].start : head[-1].end]
        prologue = query[: head[0].start]
        return f"{prologue}{count} WHERE {{ {{ SELECT {inner} WHERE {where} LIMIT {most} }} }}"
    return None


def _fits(token: Token, wanted: str) -> bool:
    return token.kind == "variable" if wanted == "?" else token.text.upper() == wanted


def _one_group(tokens: Sequence[Token]) -> bool:
    depth = 0
    for at, token in enumerate(tokens):
        depth += {"{": 1, "}": -1}.get(token.text, 0)
        if depth == 0:
            return at == len(tokens) - 1
    return False
