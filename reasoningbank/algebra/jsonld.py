"""Graphs as JSON-LD 1.1, both ways and without loss.

Read by pyoxigraph, which keeps lexical forms and fetches nothing: a remote ``@context`` is
refused. Written as node objects without nesting or lists, so that every triple is there once.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

import pyoxigraph
from rdflib import RDF, XSD, BNode, Graph, Literal, URIRef

from reasoningbank.algebra.faults import ProgramError
from reasoningbank.algebra.jsonld_check import check_jsonld
from reasoningbank.algebra.terms import (
    BlankNodes,
    from_oxigraph,
)
from reasoningbank.sparql import STANDARD_PREFIXES

__all__ = ["PREFIXES", "graph_from_jsonld", "graph_from_quads", "graph_to_jsonld"]

#: Prefixes that JSON-LD is written with, beside the standard ones.
PREFIXES: Mapping[str, str] = {
    **STANDARD_PREFIXES,
    "dbo": "http://dbpedia.org/ontology/",
    "dbr": "http://dbpedia.org/resource/",
    "dct": "http://purl.org/dc/terms/",
    "dh": "https://www.w3.org/ns/ldt/document-hierarchy#",
    "foaf": "http://xmlns.com/foaf/0.1/",
    "geo": "http://www.w3.org/2003/01/geo/wgs84_pos#",
    "ldh": "https://w3id.org/atomgraph/linkeddatahub#",
    "schema": "http://schema.org/",
    "sioc": "http://rdfs.org/sioc/ns#",
}
_NAMES = {space: name for name, space in PREFIXES.items()}
_LOCAL = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")


def graph_from_quads(quads: Iterable[pyoxigraph.Quad | pyoxigraph.Triple]) -> Graph:
    """Gather the statements of one document, its named graphs included, into one graph.

    Blank nodes get fresh names, so graphs of different documents share none.

    Raises:
        ProgramError: A statement holds a triple term.

    Examples:
        >>> quads = pyoxigraph.parse("_:a <http://e/p> '01' .", pyoxigraph.RdfFormat.TURTLE)
        >>> [o.n3() for o in graph_from_quads(quads).objects()]
        ['"01"']
    """
    blanks = BlankNodes()
    graph = Graph()
    for quad in quads:
        subject, predicate, object_ = (
            from_oxigraph(part, blanks) for part in (quad.subject, quad.predicate, quad.object)
        )
        graph.add((subject, predicate, object_))
    return graph


def graph_from_jsonld(
    data: Mapping[str, Any] | list[Any], *, base: str | None = None, path: str = "$"
) -> Graph:
    """Read a JSON-LD document.

    Args:
        data: The document.
        base: The document's address, which relative IRIs are relative to.
        path: Where it stands, for errors.

    Raises:
        ProgramError: It is no JSON-LD, names a remote context, or holds what a processor would
            drop without a word: a key that nothing maps to an IRI, an ``@id`` that is no IRI.

    Examples:
        >>> data = {"@id": "a", "http://schema.org/name": {"@value": "x", "@language": "da"}}
        >>> list(graph_from_jsonld(data, base="http://e/b/"))[0][0]
        rdflib.term.URIRef('http://e/b/a')
    """
    check_jsonld(data, path, base)
    text = json.dumps(data)
    try:
        quads = list(pyoxigraph.parse(text, pyoxigraph.RdfFormat.JSON_LD, base_iri=base))
        return graph_from_quads(quads)
    except (SyntaxError, ValueError) as error:
        hint = "write keys as full IRIs, or give an @context"
        raise ProgramError(f"this is no JSON-LD: {error}", where=path, hint=hint) from None
    except ProgramError as error:
        raise ProgramError(error.what, where=path, hint=error.hint) from None


def graph_to_jsonld(graph: Graph) -> dict[str, Any]:
    """Write a graph as a JSON-LD document that reads back as the same graph.

    Well-known namespaces become prefixes of its ``@context``; one subject stands by itself,
    several stand under ``@graph``. Subjects and values are sorted, so equal graphs without blank
    nodes give equal documents.

    Examples:
        >>> graph = Graph()
        >>> _ = graph.add((URIRef("http://e/a"), URIRef("http://schema.org/name"), Literal("x")))
        >>> graph_to_jsonld(graph)
        {'@context': {'schema': 'http://schema.org/'}, '@id': 'http://e/a', 'schema:name': 'x'}
    """
    names = _Names(graph)
    nodes: dict[str, dict[str, Any]] = {}
    for subject, predicate, object_ in sorted(graph, key=_order):
        node = nodes.setdefault(names.of(subject), {"@id": names.of(subject)})
        if predicate == RDF.type and isinstance(object_, URIRef):
            key, value = "@type", names.of(object_)
        else:
            key, value = names.of(predicate), names.value(object_)
        node.setdefault(key, []).append(value)
    written = [
        {key: found[0] if len(found) == 1 and key != "@id" else found for key, found in n.items()}
        for n in nodes.values()
    ]
    context = {"@context": names.used} if names.used else {}
    return {**context, **written[0]} if len(written) == 1 else {**context, "@graph": written}


def _order(triple: tuple[Any, Any, Any]) -> tuple[str, ...]:
    subject, predicate, object_ = triple
    more = (str(object_.language), str(object_.datatype)) if isinstance(object_, Literal) else ()
    return (str(subject), str(predicate), str(object_), *more)


class _Names:
    """Writes IRIs, with prefixes that cannot be mistaken for the scheme of another IRI."""

    def __init__(self, graph: Graph) -> None:
        self.used: dict[str, str] = {}
        parts = {part for triple in graph for part in triple}
        iris = {str(part) for part in parts if isinstance(part, URIRef)}
        iris |= {str(part.datatype) for part in parts if isinstance(part, Literal)}
        self._schemes = {iri.partition(":")[0] for iri in iris}

    def of(self, term: Any) -> str:
        if isinstance(term, BNode):
            return f"_:{term}"
        text = str(term)
        cut = max(text.rfind("#"), text.rfind("/")) + 1
        name = _NAMES.get(text[:cut])
        if name is None or name in self._schemes or not _LOCAL.fullmatch(text[cut:]):
            return text
        self.used[name] = text[:cut]
        return f"{name}:{text[cut:]}"

    def value(self, term: Any) -> Any:
        if not isinstance(term, Literal):
            return {"@id": self.of(term)}
        if term.language:
            return {"@value": str(term), "@language": term.language}
        if term.datatype is None or term.datatype == XSD.string:
            return str(term)
        if term.datatype == RDF.JSON:
            # JSON-LD writes such a literal as the JSON itself, which need not keep its spelling.
            return {"@value": str(term), "@type": str(RDF.JSON)}
        return {"@value": str(term), "@type": self.of(term.datatype)}
