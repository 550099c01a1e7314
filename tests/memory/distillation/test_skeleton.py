"""Skeletons: what becomes a slot, what stays, and that they parse again."""

from __future__ import annotations

import pytest

from reasoningbank.corpus import Pack, load_shacl_tasks, split_tasks
from reasoningbank.errors import QueryError
from reasoningbank.memory.skeleton import (
    Skeleton,
    Slot,
    filled,
    shortened,
    skeleton_of,
    slot_names,
)
from reasoningbank.schema import Schema
from reasoningbank.sparql import STANDARD_PREFIXES
from reasoningbank.sparql.query import prepare

SPACES = {**STANDARD_PREFIXES, "up": "http://core/", "u": "http://u/", "t": "http://t/"}
TERMS = ("http://core/Protein", "http://core/name")


def made(query: str) -> Skeleton:
    return skeleton_of(query, SPACES, terms=TERMS)


def refilled(skeleton: Skeleton) -> str:
    return filled(skeleton.text, {slot.name: slot.value for slot in skeleton.slots})


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        # classes and properties stay, resources and texts go
        ("ASK { u:P1 a up:Protein ; up:name 'x' }",
         "ASK { <<u>> a up:Protein ; up:name <<name>> }"),
        # one constant is one slot, two of a kind are two
        ("ASK { u:P1 up:near u:P2 . u:P2 up:near u:P1 }",
         "ASK { <<u>> up:near <<u2>> . <<u2>> up:near <<u>> }"),
        # several values in place of one are another slot, and so are numbers equal by chance
        ("ASK { ?p up:in u:P1 . VALUES ?t { u:P1 u:P2 } ?p up:host ?t }",
         "ASK { ?p up:in <<u>> . VALUES ?t { <<t>> } ?p up:host ?t }"),
        ("ASK { VALUES ?x { 'a' 'b' } VALUES ?y { 'a' 'c' } VALUES ?z { 'a' 'b' } ?x ?y ?z }",
         "ASK { VALUES ?x { <<x>> } VALUES ?y { <<y>> } VALUES ?z { <<x>> } ?x ?y ?z }"),
        ("SELECT ?s { ?s up:m ?m ; up:l ?l FILTER(?m > 9 && ?l > 9 && ?m != 9) } LIMIT 9 OFFSET 9",
         "SELECT ?s { ?s up:m ?m ; up:l ?l FILTER(?m > <<m>> && ?l > <<l>> && ?m != <<m>>) } "
         "LIMIT <<limit>> OFFSET <<offset>>"),
        ("ASK { ?s ?p ?o FILTER(MONTH(?o) = 3 && DAY(?o) = 3) }",
         "ASK { ?s ?p ?o FILTER(MONTH(?o) = <<number>> && DAY(?o) = <<number2>>) }"),
        # a literal goes with its language or datatype
        ("ASK { ?s up:name 'x'@en }", "ASK { ?s up:name <<s_name>> }"),
        ("ASK { ?s up:born '1'^^xsd:gYear }", "ASK { ?s up:born <<born>> }"),
        # numbers that are compared go, arithmetic stays
        ("SELECT * { ?s up:m ?m FILTER(?m > -5) BIND(?m + 1 AS ?n) }",
         "SELECT * { ?s up:m ?m FILTER(?m > <<m>>) BIND(?m + 1 AS ?n) }"),
        ("SELECT ?s { ?s up:m ?m } GROUP BY ?s HAVING (COUNT(?m) >= 3) LIMIT 5",
         "SELECT ?s { ?s up:m ?m } GROUP BY ?s HAVING (COUNT(?m) >= <<number>>) LIMIT <<limit>>"),
        # what is looked for goes, how it is looked for stays
        ("ASK { ?s ?p ?o FILTER(REGEX(?o, 'ab', 'i') && LANG(?o) = 'en') }",
         "ASK { ?s ?p ?o FILTER(REGEX(?o, <<text>>, 'i') && LANG(?o) = 'en') }"),
        ("SELECT (CONCAT(?a, ', ') AS ?x) { ?s up:a ?a }",
         "SELECT (CONCAT(?a, ', ') AS ?x) { ?s up:a ?a }"),
        # the values of one variable are one slot; of several, each its own
        ("ASK { VALUES ?x { 'a' 'b' } ?s up:name ?x }",
         "ASK { VALUES ?x { <<x>> } ?s up:name ?x }"),
        ("ASK { VALUES (?x ?y) { ('a' 1) (UNDEF 2) } ?s up:name ?x ; up:m ?y }",
         "ASK { VALUES (?x ?y) { (<<x>> <<y>>) (UNDEF <<y2>>) } ?s up:name ?x ; up:m ?y }"),
        # graphs and services are part of how a question is asked
        ("ASK { GRAPH t:g { ?s up:m ?m } SERVICE <http://r/> { ?m up:name 'x' } }",
         "ASK { GRAPH t:g { ?s up:m ?m } SERVICE <http://r/> { ?m up:name <<m_name>> } }"),
        # names in strings and comments are no names
        ("ASK { ?s up:name 'u:P1 a up:Protein' } # u:P2", "ASK { ?s up:name <<s_name>> }"),
        # kinds that are no known class stay where a class stands
        ("ASK { ?s a t:Made_Up }", "ASK { ?s a t:Made_Up }"),
        ("DESCRIBE u:P1", "DESCRIBE <<u>>"),
        ("CONSTRUCT { ?s up:name 'n' } WHERE { ?s a up:Protein }",
         "CONSTRUCT { ?s up:name <<text>> } WHERE { ?s a up:Protein }"),
    ],
)  # fmt: skip
def test_constants_become_slots(query: str, expected: str) -> None:
    skeleton = made(query)

    assert skeleton.text == expected
    prepare(skeleton.dummy, prefixes=SPACES)


