"""What questions must and must not say."""

from __future__ import annotations

import pytest
from rdflib.term import URIRef

from reasoningbank.corpus.questions import constants_of, schema_names_in, unmentioned
from reasoningbank.errors import QueryError

P = "PREFIX up: <http://u/> PREFIX x: <http://x/> PREFIX xsd: <http://www.w3.org/2001/XMLSchema#> "
NAMES = {URIRef("http://x/9606"): ["Homo sapiens", "Human"]}


def names(iri: URIRef) -> list[str]:
    return NAMES.get(iri, [])


@pytest.mark.parametrize(
    ("query", "constants"),
    [
        ("SELECT ?s { ?s a up:Protein ; up:organism x:9606 }", ["http://x/9606"]),
        ("SELECT ?s { ?s up:a/up:b* 'kinase' } LIMIT 5", ["5", "kinase"]),
        (
            "SELECT ?s { ?s up:a ?b FILTER(xsd:integer(?b) > 10 && ?b != x:1) }",
            ["10", "http://x/1"],
        ),
        ("SELECT ?s { VALUES ?v { x:1 'two' } ?s up:a ?v }", ["http://x/1", "two"]),
        ("SELECT ?s { ?s up:a ?b FILTER NOT EXISTS { ?b up:c 3 } }", ["3"]),
        ("SELECT ?s { GRAPH x:graph { ?s up:a x:1 } }", ["http://x/1"]),
        ("SELECT ?s { ?s up:a ?b } GROUP BY ?s HAVING (COUNT(?b) > 4)", ["4"]),
        ("CONSTRUCT { ?s up:made x:here } WHERE { ?s up:a x:1 }", ["http://x/1"]),
        ("DESCRIBE x:1", ["http://x/1"]),
    ],
)
def test_constants(query: str, constants: list[str]) -> None:
    assert sorted(str(c) for c in constants_of(P + query)) == constants


def test_a_query_that_does_not_parse_is_one_error() -> None:
    with pytest.raises(QueryError, match="does not parse"):
        constants_of("SELECT {")


@pytest.mark.parametrize(
    ("question", "missing"),
    [
        ("Which proteins of taxon 9606 are kinases, at least three?", []),
        ("Which human proteins are kinases in 3 or more?", []),
        ("Which Homo sapiens proteins are (kinase), 3?", []),
        ("Which inhuman proteins are kinases, 3?", ["http://x/9606"]),
        ("Which human proteins are there?", ["3", "Kinase"]),
        ("Which human kinases have 30?", ["3"]),
    ],
)
def test_what_a_question_leaves_out(question: str, missing: list[str]) -> None:
    query = P + "SELECT ?s { ?s up:organism x:9606 ; up:name 'Kinase' ; up:n 3 }"
    assert sorted(str(c) for c in unmentioned(question, query, names)) == missing


@pytest.mark.parametrize(
    ("question", "language", "missing"),
    [
        ("Quali aggettivi hanno più di tre sensi?", "it", []),
        ("Quale aggettivo ha più di 3 sensi?", "it", []),
        ("Quale avverbio ha più di tre sensi?", "it", ["aggettivo"]),
        ("Quali aggettivi hanno più di tre sensi?", "en", ["3", "aggettivo"]),
    ],
)
def test_inflection_and_number_words_go_by_the_language(
    question: str, language: str, missing: list[str]
) -> None:
    query = P + "SELECT ?s { ?s up:pos 'aggettivo' ; up:n ?n FILTER(?n > 3) }"
    left = unmentioned(question, query, names, language=language)
    assert sorted(map(str, left)) == missing


def test_a_negative_number_is_one_constant() -> None:
    query = "SELECT ?s { ?s <p> ?v FILTER(?v < -0.8) }"
    assert unmentioned("Which are below -0.8?", query, names) == []
    assert [str(c) for c in unmentioned("Which are below 0.8?", query, names)] == ["-0.8"]


def test_only_names_that_no_biologist_uses_are_schema_names() -> None:
    schema = ["http://u/organism", "http://u/scientificName", "http://u/Disease_Annotation"]
    assert schema_names_in("Which organism and disease annotation?", schema) == []
    assert schema_names_in("The scientificName of Disease_Annotation?", schema) == [
        "scientificName",
        "Disease_Annotation",
    ]
    assert schema_names_in("Which up:organism?", schema) == ["up:organism"]
