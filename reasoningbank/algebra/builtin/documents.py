"""Operations on documents: GET, POST, PUT, PATCH, Merge, and LinkedDataHub's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import Field
from rdflib import RDF, BNode, Graph, Literal, Namespace, URIRef

from reasoningbank.algebra.builtin.strings import encode_for_uri
from reasoningbank.algebra.evaluation import Evaluation, Sent
from reasoningbank.algebra.operation import (
    GraphLike,
    Graphs,
    Operation,
    PlainText,
    Query,
    Text,
    Uri,
    Url,
    Visible,
    register,
)
from reasoningbank.algebra.queries import check_update
from reasoningbank.algebra.terms import ProgramError, located, scalar
from reasoningbank.algebra.values import Table, Value, to_json
from reasoningbank.errors import QueryError
from reasoningbank.sparql import iri

_LDH = "Documents of LinkedDataHub"
DCT = Namespace("http://purl.org/dc/terms/")
DH = Namespace("https://www.w3.org/ns/ldt/document-hierarchy#")
LDH = Namespace("https://w3id.org/atomgraph/linkeddatahub#")
#: The columns of a write's result.
WRITTEN = ("status", "url")
_PREFIXES = {"dbr": "http://dbpedia.org/resource/", "schema": "http://schema.org/"}
_LOCAL_COPENHAGEN = "https://localhost:4443/resource/Copenhagen"
#: A child with several titles occurs once, with the first of them.
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


def written(sent: Sent) -> Table:
    """Return the outcome of a write as the single row that all writing operations yield."""
    return Table(WRITTEN, [{"status": scalar(sent.status), "url": URIRef(sent.url)}])


def _result(url: str) -> Any:
    return to_json(written(Sent(200, url)))


class _OnDocuments(Operation):
    group = "Documents on the Web"


@register
class GET(_OnDocuments):
    """Fetches RDF data from a URL and returns it as a graph."""

    op = "GET"
    yields = "graph"

    url: Url = Field(description="The document's address")

    def run(self, run: Evaluation) -> Value:
        return run.runtime.get(self.url)


class _Writing(_OnDocuments):
    writes: ClassVar[bool] = True
    yields = "table"

    @classmethod
    def columns(cls, given: Mapping[str, Any]) -> tuple[str, ...]:
        return WRITTEN


@register
class POST(_Writing):
    """Appends RDF data to the document at a URL; yields the status and the URL."""

    op = "POST"
    base_argument = "url"

    url: Url = Field(description="The document's address")
    data: GraphLike = Field(description="What is appended: JSON-LD, or an operation's graph")

    def run(self, run: Evaluation) -> Value:
        return written(run.runtime.send("POST", self.url, self.data))


@register
class PUT(_Writing):
    """Creates or replaces the document at a URL with RDF data; yields the status and the URL."""

    op = "PUT"
    base_argument = "url"

    url: Url = Field(description="The document's address")
    data: GraphLike = Field(description="Its new content: JSON-LD, or an operation's graph")

    def run(self, run: Evaluation) -> Value:
        return written(run.runtime.send("PUT", self.url, self.data))


@register
class PATCH(_Writing):
    """Changes the document at a URL by a SPARQL Update; yields the status and the URL."""

    op = "PATCH"

    url: Url = Field(description="The document's address")
    update: Query = Field(description="A SPARQL Update")

    @classmethod
    def check(cls, given: Mapping[str, Any], visible: Visible) -> None:
        if isinstance(given.get("update"), str):
            _check_update(given["update"])

    def run(self, run: Evaluation) -> Value:
        _check_update(self.update)
        return written(run.runtime.send("PATCH", self.url, self.update))


def _check_update(update: str) -> None:
    try:
        check_update(update)
    except QueryError as error:
        raise located(error, "args.update") from None


@register
class Merge(Operation):
    """Merges a list of RDF graphs into one.

    Blank nodes of different documents stay different. The results of a ForEach can be merged too.
    """

    op = "Merge"
    yields = "graph"
    group = "Combining graphs"

    graphs: Graphs = Field(description="The graphs: JSON-LD, or operations that yield graphs")

    def run(self, run: Evaluation) -> Value:
        # Blank nodes got fresh names when each document was read, so a union is a merge.
        merged = Graph()
        for graph in self.graphs:
            merged += graph
        return merged


def document_url(container: str, slug: str) -> str:
    """Return the address of a document in a container; the slug is percent-encoded."""
    if slug in ("", ".", ".."):
        hint = "give a slug or a title that has letters"
        what = f"{slug!r} cannot be the name of a document"
        raise ProgramError(what, hint=hint, code="bad-name")
    base = container if container.endswith("/") else f"{container}/"
    return f"{base}{encode_for_uri(slug)}/"


@register
class LdhList(Operation):
    """Lists the children of a LinkedDataHub document, as a table ordered by title.

    Give either the endpoint or the base; the endpoint of a base is base + "sparql".
    """

    op = "ldh-List"
    yields = "table"
    group = _LDH

    url: Uri = Field(description="The document whose children are listed")
    endpoint: Url = Field(default="", description="The address of the SPARQL endpoint")
    base: Url = Field(default="", description="The base of the LinkedDataHub application")

    @classmethod
    def check(cls, given: Mapping[str, Any], visible: Visible) -> None:
        if ("endpoint" in given) == ("base" in given):
            both = "takes either endpoint or base, not both"
            what = f"ldh-List {both if 'base' in given else 'needs endpoint or base'}"
            raise ProgramError(what, code="exclusive-arguments")

    @classmethod
    def columns(cls, given: Mapping[str, Any]) -> tuple[str, ...]:
        return ("child", "title")

    def run(self, run: Evaluation) -> Value:
        base = self.base if self.base.endswith("/") else f"{self.base}/"
        return run.runtime.select(self.endpoint or f"{base}sparql", _CHILDREN % iri(self.url))


class _LdhCreating(_Writing):
    group = _LDH
    kind: ClassVar[URIRef]

    def create(self, run: Evaluation, url: str, title: Literal, more: Literal) -> Value:
        """Write a document with its title and description."""
        document, graph = URIRef(url), Graph()
        graph.add((document, RDF.type, self.kind))
        graph.add((document, DCT.title, title))
        if str(more):
            graph.add((document, DCT.description, more))
        if self.kind == DH.Container:
            # A container shows the view of its children.
            content = BNode()
            graph.add((document, RDF["_1"], content))
            graph.add((content, RDF.type, LDH.Object))
            graph.add((content, RDF.value, LDH.ChildrenView))
        return written(run.runtime.send("PUT", url, graph))


@register
class LdhCreateContainer(_LdhCreating):
    """Creates a LinkedDataHub container document below a parent; yields the status and the URL.

    Its URL is the parent's with the slug (the title by default), which is percent-encoded here.
    """

    op = "ldh-CreateContainer"
    kind = DH.Container

    parent: Url = Field(description="The container in which it is created")
    title: Text = Field(description="Its title")
    slug: PlainText = Field(default="", description="Its name in the URL; the title by default")
    description: Text = Field(default=Literal(""), description="What it is for")

    def run(self, run: Evaluation) -> Value:
        url = document_url(self.parent, self.slug or str(self.title))
        return self.create(run, url, self.title, self.description)


@register
class LdhCreateItem(_LdhCreating):
    """Creates a LinkedDataHub item document in a container; yields the status and the URL.

    Its URL is the container's with the slug (the title by default), which is percent-encoded here.
    """

    op = "ldh-CreateItem"
    kind = DH.Item

    container: Url = Field(description="The container in which it is created")
    title: Text = Field(description="Its title")
    slug: PlainText = Field(default="", description="Its name in the URL; the title by default")
    description: Text = Field(default=Literal(""), description="What it is about")

    def run(self, run: Evaluation) -> Value:
        url = document_url(self.container, self.slug or str(self.title))
        return self.create(run, url, self.title, self.description)
