"""L0: what is known is shown; what is not known is said to be unknown."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from reasoningbank.corpus import load_shacl_tasks
from reasoningbank.lm.tokens import count_tokens
from reasoningbank.memory.context import sense_card
from reasoningbank.schema import Schema
from reasoningbank.sparql import EndpointConfig, OxigraphServer, SPARQLClient, discover

from .conftest import Known

#: What each line of a whole card begins with.
HEADS = [
    "UniProt <",
    "Main classes: ",
    "Names: ",
    "By SERVICE: ",
    "Declared prefixes: ",
    "Graphs <",
]


def card(known: Known, budget: int = 150, **more: bool) -> str:
    return sense_card(
        known.endpoint, known.discovery, known.vocabulary, pack=known.pack, budget=budget, **more
    ).text


def test_the_card_of_the_sample(uniprot: Known) -> None:
    lines = card(uniprot, 600).splitlines()
    assert [line[: len(head)] for line, head in zip(lines, HEADS, strict=True)] == HEADS
    assert lines[0] == (
        "UniProt <https://sparql.uniprot.org/sparql/>: "
        "506k triples, 9 named graphs (no GRAPH needed)."
    )
    assert lines[1].startswith("Main classes: up:Protein 1001, ")
    assert "up:Taxon 1288" in lines[1]
    assert "skos:prefLabel of up:Gene, up:Enzyme, up:Disease, …" in lines[2]
    assert "Rhea <https://sparql.rhea-db.org/sparql>" in lines[3]
    assert " up: " in lines[4]
    assert lines[5].startswith("Graphs <http://sparql.uniprot.org/…>: uniprot 351k, go 107k")
    assert "127.0.0.1" not in card(uniprot, 600)


def test_its_numbers_are_those_of_the_data(uniprot: Known) -> None:
    with SPARQLClient(uniprot.endpoint) as client:
        for name, shown in (("up:Protein", 1001), ("up:Taxon", 1288), ("up:Gene", 944)):
            query = f"SELECT (COUNT(DISTINCT ?s) AS ?n) WHERE {{ ?s a {name} }}"
            ((n,),) = list(client.query(query).rows())  # type: ignore[union-attr]
            assert int(n.value) == shown
            assert f"{name} {shown}" in card(uniprot, 400)


@pytest.mark.parametrize("budget", [0, 20, 60, 100, 150, 250, 400])
def test_budgets_drop_whole_entries(uniprot: Known, budget: int) -> None:
    text = card(uniprot, budget)
    assert count_tokens(text) <= budget
    whole = card(uniprot, 2_000).splitlines()
    for line in text.splitlines():
        head = next(full for full in whole if full.startswith(line.partition(": ")[0]))
        kept = line.partition(": ")[2]
        assert all(part in head for part in kept.split(", "))


def test_tools_are_named_to_those_who_can_call_them(uniprot: Known) -> None:
    line = 'Example questions: federated_endpoints("ontology/uniprot").'
    assert line not in card(uniprot, 600)
    assert line in card(uniprot, 600, tools=True).splitlines()


def test_it_is_the_same_every_time(uniprot: Known) -> None:
    again = Schema.of(uniprot.endpoint, uniprot.pack.schema)
    with SPARQLClient(uniprot.endpoint) as client:
        found = discover(client)
    second = sense_card(uniprot.endpoint, found, again, pack=uniprot.pack)
    assert second.text == card(uniprot)


def test_an_endpoint_that_only_hidden_tasks_reach_is_not_named(uniprot: Known) -> None:
    tasks = [task.id for task in load_shacl_tasks("uniprot")]
    alone = EndpointConfig(uniprot.endpoint.url, "UniProt", prefixes=uniprot.endpoint.prefixes)

    def shown(hidden: list[str]) -> str:
        return sense_card(
            alone, None, uniprot.vocabulary, pack=uniprot.pack, hidden=hidden, budget=600
        ).text

    assert "Rhea" in shown([])
    assert "Rhea" not in shown(tasks)


@pytest.fixture
def empty() -> Iterator[EndpointConfig]:
    with OxigraphServer() as server:
        yield EndpointConfig("https://nothing.example/sparql", "Nothing", query_url=server.url)


def test_nothing_known_is_said(empty: EndpointConfig) -> None:
    with SPARQLClient(empty) as client:
        layer = sense_card(empty, discover(client), Schema.of(empty))
    assert layer.text == (
        "Nothing <https://nothing.example/sparql>: its size is unknown.\nIts classes are not known."
    )
    assert sense_card(empty, None, Schema.of(empty)).text == layer.text


def test_without_a_pack_and_without_statistics(trees: EndpointConfig) -> None:
    with SPARQLClient(trees) as client:
        text = sense_card(trees, discover(client), Schema.of(trees)).text
    assert text.splitlines() == [
        "Trees <https://trees.example/sparql/>: its size is unknown.",
        "Main classes: t:Tree 3, t:Moss 1",
        "Names: rdfs:label",
        "Declared prefixes: t:",
    ]
