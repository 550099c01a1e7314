"""A person asks an endpoint by hand: tables for people, JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from reasoningbank.sparql import EndpointConfig, OxigraphServer

from .conftest import Said

Cli = Callable[..., Said]

VOID = """
@prefix void: <http://rdfs.org/ns/void#> .
@prefix sd: <http://www.w3.org/ns/sparql-service-description#> .
@prefix e: <http://e/> .
e:set a void:Dataset ; void:triples 14 ;
    void:classPartition [ void:class e:Tree ; void:entities 3 ] .
[] sd:namedGraph [ sd:name <http://g/forest> ; sd:graph e:set ] .
"""


@pytest.fixture
def pack(make_pack: Callable[..., Path]) -> Path:
    """A pack of three tasks; one more reaches another endpoint."""
    root = make_pack(3)
    examples = root / "examples" / "tasks.ttl"
    examples.write_text(
        examples.read_text("utf-8")
        + """ex:far a sh:SPARQLExecutable, sh:SPARQLSelectExecutable ;
  rdfs:comment "What is far?"@en ;
  sh:select "SELECT * { SERVICE <https://sparql.rhea-db.org/sparql> { ?s ?p ?o } }" ;
  schema:target <https://trees.example/sparql/> .
""",
        encoding="utf-8",
    )
    (root / "void.ttl").write_text(VOID, encoding="utf-8")
    (root / "pack.toml").write_text(
        'void = "void.ttl"\nvoid_graph = "http://e/void"\n'
        + (root / "pack.toml").read_text("utf-8"),
        encoding="utf-8",
    )
    return root


def test_an_endpoint_is_described_to_a_program(cli: Cli, pack: Path) -> None:
    said = cli("endpoint", "describe", "--pack", pack, "--json")
    assert (said.status, said.err) == (0, "")
    reported = json.loads(said.out)
    assert (reported["name"], reported["url"]) == ("Trees", "https://trees.example/sparql/")
    assert (reported["embedded"], reported["describes_itself"]) == (True, True)
    assert (
        "http://www.w3.org/ns/sparql-service-description#BasicFederatedQuery"
        in reported["features"]
    )
    assert reported["graphs"] == [{"graph": "http://g/forest", "triples": 14}]
    assert reported["statistics"]["classes"] == [{"class": "http://e/Tree", "entities": 3}]
    assert reported["federated"] == [
        {
            "name": "Trees",
            "url": "https://trees.example/sparql/",
            "authority": "The Forest",
            "examples": 4,
        },
        {
            "name": "Rhea",
            "url": "https://sparql.rhea-db.org/sparql",
            "authority": "SIB Swiss Institute of Bioinformatics",
            "examples": 1,
        },
    ]
    assert reported["prefixes"] == {"t": "http://e/"}
    assert "127.0.0.1" not in said.out


def test_an_endpoint_is_described_to_a_person(cli: Cli, pack: Path) -> None:
    said = cli("endpoint", "describe", "--pack", pack)
    lines = said.out.splitlines()
    assert lines[0].split() == ["Trees", "https://trees.example/sparql/", "(embedded)"]
    assert "features        sd:BasicFederatedQuery, sd:EmptyGraphs" in lines
    assert "statistics      VoID, store" in lines
    assert "14\thttp://g/forest" in lines
    assert "3\tt:Tree" in lines
    assert "1\tRhea\thttps://sparql.rhea-db.org/sparql" in lines


def test_an_address_alone_is_described(cli: Cli, trees: EndpointConfig) -> None:
    said = cli("endpoint", "describe", "--url", trees.query_url)
    assert said.status == 0
    assert "statistics      none offered" in said.out
    assert "tried           statistics: the store holds no VoID statistics" in said.out
    reported = json.loads(cli("endpoint", "describe", "--url", trees.query_url, "--json").out)
    assert (reported["federated"], reported["prefixes"], reported["embedded"]) == ([], {}, False)


def test_the_sense_card_is_part_of_the_description_and_stands_alone(cli: Cli, pack: Path) -> None:
    card = cli("endpoint", "describe", "--pack", pack, "--card").out
    assert card.splitlines()[0] == (
        "Trees <https://trees.example/sparql/>: 14 triples, 1 named graph (no GRAPH needed)."
    )
    assert "By SERVICE: Rhea <https://sparql.rhea-db.org/sparql>" in card
    assert "127.0.0.1" not in card
    whole = cli("endpoint", "describe", "--pack", pack).out
    assert whole.endswith(card)
    reported = json.loads(cli("endpoint", "describe", "--pack", pack, "--card", "--json").out)[
        "card"
    ]
    assert reported["text"] == card.rstrip("\n")
    assert f"sense card: what an agent reads ({reported['tokens']} tokens)" in whole


def test_an_endpoint_that_is_not_there_is_one_line(cli: Cli) -> None:
    said = cli("endpoint", "describe", "--url", "http://127.0.0.1:9/sparql")
    assert (said.status, said.out) == (1, "")
    assert said.err.count("\n") == 1
    assert "no connection" in said.err
    assert cli("endpoint", "describe", "--url", "nowhere").status == 1


@pytest.fixture
def served(trees_file: Path) -> Iterator[str]:
    with OxigraphServer([trees_file]) as server:
        yield server.url


def test_an_endpoint_is_asked_by_hand(cli: Cli, pack: Path, served: str) -> None:
    query = "SELECT ?h ?none WHERE { ?s t:height ?h OPTIONAL { ?s t:none ?none } } ORDER BY ?h"
    where = ("--pack", pack, "--url", served)
    said = cli("endpoint", "query", query, *where, "--rows", 2, "--json")
    assert json.loads(said.out) == [{"h": 12, "none": None}, {"h": 31, "none": None}]
    assert "3 items from Trees" in said.err
    assert "1 more rows" in said.err
    assert cli("endpoint", "query", query, *where).out == "h\tnone\n12\t\n31\t\n40\t\n"
    assert cli("endpoint", "query", "ASK { ?s t:height 12 }", *where).out == "boolean\nTrue\n"


def test_names_classes_and_properties_are_listed(cli: Cli, pack: Path, served: str) -> None:
    where = ("--pack", pack, "--url", served)
    found = json.loads(cli("endpoint", "find", "moss", *where, "--json").out)
    assert found["results"][0]["uri"] == "t:moss"
    assert cli("endpoint", "find", "moss", *where).out.splitlines()[1].startswith("t:moss\t")
    classes = json.loads(cli("endpoint", "classes", *where, "--json").out)
    assert classes["classes"][0] == {"class": "t:Tree", "count": 3}
    assert "t:Tree\t3" in cli("endpoint", "classes", *where).out.splitlines()
    of_moss = cli("endpoint", "properties", "t:Moss", *where).out.splitlines()
    assert "rdfs:label\t1" in of_moss
    assert "t:height\t3" not in of_moss
    everywhere = json.loads(cli("endpoint", "properties", *where, "--json").out)
    assert {"property": "t:height", "count": 3} in everywhere["properties"]
