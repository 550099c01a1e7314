"""Documents on the Web: GET, POST, PUT, PATCH."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import Field
from rdflib import URIRef

from reasoningbank.algebra.arguments import GraphLike, Query, Url
from reasoningbank.algebra.contract import Evaluation, SentTo
from reasoningbank.algebra.operation import Example, Operation, register
from reasoningbank.algebra.terms import scalar
from reasoningbank.algebra.texts import check_update
from reasoningbank.algebra.values import Table, Value
from reasoningbank.algebra.visible import Visible
from reasoningbank.errors import QueryError

__all__ = ["GET", "PATCH", "POST", "PUT", "WRITTEN", "Writing", "written"]

#: The columns of what a write yields.
WRITTEN = ("status", "url")
_COPENHAGEN: Mapping[str, Any] = {
    "@context": {"schema": "http://schema.org/", "dbr": "http://dbpedia.org/resource/"},
    "@id": "dbr:Copenhagen",
    "schema:name": "København",
}


def written(sent: SentTo) -> Table:
    """Return how a write ended, as the one row that all writing operations yield.

    Examples:
        >>> from types import SimpleNamespace
        >>> table = written(SimpleNamespace(status=201, url="http://e/a"))
        >>> table.vars, str(table.rows[0]["status"])
        (('status', 'url'), '201')
    """
    return Table(WRITTEN, [{"status": scalar(sent.status), "url": URIRef(sent.url)}])


def _result(status: int, url: str) -> dict[str, Any]:
    integer = "http://www.w3.org/2001/XMLSchema#integer"
    row = {
        "status": {"type": "literal", "value": str(status), "datatype": integer},
        "url": {"type": "uri", "value": url},
    }
    return {"head": {"vars": list(WRITTEN)}, "results": {"bindings": [row]}}


@register
class GET(Operation):
    """Fetches RDF data from a URL and returns it as a graph."""

    op = "GET"
    yields = "graph"
    examples = (Example({"url": "http://dbpedia.org/resource/Copenhagen"}),)

    url: Url = Field(description="The document's address")

    def run(self, run: Evaluation) -> Value:
        """Return the graph."""
        return run.runtime.get(self.url)


class Writing(Operation):
    """What all operations that write a document have in common."""

    writes: ClassVar[bool] = True
    yields = "table"

    @classmethod
    def columns(cls, given: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the columns of how the write ended."""
        return WRITTEN


@register
class POST(Writing):
    """Appends RDF data to the document at a URL; yields the status and the URL."""

    op = "POST"
    base_argument = "url"
    examples = (
        Example(
            {"url": "https://localhost:4443/resource/Copenhagen", "data": _COPENHAGEN},
            _result(200, "https://localhost:4443/resource/Copenhagen"),
        ),
    )

    url: Url = Field(description="The document's address")
    data: GraphLike = Field(description="What is appended: JSON-LD, or an operation's graph")

    def run(self, run: Evaluation) -> Value:
        """Return the status and the URL."""
        return written(run.runtime.send("POST", self.url, self.data))


@register
class PUT(Writing):
    """Creates or replaces the document at a URL with RDF data; yields the status and the URL."""

    op = "PUT"
    base_argument = "url"
    examples = (
        Example(
            {
                "url": "https://localhost:4443/page/Copenhagen",
                "data": {
                    "@context": {
                        "foaf": "http://xmlns.com/foaf/0.1/",
                        "dbr": "http://dbpedia.org/resource/",
                    },
                    "@id": "https://localhost:4443/page/Copenhagen",
                    "@type": ["foaf:Document"],
                    "foaf:primaryTopic": {"@id": "dbr:Copenhagen"},
                },
            },
            _result(200, "https://localhost:4443/page/Copenhagen"),
        ),
    )

    url: Url = Field(description="The document's address")
    data: GraphLike = Field(description="Its new content: JSON-LD, or an operation's graph")

    def run(self, run: Evaluation) -> Value:
        """Return the status and the URL."""
        return written(run.runtime.send("PUT", self.url, self.data))


@register
class PATCH(Writing):
    """Changes the document at a URL by a SPARQL Update; yields the status and the URL."""

    op = "PATCH"
    examples = (
        Example(
            {
                "url": "https://localhost:4443/resource/Copenhagen",
                "update": "INSERT DATA { <http://dbpedia.org/resource/Copenhagen> "
                '<http://schema.org/name> "København"@da }',
            },
            _result(200, "https://localhost:4443/resource/Copenhagen"),
        ),
    )

    url: Url = Field(description="The document's address")
    update: Query = Field(description="A SPARQL Update")

    @classmethod
    def check(cls, given: Mapping[str, Any], visible: Visible) -> None:
        """Refuse what is no update."""
        if isinstance(given.get("update"), str):
            _checked(given["update"])

    def run(self, run: Evaluation) -> Value:
        """Return the status and the URL."""
        _checked(self.update)
        return written(run.runtime.send("PATCH", self.url, self.update))


def _checked(update: str) -> None:
    try:
        check_update(update)
    except QueryError as error:
        error.at(f"args.update: {error.where}" if error.where else "args.update")
        raise
