"""Few-shot examples: of the training split only, and marked."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reasoningbank.corpus import load_shacl_tasks, split_tasks
from reasoningbank.corpus.splits import SplitName
from reasoningbank.errors import UsageError
from reasoningbank.memory.distill import Distiller
from reasoningbank.sparql import EndpointConfig
from reasoningbank.sparql.query import prepare

from ..coded import raises

TRAIN = split_tasks(load_shacl_tasks("uniprot")).train


def test_every_training_task_gives_an_example(
    distiller: Distiller, endpoint: EndpointConfig
) -> None:
    for task in TRAIN:
        (item,) = distiller.from_gold(task, "train").items
        assert (item.src, item.question) == ("gold", task.query)
        assert (item.provenance.task, item.provenance.group) == (task.id, task.group)
        assert (item.provenance.author, item.provenance.trial) == ("gold", "")
        assert "PREFIX" not in item.pattern
        written = prepare(item.pattern, prefixes=endpoint.namespaces)
        meant = prepare(task.expected_sparql, prefixes=endpoint.namespaces)
        assert (written.form, written.variables) == (meant.form, meant.variables)


@pytest.mark.parametrize("split", ["dev", "test", None])
def test_other_splits_are_refused(distiller: Distiller, split: SplitName | None) -> None:
    with raises(UsageError, "not-training", split=split):
        distiller.from_gold(TRAIN[0], split)


def test_a_blind_task_is_refused(distiller: Distiller) -> None:
    with raises(UsageError, "no-gold"):
        distiller.from_gold(TRAIN[0].blind(), "train")


def test_a_gold_that_cannot_be_read_is_rejected(distiller: Distiller) -> None:
    task = replace(TRAIN[0], expected_sparql="BASE <http://b/> ASK { <s> ?p ?o }")

    assert distiller.from_gold(task, "train").rejected[0].code == "base"
