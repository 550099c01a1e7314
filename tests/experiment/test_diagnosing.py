"""Diagnoses for refinements, at a real endpoint."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from reasoningbank.experiment.diagnosing import diagnosed
from reasoningbank.experiment.world import World
from reasoningbank.judge import ExecutionJudge, GoldStore
from reasoningbank.sparql import EndpointConfig, SPARQLClient
from reasoningbank.tools import Vocabulary


@pytest.fixture
def world(trees: EndpointConfig, tmp_path: Path) -> Iterator[World]:
    with SPARQLClient(trees) as client:
        judge = ExecutionJudge(client, GoldStore(tmp_path / "gold", "h"))
        yield World(trees, client, judge, vocabulary=Vocabulary.of(trees))


@pytest.mark.parametrize(
    ("query", "empty", "said"),
    [
        ("SELECT ?x { ?x t:hight ?h }", True, "t:height"),
        ("SELECT ?x { ?x t:height 99 }", True, "t:height"),
        ("SELECT ?x { ?x a t:Tree OPTIONAL { ?x t:hight ?h } }", False, "t:height"),
        ("SELECT ?x { ?x tree:height ?h }", False, "t:height"),
    ],
)
def test_a_query_is_told_what_is_wrong_with_it(
    world: World, query: str, empty: bool, said: str
) -> None:
    assert said in "\n".join(diagnosed(world, query, empty=empty))


def test_a_sound_query_and_an_endpoint_unknown_are_told_nothing(world: World) -> None:
    assert diagnosed(world, "SELECT ?x { ?x t:height ?h }", empty=False) == ()
    unknown = replace(world, vocabulary=None)
    assert diagnosed(unknown, "SELECT ?x { ?x t:hight ?h }", empty=True) == ()
