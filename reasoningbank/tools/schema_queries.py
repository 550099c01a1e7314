"""Queries that discover an endpoint's vocabulary without scanning its data.

VoID statistics first, where the endpoint publishes them; otherwise a bounded sample, which an
engine answers at once whatever the size of its data. Each result names its strategy (`via`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pyoxigraph import Literal, NamedNode

from reasoningbank.sparql import TableResult

__all__ = ["Counted", "classes", "properties"]

_VOID = "PREFIX void: <http://rdfs.org/ns/void#>\n"
#: Triples looked at where an endpoint publishes no statistics.
SAMPLE = 10_000
#: Instances looked at for the properties of one class.
SAMPLE_INSTANCES = 200

Run = Callable[[str], TableResult]


@dataclass(frozen=True)
class Counted:
    """Names with how often they occur.

    Attributes:
        items: Full IRI and count, most frequent first.
        via: The strategy: ``'void'`` or ``'sample of N triples'``.
    """

    items: tuple[tuple[str, int], ...]
    via: str


def classes(run: Run, limit: int) -> Counted:
    """Return the most frequent classes."""
    counted = _counted(
        run(
            f"{_VOID}SELECT ?name (SUM(?n) AS ?count) WHERE {{\n"
            "  ?part void:class ?name ; void:entities ?n .\n"
            f"}} GROUP BY ?name ORDER BY DESC(?count) ?name LIMIT {limit}"
        )
    )
    if counted:
        return Counted(counted, "void")
    sampled = run(
        "SELECT ?name (COUNT(*) AS ?count) WHERE {\n"
        f"  {{ SELECT ?name WHERE {{ ?s a ?name }} LIMIT {SAMPLE} }}\n"
        f"}} GROUP BY ?name ORDER BY DESC(?count) ?name LIMIT {limit}"
    )
    return Counted(_counted(sampled), f"sample of {SAMPLE} triples")


def properties(run: Run, limit: int, class_iri: str | None = None) -> Counted:
    """Return the most frequent properties, of one class or of all."""
    if class_iri is None:
        of_all = _counted(
            run(
                f"{_VOID}SELECT ?name (MAX(?n) AS ?count) WHERE {{\n"
                "  ?part void:property ?name ; void:triples ?n .\n"
                f"}} GROUP BY ?name ORDER BY DESC(?count) ?name LIMIT {limit}"
            )
        )
        if of_all:
            return Counted(of_all, "void")
        sampled = run(
            "SELECT ?name (COUNT(*) AS ?count) WHERE {\n"
            f"  {{ SELECT ?name WHERE {{ ?s ?name ?o }} LIMIT {SAMPLE} }}\n"
            f"}} GROUP BY ?name ORDER BY DESC(?count) ?name LIMIT {limit}"
        )
        return Counted(_counted(sampled), f"sample of {SAMPLE} triples")
    of_class = run(
        "SELECT ?name (COUNT(*) AS ?count) WHERE {\n"
        f"  {{ SELECT ?s WHERE {{ ?s a <{class_iri}> }} LIMIT {SAMPLE_INSTANCES} }}\n"
        "  ?s ?name ?o .\n"
        f"}} GROUP BY ?name ORDER BY DESC(?count) ?name LIMIT {limit}"
    )
    return Counted(_counted(of_class), f"sample of {SAMPLE_INSTANCES} instances")


def _counted(result: TableResult) -> tuple[tuple[str, int], ...]:
    rows = result.rows(0, result.n_rows)
    return tuple(
        (name.value, int(count.value))
        for name, count in rows
        if isinstance(name, NamedNode) and isinstance(count, Literal)
    )
