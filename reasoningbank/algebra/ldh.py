"""Documents of LinkedDataHub: ldh-List, ldh-CreateContainer, ldh-CreateItem."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field
from rdflib import RDF, BNode, Graph, Literal, Namespace, URIRef

from reasoningbank.algebra.arguments import PlainText, Text, Uri, Url
from reasoningbank.algebra.builtin.documents import Writing, written
from reasoningbank.algebra.builtin.uris import encode_for_uri
from reasoningbank.algebra.contract import Evaluation
from reasoningbank.algebra.faults import ProgramError
from reasoningbank.algebra.operation import Example, Operation, register
from reasoningbank.algebra.runtime_writes import Sent
from reasoningbank.algebra.values import Value, to_json
from reasoningbank.algebra.visible import Visible
from reasoningbank.sparql import iri

__all__ = ["LdhCreateContainer", "LdhCreateItem", "LdhList", "document_url"]

DCT = Namespace("http://purl.org/dc/terms/")
DH = Namespace("https://www.w3.org/ns/ldt/document-hierarchy#")
LDH = Namespace("https://w3id.org/atomgraph/linkeddatahub#")
#: A child with several titles comes once, with the first of them.
_CHILDREN = """\
PREFIX dct: <http://purl.org/dc/terms/>
PREFIX sioc: <http://rdfs.org/sioc/ns#>
SELECT DISTINCT ?child ?title WHERE {
  GRAPH ?members { ?child sioc:has_parent|sioc:has_container %s }
  OPTIONAL {
    GRAPH ?document { ?child dct:title ?title }
    FILTER NOT EXISTS {
      GRAPH ?other { ?child dct:title ?earlier }
      FILTER(STR(?earlier) < STR(?title)
        || (STR(?earlier) = STR(?title) && LANG(?earlier) < LANG(?title)))
    }
  }
} ORDER BY STR(?title) ?child"""


def document_url(container: str, slug: str) -> str:
    """Return the address of a document in a container; the slug is percent-encoded.

    Raises:
        ProgramError: The slug can be no name.

    Examples:
        >>> document_url("https://localhost:4443/items", "Copenhagen City")
        'https://localhost:4443/items/Copenhagen%20City/'
    """
    if slug in ("", ".", ".."):
        hint = "give a slug or a title that has letters"
        raise ProgramError(f"{slug!r} can be no name of a document", hint=hint)
    base = container if container.endswith("/") else f"{container}/"
    return f"{base}{encode_for_uri(slug)}/"


@register
class LdhList(Operation):
    """Lists the children of a LinkedDataHub document, as a table ordered by title.

    Give either the endpoint or the base; the endpoint of a base is base + "sparql".
    """

    op = "ldh-List"
    yields = "table"
    examples = (Example({"url": "http://localhost:4443/", "base": "http://localhost:4443/"}),)

    url: Uri = Field(description="The document whose children are listed")
    endpoint: Url = Field(default="", description="The address of the SPARQL endpoint")
    base: Url = Field(default="", description="The base of the LinkedDataHub application")

    @classmethod
    def check(cls, given: Mapping[str, Any], visible: Visible) -> None:
        """Refuse a call that names no endpoint, or two."""
        if ("endpoint" in given) == ("base" in given):
            both = "takes either endpoint or base, not both"
            raise ProgramError(f"ldh-List {both if 'base' in given else 'needs endpoint or base'}")

    @classmethod
    def columns(cls, given: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the columns of the table."""
        return ("child", "title")

    def run(self, run: Evaluation) -> Value:
        """Return the children."""
        base = self.base if self.base.endswith("/") else f"{self.base}/"
        return run.runtime.select(self.endpoint or f"{base}sparql", _CHILDREN % iri(self.url))


@register
class LdhCreateContainer(Writing):
    """Creates a LinkedDataHub container document below a parent; yields the status and the URL.

    Its URL is the parent's with the slug (the title by default), which is percent-encoded here.
    """

    op = "ldh-CreateContainer"
    examples = (
        Example(
            {
                "parent": "https://localhost:4443/containers/",
                "slug": "European Cities",
                "title": "Cities Container",
                "description": "Container for city data",
            },
            to_json(written(Sent(200, "https://localhost:4443/containers/European%20Cities/"))),
        ),
    )

    parent: Url = Field(description="The container in which it is created")
    title: Text = Field(description="Its title")
    slug: PlainText = Field(default="", description="Its name in the URL; the title by default")
    description: Text = Field(default=Literal(""), description="What it is for")

    def run(self, run: Evaluation) -> Value:
        """Return the status and the URL."""
        url = document_url(self.parent, self.slug or str(self.title))
        graph = _document(url, DH.Container, self.title, self.description)
        # What it shows: the view of its children.
        content = BNode()
        graph.add((URIRef(url), RDF["_1"], content))
        graph.add((content, RDF.type, LDH.Object))
        graph.add((content, RDF.value, LDH.ChildrenView))
        return written(run.runtime.send("PUT", url, graph))


@register
class LdhCreateItem(Writing):
    """Creates a LinkedDataHub item document in a container; yields the status and the URL.

    Its URL is the container's with the slug (the title by default), which is percent-encoded here.
    """

    op = "ldh-CreateItem"
    examples = (
        Example(
            {
                "container": "https://localhost:4443/items/",
                "slug": "Copenhagen City",
                "title": "Copenhagen",
                "description": "Capital city of Denmark",
            },
            to_json(written(Sent(200, "https://localhost:4443/items/Copenhagen%20City/"))),
        ),
    )

    container: Url = Field(description="The container in which it is created")
    title: Text = Field(description="Its title")
    slug: PlainText = Field(default="", description="Its name in the URL; the title by default")
    description: Text = Field(default=Literal(""), description="What it is about")

    def run(self, run: Evaluation) -> Value:
        """Return the status and the URL."""
        url = document_url(self.container, self.slug or str(self.title))
        graph = _document(url, DH.Item, self.title, self.description)
        return written(run.runtime.send("PUT", url, graph))


def _document(url: str, kind: URIRef, title: Literal, description: Literal) -> Graph:
    graph = Graph()
    graph.add((URIRef(url), RDF.type, kind))
    graph.add((URIRef(url), DCT.title, title))
    if str(description):
        graph.add((URIRef(url), DCT.description, description))
    return graph
