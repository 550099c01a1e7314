"""What the SHACL shapes of memory object to in a graph, by pySHACL."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from functools import cache
from typing import cast

import pyoxigraph as ox
from rdflib import RDF, BNode, Graph, Literal, URIRef
from rdflib.namespace import SH
from rdflib.term import Node

from reasoningbank.corpus.validation import shapes_file
from reasoningbank.memory.rdf import terms
from reasoningbank.sparql import STANDARD_PREFIXES

__all__ = ["objections"]

_MOST_CHARS = 60
_XSD_STRING = STANDARD_PREFIXES["xsd"] + "string"


def objections(triples: Iterable[ox.Triple]) -> list[str]:
    """Return what is wrong with a graph of items, a line each, in order of its subjects.

    Args:
        triples: The graph.
    """
    import pyshacl  # 0.3 s that only an import of items needs

    graph = Graph()
    with warnings.catch_warnings():
        # rdflib warns of ill-typed literals, which the shapes tell.
        warnings.simplefilter("ignore")
        for subject, predicate, value in triples:
            if isinstance(subject, ox.Triple) or isinstance(value, ox.Triple):
                continue
            graph.add((_node(subject), _node(predicate), _node(value)))
        _, results, _ = pyshacl.validate(graph, shacl_graph=_shapes(), inplace=True)
    return sorted(_told(cast("Graph", results)))


@cache
def _shapes() -> Graph:
    return Graph().parse(shapes_file().with_name("memory.ttl"), format="turtle")


def _told(results: Graph) -> Iterable[str]:
    for result in results.subjects(RDF.type, SH.ValidationResult):
        focus = str(results.value(result, SH.focusNode)).removeprefix(terms.ITEM)
        shape = results.value(result, SH.sourceShape)
        message = _shapes().value(shape, SH.message)
        value = results.value(result, SH.value)
        shown = "" if value is None else f": {_shown(value)}"
        yield f"{focus} {message}{shown}"


def _shown(value: Node) -> str:
    text = " ".join(str(value).split())
    return repr(text if len(text) <= _MOST_CHARS else text[:_MOST_CHARS] + "…")


def _node(term: ox.NamedNode | ox.BlankNode | ox.Literal) -> Node:
    if isinstance(term, ox.NamedNode):
        return URIRef(term.value)
    if isinstance(term, ox.BlankNode):
        return BNode(term.value)
    if term.language:
        return Literal(term.value, lang="und")  # whichever it is, no text of an item has one
    if term.datatype.value == _XSD_STRING:
        return Literal(term.value)
    return Literal(term.value, datatype=URIRef(term.datatype.value), normalize=False)
