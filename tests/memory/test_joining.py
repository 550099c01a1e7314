"""Joins: two examples make the one that a question needs, where neither is as near by itself."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reasoningbank.memory import (
    FoundItem,
    LeakageFilter,
    MemoryBank,
    MemoryItem,
    Provenance,
    retrieve,
)
from reasoningbank.schema import Schema
from reasoningbank.sparql.entity_linking import EntityLinker, EntityMention
from reasoningbank.trajectory import shown_ids

PREFIXES = {"t": "http://trees.example/"}
TTL = """\
@prefix t: <http://trees.example/> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
t:Tree a rdfs:Class . t:Region a rdfs:Class . t:Genus a rdfs:Class .
t:growsIn rdfs:domain t:Tree ; rdfs:range t:Region .
t:genus rdfs:domain t:Tree ; rdfs:range t:Genus .
t:height rdfs:domain t:Tree ; rdfs:range xsd:decimal .
t:capital rdfs:domain t:Region ; rdfs:range xsd:string .
"""
#: Words of the questions → the resource that they name, and its class.
NAMES = {
    "the oak": ("t:oak", "Tree"),
    "the ash": ("t:ash", "Tree"),
    "Tuscany": ("t:tuscany", "Region"),
    "Umbria": ("t:umbria", "Region"),
    "Quercus": ("t:quercus", "Genus"),
    "Fraxinus": ("t:fraxinus", "Genus"),
}

TREES = ("Which trees grow in Tuscany?", "SELECT ?tree WHERE { ?tree t:growsIn t:tuscany }")
HEIGHT = ("How high is the oak?", "SELECT ?h WHERE { t:oak t:height ?h }")
OF_GENUS = ("Which trees are of the genus Quercus?", "SELECT ?x WHERE { ?x t:genus t:quercus }")
CAPITAL = ("What is the capital of Tuscany?", "SELECT ?h WHERE { t:tuscany t:capital ?h . }")
HIGHEST = (
    "Which tree of Tuscany is the highest?",
    "SELECT ?tree WHERE { ?tree t:growsIn t:tuscany ; t:height ?h } ORDER BY DESC(?h) LIMIT 1",
)


class Names(EntityLinker):
    """Finds the names above."""

    def __init__(self) -> None:
        pass

    def mentions(self, question: str) -> tuple[EntityMention, ...]:
        return tuple(
            EntityMention(words, name, (f"http://trees.example/{kind}",))
            for words, (name, kind) in NAMES.items()
            if words in question
        )


@pytest.fixture(scope="module")
def schema(tmp_path_factory: pytest.TempPathFactory) -> Schema:
    file: Path = tmp_path_factory.mktemp("schema") / "schema.ttl"
    file.write_text(TTL, encoding="utf-8")
    return Schema.of_files(file)


@pytest.fixture
def bank() -> Iterator[MemoryBank]:
    with MemoryBank() as made:
        yield made


def item(example: tuple[str, str], task: str = "") -> MemoryItem:
    question, query = example
    origin = Provenance(task=task, group=task)
    return MemoryItem(
        f"Title of {question}", "", "", "gold", pattern=query, question=question, provenance=origin
    )


def found(
    bank: MemoryBank, schema: Schema | None, question: str, task: str = "", **how: Any
) -> tuple[FoundItem, ...]:
    leakage = LeakageFilter(task=task, group=task, prefixes=tuple(PREFIXES.items()))
    given: dict[str, Any] = {"examples": True, "linker": Names(), "schema": schema} | how
    return retrieve(bank, question, leakage=leakage, **given).found


COMBINED = "Which trees grow in Umbria, and how high is each of them?"


def test_one_answers_with_what_the_other_asks_about(bank: MemoryBank, schema: Schema) -> None:
    bank.add([item(TREES, "a"), item(HEIGHT, "b"), item(CAPITAL)])
    first, *others = found(bank, schema, COMBINED)
    assert first.example is not None
    assert first.example.query == (
        "SELECT ?tree ?h WHERE { ?tree t:growsIn t:tuscany . ?tree t:height ?h }"
    )
    # Linked as other examples are; and what the second asked about has no name any more.
    assert first.example.question == "Which trees grow in Tuscany (t:tuscany)? How high is it?"
    assert first.text.endswith(first.example.query)
    # It stands for two items of the bank, and rests on what both rest on.
    assert [bank.get(one).question for one in first.joins] == [TREES[0], HEIGHT[0]]
    assert {origin.task for origin in first.item.origins} == {"a", "b"}
    assert all(not one.joins for one in others)


def test_conditions_on_things_of_one_class_meet(bank: MemoryBank, schema: Schema) -> None:
    bank.add([item(TREES), item(OF_GENUS), item(CAPITAL)])
    first, *_ = found(bank, schema, "Which trees of the genus Fraxinus grow in Umbria?")
    assert first.joins
    assert first.example is not None
    body = first.example.query.partition("{")[2].strip(" }").split(" . ")
    assert sorted(one.split(" ", 1)[1] for one in body) == [
        "t:genus t:quercus",
        "t:growsIn t:tuscany",
    ]
    # The same variable in both, and no other.
    assert len({one.split(" ", 1)[0] for one in body}) == 1


@pytest.mark.parametrize(
    "question",
    [
        pytest.param("Which trees grow in Umbria?", id="known shape"),
        pytest.param("How high is the ash?", id="known shape, a value"),
        pytest.param("Who wrote this book?", id="something else"),
    ],
)
def test_a_question_that_one_example_answers_gets_no_join(
    bank: MemoryBank, schema: Schema, question: str
) -> None:
    bank.add([item(TREES), item(HEIGHT), item(OF_GENUS), item(CAPITAL)])
    assert not any(one.joins for one in found(bank, schema, question))


def test_texts_and_what_is_cut_or_counted_are_not_joined(bank: MemoryBank, schema: Schema) -> None:
    counted = ("How many trees grow in Tuscany?",
               "SELECT (COUNT(?t) AS ?n) WHERE { ?t t:growsIn t:tuscany }")  # fmt: skip
    bank.add([item(HEIGHT), item(CAPITAL), item(HIGHEST), item(counted)])
    assert not any(one.joins for one in found(bank, schema, COMBINED))


def test_variables_of_the_second_do_not_meet_those_of_the_first(
    bank: MemoryBank, schema: Schema
) -> None:
    same = ("How high is the oak?", "SELECT ?tree WHERE { t:oak t:height ?tree }")
    bank.add([item(TREES), item(same)])
    first, *_ = found(bank, schema, COMBINED)
    assert first.example is not None
    assert first.example.query == (
        "SELECT ?tree ?tree2 WHERE { ?tree t:growsIn t:tuscany . ?tree t:height ?tree2 }"
    )


def test_what_a_trial_must_not_see_is_in_no_join(bank: MemoryBank, schema: Schema) -> None:
    bank.add([item(TREES, "a"), item(HEIGHT, "b")])
    assert found(bank, schema, COMBINED)[0].joins
    assert not any(one.joins for one in found(bank, schema, COMBINED, task="b"))


def test_joins_are_made_where_they_are_asked_for(bank: MemoryBank, schema: Schema) -> None:
    bank.add([item(TREES), item(HEIGHT)])
    assert not any(one.joins for one in found(bank, None, COMBINED))
    assert not any(one.joins for one in found(bank, schema, COMBINED, linker=None))
    assert not any(one.joins for one in found(bank, schema, COMBINED, examples=False))


def test_a_record_names_the_items_that_a_join_stands_for(bank: MemoryBank, schema: Schema) -> None:
    ids = bank.add([item(TREES), item(HEIGHT)])
    leakage = LeakageFilter(prefixes=tuple(PREFIXES.items()))
    got = retrieve(bank, COMBINED, leakage=leakage, examples=True, linker=Names(), schema=schema)
    joined, *others = got.to_event()["items"]
    assert shown_ids(joined) == tuple(ids)
    assert [shown_ids(one) for one in others] == [(one["id"],) for one in others]
    # The tokens are those of all that is shown, whatever the budget holds.
    assert got.tokens <= 600
    small = replace(got.found[0], tokens=0)
    assert small.joins == got.found[0].joins
