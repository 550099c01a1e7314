"""What is said of one resource, and the instances of one class, in bounded queries."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass

from pyoxigraph import Literal, NamedNode

from reasoningbank.errors import QueryError
from reasoningbank.sparql import Term, iri
from reasoningbank.tools.exploring.ladder import brief
from reasoningbank.tools.exploring.survey import Ask, Survey

__all__ = ["About", "Said", "Sample", "describe", "sample"]

#: Triples of one resource that are looked at; a hub can have half a store pointing to it.
MOST_TRIPLES = 10_000


@dataclass(frozen=True)
class Said:
    """One property of a resource.

    Attributes:
        property: The property.
        side: ``o`` where the resource is the subject, ``s`` where it is the object.
        example: A value, or a resource that points to this one.
        count: Number of values among the triples looked at.
    """

    property: Term
    side: str
    example: Term
    count: int


@dataclass(frozen=True)
class About:
    """What is said of a resource, the rarest property first, and then what points to it."""

    said: tuple[Said, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Sample:
    """Instances of a class, and what is said of the first."""

    instances: tuple[Term, ...]
    first: About


def describe(survey: Survey, uri: str, limit: int) -> About:
    """Return the properties of a resource with an example each, and what points to it.

    Raises:
        QueryError: The endpoint answers neither in time.
        EndpointError: The endpoint is down.
    """
    ask = survey.ask()
    outgoing, notes = _about(survey, ask, "o", f"{iri(uri)} ?p ?o", limit)
    try:
        incoming, more = _about(survey, ask, "s", f"?s ?p {iri(uri)}", limit)
    except QueryError as error:
        return About(outgoing, (*notes, f"what points to it is not shown: {brief(error)}"))
    return About((*outgoing, *incoming), tuple(dict.fromkeys((*notes, *more))))


def sample(survey: Survey, class_iri: str, n: int, properties: int) -> Sample:
    """Return `n` instances of a class and `properties` properties of the first of them.

    Raises:
        QueryError: The endpoint does not answer in time.
        EndpointError: The endpoint is down.
    """
    ask = survey.ask()
    members = survey.within(f"?s a {iri(class_iri)}")
    rows = ask(f"SELECT ?s WHERE {{ {members} }} LIMIT {n}").rows()
    instances = tuple(row[0] for row in rows if row[0] is not None)
    if not instances:
        return Sample((), About(()))
    pattern = f"{{ SELECT ?s WHERE {{ {members} }} LIMIT 1 }} {survey.within('?s ?p ?o')}"
    # A blank node, and an IRI with characters that IRIs forbid, cannot stand in a query.
    with contextlib.suppress(QueryError):
        if isinstance(instances[0], NamedNode):
            pattern = survey.within(f"{iri(instances[0])} ?p ?o")
    try:
        said, notes = _about(survey, ask, "o", pattern, properties, ready=True)
    except QueryError as error:
        said, notes = (), (f"the first is not described: {brief(error)}",)
    return Sample(instances, About(said, notes))


def _about(
    survey: Survey, ask: Ask, side: str, pattern: str, limit: int, *, ready: bool = False
) -> tuple[tuple[Said, ...], tuple[str, ...]]:
    where = pattern if ready else survey.within(pattern)
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
    direction = "it says" if side == "o" else "point to it"
    return said, (f"counts are those of the first {MOST_TRIPLES:,} triples that {direction}",)
