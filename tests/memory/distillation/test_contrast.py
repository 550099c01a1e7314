"""Contrasts: what differs between a right and a wrong query for one question."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reasoningbank.errors import UsageError
from reasoningbank.memory import MemoryItem
from reasoningbank.memory.distill import Distiller
from reasoningbank.memory.experience import Experience
from reasoningbank.schema import Schema
from reasoningbank.sparql import EndpointConfig

from ..coded import raises
from .attempts import attempt

QUESTION = "List the proteins of Drosophila melanogaster with their gene symbol."
RIGHT = (
    "SELECT ?protein ?gene { ?protein up:organism taxon:7227 ; up:encodedBy/skos:prefLabel ?gene }"
)


def rollouts(wrong: str, rows: int = 0) -> list[Experience]:
    return [
        attempt(RIGHT, success=True, question=QUESTION, rows=22),
        attempt(wrong, question=QUESTION, rows=rows),
    ]


def contrast(distiller: Distiller, wrong: str) -> MemoryItem | None:
    items = distiller.distil(rollouts(wrong)).items
    return next((item for item in items if item.src == "contrast"), None)


def test_a_name_decides(distiller: Distiller) -> None:
    item = contrast(distiller, RIGHT.replace("up:encodedBy/skos:prefLabel", "up:geneSymbol"))

    assert item is not None
    assert item.title == "What decides: up:encodedBy/skos:prefLabel"
    assert item.content.splitlines()[:3] == [
        "Right: ?protein up:encodedBy/skos:prefLabel ?gene .",
        "Not: ?protein up:geneSymbol ?gene .",
        "There is no up:geneSymbol.",
    ]
    assert not item.pattern


@pytest.mark.parametrize(
    ("wrong", "line"),
    [
        (RIGHT.replace("SELECT ?protein ?gene", "ASK"), "Right: SELECT, not ASK."),
        (RIGHT.replace("?protein ?gene", "?gene", 1), "the columns ?protein ?gene, no more"),
        (RIGHT.replace("taxon:7227", "taxon:9606"), "Right: ?protein up:organism taxon:7227 ."),
        (RIGHT.replace(" }", " FILTER(?gene = 'X') }"), "Right: without FILTER."),
        (f"{RIGHT} LIMIT 3", "Right: without LIMIT."),
    ],
)
def test_other_things_decide(distiller: Distiller, wrong: str, line: str) -> None:
    item = contrast(distiller, wrong)

    assert item is not None
    assert line in item.content


@pytest.mark.parametrize(
    "wrong",
    [
        RIGHT.replace("?protein", "?p"),
        RIGHT.replace(" }", " . ?protein a up:Protein }"),
        "SELECT ?x { ?x up:resolution ?y }",
        "no query",
    ],
)
def test_no_contrast_without_a_difference(distiller: Distiller, wrong: str) -> None:
    assert contrast(distiller, wrong) is None


def test_the_nearest_of_several_wrong_ones_is_compared(distiller: Distiller) -> None:
    near = RIGHT.replace("taxon:7227", "taxon:9606")
    experiences = [
        *rollouts("SELECT ?g { ?p up:encodedBy ?g }"),
        attempt(near, question=QUESTION, rows=99),
    ]
    (item,) = [i for i in distiller.distil(experiences).items if i.src == "contrast"]

    assert "Not: ?protein up:organism taxon:9606 ." in item.content


def test_without_the_strategy_the_contrast_has_the_skeleton(
    vocabulary: Schema, endpoint: EndpointConfig
) -> None:
    distiller = Distiller(
        vocabulary=vocabulary, endpoint=endpoint, kinds=frozenset({"contrast", "failure"})
    )
    items = distiller.distil(rollouts(RIGHT.replace("taxon:7227", "taxon:9606"))).items
    (item,) = [item for item in items if item.src == "contrast"]

    assert "up:organism <<taxon>>" in item.pattern
    assert "Right: ?protein up:organism <<taxon>> ." in item.content
    assert not [item for item in items if item.src == "success"]


def test_an_unproven_success_is_not_a_right_side(distiller: Distiller) -> None:
    believed, wrong = rollouts(RIGHT.replace("taxon:7227", "taxon:9606"))
    unseen = replace(believed, judge="lm:local", ran=False, rows=None)
    worked = replace(believed, sparql=RIGHT.replace("?gene }", "?gene } ORDER BY ?gene"))

    alone, among = distiller.distil([unseen, wrong]), distiller.distil([unseen, wrong, worked])

    assert "contrast" not in {item.src for item in alone.items}
    (item,) = [item for item in among.items if item.src == "contrast"]
    assert item.provenance.judge == "execution"


def test_a_no_of_patterns_that_match_nothing_is_not_a_right_side(distiller: Distiller) -> None:
    # No protein has up:disease; its annotations have.
    no = attempt("ASK { uniprotkb:P04637 up:disease disease:5082 }", success=True, rows=1)
    wrong = attempt("SELECT ?d { uniprotkb:P04637 up:disease ?d }", rows=0)
    distilled = distiller.distil([no, wrong])

    assert [(one.kind, one.code) for one in distilled.rejected if one.kind != "failure"] == [
        ("success", "unproven"),
        ("contrast", "unproven"),
    ]
    assert not [item for item in distilled.items if item.src == "contrast"]


def test_attempts_at_several_tasks_are_refused(distiller: Distiller) -> None:
    other = Experience("t2", "g", "uniprot", "?", "ASK {}", False, "execution")

    with raises(UsageError, "several-tasks"):
        distiller.distil([attempt(RIGHT), other])
