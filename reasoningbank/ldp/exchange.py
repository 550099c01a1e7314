"""What requests carry: RDF formats, conditions, and SPARQL updates of one document."""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyoxigraph as ox

from reasoningbank.errors import QueryError
from reasoningbank.sparql.formats import parse_rdf
from reasoningbank.sparql.tokens import check_update_size, tokenize


class Refused(Exception):  # noqa: N818 - an answer, not a defect
    """A request that is refused with an HTTP status; the document is unchanged."""

    def __init__(self, status: int, why: str, headers: Mapping[str, str] | None = None) -> None:
        self.status = status
        self.why = " ".join(why.split())
        self.headers = dict(headers or {})
        super().__init__(self.why)


#: What documents are read and written in; the first is what is sent where anything will do.
GRAPH_FORMATS: Mapping[str, ox.RdfFormat] = {
    "text/turtle": ox.RdfFormat.TURTLE,
    "application/n-triples": ox.RdfFormat.N_TRIPLES,
    "application/ld+json": ox.RdfFormat.JSON_LD,
    "application/rdf+xml": ox.RdfFormat.RDF_XML,
}


def best(accept: str, offers: Sequence[str]) -> str | None:
    """Return the offer that an Accept header prefers (RFC 9110, 12.5.1), or None."""
    ranges: dict[str, float] = {}
    for part in accept.split(","):
        name, *parameters = (piece.strip().lower() for piece in part.split(";"))
        quality = 1.0
        for parameter in parameters:
            if parameter.startswith("q="):
                try:
                    quality = float(parameter[2:])
                except ValueError:
                    quality = 0.0
        if name:
            ranges[name] = max(quality, ranges.get(name, 0.0))
    if not ranges:
        return offers[0]
    liked: dict[str, float] = {}
    for offer in offers:
        # The most specific range decides.
        fits = (offer, f"{offer.partition('/')[0]}/*", "*/*")
        liked[offer] = next((ranges[name] for name in fits if name in ranges), 0.0)
    preferred = max(offers, key=lambda offer: liked[offer])
    return preferred if liked[preferred] > 0 else None


def read_triples(body: bytes, media_type: str, base: str) -> list[ox.Triple]:
    """Read a request's body as one graph with fresh blank nodes."""
    kind = GRAPH_FORMATS.get(media_type)
    if kind is None:
        known = ", ".join(GRAPH_FORMATS)
        what = f"{media_type or 'no content type'} is not a supported RDF format"
        raise Refused(415, f"{what}; send one of {known}", {"Accept-Post": known})
    try:
        quads = list(parse_rdf(body, kind, base_iri=base, rename_blank_nodes=True))
    except (SyntaxError, ValueError) as error:
        raise Refused(400, f"the body is not {media_type}: {error}") from error
    if any(isinstance(quad.graph_name, ox.NamedNode) for quad in quads):
        raise Refused(400, "the body names graphs, but a document is one graph")
    return list(dict.fromkeys(quad.triple for quad in quads))


def written(triples: Sequence[ox.Triple], media_type: str) -> bytes:
    try:
        return ox.serialize(triples, format=GRAPH_FORMATS[media_type]) or b""
    except ValueError as error:
        raise Refused(406, f"the document cannot be written as {media_type}: {error}") from error


@dataclass(frozen=True)
class Conditions:
    """The preconditions of a request (RFC 9110, 13.1)."""

    if_match: str | None = None
    if_none_match: str | None = None

    def check(self, version: str | None) -> None:
        """Raise `Refused` (412) if the document's version does not meet them."""
        if self.if_match is not None and not _among(self.if_match, version):
            raise Refused(412, "the document has changed; get it again")
        if self.if_none_match is not None and _among(self.if_none_match, version):
            raise Refused(412, "the document already exists")

    def unchanged(self, tag: str) -> bool:
        tags = (self.if_none_match or "").replace("W/", "").split(",")
        return any(known.strip() in (tag, "*") for known in tags)


