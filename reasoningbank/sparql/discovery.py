"""Discovery: asking an endpoint what it is and what it holds.

A service description comes from the endpoint's bare address (SPARQL 1.1 Service Description,
section 2); VoID statistics from the endpoint's own graphs, else from the well-known location
(VoID, section 7.2). Engines describe themselves and stores their data, so `discover` joins both.
"""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urljoin

from pyoxigraph import Literal, NamedNode, RdfFormat, Triple, parse

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
from reasoningbank.sparql.faults import is_html
from reasoningbank.sparql.results import GraphResult, TableResult
from reasoningbank.sparql.terms import STANDARD_PREFIXES, iri
from reasoningbank.sparql.transport import Reply

__all__ = ["Discovery", "discover", "service_description", "void_description"]

ACCEPT = (
    "text/turtle, application/n-triples;q=0.9, application/rdf+xml;q=0.8, application/ld+json;q=0.7"
)
WELL_KNOWN = "/.well-known/void"
#: Statistics of the largest public stores run to some tens of thousands of triples.
MOST_TRIPLES = 50_000

_VOID_QUERY = """PREFIX void: <http://rdfs.org/ns/void#>
PREFIX sd: <http://www.w3.org/ns/sparql-service-description#>
CONSTRUCT { ?s ?p ?o } WHERE {
  VALUES ?p { void:triples void:entities void:distinctSubjects void:classPartition void:class
              void:propertyPartition void:property sd:graph sd:name }
  ?s ?p ?o
}"""


@dataclass(frozen=True)
class Discovery:
    """What an endpoint tells: the engine about itself, the store about its data.

    Attributes:
        service: The service description.
        void: The statistics.
        named_graphs: Named graphs that either of them names, the largest first.
    """

    service: ServiceDescription
    void: VoidDescription
    named_graphs: tuple[NamedGraph, ...]


def discover(client: SPARQLClient) -> Discovery:
    """Ask for the service description and the statistics, and join what they tell.

    Raises:
        EndpointError: The endpoint cannot be reached. That it offers nothing is no error.
    """
    service = service_description(client)
    void = void_description(client, service)
    sizes = {g.name: g for g in service.named_graphs}
    for graph in void.named_graphs:
        if graph.name not in sizes or graph.triples is not None:
            sizes[graph.name] = graph
    order = sorted(sizes.values(), key=lambda g: (-(g.triples or 0), g.name))
    return Discovery(service, void, tuple(order))


def service_description(client: SPARQLClient) -> ServiceDescription:
    """Ask the endpoint's bare address for its service description.

    Raises:
        EndpointError: The endpoint cannot be reached. That it offers none is no error.

    Examples:
        >>> from reasoningbank.sparql import EndpointConfig, OxigraphServer
        >>> with OxigraphServer() as server:
        ...     found = service_description(SPARQLClient(EndpointConfig(server.url)))
        >>> found.offered, len(found.result_formats) > 5, found.named_graphs
        (True, True, ())
    """
    reply = client.fetch("", ACCEPT)
    triples, note = _triples(reply, client.config.address)
    found = read_service(triples, client.config.url, client.config.source, (note,) if note else ())
    if found.offered or note:
        return found
    return read_service((), found.endpoint, found.source, ("what came describes no service",))


def void_description(
    client: SPARQLClient, service: ServiceDescription | None = None
) -> VoidDescription:
    """Read VoID statistics from the store's graphs, else from the well-known location.

    Args:
        client: The endpoint.
        service: Its service description if at hand; the last place that is looked at.

    Raises:
        EndpointError: The endpoint cannot be reached. That it offers none is no error.
    """
    notes: list[str] = []
    try:
        result = client.query(_VOID_QUERY, max_rows=MOST_TRIPLES)
        assert isinstance(result, GraphResult), "a CONSTRUCT yields a graph"
        triples = result.triples()
        if triples:
            triples += _titles(client, triples)
            return _void(client, triples, "store", notes, result.truncated)
        notes.append("the store holds no VoID statistics")
    except QueryError as error:
        notes.append(f"the store could not be asked for VoID statistics: {error.what}")
    try:
        reply = client.fetch(WELL_KNOWN, ACCEPT)
        triples, note = _triples(reply, urljoin(client.config.address, WELL_KNOWN))
    except EndpointError as error:
        triples, note = [], error.what
    if read_void(triples):
        return _void(client, triples, "well-known", notes)
    notes.append(f"{WELL_KNOWN}: {note or 'holds no statistics'}")
    if service is not None and read_void(service.triples):
        return _void(client, list(service.triples), "service description", notes)
    return VoidDescription(client.config.url, client.config.source, False, notes=tuple(notes))


def _void(
    client: SPARQLClient,
    triples: list[Triple],
    origin: str,
    notes: list[str],
    truncated: bool = False,
) -> VoidDescription:
    return VoidDescription(
        endpoint=client.config.url,
        source=client.config.source,
        offered=True,
        origin=origin,
        datasets=read_void(triples),
        named_graphs=read_named_graphs(triples),
        truncated=truncated,
        notes=tuple(notes),
    )


def _titles(client: SPARQLClient, triples: list[Triple]) -> list[Triple]:
    datasets = [d.iri for d in read_void(triples) if ":" in d.iri][:100]
    if not datasets:
        return []
    title = NamedNode(STANDARD_PREFIXES["dcterms"] + "title")
    names = " ".join(iri(name) for name in datasets)
    query = f"SELECT ?d ?t {{ VALUES ?d {{ {names} }} ?d {iri(title)} ?t }}"
    result = client.query(query, max_rows=1_000)
    assert isinstance(result, TableResult), "a SELECT yields a table"
    return [
        Triple(dataset, title, text)
        for dataset, text in result.rows()
        if isinstance(dataset, NamedNode) and isinstance(text, Literal)
    ]


def _triples(reply: Reply, base: str) -> tuple[list[Triple], str]:
    """Return the triples of a reply, and why there are none."""
    if not 200 <= reply.status < 300:
        return [], f"HTTP {reply.status}"
    if is_html(reply):
        return [], "a web page came, no RDF"
    kind = RdfFormat.from_media_type(reply.media_type) if reply.media_type else None
    if kind is None:
        return [], f"the answer is {reply.media_type or 'of no named type'}, no RDF"
    try:
        return [quad.triple for quad in parse(reply.body, kind, base_iri=base)], ""
    except (SyntaxError, ValueError) as error:
        return [], f"the description cannot be parsed: {error}"
