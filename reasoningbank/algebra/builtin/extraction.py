"""Ontologies out of data: ExtractClasses, ExtractObjectProperties, ExtractDatatypeProperties.

What is declared is taken as declared. Where a property has no domain or range, its use tells: the
one class (or datatype) that is found becomes ``rdfs:domain`` or ``rdfs:range``; several become
``schema:domainIncludes`` and ``schema:rangeIncludes``, since several ``rdfs:domain`` would mean
that all hold at once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import ClassVar

from pydantic import Field
from rdflib import OWL, RDF, RDFS, Graph, URIRef

from reasoningbank.algebra.arguments import Url
from reasoningbank.algebra.contract import Evaluation
from reasoningbank.algebra.operation import Example, Operation, register
from reasoningbank.algebra.values import Row, Value

__all__ = ["ExtractClasses", "ExtractDatatypeProperties", "ExtractObjectProperties"]

_HEAD = """\
PREFIX rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#>
PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#>
PREFIX owl: <http://www.w3.org/2002/07/owl#>
"""
#: The words in which ontologies are written are not part of them.
_OWN = ("http://www.w3.org/1999/02/22-rdf-syntax-ns#", str(RDFS), str(OWL))
_CLASSES = """\
SELECT DISTINCT ?thing ?label ?comment ?super WHERE {
  { SELECT DISTINCT ?thing WHERE {
    { ?thing a owl:Class } UNION { ?thing a rdfs:Class } UNION { ?instance a ?thing }
    FILTER(isIRI(?thing))
  } }
  { } UNION { ?thing rdfs:label ?label } UNION { ?thing rdfs:comment ?comment }
  UNION { ?thing rdfs:subClassOf ?super FILTER(isIRI(?super)) }
}"""
_PROPERTIES = """\
SELECT DISTINCT ?thing ?label ?comment ?super ?domain ?range WHERE {
  { SELECT DISTINCT ?thing WHERE {
    { ?thing a owl:%s } UNION { ?subject ?thing ?value FILTER(%s) }
    FILTER NOT EXISTS { ?thing a owl:%s }
  } }
  { } UNION { ?thing rdfs:label ?label } UNION { ?thing rdfs:comment ?comment }
  UNION { ?thing rdfs:subPropertyOf ?super FILTER(isIRI(?super)) }
  UNION { ?thing rdfs:domain ?domain FILTER(isIRI(?domain)) }
  UNION { ?thing rdfs:range ?range FILTER(isIRI(?range)) }
}"""
_DOMAINS = """\
SELECT DISTINCT ?thing ?domain WHERE {
  ?subject ?thing ?value ; a ?domain .
  FILTER(%s && isIRI(?domain))
}"""
_CLASS_RANGES = """\
SELECT DISTINCT ?thing ?range WHERE {
  ?subject ?thing ?value . ?value a ?range .
  FILTER(isIRI(?range))
}"""
_DATATYPES = """\
SELECT DISTINCT ?thing (DATATYPE(?value) AS ?range) WHERE {
  ?subject ?thing ?value . FILTER(isLiteral(?value))
}"""
_INCLUDES = {
    RDFS.domain: URIRef("http://schema.org/domainIncludes"),
    RDFS.range: URIRef("http://schema.org/rangeIncludes"),
}
_Pairs = dict[URIRef, set[URIRef]]


class _Extracting(Operation):
    yields = "graph"

    endpoint: Url = Field(description="The address of the SPARQL endpoint")


@register
class ExtractClasses(_Extracting):
    """Extracts the classes of a dataset as an OWL ontology: declared ones, and those in use."""

    op = "ExtractClasses"
    examples = (Example({"endpoint": "https://dbpedia.org/sparql"}),)

    def run(self, run: Evaluation) -> Value:
        """Return the ontology."""
        return _described(run, self.endpoint, _CLASSES, OWL.Class, RDFS.subClassOf)


class _Properties(_Extracting):
    kind: ClassVar[str]
    other: ClassVar[str]
    condition: ClassVar[str]
    ranges: ClassVar[str]

    def run(self, run: Evaluation) -> Value:
        """Return the ontology."""
        query = _PROPERTIES % (self.kind, self.condition, self.other)
        graph = _described(run, self.endpoint, query, OWL[self.kind], RDFS.subPropertyOf)
        _from_use(graph, RDFS.domain, _pairs(run, self.endpoint, _DOMAINS % self.condition))
        _from_use(graph, RDFS.range, _pairs(run, self.endpoint, self.ranges))
        return graph


@register
class ExtractObjectProperties(_Properties):
    """Extracts the object properties of a dataset as an OWL ontology, with domains and ranges.

    Domains and ranges that are not declared are found from use.
    """

    op = "ExtractObjectProperties"
    examples = (Example({"endpoint": "https://dbpedia.org/sparql"}),)
    kind = "ObjectProperty"
    other = "DatatypeProperty"
    condition = "!isLiteral(?value)"
    ranges = _CLASS_RANGES


@register
class ExtractDatatypeProperties(_Properties):
    """Extracts the datatype properties of a dataset as an OWL ontology, with their datatypes.

    Domains and datatypes that are not declared are found from use.
    """

    op = "ExtractDatatypeProperties"
    examples = (Example({"endpoint": "https://dbpedia.org/sparql"}),)
    kind = "DatatypeProperty"
    other = "ObjectProperty"
    condition = "isLiteral(?value)"
    ranges = _DATATYPES


def _described(run: Evaluation, endpoint: str, query: str, kind: URIRef, broader: URIRef) -> Graph:
    parts = {
        "label": RDFS.label, "comment": RDFS.comment, "super": broader,
        "domain": RDFS.domain, "range": RDFS.range,
    }  # fmt: skip
    graph = Graph()
    for row in _rows(run, endpoint, query):
        thing = row["thing"]
        if not isinstance(thing, URIRef) or str(thing).startswith(_OWN):
            continue
        graph.add((thing, RDF.type, kind))
        for name, predicate in parts.items():
            if name in row:
                graph.add((thing, predicate, row[name]))
    return graph


def _rows(run: Evaluation, endpoint: str, query: str) -> Iterator[Row]:
    for row in run.counted(run.runtime.select(endpoint, _HEAD + query).rows):
        if isinstance(row, Mapping):
            yield row


def _pairs(run: Evaluation, endpoint: str, query: str) -> _Pairs:
    found: _Pairs = defaultdict(set)
    for row in _rows(run, endpoint, query):
        thing, other = row["thing"], row.get("domain", row.get("range"))
        if isinstance(thing, URIRef) and isinstance(other, URIRef) and str(OWL) not in other:
            found[thing].add(other)
    return found


def _from_use(graph: Graph, predicate: URIRef, found: _Pairs) -> None:
    for thing in set(graph.subjects()):
        if (thing, predicate, None) in graph or not isinstance(thing, URIRef):
            continue
        others = found.get(thing, set())
        told = predicate if len(others) == 1 else _INCLUDES[predicate]
        for other in others:
            graph.add((thing, told, other))