def _among(header: str, version: str | None) -> bool:
    if version is None:
        return False
    tags = [tag.strip() for tag in header.split(",")]
    # All representations of a version are of that version; weak tags never match here.
    return "*" in tags or any(tag.strip('"').partition(".")[0] == version for tag in tags)


def fingerprint(triples: Sequence[ox.Triple]) -> str:
    """Return a digest of a graph that does not depend on its blank node labels.

    Graphs that differ only in how blank nodes that look alike are linked may have the same one.
    """
    colours = _colours(triples)
    lines = (" ".join(colours.get(part, str(part)) for part in triple) for triple in triples)
    return hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest()


#: How far from a blank node its surroundings are looked at.
_ROUNDS = 16


def _colours(triples: Sequence[ox.Triple]) -> dict[object, str]:
    """Return a name for each blank node that is made of what surrounds it."""
    around: defaultdict[object, list[tuple[str, str, object]]] = defaultdict(list)
    for subject, predicate, object_ in triples:
        if isinstance(subject, ox.BlankNode):
            around[subject].append((">", str(predicate), object_))
        if isinstance(object_, ox.BlankNode):
            around[object_].append(("<", str(predicate), subject))
    colours: dict[object, str] = dict.fromkeys(around, "_:")
    for _ in range(_ROUNDS):
        before = len(set(colours.values()))
        coloured = {}
        for node, links in around.items():
            seen = sorted((way, name, colours.get(end, str(end))) for way, name, end in links)
            coloured[node] = f"_:{hashlib.sha256(repr(seen).encode()).hexdigest()}"
        colours = coloured
        if len(set(colours.values())) == before:
            break
    return colours


MAX_CHARS = 4 * 1024 * 1024
#: What reaches beyond one graph, or beyond this machine.
_BEYOND = (
    *("GRAPH", "WITH", "USING", "SERVICE", "LOAD"),
    *("CREATE", "DROP", "CLEAR", "COPY", "MOVE", "ADD"),
)

#: An escaped backslash comes first: the ``u`` behind it begins no codepoint.
_CODEPOINT = re.compile(r"\\\\|\\u([0-9A-Fa-f]{4})|\\U([0-9A-Fa-f]{8})")


def expanded(text: str) -> str:
    r"""Return SPARQL text with codepoint escapes expanded, as engines do before parsing."""

    def character(match: re.Match[str]) -> str:
        if match[0] == "\\\\":
            return match[0]
        code = int(match[1] or match[2], 16)
        if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
            raise Refused(400, f"{match[0]} is not a character")
        return chr(code)

    plain = _CODEPOINT.sub(character, text)
    if any(match[0] != "\\\\" for match in _CODEPOINT.finditer(plain)):
        raise Refused(400, "a codepoint escape expands to another one")
    return plain


def updated(triples: Sequence[ox.Triple], update: str, base: str) -> list[ox.Triple]:
    """Return a document after an update, which sees it as the default graph."""
    if len(update) > MAX_CHARS:
        raise Refused(413, f"the update has more than {MAX_CHARS:,} characters")
    update = expanded(update)
    tokens = tokenize(update)
    try:
        check_update_size(tokens)
    except QueryError as error:
        raise Refused(422, str(error)) from error
    beyond = next((token for token in tokens if token.is_word(*_BEYOND)), None)
    if beyond is not None:
        raise Refused(
            422,
            f"{beyond.text.upper()} reaches beyond the document; "
            "use only INSERT DATA, DELETE DATA or DELETE/INSERT WHERE",
        )
    scratch = ox.Store()
    scratch.extend(ox.Quad(*triple) for triple in triples)
    try:
        scratch.update(update, base_iri=base)
    except (SyntaxError, ValueError) as error:
        raise Refused(400, f"not a SPARQL update: {error}") from error
    except OSError as error:
        raise Refused(422, f"the update failed: {error}") from error
    return [quad.triple for quad in scratch]
