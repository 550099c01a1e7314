"""SPARQL over all documents, by the SPARQL 1.1 Protocol; queries only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import IO
from urllib.parse import parse_qs

from pyoxigraph import (
    BlankNode,
    NamedNode,
    QueryBoolean,
    QueryResultsFormat,
    QuerySolutions,
    QueryTriples,
    Triple,
    serialize,
)

from reasoningbank.errors import QueryError
from reasoningbank.ldp.answering import Answer, Request
from reasoningbank.ldp.documents import Documents
from reasoningbank.ldp.faults import Refused
from reasoningbank.ldp.negotiation import GRAPH_FORMATS, best, written
from reasoningbank.ldp.updates import expanded
from reasoningbank.sparql.tree import outline

__all__ = ["Results", "asked", "described"]

QUERY = "application/sparql-query"
FORM = "application/x-www-form-urlencoded"
TABLE_FORMATS: Mapping[str, QueryResultsFormat] = {
    "application/sparql-results+json": QueryResultsFormat.JSON,
    "application/sparql-results+xml": QueryResultsFormat.XML,
    "text/tab-separated-values": QueryResultsFormat.TSV,
    "text/csv": QueryResultsFormat.CSV,
}
_SD = "http://www.w3.org/ns/sparql-service-description#"


@dataclass(frozen=True)
class Results:
    """The answer of a query, written as it is computed."""

    found: QuerySolutions | QueryTriples | QueryBoolean
    media_type: str

    def write(self, out: IO[bytes]) -> None:
        """Write all of it.

        Raises:
            OSError: `out` does not take it.
        """
        if isinstance(self.found, QueryTriples):
            serialize(self.found, out, GRAPH_FORMATS[self.media_type])
        else:
            self.found.serialize(out, TABLE_FORMATS[self.media_type])


def asked(documents: Documents, request: Request) -> Results:
    """Carry out a query.

    Raises:
        Refused: There is no query, it does not parse, or it would reach elsewhere.
    """
    query, parameters = _query(request)
    query = expanded(query)
    try:
        shape = outline(query)
        if shape.service_targets:
            raise Refused(400, "SERVICE is not done here; ask the other endpoint directly")
        found = documents.query(
            query,
            default_graphs=parameters.get("default-graph-uri", ()),
            named_graphs=parameters.get("named-graph-uri", ()),
        )
    except QueryError as error:
        raise Refused(400, str(error)) from error
    except (SyntaxError, ValueError) as error:
        raise Refused(400, f"the query cannot be read: {error}") from error
    offers: list[str] = list(GRAPH_FORMATS if isinstance(found, QueryTriples) else TABLE_FORMATS)
    media_type = best(request.headers.get("accept", ""), offers)
    if media_type is None:
        raise Refused(406, f"the answer can be written as {', '.join(offers)}")
    return Results(found, media_type)


def described(documents: Documents, request: Request) -> Answer | None:
    """Say what the service is, to whoever asks without a query; None where there is one.

    It is a service description (SPARQL 1.1 Service Description, section 2). The documents are not
    in it: there may be many, and ``SELECT ?g { GRAPH ?g { } }`` names them.

    Raises:
        Refused: No RDF is wanted (406).
    """
    if request.method not in ("GET", "HEAD") or request.query:
        return None
    media_type = best(request.headers.get("accept", ""), list(GRAPH_FORMATS))
    if media_type is None:
        raise Refused(406, f"the description can be written as {', '.join(GRAPH_FORMATS)}")
    service = BlankNode()
    said = {
        "http://www.w3.org/1999/02/22-rdf-syntax-ns#type": f"{_SD}Service",
        f"{_SD}endpoint": f"{documents.base}sparql",
        f"{_SD}supportedLanguage": f"{_SD}SPARQL11Query",
        f"{_SD}feature": f"{_SD}UnionDefaultGraph",
    }
    triples = [Triple(service, NamedNode(name), NamedNode(to)) for name, to in said.items()]
    headers = {"Content-Type": f"{media_type}; charset=utf-8", "Vary": "Accept"}
    return Answer(200, headers, written(triples, media_type))


def _query(request: Request) -> tuple[str, Mapping[str, list[str]]]:
    text = request.query
    if request.method not in ("GET", "HEAD", "POST"):
        raise Refused(405, "this address answers queries", {"Allow": "GET, HEAD, POST"})
    try:
        if request.method == "POST" and request.media_type == QUERY:
            return request.body.decode(), parse_qs(text, max_num_fields=100)
        if request.method == "POST":
            if request.media_type != FORM:
                raise Refused(415, f"send the query as {QUERY} or {FORM}")
            text = request.body.decode()
        parameters = parse_qs(text, max_num_fields=100)
    except (UnicodeDecodeError, ValueError) as error:
        raise Refused(400, f"the request cannot be read: {error}") from error
    if "update" in parameters:
        raise Refused(403, "documents are changed by PUT, POST, PATCH and DELETE alone")
    queries = parameters.get("query", ())
    if len(queries) != 1:
        raise Refused(400, "give one query in the parameter 'query'")
    return queries[0], parameters
