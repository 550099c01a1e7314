"""An RDF document out of an HTTP reply, whatever its content type says."""

from __future__ import annotations

from pyoxigraph import RdfFormat, Triple, parse

from reasoningbank.sparql.entities import blows_up
from reasoningbank.sparql.faults import is_html
from reasoningbank.sparql.tokens import check_terms
from reasoningbank.sparql.transport import Reply

__all__ = ["ACCEPT", "ACCEPT_XML", "document_triples"]

ACCEPT = (
    "text/turtle, application/n-triples;q=0.9, application/rdf+xml;q=0.8, application/ld+json;q=0.7"
)
#: Some servers know one RDF format only, and send a page to whoever names others beside it.
ACCEPT_XML = "application/rdf+xml"


def document_triples(reply: Reply, base: str, most: int) -> tuple[list[Triple], str]:
    """Return the triples of a reply, and why there are none.

    The content type is believed first; where it names no RDF format, or the body is not of that
    format, the body's beginning decides.

    Args:
        reply: What came.
        base: The address that relative IRIs are relative to.
        most: Triples after which reading stops.
    """
    if not 200 <= reply.status < 300:
        return [], f"HTTP {reply.status}"
    if is_html(reply):
        return [], "a web page came, no RDF"
    if not reply.body.strip():
        return [], "the answer is empty"
    declared = RdfFormat.from_media_type(reply.media_type) if reply.media_type else None
    complaint = f"the answer is {reply.media_type or 'of no named type'}, no RDF"
    if blows_up(reply.body):
        return [], "the answer is XML whose entities unfold to far more than was sent"
    for kind in dict.fromkeys(k for k in (declared, _guess(reply.body)) if k is not None):
        triples: list[Triple] = []
        try:
            check_terms(reply.body)
            for quad in parse(reply.body, kind, base_iri=base):
                triples.append(quad.triple)
                if len(triples) >= most:
                    break
        except (SyntaxError, ValueError) as error:
            if not (triples and reply.cut):
                complaint = f"the description cannot be parsed: {error}"
                continue
        return list(dict.fromkeys(triples)), "" if triples else "the description is empty"
    return [], complaint


def _guess(body: bytes) -> RdfFormat | None:
    start = body[:400].lstrip().lower()
    if start.startswith((b"<?xml", b"<rdf:rdf", b"<!--")):
        return RdfFormat.RDF_XML
    if start.startswith((b"{", b"[{", b"[ {", b"[\n")):
        return RdfFormat.JSON_LD
    if start.startswith((b"@prefix", b"@base", b"prefix ", b"base ", b"<http", b"_:", b"#")):
        return RdfFormat.TURTLE
    return None
