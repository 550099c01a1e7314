"""The questions of the LiITA pack keep the rules that can be checked without running a query.

`scripts/check_golds.py liita` checks the others, and those of groups and questions
(`test_check_golds.py`); `tests/ontology/test_liita_golds.py` runs every gold.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable
from itertools import chain, combinations
from typing import Any

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
from reasoningbank.corpus.features import query_template
from reasoningbank.sparql.tree import read_query

PACK = load_pack("liita")
COMPLIT = "https://klab.ilc.cnr.it/graphdb-compl-it/"
LANGUAGES = ("it", "en")
SETS = ("liita", "liita-test")
PATTERNS = {
    "EMOTION", "POLARITY", "TRANSLATION", "MULTI_TRANSLATION", "SENSE_DEFINITION", "SENSE_COUNT",
    "HYPERNYM", "HYPONYM", "MERONYM", "POS", "MORPHO_REGEX", "COUNT", "META_GRAPH",
    "SERVICE_INTEGRATION", "COMPOSITIONAL",
}  # fmt: skip
#: Their examples are for retrieval alone.
TRAIN_ONLY = {"SYNONYM", "ANTONYM", "INFLECTION"}
#: What only CompL-it knows, and what only LiITA knows.
THERE = {
    "SENSE_DEFINITION", "SENSE_COUNT", "HYPERNYM", "HYPONYM", "MERONYM", "SYNONYM", "ANTONYM",
}  # fmt: skip
HERE = {"EMOTION", "POLARITY", "TRANSLATION", "POS"}


@pytest.fixture(scope="module")
def loaded() -> dict[tuple[str, str], Corpus]:
    """The corpus and the test set, in both languages."""
    return {(s, lang): load_corpus(s, language=lang) for s in SETS for lang in LANGUAGES}


@pytest.fixture(scope="module")
def corpus(loaded: dict[tuple[str, str], Corpus]) -> Corpus:
    return loaded["liita", "en"]


@pytest.fixture(scope="module")
def held_out(loaded: dict[tuple[str, str], Corpus]) -> Corpus:
    return loaded["liita-test", "en"]


@pytest.fixture(scope="module")
def labelled() -> list[dict[str, Any]]:
    """The questions that pattern detection is measured on."""
    lines = (PACK.root / "detection.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def pairs(tagged: Iterable[Iterable[str]]) -> set[tuple[str, ...]]:
    """The pairs of patterns that occur together."""
    return set(chain.from_iterable(combinations(sorted(tags), 2) for tags in tagged))


def test_nothing_is_odd(loaded: dict[tuple[str, str], Corpus]) -> None:
    for corpus in loaded.values():
        assert corpus.findings == ()
        assert {t.endpoint for t in corpus.tasks} == {"https://liita.it/sparql"}


def test_there_are_as_many_examples_as_the_original_data_set_has() -> None:
    assert len(load_corpus("liita").tasks) >= 131
    assert len(load_corpus("liita-test").tasks) >= 50


def test_every_question_comes_in_both_languages(loaded: dict[tuple[str, str], Corpus]) -> None:
    for (_, language), corpus in loaded.items():
        assert [t.id for t in corpus.tasks if t.language != language] == []
    for one in SETS:
        reported = zip(loaded[one, "it"].tasks, loaded[one, "en"].tasks, strict=True)
        for italian, english in reported:
            assert italian.id == english.id
            assert italian.query != english.query
            assert italian.expected_sparql == english.expected_sparql


def test_there_are_tasks_of_every_form_and_complexity(corpus: Corpus) -> None:
    stats = get_task_stats(corpus.tasks)
    for form, least in {"SELECT": 131, "ASK": 3, "CONSTRUCT": 2, "DESCRIBE": 2}.items():
        assert stats["by_form"][form] >= least
    for complexity in ("simple", "moderate", "complex"):
        assert stats["by_complexity"][complexity] >= 10
    for feature in ("path", "recursion", "aggregate", "graph", "service", "filter", "values"):
        assert stats["by_feature"][feature] >= 4
    for feature in ("not-exists", "minus", "order"):
        assert stats["by_feature"][feature] >= 2


def test_ids_and_questions_are_unique(
    loaded: dict[tuple[str, str], Corpus], labelled: list[dict[str, Any]]
) -> None:
    for language in LANGUAGES:
        asked = [t.query for one in SETS for t in loaded[one, language].tasks]
        asked += [one["question"] for one in labelled if one["language"] == language]
        assert [q for q, n in Counter(asked).items() if n > 1] == []
    assert len({t.id for t in loaded["liita", "en"].tasks}) == len(loaded["liita", "en"].tasks)


# -- patterns ------------------------------------------------------------------------------


def test_the_patterns_are_those_that_detection_knows() -> None:
    assert PACK.hints is not None
    hints = tomllib.loads((PACK.hints / "patterns.toml").read_text(encoding="utf-8"))
    assert {pattern["name"] for pattern in hints["pattern"]} == PATTERNS | TRAIN_ONLY


@pytest.mark.parametrize("name", SETS)
def test_every_task_names_its_patterns(name: str, loaded: dict[tuple[str, str], Corpus]) -> None:
    for task in loaded[name, "en"].tasks:
        assert task.keywords, task.id
        assert set(task.keywords) <= PATTERNS | TRAIN_ONLY, task.id


@pytest.mark.parametrize("name", SETS)
def test_patterns_agree_with_each_other_and_with_the_query(
    name: str, loaded: dict[tuple[str, str], Corpus]
) -> None:
    for task in loaded[name, "en"].tasks:
        tags = set(task.keywords)
        assert consistent(tags), task.id
        if tags & (THERE | {"SERVICE_INTEGRATION"}):
            assert "service" in task.features, task.id
        if "service" in task.features:
            assert tags & (THERE | {"SERVICE_INTEGRATION", "META_GRAPH"}), task.id
        if "COUNT" in tags:
            assert "aggregate" in task.features, task.id
        if any(form in task.expected_sparql for form in ("STRSTARTS", "STRENDS", "STRLEN")):
            assert "MORPHO_REGEX" in tags, task.id
        if "MULTI_TRANSLATION" not in tags and "META_GRAPH" not in tags:
            banks = set(re.findall("Dialetto[A-Z][a-z]+", task.expected_sparql))
            assert len(banks) <= 1, task.id
        for pattern, sign in {
            "EMOTION": "elita:", "POLARITY": "marl:hasPolarity", "SENSE_DEFINITION": "definition",
            "TRANSLATION": "translatableAs", "POS": "lila:has", "MERONYM": "partMeronym",
        }.items():  # fmt: skip
            if pattern in tags and "META_GRAPH" not in tags:
                assert sign in task.expected_sparql, (task.id, pattern)


def consistent(tags: set[str]) -> bool:
    """Whether the patterns that follow from others are given with them."""
    joined = bool(tags & THERE and tags & HERE)
    return (
        not ("MULTI_TRANSLATION" in tags and "TRANSLATION" not in tags)
        and not ("COMPOSITIONAL" in tags and "HYPONYM" not in tags)
        and not (joined and "SERVICE_INTEGRATION" not in tags)
    )


def test_the_test_set_covers_every_pattern_and_every_pair(held_out: Corpus) -> None:
    assert {k for t in held_out.tasks for k in t.keywords} == PATTERNS
    covered = pairs(t.keywords for t in held_out.tasks)
    assert [p for p in combinations(sorted(PATTERNS), 2) if p not in covered] == []


def test_every_pattern_also_stands_alone_or_nearly_so(held_out: Corpus) -> None:
    fewest = {
        pattern: min(len(t.keywords) for t in held_out.tasks if pattern in t.keywords)
        for pattern in PATTERNS
    }
    assert {pattern for pattern, n in fewest.items() if n > 3} == set()


# -- groups and golds ----------------------------------------------------------------------


def test_tasks_of_one_template_are_in_one_group(corpus: Corpus, held_out: Corpus) -> None:
    groups_of_template: dict[str, set[str]] = defaultdict(set)
    for task in (*corpus.tasks, *held_out.tasks):
        groups_of_template[query_template(task.expected_sparql)].add(task.group)
    assert [names for names in groups_of_template.values() if len(names) > 1] == []


def test_no_query_of_the_test_set_is_in_the_corpus(corpus: Corpus, held_out: Corpus) -> None:
    known = {t.expected_sparql for t in corpus.tasks}
    assert [t.id for t in held_out.tasks if t.expected_sparql in known] == []


def test_federated_tasks_say_whom_they_reach(corpus: Corpus, held_out: Corpus) -> None:
    for task in (*corpus.tasks, *held_out.tasks):
        assert task.federates_with == ((COMPLIT,) if "service" in task.features else ()), task.id


def test_every_gold_is_read_by_both_parsers(corpus: Corpus, held_out: Corpus) -> None:
    empty = ox.Store()
    for task in (*corpus.tasks, *held_out.tasks):
        assert query_features(task.expected_sparql).parsed, task.id
        assert read_query(task.expected_sparql).triple_patterns(), task.id
        if "service" not in task.features:
            empty.query(task.expected_sparql)


def test_a_split_has_every_complexity_in_every_part(corpus: Corpus) -> None:
    split = split_tasks(corpus.tasks)
    for part in (split.train, split.dev, split.test):
        assert {t.complexity for t in part} == {"simple", "moderate", "complex"}
        more = TRAIN_ONLY if part is split.train else set()
        assert {k for t in part for k in t.keywords} == PATTERNS | more


# -- the labelled set for detection --------------------------------------------------------


def test_the_labelled_set_is_large_enough_in_both_languages(labelled: list[dict[str, Any]]) -> None:
    by_language = Counter(one["language"] for one in labelled)
    assert set(by_language) == set(LANGUAGES)
    assert min(by_language.values()) >= 60
    assert [i for i, n in Counter(one["id"] for one in labelled).items() if n > 1] == []
    for language in LANGUAGES:
        tags = Counter(
            k for one in labelled if one["language"] == language for k in one["patterns"]
        )
        assert set(tags) == PATTERNS | TRAIN_ONLY
        assert min(tags.values()) >= 3


def test_the_labels_are_consistent(labelled: list[dict[str, Any]]) -> None:
    for one in labelled:
        assert set(one) == {"id", "language", "question", "patterns"}
        assert consistent(set(one["patterns"])), one["question"]
    # Words alone must not decide: some questions quote the name of a pattern, or need none.
    assert any(not one["patterns"] for one in labelled)