def test_all_values_of_one_variable_are_kept() -> None:
    slots = made("ASK { VALUES ?x { u:P1 u:P2 } ?s up:near ?x }").slots

    assert slots == (Slot("x", "resource", "u:P1", ("u:P2",)),)


def test_no_value_is_lost_to_an_equal_one() -> None:
    slots = made("ASK { ?p up:in u:P1 . VALUES ?t { u:P1 u:P2 } ?p up:host ?t }").slots

    assert slots == (
        Slot("u", "resource", "u:P1"),
        Slot("t", "resource", "u:P1", ("u:P2",)),
    )


def test_filling_a_skeleton_with_what_stood_there_gives_the_query() -> None:
    query = "SELECT ?m { u:P1 up:m ?m FILTER(?m > 1.5 && ?m != 3) } LIMIT 7"

    assert refilled(made(query)) == query


def test_prefixes_of_the_endpoint_are_left_out_and_its_own_kept() -> None:
    query = "PREFIX core: <http://core/>\nPREFIX x: <http://x/>\nASK { ?s core:name ?n ; x:y 1 }"

    assert shortened(query, SPACES) == "PREFIX x: <http://x/>\nASK { ?s up:name ?n ; x:y 1 }"


def test_a_prefix_that_means_something_else_is_written_as_it_is_meant() -> None:
    query = "PREFIX up: <http://core/>\nPREFIX u: <http://t/>\nASK { u:a up:name ?n }"

    assert shortened(query, SPACES) == "ASK { t:a up:name ?n }"


@pytest.mark.parametrize(
    "query",
    [
        "BASE <http://b/> ASK { <s> up:name ?n }",
        "ASK { (1 2) up:name ?n }",
        "SELECT",
        "ASK { ?s up:name <<taxon>> }",
    ],
)
def test_what_cannot_be_read_is_refused(query: str) -> None:
    with pytest.raises(QueryError):
        prepare(made(query).dummy, prefixes=SPACES)


def test_every_training_gold_has_a_skeleton_that_parses(pack: Pack) -> None:
    spaces = {**STANDARD_PREFIXES, **pack.prefixes}
    assert pack.schema is not None
    names = Schema.of_files(pack.schema)
    terms = (*names.classes, *names.properties)
    tasks = split_tasks(load_shacl_tasks("uniprot")).train
    for task in tasks:
        skeleton = skeleton_of(task.expected_sparql, spaces, terms=terms)
        prepare(skeleton.dummy, prefixes=spaces)
        assert set(slot_names(skeleton.text)) == {slot.name for slot in skeleton.slots}
        if not any(slot.more for slot in skeleton.slots):
            assert refilled(skeleton) == shortened(task.expected_sparql, spaces)
        assert "<<" not in skeleton.dummy
    assert len(tasks) > 50


def test_filling_leaves_what_has_no_value() -> None:
    assert filled("<<a>> <<b>>", {"a": "1"}) == "1 <<b>>"
