"""Composition: two strategies make one that neither is, found by its question like all others."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from reasoningbank.errors import EndpointError
from reasoningbank.memory import LeakageFilter, MemoryBank, MemoryItem, Provenance, retrieve
from reasoningbank.memory.composition import compose
from reasoningbank.sparql import EndpointConfig, EntityLinker, OxigraphServer, SPARQLClient

PREFIXES = {"t": "http://trees.example/", "rdfs": "http://www.w3.org/2000/01/rdf-schema#"}
TTL = """\
@prefix t: <http://trees.example/> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
t:Tree a rdfs:Class . t:Region a rdfs:Class .
t:growsIn rdfs:domain t:Tree ; rdfs:range t:Region .
t:height rdfs:domain t:Tree ; rdfs:range xsd:decimal .
t:capital rdfs:domain t:Region ; rdfs:range xsd:string .
t:oak a t:Tree ; rdfs:label "Oak" ; t:growsIn t:tuscany ; t:height 20.5 .
t:ash a t:Tree ; rdfs:label "Ash" ; t:growsIn t:tuscany, t:umbria ; t:height 30.5 .
t:tuscany a t:Region ; rdfs:label "Tuscany" ; t:capital "Florence" .
t:umbria a t:Region ; rdfs:label "Umbria" ; t:capital "Perugia" .
"""
TREES = ("Which trees grow in Tuscany?", "SELECT ?x WHERE { ?x t:growsIn t:tuscany }")
HEIGHT = ("How high is the Oak?", "SELECT ?x WHERE { t:oak t:height ?x . }")
REGIONS = ("Where does the Oak grow?", "SELECT ?region WHERE { t:oak t:growsIn ?region }")
CAPITAL = ("What is the capital of Tuscany?", "SELECT ?name WHERE { t:tuscany t:capital ?name }")
COUNTED = (
    "How many trees grow in Tuscany?",
    "SELECT (COUNT(?x) AS ?n) WHERE { ?x t:growsIn t:tuscany }",
)
HIGHEST = (
    "Which tree of Tuscany is the highest?",
    "SELECT ?x WHERE { ?x t:growsIn t:tuscany ; t:height ?h } ORDER BY DESC(?h) LIMIT 1",
)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file: Path = tmp_path_factory.mktemp("trees") / "trees.ttl"
    file.write_text(TTL, encoding="utf-8")
    return file


@pytest.fixture(scope="module")
def client(file: Path) -> Iterator[SPARQLClient]:
    with (
        OxigraphServer([file]) as server,
        SPARQLClient(EndpointConfig(server.url, "trees", prefixes=PREFIXES)) as client,
    ):
        yield client


def item(example: tuple[str, str], task: str = "", when: str = "") -> MemoryItem:
    question, query = example
    origin, title = Provenance(task=task, group=task), query.partition(" ")[2]
    return MemoryItem(title, when, "", "gold", pattern=query, question=question, provenance=origin)


def composed(client: SPARQLClient, *items: MemoryItem) -> list[MemoryItem]:
    return compose(items, client=client, linker=EntityLinker(client, client.config))


def test_one_answers_with_what_the_other_asks_about(client: SPARQLClient) -> None:
    both, one = composed(client, item(TREES, "a"), item(HEIGHT, "b"))
    where = "WHERE { ?x t:growsIn t:tuscany . ?x t:height ?x2 }"
    assert both.question == "Which trees grow in Tuscany? How high is the it?"
    assert both.query == f"SELECT DISTINCT ?x ?x2 {where}"
    assert one.question == "How high is the it? (Which trees grow in Tuscany?)"
    assert one.query == f"SELECT DISTINCT ?x2 {where}"
    # The queries are right, and the evidence of both is theirs.
    values = [[str(term) for term in row] for row in client.rows(f"{both.query} ORDER BY ?x2")]
    assert [row[1].split('"')[1] for row in values] == ["20.5", "30.5"]
    assert {one.src for one in (both, one)} == {"composed"}
    assert [{origin.task for origin in made.origins} for made in (both, one)] == [{"a", "b"}] * 2


def test_what_is_counted_or_cut_and_texts_are_not_composed(client: SPARQLClient) -> None:
    # Nor what a pitfall warns of, nor what is composed already.
    pitfall = MemoryItem("Title", "", "Do not.", "failure", question=TREES[0], query=TREES[1])
    for first in (item(COUNTED), item(HIGHEST), item(CAPITAL), pitfall):
        assert composed(client, first, item(HEIGHT)) == []
    made = composed(client, item(TREES), item(HEIGHT))
    assert composed(client, *made) == []


def test_a_composition_without_rows_is_not_kept(client: SPARQLClient) -> None:
    elsewhere = ("Which trees grow in Umbria?", "SELECT ?x WHERE { ?x t:growsIn t:molise }")
    assert composed(client, item(elsewhere), item(HEIGHT)) == []


def test_a_failing_endpoint_is_an_error(client: SPARQLClient) -> None:
    gone = SPARQLClient(EndpointConfig("http://127.0.0.1:1/", "trees", prefixes=PREFIXES))
    linker = EntityLinker(client, client.config)
    with gone, pytest.raises(EndpointError):
        compose([item(TREES), item(HEIGHT)], client=gone, linker=linker)


@pytest.mark.parametrize(
    ("question", "first"),
    [
        ("Which trees grow in Umbria, and how high is each of them?", "composed"),
        ("Which trees grow in Umbria?", "gold"),
        ("How high is the Ash?", "gold"),
    ],
)
def test_it_is_found_where_no_single_strategy_is_as_near(
    client: SPARQLClient, question: str, first: str
) -> None:
    linker = EntityLinker(client, client.config)
    asked = (TREES, HEIGHT, REGIONS, CAPITAL)
    single = [item(one, when=linker.generalized(one[0])) for one in asked]
    with MemoryBank() as bank:
        bank.add([*single, *composed(client, *single)])
        found = retrieve(bank, question, leakage=LeakageFilter(), examples=True, linker=linker)
    assert found.found[0].item.src == first


def test_nothing_is_shown_of_a_task_that_one_half_is_of(client: SPARQLClient) -> None:
    made = composed(client, item(TREES, "a"), item(HEIGHT, "b"))
    for task in ("a", "b"):
        leakage = LeakageFilter(task=task, group=task)
        assert all(leakage.finding(one) is not None for one in made)
    assert all(LeakageFilter(task="c", group="c").finding(one) is None for one in made)
