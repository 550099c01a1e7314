"""Patterns that are the same, and patterns that are not."""

from __future__ import annotations

import pytest

from reasoningbank.memory.consolidation.canonical import canonical_pattern, names_used

from .items import item

UP = {"up": "http://purl.uniprot.org/core/"}
ONE = "SELECT ?p WHERE { ?p a up:Protein ; up:mass <<mass>> . } LIMIT <<limit>>"


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
    assert canonical_pattern(ONE, UP) == canonical_pattern(other, UP)


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
    assert canonical_pattern(ONE, UP) != canonical_pattern(other, UP)


def test_two_variables_are_not_one() -> None:
    swapped = canonical_pattern("SELECT ?a { ?a up:p ?b . ?b up:q ?a }")
    assert swapped != canonical_pattern("SELECT ?a { ?a up:p ?b . ?a up:q ?b }")
    assert swapped == canonical_pattern("SELECT ?b { ?b up:p ?a . ?a up:q ?b }")


def test_slots_within_strings_and_names_are_slots() -> None:
    first = 'ASK { ?x up:name "a <<name>>" ; up:is <http://e/<<id>>> }'
    second = 'ASK { ?y up:name "a <<label>>" ; up:is <http://e/<<number>>> }'
    assert canonical_pattern(first) == canonical_pattern(second)
    assert canonical_pattern(first) != canonical_pattern(first.replace("<<id>>", "<<name>>"))


def test_code_is_compared_word_by_word() -> None:
    first = 'rows = sparql_query("""SELECT ?x { ?x up:mass <<mass>> }""")\nSUBMIT(<<mass>>)'
    second = 'rows = sparql_query("""SELECT ?x { ?x up:mass <<m>> }""")\n\n  SUBMIT(<<m>>)'
    assert canonical_pattern(first) == canonical_pattern(second)
    assert canonical_pattern(first) != canonical_pattern(first.replace("rows", "found"))


def test_names_are_those_of_the_pattern_or_else_of_the_words() -> None:
    by_pattern = item(pattern=ONE, content="Never use up:weight.")
    assert names_used(by_pattern, UP) == {UP["up"] + "Protein", UP["up"] + "mass"}
    by_words = item(pattern="", content="Never use up:weight, nor <http://e/w> (note: slow).")
    assert names_used(by_words, UP) == {UP["up"] + "weight", "http://e/w"}
    assert names_used(by_words) == {"up:weight", "http://e/w"}
