"""Discovery: asking an endpoint what it is and what it holds.

A service description comes from the endpoint's bare address (SPARQL 1.1 Service Description,
section 2); VoID statistics from that same document, else from the endpoint's own graphs, else
from the well-known location (VoID, section 7.2). Engines describe themselves and stores their
data, so `discover` joins both. Each step is bounded, and what came of it is told.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urljoin

from pyoxigraph import Triple

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
from reasoningbank.sparql.rdfdocument import ACCEPT, ACCEPT_XML, document_triples
from reasoningbank.sparql.void_store import SAMPLE, Steps, sampled_graphs, store_statistics

__all__ = ["Discovery", "discover", "service_description", "void_description"]

WELL_KNOWN = "/.well-known/void"
#: Triples of a document that are read; those of the largest public stores have about as many.
MOST_TRIPLES = 200_000
#: Seconds one step of discovery may take; the endpoint's own limit where that is less.
STEP_S = 20.0
#: Seconds after which no further step is begun: an agent is waiting.
TOTAL_S = 45.0


@dataclass(frozen=True)
class Discovery:
    """What an endpoint tells: the engine about itself, the store about its data.

    Attributes:
        service: The service description.
        void: The statistics.
        named_graphs: Named graphs that either of them names, the largest first.
        graphs_via: Where they come from: ``description``, ``sample of N triples``, or empty.
        notes: What was tried in vain, and what came.
    """

    service: ServiceDescription
    void: VoidDescription
    named_graphs: tuple[NamedGraph, ...]
    graphs_via: str = ""
    notes: tuple[str, ...] = ()

    @property
    def triples(self) -> tuple[Triple, ...]:
        """All that was read, as RDF: the service description first, then the statistics."""
        return tuple(dict.fromkeys((*self.service.triples, *self.void.triples)))


def discover(client: SPARQLClient) -> Discovery:
    """Ask for the service description and the statistics, and join what they tell.

    Where neither names a graph, a bounded sample of the data is looked at for graphs.

    Raises:
        EndpointError: The endpoint cannot be reached. That it offers nothing is no error.
    """
    down: EndpointError | None = None
    steps = Steps(client, STEP_S, TOTAL_S)
    try:
        service = service_description(client, steps)
    except EndpointError as error:
        # Some endpoints answer queries only; the store's own statistics will tell.
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
            graphs = tuple(NamedGraph(name) for name in sampled_graphs(steps))
            via = f"sample of {SAMPLE:,} triples" if graphs else ""
        except (QueryError, EndpointError) as error:
            notes.append(f"named graphs: {error.what}")
    return Discovery(service, void, graphs, via, tuple(notes))


def service_description(client: SPARQLClient, steps: Steps | None = None) -> ServiceDescription:
    """Ask the endpoint's bare address for its service description.

    Args:
        client: The endpoint.
        steps: The time that is left, where this is one step of several.

    Raises:
        EndpointError: The endpoint cannot be reached. That it offers none is no error.

    Examples:
        >>> from reasoningbank.sparql import EndpointConfig, OxigraphServer
        >>> with OxigraphServer() as server:
        ...     found = service_description(SPARQLClient(EndpointConfig(server.url)))
        >>> found.offered, len(found.result_formats) > 5, found.named_graphs
        (True, True, ())
    """
    triples, note = _document(client, "", steps or Steps(client, STEP_S, TOTAL_S))
    found = read_service(triples, client.config.url, client.config.source, (note,) if note else ())
    if found.offered or note:
        return found
    return read_service((), found.endpoint, found.source, ("what came describes no service",))


def void_description(
    client: SPARQLClient,
    service: ServiceDescription | None = None,
    steps: Steps | None = None,
) -> VoidDescription:
    """Read VoID statistics: of the service description, the store, the well-known location.

    The first that counts classes or properties is taken, else the first that counts anything.

    Args:
        client: The endpoint.
        service: Its service description if at hand; it costs no request more.
        steps: The time that is left, where this is one step of several.

    Raises:
        EndpointError: The endpoint cannot be reached. That it offers none is no error.
    """
    described = () if service is None else service.triples
    if _counts_classes(described):
        return _void(client, described, "service description")
    steps = steps or Steps(client, STEP_S, TOTAL_S)
    stored = store_statistics(steps)
    notes = list(stored.notes)
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


def _document(client: SPARQLClient, path: str, steps: Steps) -> tuple[list[Triple], str]:
    """Return the triples of a document of the endpoint's, and why there are none."""
    base = urljoin(client.config.url, path)
    reply = client.fetch(path, ACCEPT, timeout_s=steps.next_s())
    triples, note = document_triples(reply, base, MOST_TRIPLES)
    if triples or not (reply.status == 406 or note.startswith("a web page")):
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
