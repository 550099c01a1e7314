"""VoID statistics out of a store, with queries that any engine answers from its indexes.

First the graphs that hold a ``void:Dataset``, then, in each, the few properties that statistics
have. Every pattern has a bound property (or a bound class) and every query a LIMIT, so that a
store of 200 billion triples is never scanned.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

from pyoxigraph import BlankNode, NamedNode, Triple

from reasoningbank.errors import EndpointError, QueryError
from reasoningbank.sparql.client import SPARQLClient
from reasoningbank.sparql.results import GraphResult, Result, TableResult
from reasoningbank.sparql.terms import STANDARD_PREFIXES, iri

__all__ = ["Steps", "StoreStatistics", "sampled_graphs", "store_statistics"]

#: Statistics of the largest public stores run to some tens of thousands of triples.
MOST_TRIPLES = 50_000
#: Graphs that are read for statistics; stores keep them in one.
MOST_GRAPHS = 5
#: Names of graphs that are taken.
MOST_NAMES = 200
#: Matches looked at for the graphs they are in.
SAMPLE = 10_000

_NO_PROPERTY = "FILTER NOT EXISTS { ?d void:property ?any }"
#: What is read: each property, and what else holds of its subject.
_READ = {
    "sd:name": "",
    "sd:graph": "",
    "void:triples": "",
    "dcterms:title": "?d a void:Dataset .",
    "void:classPartition": "",
    "void:class": "",
    "void:entities": "",
    "void:distinctSubjects": "",
    "void:propertyPartition": "",
    "void:property": "",
}
#: The same without what is said of properties, which makes up most of long statistics.
_READ_BRIEFLY = {
    name: _NO_PROPERTY if name in ("void:triples", "void:distinctSubjects") else condition
    for name, condition in _READ.items()
    if "roperty" not in name
}
_HEAD = "".join(f"PREFIX {p}: <{STANDARD_PREFIXES[p]}>\n" for p in ("void", "sd", "dcterms"))


@dataclass(frozen=True)
class StoreStatistics:
    """What a store holds of statistics.

    Attributes:
        triples: The statistics as RDF.
        truncated: Whether there were more.
        notes: What was tried in vain.
        failure: The endpoint's failure where no query at all was answered; None otherwise.
    """

    triples: tuple[Triple, ...]
    truncated: bool = False
    notes: tuple[str, ...] = ()
    failure: EndpointError | None = None


class Steps:
    """Asks an endpoint, step by step, within a bound for each and for all.

    Args:
        client: The endpoint.
        step_s: Seconds one step may take; the endpoint's own limit where that is less.
        total_s: Seconds after which no further step begins.
    """

    def __init__(self, client: SPARQLClient, step_s: float, total_s: float) -> None:
        self._client = client
        self._step_s = min(client.config.timeout_s, step_s)
        self._total_s = total_s
        self._end = time.monotonic() + total_s

    def next_s(self) -> float:
        """Return the seconds that the next step may take.

        Raises:
            EndpointError: The time is up.
        """
        if time.monotonic() >= self._end:
            raise EndpointError(
                f"not asked: the endpoint took more than {self._total_s:g} s already",
                where=self._client.config.address,
            )
        return self._step_s

    def ask(self, query: str, most: int) -> Result:
        """Send a query for at most so many rows or triples.

        Raises:
            QueryError: The engine rejects it, or takes too long.
            EndpointError: The endpoint fails, or the time is up.
        """
        return self._client.query(query, max_rows=most, timeout_s=self.next_s())


def store_statistics(steps: Steps) -> StoreStatistics:
    """Read the VoID statistics of a store; a failure is told, not raised."""
    triples: dict[Triple, None] = {}
    notes: list[str] = []
    truncated = answered = False
    failure: EndpointError | None = None
    graphs: tuple[str, ...] = ()
    try:
        graphs = _names(steps, "GRAPH ?g { ?d a void:Dataset }")
        answered = True
    # Stores without named graphs reject GRAPH; their default graph is still to be asked.
    except (QueryError, EndpointError) as error:
        notes.append(f"the store could not be asked which graphs describe it: {error.what}")
        failure = error if isinstance(error, EndpointError) else None
    for number, graph in enumerate(graphs[:MOST_GRAPHS] or ("",)):
        left = MOST_TRIPLES - len(triples)
        if left <= 0:
            break
        try:
            found = _graph(steps, _statistics(graph, left, _READ), left)
            if found.truncated:
                notes.append(
                    f"more than {left:,} triples of statistics: those of properties left out"
                )
                truncated = True
                found = _graph(steps, _statistics(graph, left, _READ_BRIEFLY), left)
        except (QueryError, EndpointError) as error:
            notes.append(f"the store could not be asked for VoID statistics: {error.what}")
            failure = failure or (error if isinstance(error, EndpointError) else None)
            continue
        answered = True
        triples.update(dict.fromkeys(_renamed(triple, number) for triple in found.triples()))
    if answered and not triples:
        notes.append("the store holds no VoID statistics")
    return StoreStatistics(
        tuple(triples),
        truncated or len(graphs) > MOST_GRAPHS,
        tuple(notes),
        None if answered else failure,
    )


def _renamed(triple: Triple, number: int) -> Triple:
    """Tell blank nodes of several answers apart, which may give two of them one label."""
    subject, value = triple.subject, triple.object
    if isinstance(subject, BlankNode):
        subject = BlankNode(f"g{number}x{subject.value}")
    if isinstance(value, BlankNode):
        value = BlankNode(f"g{number}x{value.value}")
    return Triple(subject, triple.predicate, value)


def sampled_graphs(steps: Steps) -> tuple[str, ...]:
    """Return the named graphs that a bounded number of typed resources are in.

    Raises:
        QueryError: The engine rejects GRAPH, or takes too long.
        EndpointError: The endpoint fails.
    """
    return _names(steps, "GRAPH ?g { ?s a ?class }")


def _names(steps: Steps, pattern: str) -> tuple[str, ...]:
    query = (
        f"{_HEAD}SELECT DISTINCT ?g WHERE {{\n"
        f"  {{ SELECT ?g WHERE {{ {pattern} }} LIMIT {SAMPLE} }}\n"
        f"}} LIMIT {MOST_NAMES}"
    )
    result = steps.ask(query, MOST_NAMES)
    assert isinstance(result, TableResult), "a SELECT yields a table"
    return tuple(sorted(g.value for (g,) in result.rows() if isinstance(g, NamedNode)))


def _graph(steps: Steps, query: str, most: int) -> GraphResult:
    found = steps.ask(query, most)
    assert isinstance(found, GraphResult), "a CONSTRUCT yields a graph"
    return found


def _statistics(graph: str, most: int, read: Mapping[str, str]) -> str:
    # One branch and one variable for each property: BIND inside of UNION is not for all engines.
    template = "\n".join(f"  ?d {name} ?v{at} ." for at, name in enumerate(read))
    branches = "\n  UNION ".join(
        f"{{ {condition} ?d {name} ?v{at} }}"
        if condition.startswith("?d")
        else f"{{ ?d {name} ?v{at} {condition} }}"
        for at, (name, condition) in enumerate(read.items())
    )
    where = f"GRAPH {iri(graph)} {{\n  {branches}\n}}" if graph else branches
    return f"{_HEAD}CONSTRUCT {{\n{template}\n}} WHERE {{\n  {where}\n}} LIMIT {most + 1}"
