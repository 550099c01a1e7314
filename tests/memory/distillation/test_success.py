"""Strategies: what a success teaches, and when it teaches nothing that is sure."""

from __future__ import annotations

import pytest

from reasoningbank.memory.distill import Distiller
from reasoningbank.memory.skeleton import slot_names
from reasoningbank.sparql import EndpointConfig
from reasoningbank.sparql.query import prepare

from .attempts import MASS, MASS_QUESTION, attempt, by_turns


def test_a_success_gives_when_how_and_a_skeleton(distiller: Distiller) -> None:
    (item,) = distiller.distil([attempt(MASS, success=True)]).items

    assert item.src == "success"
    assert item.title == "?mass by up:sequence/up:mass"
    assert item.description == "What is the molecular mass in dalton of protein <<protein>>?"
    assert "up:sequence from up:Protein to up:Sequence" in item.content
    assert "<<protein>> = uniprotkb:P04637" in item.content
    assert item.pattern == MASS.replace("uniprotkb:P04637", "<<protein>>")
    assert {"up:sequence", "up:mass", "path"} <= set(item.tags)
    assert item.scope.pack == "uniprot"
    assert (item.provenance.task, item.provenance.group) == ("t1", "masses")
    assert item.provenance.author == "rules"


def test_a_resource_is_recognized_by_its_label(distiller: Distiller) -> None:
    question = "What are the five heaviest proteins of Drosophila melanogaster?"
    query = (
        "PREFIX up: <http://purl.uniprot.org/core/>\n"
        "SELECT ?protein { ?protein up:organism <http://purl.uniprot.org/taxonomy/7227> ; "
        "up:sequence/up:mass ?mass } ORDER BY DESC(?mass) LIMIT 5"
    )
    (item,) = distiller.distil([attempt(query, success=True, question=question)]).items

    assert item.description == "What are the <<limit>> heaviest proteins of <<taxon>>?"
    assert '<<taxon>> = taxon:7227 (its up:scientificName is "Drosophila melanogaster")' in (
        item.content
    )
    assert slot_names(item.pattern) == ("taxon", "limit")
    assert "PREFIX" not in item.pattern


def test_a_skeleton_filled_with_its_own_values_runs(
    distiller: Distiller, endpoint: EndpointConfig
) -> None:
    (item,) = distiller.distil([attempt(MASS, success=True)]).items

    query = prepare(
        item.pattern.replace("<<protein>>", "uniprotkb:P04637"), prefixes=endpoint.namespaces
    )
    assert query.variables == ("mass",)


def test_the_same_success_twice_is_one_item(distiller: Distiller) -> None:
    distilled = distiller.distil([attempt(MASS, success=True), attempt(MASS, success=True)])

    assert len(distilled.items) == 1


@pytest.mark.parametrize(
    ("sparql", "rest"),
    [(None, {}), (MASS, {"rows": 0}), (MASS, {"ran": False, "rows": None})],
)
def test_what_was_not_seen_to_work_is_rejected(
    distiller: Distiller, sparql: str | None, rest: dict[str, object]
) -> None:
    distilled = distiller.distil([attempt(sparql, success=True, **rest)])

    assert not distilled.items
    assert (distilled.rejected[0].code, distilled.rejected[0].kind) == ("unproven", "success")


@pytest.mark.parametrize(
    ("query", "kept"),
    [
        # No protein has up:disease; its annotations have.
        ("ASK { uniprotkb:P04637 up:disease disease:5082 }", False),
        ("SELECT (COUNT(?d) AS ?n) { uniprotkb:P04637 up:disease ?d }", False),
        ("ASK { uniprotkb:P04637 up:annotation/up:disease disease:5082 }", True),
        ("SELECT (COUNT(?s) AS ?n) { uniprotkb:P0AD86 up:annotation/up:disease ?s }", True),
    ],
)
def test_a_no_or_zero_of_patterns_that_match_nothing_shows_nothing(
    distiller: Distiller, query: str, kept: bool
) -> None:
    distilled = distiller.distil([attempt(query, success=True, rows=1)])

    assert bool(distilled.items) == kept
    assert [one.code for one in distilled.rejected] == ([] if kept else ["unproven"])


def test_a_query_that_ran_on_the_way_is_seen_to_work(distiller: Distiller) -> None:
    ran = by_turns(("I run it.", "sparql_query(query)", "Ref(…)"))
    experience = attempt(MASS, success=True, ran=False, rows=None, trajectory=ran)

    assert len(distiller.distil([experience]).items) == 1


@pytest.mark.parametrize(
    "query",
    [
        "SELECT ?p { ?p a up:Proteine ; up:mnemonic ?n }",
        "SELECT ?p { ?p a up:Protein ; up:hasName ?n }",
    ],
)
def test_a_strategy_with_names_that_the_data_lack_is_rejected(
    distiller: Distiller, query: str
) -> None:
    distilled = distiller.distil([attempt(query, success=True)])

    assert not distilled.items
    assert distilled.rejected[0].code == "unknown-name"
    assert query.split()[-2] in distilled.rejected[0].text


def test_names_of_another_endpoint_are_left_to_it(distiller: Distiller) -> None:
    question = "Which exact synonyms do the GO terms of the protein P0AD86 have elsewhere?"
    query = (
        "SELECT ?synonym { uniprotkb:P0AD86 up:classifiedWith ?term . "
        "SERVICE <http://rdf.geneontology.org/blazegraph/sparql> "
        "{ ?term oboInOwl:hasExactSynonym ?synonym } }"
    )
    (item,) = distiller.distil([attempt(query, success=True, question=question)]).items

    assert "oboInOwl:hasExactSynonym" in item.pattern
    assert "oboInOwl:hasExactSynonym from" not in item.content


def test_turns_come_with_their_question(distiller: Distiller) -> None:
    ran = by_turns(
        ("I run it.", 'query = """…"""\nsparql_query(query)', "Ref(…)"),
        ("I submit it.", "SUBMIT(query)", ""),
    )
    (item,) = distiller.distil([attempt(MASS, success=True, trajectory=ran)]).items

    assert item.question == MASS_QUESTION
    assert [turn.code for turn in item.turns][-1] == "SUBMIT(query)"
