"""Discovery: asking an endpoint for its service description and VoID statistics.

A service description comes from the endpoint's bare address (SPARQL 1.1 Service Description,
section 2); VoID statistics from the same document, else from the endpoint's own graphs, else from
the well-known location (VoID, section 7.2). Engines describe themselves, stores describe their
data, so `discover` joins both. Each step is bounded and reported in the notes.

Statistics in a store are read by queries that any engine answers from its indexes: every pattern
has a bound property or class, and every query a LIMIT, so a store of 200 billion triples is never
scanned.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import urljoin

from pyoxigraph import BlankNode, NamedNode, Triple

from reasoningbank.errors import EndpointError, QueryError
from reasoningbank.sparql.client import SPARQLClient
from reasoningbank.sparql.descriptions import (
    NamedGraph,
    ServiceDescription,
    VoidDescription,
    read_named_graphs,
    read_service,
    read_void,
)
from reasoningbank.sparql.formats import ACCEPT, ACCEPT_XML, document_triples
from reasoningbank.sparql.results import GraphResult, Result, TableResult
from reasoningbank.sparql.terms import STANDARD_PREFIXES, iri

WELL_KNOWN = "/.well-known/void"
#: Triples read of a document; those of the largest public stores have about as many.
MOST_TRIPLES = 200_000
#: Seconds of one step; the endpoint's own limit if that is less.
STEP_S = 20.0
#: Seconds after which no further step starts: an agent is waiting.
TOTAL_S = 45.0


@dataclass(frozen=True)
class Discovery:
    """The descriptions of an endpoint: of the engine by itself, of the data by the store.

    Attributes:
        service: The service description.
        void: The statistics.
        named_graphs: Named graphs in either description, the largest first.
        graphs_via: Their origin: ``description``, ``sample of N triples``, or empty.
        notes: Which steps failed, and why.
    """

    service: ServiceDescription
    void: VoidDescription
    named_graphs: tuple[NamedGraph, ...]
    graphs_via: str = ""
    notes: tuple[str, ...] = ()

    @property
    def triples(self) -> tuple[Triple, ...]:
        """All triples read: the service description first, then the statistics."""
        return tuple(dict.fromkeys((*self.service.triples, *self.void.triples)))


def discover(client: SPARQLClient) -> Discovery:
    """Read the service description and the statistics of an endpoint, and join them.

    If neither names a graph, graphs are looked for in a bounded sample of the data.

    Raises:
        EndpointError: If the endpoint cannot be reached. A missing description is not an error.
    """
    down: EndpointError | None = None
    steps = _Steps(client, STEP_S, TOTAL_S)
    try:
        service = service_description(client, steps)
    except EndpointError as error:
        # Some endpoints answer queries only; the store may have statistics.
        down = error
        service = read_service((), client.config.url, client.config.source, (error.what,))
    try:
        void = void_description(client, service, steps)
    except EndpointError as error:
        raise down or error from None
    notes = [f"service description: {note}" for note in service.notes]
    notes += [f"statistics: {note}" for note in void.notes]
    graphs = _joined(service.named_graphs, void.named_graphs)
    via = "description" if graphs else ""
    if not graphs:
        try:
            graphs = tuple(NamedGraph(name) for name in _names(steps, "GRAPH ?g { ?s a ?class }"))
            via = f"sample of {SAMPLE:,} triples" if graphs else ""
        except (QueryError, EndpointError) as error:
            notes.append(f"named graphs: {error.what}")
    return Discovery(service, void, graphs, via, tuple(notes))


def service_description(client: SPARQLClient, steps: _Steps | None = None) -> ServiceDescription:
    """Read the service description at the endpoint's bare address.

    Args:
        client: The endpoint.
        steps: The time left, if this is one step of several.

    Raises:
        EndpointError: If the endpoint cannot be reached. A missing description is not an error.

    Examples:
        >>> from reasoningbank.sparql import EndpointConfig, OxigraphServer
        >>> with OxigraphServer() as server:
        ...     found = service_description(SPARQLClient(EndpointConfig(server.url)))
        >>> found.offered, len(found.result_formats) > 5, found.named_graphs
        (True, True, ())
    """
    triples, note = _document(client, "", steps or _Steps(client, STEP_S, TOTAL_S))
    found = read_service(triples, client.config.url, client.config.source, (note,) if note else ())
    if found.offered or note:
        return found
    return read_service((), found.endpoint, found.source, ("the answer describes no service",))


def void_description(
    client: SPARQLClient,
    service: ServiceDescription | None = None,
    steps: _Steps | None = None,
) -> VoidDescription:
    """Read VoID statistics from the service description, the store, or the well-known location.

    The first with counts of classes or properties is used, else the first with any count.

    Args:
        client: The endpoint.
        service: Its service description, if known; it needs no further request.
        steps: The time left, if this is one step of several.

    Raises:
        EndpointError: If the endpoint cannot be reached. Missing statistics are not an error.
    """
    described = () if service is None else service.triples
    if _counts_classes(described):
        return _void(client, described, "service description")
    steps = steps or _Steps(client, STEP_S, TOTAL_S)
    stored = _store_statistics(steps)
    notes = stored.notes
    if read_void(stored.triples):
        return _void(client, stored.triples, "store", notes, stored.truncated)
    try:
        published, note = _document(client, WELL_KNOWN, steps)
    except EndpointError as error:
        if stored.failure is not None:
            raise stored.failure from None
        published, note = [], error.what
    if read_void(published):
        return _void(client, published, "well-known", notes)
    notes.append(f"{WELL_KNOWN}: {note or 'holds no statistics'}")
    if read_void(described):
        return _void(client, described, "service description", notes)
    return VoidDescription(client.config.url, client.config.source, False, notes=tuple(notes))


def _document(client: SPARQLClient, path: str, steps: _Steps) -> tuple[list[Triple], str]:
    """Return the triples of a document of the endpoint, and the reason if there are none."""
    base = urljoin(client.config.url, path)
    reply = client.fetch(path, ACCEPT, timeout_s=steps.next_s())
    triples, note = document_triples(reply, base, MOST_TRIPLES)
    if triples or not (reply.status == 406 or (reply.status < 300 and reply.is_html)):
        return triples, note
    again = client.fetch(path, ACCEPT_XML, timeout_s=steps.next_s())
    triples, _ = document_triples(again, base, MOST_TRIPLES)
    return triples, "" if triples else note


def _counts_classes(triples: Sequence[Triple]) -> bool:
    return any(dataset.classes or dataset.properties for dataset in read_void(triples))


def _joined(
    described: Sequence[NamedGraph], counted: Sequence[NamedGraph]
) -> tuple[NamedGraph, ...]:
    sizes = {graph.name: graph for graph in described}
    for graph in counted:
        if graph.name not in sizes or graph.triples is not None:
            sizes[graph.name] = graph
    return tuple(sorted(sizes.values(), key=lambda g: (-(g.triples or 0), g.name)))


def _void(
    client: SPARQLClient,
    triples: Sequence[Triple],
    origin: str,
    notes: Sequence[str] = (),
    truncated: bool = False,
) -> VoidDescription:
    return VoidDescription(
        endpoint=client.config.url,
        source=client.config.source,
        offered=True,
        origin=origin,
        datasets=read_void(triples),
        named_graphs=read_named_graphs(triples),
        triples=tuple(triples),
        truncated=truncated or len(triples) >= MOST_TRIPLES,
        notes=tuple(notes),
    )


# -- statistics in the store --------------------------------------------------------------

#: Statistics of the largest public stores have some tens of thousands of triples.
MOST_STORED = 50_000
#: Graphs read for statistics; stores keep them in one.
MOST_GRAPHS = 5
#: Names of graphs read.
MOST_NAMES = 200
#: Matches whose graphs are read.
SAMPLE = 10_000

_NO_PROPERTY = "FILTER NOT EXISTS { ?d void:property ?any }"
#: The properties read, each with a condition on its subject.
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
#: The same without property partitions, which make up most of long statistics.
_READ_BRIEFLY = {
    name: _NO_PROPERTY if name in ("void:triples", "void:distinctSubjects") else condition
    for name, condition in _READ.items()
    if "roperty" not in name
}
_HEAD = "".join(f"PREFIX {p}: <{STANDARD_PREFIXES[p]}>\n" for p in ("void", "sd", "dcterms"))


class _Stored(NamedTuple):
    triples: tuple[Triple, ...]
    truncated: bool
    notes: list[str]
    failure: EndpointError | None


class _Steps:
    """Asks an endpoint step by step, with a time limit for each step and for all."""

    def __init__(self, client: SPARQLClient, step_s: float, total_s: float) -> None:
        self._client = client
        self._step_s = min(client.config.timeout_s, step_s)
        self._total_s = total_s
        self._end = time.monotonic() + total_s

    def next_s(self) -> float:
        """Return the seconds of the next step; raise `EndpointError` if the time is up."""
        if time.monotonic() >= self._end:
            raise EndpointError(
                f"not asked: the endpoint took more than {self._total_s:g} s already",
                where=self._client.config.address,
            )
        return self._step_s

    def ask(self, query: str, most: int) -> Result:
        """Send a query for at most `most` rows or triples."""
        return self._client.query(query, max_rows=most, timeout_s=self.next_s())


def _store_statistics(steps: _Steps) -> _Stored:
    """Read the VoID statistics of a store; failures are noted, not raised."""
    triples: dict[Triple, None] = {}
    notes: list[str] = []
    truncated = answered = False
    failure: EndpointError | None = None
    graphs: tuple[str, ...] = ()
    try:
        graphs = _names(steps, "GRAPH ?g { ?d a void:Dataset }")
        answered = True
    # Stores without named graphs reject GRAPH; their default graph is read instead.
    except (QueryError, EndpointError) as error:
        notes.append(f"the store could not be asked which graphs describe it: {error.what}")
        failure = error if isinstance(error, EndpointError) else None
    for number, graph in enumerate(graphs[:MOST_GRAPHS] or ("",)):
        left = MOST_STORED - len(triples)
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
    truncated = truncated or len(graphs) > MOST_GRAPHS
    return _Stored(tuple(triples), truncated, notes, None if answered else failure)


def _renamed(triple: Triple, number: int) -> Triple:
    """Rename blank nodes, whose labels may repeat in the answers of several queries."""

    def new(term: Any) -> Any:
        return BlankNode(f"g{number}x{term.value}") if isinstance(term, BlankNode) else term

    return Triple(new(triple.subject), triple.predicate, new(triple.object))


def _names(steps: _Steps, pattern: str) -> tuple[str, ...]:
    """Return the named graphs of a bounded number of matches."""
    query = (
        f"{_HEAD}SELECT DISTINCT ?g WHERE {{\n"
        f"  {{ SELECT ?g WHERE {{ {pattern} }} LIMIT {SAMPLE} }}\n"
        f"}} LIMIT {MOST_NAMES}"
    )
    result = steps.ask(query, MOST_NAMES)
    assert isinstance(result, TableResult), "a SELECT yields a table"
    return tuple(sorted(g.value for (g,) in result.rows() if isinstance(g, NamedNode)))


def _graph(steps: _Steps, query: str, most: int) -> GraphResult:
    found = steps.ask(query, most)
    assert isinstance(found, GraphResult), "a CONSTRUCT yields a graph"
    return found


def _statistics(graph: str, most: int, read: Mapping[str, str]) -> str:
    # One branch and one variable for each property: not all engines support BIND inside UNION.
    template = "\n".join(f"  ?d {name} ?v{at} ." for at, name in enumerate(read))
    branches = "\n  UNION ".join(
        f"{{ {condition} ?d {name} ?v{at} }}"
        if condition.startswith("?d")
        else f"{{ ?d {name} ?v{at} {condition} }}"
        for at, (name, condition) in enumerate(read.items())
    )
    where = f"GRAPH {iri(graph)} {{\n  {branches}\n}}" if graph else branches
    return f"{_HEAD}CONSTRUCT {{\n{template}\n}} WHERE {{\n  {where}\n}} LIMIT {most + 1}"
