"""Operations on documents: GET, POST, PUT, PATCH, Merge, and LinkedDataHub's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from rdflib import RDF, BNode, Graph, Literal, Namespace, URIRef

from reasoningbank.algebra.builtin.strings import encode_for_uri
from reasoningbank.algebra.evaluation import Evaluation, Method
from reasoningbank.algebra.operation import (
    Flag,
    GraphLike,
    Graphs,
    PlainText,
    Query,
    Text,
    Uri,
    Url,
    Visible,
    define,
)
from reasoningbank.algebra.queries import QUERIES, check_update, source_query
from reasoningbank.algebra.terms import PREFIXES, ProgramError, locating, scalar
from reasoningbank.algebra.values import Table, Value
from reasoningbank.corpus.shacl import complete_prefixes
from reasoningbank.sparql import iri
from reasoningbank.sparql.tokens import is_update

_DOCUMENTS, _LDH = "Documents on the Web", "Documents of LinkedDataHub"
DCT = Namespace("http://purl.org/dc/terms/")
DH = Namespace("https://www.w3.org/ns/ldt/document-hierarchy#")
LDH = Namespace("https://w3id.org/atomgraph/linkeddatahub#")
#: The columns of a write's result.
WRITTEN = ("status", "url")
_WRITING = {"writes": True, "columns": lambda given: WRITTEN}
_NO_TEXT = Literal("")
OnlyNew = Annotated[Flag, "Whether to fail if the document exists, instead of replacing it"]


def _write(
    run: Evaluation, method: Method, url: str, body: Graph | str, only_new: bool = False
) -> Table:
    """Write a document and return the outcome as a single row."""
    sent = run.runtime.send(method, url, body, only_new=only_new)
    return Table(WRITTEN, [{"status": scalar(sent.status), "url": URIRef(sent.url)}])


@define("GET", "graph", _DOCUMENTS)
def get(run: Evaluation, url: Annotated[Url, "The document's address"]) -> Value:
    """Fetches RDF data from a URL and returns it as a graph."""
    return run.runtime.get(url)


@define("POST", "table", _DOCUMENTS, base_argument="url", **_WRITING)
def post(
    run: Evaluation,
    url: Annotated[Url, "The document's address"],
    data: Annotated[GraphLike, "What is appended: JSON-LD, or an operation's graph"],
) -> Value:
    """Appends RDF data to the document at a URL; yields the status and the URL."""
    return _write(run, "POST", url, data)


@define("PUT", "table", _DOCUMENTS, base_argument="url", **_WRITING)
def put(
    run: Evaluation,
    url: Annotated[Url, "The document's address"],
    data: Annotated[GraphLike, "Its new content: JSON-LD, or an operation's graph"],
    only_new: OnlyNew = False,
) -> Value:
    """Creates or replaces the document at a URL with RDF data; yields the status and the URL."""
    return _write(run, "PUT", url, data, only_new)


@locating("args.update")
def _check_update(given: Mapping[str, Any], visible: Visible | None) -> None:
    text = source_query(given["update"])
    if text is not None and (given["update"] == text or not is_update(text)):
        # What is put together is checked in full by the operations that do it.
        check_update(text)


@define("PATCH", "table", _DOCUMENTS, check=_check_update, **_WRITING)
def patch(
    run: Evaluation,
    url: Annotated[Url, "The document's address"],
    update: Annotated[Query, "A SPARQL Update"],
) -> Value:
    """Changes the document at a URL by a SPARQL Update; yields the status and the URL."""
    update = complete_prefixes(update, {**PREFIXES, **run.prefixes}).text
    _check_update({"update": update}, None)
    return _write(run, "PATCH", url, update)


@define("Merge", "graph", "Combining graphs")
def merge(
    run: Evaluation,
    graphs: Annotated[Graphs, "The graphs: JSON-LD, or operations that yield graphs"],
) -> Value:
    """Merges a list of RDF graphs into one.

    Blank nodes of different documents stay different. The results of a ForEach can be merged too.
    """
    # Blank nodes got fresh names when each document was read, so a union is a merge.
    merged = Graph()
    for graph in graphs:
        merged += graph
    return merged


def _check_list(given: Mapping[str, Any], visible: Visible) -> None:
    if ("endpoint" in given) == ("base" in given):
        both = "takes either endpoint or base, not both"
        what = f"ldh-List {both if 'base' in given else 'needs endpoint or base'}"
        raise ProgramError(what, code="exclusive-arguments")


@define("ldh-List", "table", _LDH, check=_check_list, columns=lambda given: ("child", "title"))
def ldh_list(
    run: Evaluation,
    url: Annotated[Uri, "The document whose children are listed"],
    endpoint: Annotated[Url, "The address of the SPARQL endpoint"] = "",
    base: Annotated[Url, "The base of the LinkedDataHub application"] = "",
) -> Value:
    """Lists the children of a LinkedDataHub document, as a table ordered by title.

    Give either the endpoint or the base; the endpoint of a base is base + "sparql".
    """
    asked = endpoint or f"{base.removesuffix('/')}/sparql"
    return run.runtime.select(asked, QUERIES["children"] % iri(url))


@define("ldh-CreateContainer", "table", _LDH, **_WRITING)
def ldh_create_container(
    run: Evaluation,
    parent: Annotated[Url, "The container in which it is created"],
    title: Annotated[Text, "Its title"],
    slug: Annotated[PlainText, "Its name in the URL; the title by default"] = "",
    description: Annotated[Text, "What it is for"] = _NO_TEXT,
    only_new: OnlyNew = False,
) -> Value:
    """Creates a LinkedDataHub container document below a parent; yields the status and the URL.

    Its URL is the parent's with the slug (the title by default), which is percent-encoded here.
    """
    document, graph = _described(DH.Container, parent, slug, title, description)
    # It shows the view of its children.
    content = BNode()
    graph.add((document, RDF["_1"], content))
    graph.add((content, RDF.type, LDH.Object))
    graph.add((content, RDF.value, LDH.ChildrenView))
    return _write(run, "PUT", str(document), graph, only_new)


@define("ldh-CreateItem", "table", _LDH, **_WRITING)
def ldh_create_item(
    run: Evaluation,
    container: Annotated[Url, "The container in which it is created"],
    title: Annotated[Text, "Its title"],
    slug: Annotated[PlainText, "Its name in the URL; the title by default"] = "",
    description: Annotated[Text, "What it is about"] = _NO_TEXT,
    only_new: OnlyNew = False,
) -> Value:
    """Creates a LinkedDataHub item document in a container; yields the status and the URL.

    Its URL is the container's with the slug (the title by default), which is percent-encoded here.
    """
    document, graph = _described(DH.Item, container, slug, title, description)
    return _write(run, "PUT", str(document), graph, only_new)


def _described(
    kind: URIRef, container: str, slug: str, title: Literal, description: Literal
) -> tuple[URIRef, Graph]:
    """Return the URL of a document below a container, and what is stated of it."""
    name = slug or str(title)
    if name in ("", ".", ".."):
        hint = "give a slug or a title that has letters"
        raise ProgramError(f"{name!r} cannot be the name of a document", hint=hint, code="bad-name")
    document = URIRef(f"{container.removesuffix('/')}/{encode_for_uri(name)}/")
    graph = Graph()
    graph.add((document, RDF.type, kind))
    graph.add((document, DCT.title, title))
    if str(description):
        graph.add((document, DCT.description, description))
    return document, graph
