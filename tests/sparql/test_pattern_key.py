"""The order of triples is wording; where they stand and what they join is not."""

from __future__ import annotations

import random

import pytest

from reasoningbank.corpus import load_shacl_tasks, split_tasks
from reasoningbank.sparql.shape import names_in, pattern_key, pattern_names

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


_TWO = "SELECT ?p { ?p up:mass ?a . ?p up:mass ?b . "
_BOUND = "SELECT ?p { ?p up:begin ?y . BIND(?y * 2 AS ?z) BIND(?y * 3 AS ?w) "
_INNER = "SELECT ?g { { SELECT ?g (COUNT(?a) AS ?n) (SUM(?a) AS ?s) { ?g up:x ?a } GROUP BY ?g } } "
_CHAIN = " . ".join(f"?{a} up:p ?{b}" for a, b in zip("abcdefghi", "bcdefghij", strict=True))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (_TWO + "FILTER(?a < 5 && ?b > 7) }", _TWO + "FILTER(?a < 5 && ?a > 7) }"),
        (_BOUND + "FILTER(?z > ?w) }", _BOUND + "FILTER(?w > ?z) }"),
        (_INNER + "ORDER BY DESC(?n)", _INNER + "ORDER BY DESC(?s)"),
        (
            "SELECT ?p { ?p up:mass ?m FILTER(?m > <<least>> && ?m < <<most>>) }",
            "SELECT ?p { ?p up:mass ?m FILTER(?m > <<least>> && ?m < <<least>>) }",
        ),
        (
            f"SELECT ?a {{ {_CHAIN} FILTER(?e = <<x>>) }}",
            f"SELECT ?a {{ {_CHAIN} FILTER(?f = <<x>>) }}",
        ),
        (
            "SELECT ?p { ?p up:a ?x . OPTIONAL { ?x up:b ?y } ?y up:c ?z }",
            "SELECT ?p { ?p up:a ?x . ?y up:c ?z . OPTIONAL { ?x up:b ?y } }",
        ),
        (
            "SELECT ?p { ?p up:a ?x . MINUS { ?x up:b ?y } ?p up:c ?y }",
            "SELECT ?p { ?p up:a ?x . ?p up:c ?y . MINUS { ?x up:b ?y } }",
        ),
        (
            "SELECT ?p { ?p up:a <<x>> ; up:b <<y>> ; up:c ?n FILTER(CONTAINS(?n, 'a <<x>>')) }",
            "SELECT ?p { ?p up:a <<x>> ; up:b <<y>> ; up:c ?n FILTER(CONTAINS(?n, 'a <<y>>')) }",
        ),
    ],
    ids=["filter", "bind", "subselect", "slots", "far", "optional", "minus", "within"],
)
def test_variables_that_look_alike_are_still_two(one: str, other: str) -> None:
    assert pattern_key(one) != pattern_key(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (
            _TWO + "FILTER(?a < 5 && ?b > 7) }",
            "SELECT ?q { ?q up:mass ?x . ?q up:mass ?y . FILTER(?y < 5 && ?x > 7) }",
        ),
        (
            "SELECT ?p { ?p up:a ?x ; up:b ?n . OPTIONAL { ?x up:c ?y } }",
            "SELECT ?p { ?p up:b ?m ; up:a ?y . OPTIONAL { ?y up:c ?x } }",
        ),
        (
            "SELECT ?p { ?p up:a <<x>> ; up:b <<y>> ; up:c ?n FILTER(CONTAINS(?n, 'a <<x>>')) }",
            "SELECT ?p { ?p up:b <<y>> ; up:a <<z>> ; up:c ?n FILTER(CONTAINS(?n, 'a <<z>>')) }",
        ),
    ],
    ids=["filter", "optional", "within"],
)
def test_which_of_two_comes_first_is_wording(one: str, other: str) -> None:
    assert pattern_key(one) == pattern_key(other)


