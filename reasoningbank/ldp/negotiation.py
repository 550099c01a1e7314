"""Which format goes over the wire, and whether the requester's copy is still the current one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyoxigraph import NamedNode, RdfFormat, Triple, parse, serialize

from reasoningbank.ldp.faults import Refused
from reasoningbank.sparql.formats import blows_up
from reasoningbank.sparql.tokens import check_terms

__all__ = ["GRAPH_FORMATS", "Conditions", "best", "read_triples", "written"]

#: What documents are read and written in; the first is what is sent where anything will do.
GRAPH_FORMATS: Mapping[str, RdfFormat] = {
    "text/turtle": RdfFormat.TURTLE,
    "application/n-triples": RdfFormat.N_TRIPLES,
    "application/ld+json": RdfFormat.JSON_LD,
    "application/rdf+xml": RdfFormat.RDF_XML,
}


def best(accept: str, offers: Sequence[str]) -> str | None:
    """Return the offer that an Accept header likes best (RFC 9110, 12.5.1); None if none.

    Examples:
        >>> offers = ["text/turtle", "application/ld+json"]
        >>> best("application/ld+json, text/turtle;q=0.5", offers), best("*/*", offers)
        ('application/ld+json', 'text/turtle')
        >>> best("text/html", offers) is None
        True
    """
    ranges: list[tuple[str, float]] = []
    for part in accept.split(","):
        name, *parameters = (piece.strip() for piece in part.split(";"))
        quality = 1.0
        for parameter in parameters:
            if parameter.lower().startswith("q="):
                try:
                    quality = float(parameter[2:])
                except ValueError:
                    quality = 0.0
        if name:
            ranges.append((name.lower(), quality))
    if not ranges:
        return offers[0]
    liked = [(_quality(offer, ranges), -at, offer) for at, offer in enumerate(offers)]
    quality, _, offer = max(liked)
    return offer if quality > 0 else None


def _quality(offer: str, ranges: Sequence[tuple[str, float]]) -> float:
    fits = (offer, f"{offer.partition('/')[0]}/*", "*/*")
    # The most specific range decides, whatever the others say.
    for wanted in fits:
        found = [quality for name, quality in ranges if name == wanted]
        if found:
            return max(found)
    return 0.0


def read_triples(body: bytes, media_type: str, base: str) -> list[Triple]:
    """Read a request's body as one graph; blank nodes get names of their own.

    Raises:
        Refused: The format is not one of `GRAPH_FORMATS` (415), or the body is not of it (400).

    Examples:
        >>> [str(part) for part in read_triples(b"<> a <#T> .", "text/turtle", "http://e/d")[0]][0]
        '<http://e/d>'
    """
    kind = GRAPH_FORMATS.get(media_type)
    if kind is None:
        raise Refused(
            415,
            f"{media_type or 'no content type'} is not an RDF format that is read here; "
            f"send one of {', '.join(GRAPH_FORMATS)}",
            {"Accept-Post": ", ".join(GRAPH_FORMATS)},
        )
    if kind == RdfFormat.RDF_XML and blows_up(body):
        raise Refused(400, "the XML's entities unfold to far more than was sent")
    try:
        check_terms(body)
        quads = list(parse(body, kind, base_iri=base, rename_blank_nodes=True))
    except (SyntaxError, ValueError) as error:
        raise Refused(400, f"the body is not {media_type}: {error}") from error
    if any(isinstance(quad.graph_name, NamedNode) for quad in quads):
        raise Refused(400, "the body names graphs, and a document is one graph")
    return list(dict.fromkeys(quad.triple for quad in quads))


def written(triples: Sequence[Triple], media_type: str) -> bytes:
    """Write a document.

    Raises:
        Refused: The format cannot hold it (406): RDF/XML has no way to write some properties.
    """
    try:
        return serialize(triples, format=GRAPH_FORMATS[media_type]) or b""
    except ValueError as error:
        raise Refused(406, f"the document cannot be written as {media_type}: {error}") from error


@dataclass(frozen=True)
class Conditions:
    """What a request says about the copy that its sender has (RFC 9110, 13.1).

    Attributes:
        if_match: The header If-Match, or None.
        if_none_match: The header If-None-Match, or None.
    """

    if_match: str | None = None
    if_none_match: str | None = None

    def check(self, version: str | None) -> None:
        """Refuse a write whose conditions the document's version does not meet.

        Args:
            version: The version of the document, as in its ETags; None where there is none.

        Raises:
            Refused: 412.

        Examples:
            >>> Conditions(if_match='"abc.ttl"').check("abc")
            >>> Conditions(if_none_match="*").check("abc")
            Traceback (most recent call last):
            ...
            reasoningbank.ldp.faults.Refused: there is a document already
        """
        if self.if_match is not None and not _among(self.if_match, version):
            raise Refused(412, "the document is not the one you know any more; get it anew")
        if self.if_none_match is not None and _among(self.if_none_match, version):
            raise Refused(412, "there is a document already")

    def unchanged(self, tag: str) -> bool:
        """Say whether a reader has just this representation already."""
        tags = (self.if_none_match or "").replace("W/", "").split(",")
        return any(known.strip() in (tag, "*") for known in tags)


def _among(header: str, version: str | None) -> bool:
    if version is None:
        return False
    tags = [tag.strip() for tag in header.split(",")]
    # All representations of a version are of that version; weak tags never match here.
    return "*" in tags or any(tag.strip('"').partition(".")[0] == version for tag in tags)
