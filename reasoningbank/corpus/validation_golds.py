"""What an endpoint says of golds: whether they run, answer, and end in time; what IRIs are called.

Golds run one after the other, which is polite to a public endpoint and keeps times true.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

import pyoxigraph as ox
from rdflib.term import URIRef

from reasoningbank.corpus.findings import Finding
from reasoningbank.corpus.task import Task
from reasoningbank.errors import EndpointError, QueryError
from reasoningbank.sparql import BooleanResult, SPARQLClient, TableResult, iri

__all__ = ["gold_findings", "names_of"]

#: After so many failures of the endpoint itself in a row, nothing more is asked of it.
PATIENCE = 3
_IRIS_A_QUERY = 50


def gold_findings(
    tasks: Sequence[Task], client: SPARQLClient, *, slow_s: float, max_rows: int
) -> Iterator[Finding]:
    """Run golds and yield what is wrong with their answers.

    Args:
        tasks: Tasks whose golds parse.
        client: Speaks to the endpoint.
        slow_s: Seconds after which a gold is called slow.
        max_rows: Most rows or triples read of one answer.
    """
    down = 0
    for number, task in enumerate(tasks):
        if down >= PATIENCE:
            message = f"{client.config.address} failed {down} times; {len(tasks) - number} golds"
            yield Finding(".", "endpoint-fails", f"{message} were not run")
            return
        began = time.monotonic()
        try:
            result = client.query(task.expected_sparql, max_rows=max_rows)
        except (QueryError, EndpointError) as error:
            down = down + 1 if isinstance(error, EndpointError) else 0
            yield Finding(task.source_file, "gold-fails", f"the gold of {task.id} fails: {error}")
            continue
        down = 0
        seconds = time.monotonic() - began
        if not isinstance(result, BooleanResult):
            if result.n_rows == 0:
                message = f"the gold of {task.id} answers nothing"
                yield Finding(task.source_file, "empty-gold", message)
            if result.truncated:
                message = f"the answer to {task.id} was cut after {result.n_rows:,} rows"
                yield Finding(task.source_file, "cut-gold", message)
        if seconds > slow_s:
            message = f"the gold of {task.id} takes {seconds:.1f} s, more than {slow_s:g} s"
            yield Finding(task.source_file, "slow-gold", message)


def names_of(iris: Iterable[URIRef], client: SPARQLClient) -> dict[URIRef, list[str]]:
    """Return the literals that the data give IRIs: labels, symbols, codes.

    Args:
        iris: Resources; the query is bound to them, so that any engine can answer it.
        client: Speaks to the endpoint.

    Returns:
        Names by IRI; without those that the endpoint would not tell.
    """
    found: dict[URIRef, list[str]] = defaultdict(list)
    wanted = [resource for resource in dict.fromkeys(iris) if _is_absolute(resource)]
    for start in range(0, len(wanted), _IRIS_A_QUERY):
        listed = " ".join(iri(str(one)) for one in wanted[start : start + _IRIS_A_QUERY])
        query = f"SELECT ?iri ?name {{ VALUES ?iri {{ {listed} }} ?iri ?p ?name "
        try:
            result = client.query(query + "FILTER(isLiteral(?name)) }")
        except (QueryError, EndpointError):
            # Golds tell better than names that an endpoint is down.
            return found
        if isinstance(result, TableResult):
            for resource, name in result.rows():
                if isinstance(resource, ox.NamedNode) and isinstance(name, ox.Literal):
                    found[URIRef(resource.value)].append(name.value)
    return found


def _is_absolute(resource: URIRef) -> bool:
    try:
        iri(str(resource))
    except QueryError:
        return False
    return True
