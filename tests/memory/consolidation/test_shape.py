"""The order of triples is wording; where they stand and what they join is not."""

from __future__ import annotations

import pytest

from reasoningbank.corpus import load_shacl_tasks, split_tasks
from reasoningbank.memory.consolidation.shape import pattern_key

ONE = "SELECT ?p ?n { ?p up:mass <<m>> ; up:name ?n . ?p up:organism ?o . ?o a up:Taxon }"


@pytest.mark.parametrize(
    "other",
    [
        "SELECT ?p ?n { ?o a up:Taxon . ?p up:name ?n ; up:organism ?o ; up:mass <<m>> }",
        "SELECT ?x ?y WHERE { ?t a up:Taxon . ?x up:organism ?t ; up:mass <<w>> ; up:name ?y . }",
        "PREFIX u: <http://e/> select $a $b { $a up:organism $c; up:mass <<w>>; up:name $b. "
        "$c rdf:type up:Taxon } # done",
    ],
)
def test_the_same(other: str) -> None:
    assert pattern_key(other) == pattern_key(ONE)


@pytest.mark.parametrize(
    "other",
    [
        "SELECT ?n ?p { ?p up:mass <<m>> ; up:name ?n . ?p up:organism ?o . ?o a up:Taxon }",
        "SELECT ?p ?n { ?p up:mass ?n ; up:name <<m>> . ?p up:organism ?o . ?o a up:Taxon }",
        "SELECT ?p ?n { ?p up:mass <<m>> . ?o up:name ?n . ?p up:organism ?o . ?o a up:Taxon }",
        "SELECT ?p ?n { ?p up:mass <<m>> ; up:name ?n . ?p up:organism ?o . ?p a up:Taxon }",
        "SELECT ?p { ?p up:mass <<m>> ; up:name ?n . ?p up:organism ?o . ?o a up:Taxon }",
        "SELECT DISTINCT ?p ?n { ?p up:mass <<m>> ; up:name ?n ; up:organism ?o . ?o a up:Taxon }",
        "SELECT ?p ?n {?p up:mass <<m>> ; up:organism ?o . ?o a up:Taxon OPTIONAL {?p up:name ?n}}",
        "SELECT ?p ?n { ?p up:mass <<m>> ; up:name ?n ; up:organism ?o . ?o a up:Taxon } LIMIT 5",
    ],
)
def test_not_the_same(other: str) -> None:
    assert pattern_key(other) != pattern_key(ONE)


def test_what_follows_and_what_filters_counts() -> None:
    told = {
        pattern_key(f"SELECT ?a ?b {{ ?p up:x ?a ; up:y ?b {more}")
        for more in (
            "}",
            "FILTER(?a < ?b) }",
            "FILTER(?b < ?a) }",
            "} ORDER BY ?a",
            "} ORDER BY ?b",
            "} ORDER BY DESC(?a)",
            "FILTER NOT EXISTS { ?p up:z ?a } }",
            "FILTER NOT EXISTS { ?p up:z ?b } }",
            "MINUS { ?p up:z ?a } }",
            "BIND(?a + 1 AS ?c) }",
            "{ ?p up:z 1 } UNION { ?p up:z 2 } }",
            "SERVICE <http://e/> { ?p up:z 1 } }",
            "GRAPH <http://e/> { ?p up:z 1 } }",
            "VALUES ?a { <<a>> } }",
        )
    }
    assert len(told) == 14


def test_two_groups_do_not_flow_together() -> None:
    apart = "SELECT ?p { ?p up:a ?x OPTIONAL { ?p up:b ?y } OPTIONAL { ?p up:c ?z } }"
    together = "SELECT ?p { ?p up:a ?x OPTIONAL { ?p up:b ?y . ?p up:c ?z } }"
    assert pattern_key(apart) != pattern_key(together)


def test_what_is_no_query_has_its_words_for_a_key() -> None:
    assert pattern_key("") == ""
    assert pattern_key("print(<<a>>)") == pattern_key("print(<<b>>)")
    assert pattern_key("SELECT ?x { ?x up:p <<a>>") == pattern_key("select ?y {?y up:p <<b>>")


def test_no_two_golds_of_the_training_split_are_one() -> None:
    train = split_tasks(load_shacl_tasks("uniprot")).train
    queries = {task.expected_sparql for task in train}
    assert len({pattern_key(query) for query in queries}) == len(queries) > 60