@pytest.mark.parametrize("seed", range(30))
def test_any_names_and_any_order_of_triples_give_one_key(seed: int) -> None:
    chance = random.Random(seed)
    names = "abcdefg"[: chance.randrange(3, 8)]
    triples = [
        (chance.choice(names), f"up:p{chance.randrange(2)}", chance.choice(names))
        for _ in range(chance.randrange(3, 9))
    ]
    first, second = names[0], names[1]

    def written() -> str:
        called = dict(zip(names, chance.sample("klmnopqrstu", len(names)), strict=True))
        body = " . ".join(
            f"?{called[s]} {p} ?{called[o]}" for s, p, o in chance.sample(triples, len(triples))
        )
        told = f"?{called[first]} < ?{called[second]}"
        return f"SELECT ?{called[names[2]]} {{ {body} FILTER({told}) }} ORDER BY ?{called[first]}"

    assert len({pattern_key(written()) for _ in range(10)}) == 1


UP = {"up": "http://purl.uniprot.org/core/"}
SLOTS = "SELECT ?p WHERE { ?p a up:Protein ; up:mass <<mass>> . } LIMIT <<limit>>"


@pytest.mark.parametrize(
    "other",
    [
        "SELECT ?x WHERE { ?x a up:Protein ; up:mass <<weight>> . } LIMIT <<n>>",
        "select $x\n{\n  $x a up:Protein ;\n  up:mass << heavy one >>\n}\nlimit <<n>> # five",
        "PREFIX c: <http://purl.uniprot.org/core/>\n"
        "SELECT ?p { ?p rdf:type c:Protein ; <http://purl.uniprot.org/core/mass> <<m>> }"
        " LIMIT <<l>>",
    ],
)
def test_wording_does_not_count(other: str) -> None:
    assert pattern_key(SLOTS, UP) == pattern_key(other, UP)


@pytest.mark.parametrize(
    "other",
    [
        "SELECT ?p WHERE { ?p a up:Protein ; up:mass ?mass . } LIMIT <<limit>>",
        "SELECT ?p WHERE { ?p a up:Protein ; up:mass <<mass>> . } LIMIT <<mass>>",
        "SELECT ?p ?m WHERE { ?p a up:Protein ; up:mass <<mass>> . } LIMIT <<limit>>",
        "SELECT ?p WHERE { ?p a up:Gene ; up:mass <<mass>> . } LIMIT <<limit>>",
        "SELECT ?p WHERE { ?p a up:Protein ; up:mass 7 . } LIMIT <<limit>>",
        "",
    ],
)
def test_everything_else_does(other: str) -> None:
    assert pattern_key(SLOTS, UP) != pattern_key(other, UP)


def test_two_variables_are_not_one() -> None:
    swapped = pattern_key("SELECT ?a { ?a up:p ?b . ?b up:q ?a }")
    assert swapped != pattern_key("SELECT ?a { ?a up:p ?b . ?a up:q ?b }")
    assert swapped == pattern_key("SELECT ?b { ?b up:p ?a . ?a up:q ?b }")


def test_slots_within_strings_and_names_are_slots() -> None:
    first = 'ASK { ?x up:name "a <<name>>" ; up:is <http://e/<<id>>> }'
    second = 'ASK { ?y up:name "a <<label>>" ; up:is <http://e/<<number>>> }'
    assert pattern_key(first) == pattern_key(second)
    assert pattern_key(first) != pattern_key(first.replace("<<id>>", "<<name>>"))


def test_code_is_compared_word_by_word() -> None:
    first = 'rows = sparql_query("""SELECT ?x { ?x up:mass <<mass>> }""")\nSUBMIT(<<mass>>)'
    second = 'rows = sparql_query("""SELECT ?x { ?x up:mass <<m>> }""")\n\n  SUBMIT(<<m>>)'
    assert pattern_key(first) == pattern_key(second)
    assert pattern_key(first) != pattern_key(first.replace("rows", "found"))


def test_names_of_a_pattern_and_of_a_text() -> None:
    assert pattern_names(SLOTS, UP) == {UP["up"] + "Protein", UP["up"] + "mass"}
    text = "Never use up:weight, nor <http://e/w> (note: slow)."
    assert names_in(text, UP) == {UP["up"] + "weight", "http://e/w"}
    assert names_in(text) == {"up:weight", "http://e/w"}
