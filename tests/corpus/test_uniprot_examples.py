"""The examples of our own pack keep the rules that can be checked without running a query.

`scripts/check_golds.py` checks the others: those of groups, topics and questions
(`test_check_golds.py`), that every gold answers something on the pack's data, and that no triple
pattern can be left out of it.
"""

from __future__ import annotations

import re

import pyoxigraph as ox
import pytest

from reasoningbank.corpus import (
    Corpus,
    get_task_stats,
    load_corpus,
    load_pack,
    query_features,
    split_tasks,
)
from reasoningbank.corpus.questions import constants_of
from reasoningbank.sparql.tree import read_query


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return load_corpus("uniprot")


def test_there_are_enough_tasks_of_every_form_and_complexity(corpus: Corpus) -> None:
    stats = get_task_stats(corpus.tasks)
    assert stats["total"] >= 150
    assert stats["by_form"]["SELECT"] > stats["total"] / 2
    for form in ("ASK", "CONSTRUCT", "DESCRIBE"):
        assert stats["by_form"][form] >= 3
    shares = {k: n / stats["total"] for k, n in stats["by_complexity"].items()}
    assert shares["simple"] == pytest.approx(0.45, abs=0.1)
    assert shares["moderate"] == pytest.approx(0.35, abs=0.1)
    assert shares["complex"] == pytest.approx(0.2, abs=0.1)
    for feature in ("path", "optional", "union", "aggregate", "subquery", "graph", "not-exists"):
        assert stats["by_feature"][feature] >= 1


def test_federated_tasks_say_whom_they_reach(corpus: Corpus) -> None:
    known = {other.url for other in load_pack("uniprot").federated}
    federated = [t for t in corpus.tasks if "service" in t.features]
    assert len(federated) >= 15
    for task in federated:
        reached = set(re.findall(r"SERVICE <([^>]*)>", task.expected_sparql))
        assert set(task.federates_with) == reached
        assert reached <= known
    assert len([t for t in federated if len(t.federates_with) == 2]) >= 2


def test_every_gold_is_read_by_both_parsers(corpus: Corpus) -> None:
    empty = ox.Store()
    for task in corpus.tasks:
        empty.query(task.expected_sparql)
        assert query_features(task.expected_sparql).parsed, task.id
        assert constants_of(task.expected_sparql) is not None
        assert read_query(task.expected_sparql).triple_patterns(), task.id


def test_a_split_has_every_complexity_in_every_part(corpus: Corpus) -> None:
    split = split_tasks(corpus.tasks)
    for part in (split.train, split.dev, split.test):
        assert {t.complexity for t in part} == {"simple", "moderate", "complex"}
        assert len({t.form for t in part}) >= 3
