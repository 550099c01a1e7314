"""Documents on the web as graphs: what is asked for, what is read of an answer, what is sent."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Sequence

import pyoxigraph
from pyoxigraph import RdfFormat
from rdflib import Graph

from reasoningbank.algebra.jsonld import graph_from_quads
from reasoningbank.algebra.terms import to_oxigraph
from reasoningbank.algebra.web import WebReply
from reasoningbank.errors import BudgetError, EndpointError, ReasoningBankError
from reasoningbank.sparql.entities import blows_up
from reasoningbank.sparql.tokens import check_terms

__all__ = ["ACCEPT", "TURTLE", "digest", "graph_of", "written"]

#: The formats that are read fastest and with least loss come first. Any other answer is refused,
#: so nothing else is asked for: servers that know no RDF then say so.
ACCEPT = (
    "application/n-triples, text/turtle;q=0.95, application/ld+json;q=0.8, "
    "application/rdf+xml;q=0.7, application/n-quads;q=0.6, application/trig;q=0.6"
)
TURTLE = "text/turtle"
_ROUNDS = 16
_MISNAMED = {"application/x-turtle": RdfFormat.TURTLE, "application/json": RdfFormat.JSON_LD}


def graph_of(reply: WebReply, most: int | None = None) -> Graph:
    """Return the graph of a document; the statements of its named graphs are among the others.

    Relative IRIs are relative to the address that answered.

    Args:
        reply: What came.
        most: Most triples.

    Raises:
        EndpointError: It is of no RDF format, or not of the one that it claims to be.
        BudgetError: It holds more triples.
    """
    declared = reply.media_type
    kind = _MISNAMED.get(declared) or (RdfFormat.from_media_type(declared) if declared else None)
    if kind is None:
        what = f"the answer is {declared or 'of no named type'}, not RDF"
        hint = "ask for an address that has RDF, or query an endpoint for it"
        raise EndpointError(what, where=reply.url, hint=hint)
    if kind == RdfFormat.RDF_XML and blows_up(reply.body):
        what = "the answer is XML whose entities unfold to far more than was sent"
        raise EndpointError(what, where=reply.url)
    if not reply.body.strip() and kind in (RdfFormat.JSON_LD, RdfFormat.RDF_XML):
        raise EndpointError(f"the answer is empty, which no {declared} is", where=reply.url)
    quads: list[pyoxigraph.Quad] = []
    try:
        check_terms(reply.body)
        for quad in pyoxigraph.parse(reply.body, kind, base_iri=reply.url):
            if most is not None and len(quads) >= most:
                what = f"the document has more than {most:,} triples"
                raise BudgetError(what, where=reply.url, hint="allow more rows")
            quads.append(quad)
        return graph_from_quads(quads)
    except (SyntaxError, ValueError) as error:
        what = f"the answer is no valid {declared}: {error}"
        hint = "tell the document's owner; nothing of it was taken"
        raise EndpointError(what, where=reply.url, hint=hint) from None
    except BudgetError:
        raise
    except ReasoningBankError as error:
        raise EndpointError(f"the document cannot be held: {error.what}", where=reply.url) from None


def written(graph: Graph) -> bytes:
    """Return a graph as N-Triples, which is Turtle too; the same graph always gives the same lines.

    Raises:
        ProgramError: A term of it is not allowed in RDF (a relative IRI).

    Examples:
        >>> graph = Graph().parse(data="<http://e/a> <http://e/b> 1 , 'ø'@da .", format="turtle")
        >>> print(written(graph).decode().splitlines()[1])
        <http://e/a> <http://e/b> "ø"@da .
    """
    triples = (
        pyoxigraph.Triple(to_oxigraph(s), to_oxigraph(p), to_oxigraph(o))  # type: ignore[arg-type]
        for s, p, o in graph
    )
    return "".join(sorted(f"{triple} .\n" for triple in triples)).encode()


def digest(body: bytes) -> str:
    """Return what tells graphs apart whatever their blank nodes are called.

    A blank node is told by what is said of it and of those around it (colour refinement, a bounded
    number of rounds), since an exact canonical form can take for ever on a graph made for that.

    Args:
        body: N-Triples, as `written` gives them, or a SPARQL Update, which is taken as it is.

    Examples:
        >>> one, other = (digest(b'_:%s <http://e/p> "x" .' % label) for label in (b"a", b"b"))
        >>> one == other, one == digest(b'<http://e/a> <http://e/p> "x" .')
        (True, False)
    """
    if b"_:" in body:
        try:
            triples = [quad.triple for quad in pyoxigraph.parse(body, RdfFormat.N_TRIPLES)]
        except SyntaxError:
            return _hash(body)
        colours = _colours(triples)
        lines = (" ".join(colours.get(part, str(part)) for part in triple) for triple in triples)
        body = "\n".join(sorted(lines)).encode()
    return _hash(body)


def _colours(triples: Sequence[pyoxigraph.Triple]) -> dict[object, str]:
    around: defaultdict[object, list[tuple[str, str, object]]] = defaultdict(list)
    for triple in triples:
        subject, predicate, object_ = triple
        if isinstance(subject, pyoxigraph.BlankNode):
            around[subject].append((">", str(predicate), object_))
        if isinstance(object_, pyoxigraph.BlankNode):
            around[object_].append(("<", str(predicate), subject))
    colours: dict[object, str] = dict.fromkeys(around, "_:")
    for _ in range(_ROUNDS):
        before = len(set(colours.values()))
        colours = {
            node: _colour([(way, name, colours.get(end, str(end))) for way, name, end in said])
            for node, said in around.items()
        }
        if len(set(colours.values())) == before:
            break
    return colours


def _colour(said: list[tuple[str, str, str]]) -> str:
    return f"_:{_hash(repr(sorted(said)).encode())}"


def _hash(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()
