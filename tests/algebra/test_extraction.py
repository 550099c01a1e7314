"""Ontologies out of data, over a real endpoint: declared parts, and what use tells."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rdflib import OWL, RDF, RDFS, XSD, Graph, Literal, Namespace, URIRef

from reasoningbank.algebra import run_program
from reasoningbank.algebra.runtime import Runtime
from reasoningbank.sparql import OxigraphServer

from .in_memory import op

E = Namespace("http://e/")
SCHEMA = Namespace("http://schema.org/")
DATA = """
@prefix : <http://e/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> . @prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
:City a owl:Class ; rdfs:label "city"@en , "by"@da ; rdfs:comment "A big place." ;
  rdfs:subClassOf :Place .
:Unused a rdfs:Class .
:inCountry a owl:ObjectProperty ; rdfs:domain :City ; rdfs:range :Country ; rdfs:label "country" .
:code a owl:DatatypeProperty ; rdfs:subPropertyOf :id .
:a a :City ; :inCountry :dk ; :mayor :m ; :twin :b , [ a :Village ] ; :size 5 ; :code "A1" ;
  :mixed 1 , "one" , 1.5 ; :founded "0808"^^xsd:gYear .
:b a :Village ; :twin :a ; :size 7 .
:dk a :Country ; :size 9 . :m a :Person .
:r :inCountry :dk .
"""


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    file = Path(tmp_path_factory.mktemp("data")) / "data.ttl"
    file.write_text(DATA)
    with OxigraphServer([file]) as server:
        yield server.url


def extracted(name: str, endpoint: str) -> Graph:
    with Runtime() as runtime:
        found: Any = run_program(op(name, endpoint=endpoint), runtime)
    assert isinstance(found, Graph)
    return found


def test_classes(endpoint: str) -> None:
    graph = extracted("ExtractClasses", endpoint)
    declared = {E.City, E.Unused}
    assert set(graph.subjects(RDF.type, OWL.Class)) == {
        *declared, E.Village, E.Country, E.Person
    }  # fmt: skip
    assert set(graph.objects(E.City, RDFS.label)) == {
        Literal("city", lang="en"),
        Literal("by", lang="da"),
    }
    assert graph.value(E.City, RDFS.subClassOf) == E.Place
    assert graph.value(E.City, RDFS.comment) == Literal("A big place.")


def test_object_properties(endpoint: str) -> None:
    graph = extracted("ExtractObjectProperties", endpoint)
    assert set(graph.subjects(RDF.type, OWL.ObjectProperty)) == {E.inCountry, E.mayor, E.twin}
    # Declared: as declared.
    assert set(graph.predicate_objects(E.inCountry)) == {
        (RDF.type, OWL.ObjectProperty), (RDFS.label, Literal("country")),
        (RDFS.domain, E.City), (RDFS.range, E.Country),
    }  # fmt: skip
    # One class in use: the domain. Several: any of them.
    assert set(graph.predicate_objects(E.mayor)) == {
        (RDF.type, OWL.ObjectProperty), (RDFS.domain, E.City), (RDFS.range, E.Person),
    }  # fmt: skip
    assert set(graph.predicate_objects(E.twin)) == {
        (RDF.type, OWL.ObjectProperty),
        (SCHEMA.domainIncludes, E.City), (SCHEMA.domainIncludes, E.Village),
        (SCHEMA.rangeIncludes, E.City), (SCHEMA.rangeIncludes, E.Village),
    }  # fmt: skip


def test_datatype_properties(endpoint: str) -> None:
    graph = extracted("ExtractDatatypeProperties", endpoint)
    assert set(graph.subjects(RDF.type, OWL.DatatypeProperty)) == {
        E.size, E.code, E.mixed, E.founded
    }  # fmt: skip
    assert set(graph.predicate_objects(E.code)) == {
        (RDF.type, OWL.DatatypeProperty), (RDFS.subPropertyOf, E.id),
        (RDFS.domain, E.City), (RDFS.range, XSD.string),
    }  # fmt: skip
    assert graph.value(E.founded, RDFS.range) == XSD.gYear
    assert set(graph.objects(E.mixed, SCHEMA.rangeIncludes)) == {
        XSD.integer, XSD.string, XSD.decimal
    }  # fmt: skip
    assert set(graph.objects(E.size, SCHEMA.domainIncludes)) == {E.City, E.Village, E.Country}
    assert graph.value(E.size, RDFS.range) == XSD.integer


def test_the_words_of_ontologies_are_no_part_of_them(endpoint: str) -> None:
    for name in ("ExtractClasses", "ExtractObjectProperties", "ExtractDatatypeProperties"):
        for subject in extracted(name, endpoint).subjects():
            assert isinstance(subject, URIRef)
            assert str(subject).startswith(str(E))
