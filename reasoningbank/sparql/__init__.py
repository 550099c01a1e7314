"""Speaking SPARQL: endpoints, prepared queries, results, discovery, and an embedded server.

A query is prepared once (`prepare`), sent by the client of one endpoint (`SPARQLClient`), and
answered by a lazily decoded `TableResult`, `GraphResult` or `BooleanResult`.
"""

from reasoningbank.sparql.client import SPARQLClient
from reasoningbank.sparql.discovery import (
    Discovery,
    NamedGraph,
    discover,
    service_description,
    void_description,
)
from reasoningbank.sparql.endpoint import EndpointConfig, address_key, is_loopback, same_address
from reasoningbank.sparql.entity_linking import EntityLinker, EntityMention
from reasoningbank.sparql.query import PreparedQuery, prepare
from reasoningbank.sparql.results import BooleanResult, GraphResult, Result, TableResult
from reasoningbank.sparql.server import OxigraphServer
from reasoningbank.sparql.terms import (
    STANDARD_PREFIXES,
    Term,
    compact,
    full,
    iri,
    string_literal,
    to_iri,
    values,
)

__all__ = [
    "STANDARD_PREFIXES",
    "BooleanResult",
    "Discovery",
    "EndpointConfig",
    "EntityLinker",
    "EntityMention",
    "GraphResult",
    "NamedGraph",
    "OxigraphServer",
    "PreparedQuery",
    "Result",
    "SPARQLClient",
    "TableResult",
    "Term",
    "address_key",
    "compact",
    "discover",
    "full",
    "iri",
    "is_loopback",
    "prepare",
    "same_address",
    "service_description",
    "string_literal",
    "to_iri",
    "values",
    "void_description",
]
