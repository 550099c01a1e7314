"""From a request to an answer: what each method does to a document."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from reasoningbank.ldp.documents import Document, Documents
from reasoningbank.ldp.faults import Refused
from reasoningbank.ldp.names import document_url
from reasoningbank.ldp.negotiation import (
    GRAPH_FORMATS,
    Conditions,
    best,
    read_triples,
    written,
)
from reasoningbank.ldp.updates import updated

__all__ = ["Answer", "Request", "answer"]

UPDATE = "application/sparql-update"
METHODS = "GET, HEAD, PUT, POST, PATCH, DELETE, OPTIONS"
_LDP = "http://www.w3.org/ns/ldp#"
_EXTENSIONS = {
    "text/turtle": "ttl",
    "application/n-triples": "nt",
    "application/ld+json": "jsonld",
    "application/rdf+xml": "rdf",
}


@dataclass(frozen=True)
class Request:
    """A request as it came.

    Attributes:
        method: The method, in capitals.
        path: The path as it was sent, without the query.
        query: What followed the question mark.
        headers: Its headers; names in lower case.
        body: Its body.
    """

    method: str
    path: str
    query: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = field(default=b"", repr=False)

    @property
    def media_type(self) -> str:
        """The content type without parameters, in lower case."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    @property
    def conditions(self) -> Conditions:
        """What it says about the version that its sender knows."""
        return Conditions(self.headers.get("if-match"), self.headers.get("if-none-match"))


@dataclass(frozen=True)
class Answer:
    """What is sent back."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = field(default=b"", repr=False)


def answer(documents: Documents, request: Request) -> Answer:
    """Do what a request asks of a document.

    Raises:
        Refused: It is not done.

    Examples:
        >>> documents = Documents("http://localhost/")
        >>> text = {"content-type": "text/turtle"}
        >>> answer(documents, Request("PUT", "/a", headers=text, body=b"<> a <#T> .")).status
        201
        >>> answer(documents, Request("GET", "/a")).body
        b'<http://localhost/a> a <http://localhost/a#T> .\\n'
    """
    url = document_url(documents.base, request.path)
    if url is None:
        raise Refused(404, f"no document can be at {request.path}")
    if request.query:
        raise Refused(404, "a document's address has no query")
    if request.method in ("GET", "HEAD"):
        return _got(documents.read(url), url, request)
    if request.method == "OPTIONS":
        return Answer(204, _allowed())
    if request.method == "DELETE":
        documents.delete(url, request.conditions.check)
        return Answer(204)
    if request.method == "PATCH":
        return _patched(documents, url, request)
    if request.method not in ("PUT", "POST"):
        raise Refused(405, f"{request.method} is not done here", {"Allow": METHODS})
    triples = read_triples(request.body, request.media_type, url)
    write = documents.put if request.method == "PUT" else documents.append
    created = write(url, triples, request.conditions.check)
    return _done(documents, url, 201 if created else 200)


def _got(document: Document | None, url: str, request: Request) -> Answer:
    if document is None:
        raise Refused(404, f"there is no document {url}")
    media_type = best(request.headers.get("accept", ""), list(GRAPH_FORMATS))
    if media_type is None:
        raise Refused(406, f"documents are written as {', '.join(GRAPH_FORMATS)}")
    tag = _tag(document, media_type)
    kind = "BasicContainer" if document.is_container else "RDFSource"
    headers = {
        **_allowed(),
        "ETag": tag,
        "Vary": "Accept",
        "Link": f'<{_LDP}Resource>; rel="type", <{_LDP}{kind}>; rel="type"',
    }
    conditions = request.conditions
    if conditions.if_none_match is not None and conditions.unchanged(tag):
        return Answer(304, headers)
    body = written(document.triples, media_type)
    return Answer(200, {**headers, "Content-Type": f"{media_type}; charset=utf-8"}, body)


def _patched(documents: Documents, url: str, request: Request) -> Answer:
    if request.media_type != UPDATE:
        raise Refused(415, f"send the update as {UPDATE}", {"Accept-Patch": UPDATE})
    try:
        update = request.body.decode()
    except UnicodeDecodeError:
        raise Refused(400, "the update is not UTF-8") from None
    check = request.conditions.check
    documents.change(url, lambda triples: updated(triples, update, url), check)
    return _done(documents, url, 200)


def _done(documents: Documents, url: str, status: int) -> Answer:
    document = documents.read(url)
    # Somebody else may have removed it since.
    tag = {} if document is None else {"ETag": _tag(document, next(iter(GRAPH_FORMATS)))}
    return Answer(status, {**tag, "Location": url} if status == 201 else tag)


def _tag(document: Document, media_type: str) -> str:
    return f'"{document.version}.{_EXTENSIONS[media_type]}"'


def _allowed() -> dict[str, str]:
    formats = ", ".join(GRAPH_FORMATS)
    return {"Allow": METHODS, "Accept-Post": formats, "Accept-Patch": UPDATE}
