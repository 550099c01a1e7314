"""Hybrid retrieval: parts, weights, languages, masking, and what is left out."""

from __future__ import annotations

import pytest
from hashed_words import HashedWords

from reasoningbank.corpus import Pack, load_pack
from reasoningbank.errors import UsageError
from reasoningbank.nl2sparql import (
    HybridRetriever,
    PackExample,
    RandomRetriever,
    load_examples,
)
from reasoningbank.nl2sparql.detection import Detected


@pytest.fixture(scope="module")
def retriever(woods: Pack) -> HybridRetriever:
    return HybridRetriever(woods, embedder=HashedWords())


def test_examples_have_patterns_by_tag_or_by_query(woods: Pack) -> None:
    patterns = {example.id: example.patterns for example in load_examples(woods)}
    assert patterns == {
        "height_of_oak": ("HEIGHT",),
        "higher_than": ("HEIGHT",),
        "near_pine": ("NEIGHBOUR",),
        "number": ("COUNT",),
    }


def test_questions_come_in_all_languages(woods: Pack) -> None:
    example = next(one for one in load_examples(woods) if one.id == "near_pine")
    assert example.question("it").strip() == 'Quali alberi sono vicini a "pine"?'
    assert example.question("de") == example.question("en") == example.nl


def test_parts_are_from_0_to_1_and_add_up(retriever: HybridRetriever) -> None:
    for question in ("Which trees are near the oak?", "Quanti alberi?", "zzz", "🌳"):
        found = retriever.retrieve(question, top_k=10)
        assert len(found) == 4
        assert max(one.semantic for one in found) == 1
        for one in found:
            assert all(0 <= part <= 1 for part in (one.semantic, one.bm25, one.pattern))
            total = 0.4 * one.semantic + 0.3 * one.bm25 + 0.3 * one.pattern
            assert one.score == pytest.approx(total, abs=1e-5)
        assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)


def test_italian_and_english_find_the_same(retriever: HybridRetriever) -> None:
    for question in ('Which trees are near "oak"?', 'Quali alberi sono vicini a "oak"?'):
        assert retriever.retrieve(question, 1)[0].example.id == "near_pine"


def test_entities_count_for_words_and_not_for_meaning(woods: Pack) -> None:
    examples = [
        PackExample("cane", 'Quali emozioni esprime "cane"?', "ASK {}"),
        PackExample("gatto", 'Quali emozioni esprime "gatto"?', "ASK {}"),
    ]
    meaning = HybridRetriever(examples, weights=(1, 0, 0), embedder=HashedWords())
    found = meaning.retrieve('Quali emozioni esprime "gatto"?')
    assert found[0].semantic == found[1].semantic == 1
    words = HybridRetriever(examples, weights=(0, 1, 0), embedder=HashedWords())
    assert words.retrieve('Le emozioni di "gatto"')[0].example.id == "gatto"


def test_patterns_are_weighted_by_how_sure_they_are(retriever: HybridRetriever) -> None:
    sure = [Detected("COUNT", 1.0)]
    found = {
        one.example.id: one.pattern
        for one in retriever.retrieve("any", 4, patterns=[*sure, Detected("HEIGHT", 0.5)])
    }
    assert found["number"] == pytest.approx(1 / 1.5, abs=1e-5)
    assert found["height_of_oak"] == pytest.approx(0.5 / 1.5, abs=1e-5)
    assert found["near_pine"] == 0
    alone = retriever.retrieve("any", 4, patterns=sure)
    assert {one.example.id for one in alone if one.pattern == 1} == {"number"}


def test_leave_out_groups_and_single_examples(retriever: HybridRetriever) -> None:
    question = 'What is the height of "birch"?'
    assert retriever.retrieve(question, 1)[0].example.id == "height_of_oak"
    without_one = retriever.without(ids=["height_of_oak"]).retrieve(question, 9)
    assert {one.example.id for one in without_one} == {"higher_than", "near_pine", "number"}
    without_group = retriever.without(["height"]).retrieve(question, 9)
    assert {one.example.group for one in without_group} == {"near", "count"}
    assert retriever.without(["height", "near", "count"]).retrieve(question, 9) == []


def test_what_is_left_out_does_not_set_the_scale(retriever: HybridRetriever) -> None:
    found = retriever.without(["count"]).retrieve("How many trees are there?", 9)
    assert max(one.semantic for one in found) == 1
    assert min(one.semantic for one in found) == 0


def test_nothing_asked_nothing_found(retriever: HybridRetriever) -> None:
    assert retriever.retrieve("  ") == retriever.retrieve("trees", 0) == []


def test_a_separate_test_set_is_never_shown() -> None:
    shown = HybridRetriever("liita-test", embedder=HashedWords()).examples
    assert shown == load_examples(load_pack("liita"))
    hidden = {example.id for example in load_examples(load_pack("liita-test"))}
    assert hidden
    assert not hidden & {example.id for example in shown}


def test_bad_input_is_refused() -> None:
    with pytest.raises(UsageError, match="no example"):
        HybridRetriever([], embedder=HashedWords())
    with pytest.raises(UsageError, match="weights"):
        HybridRetriever(
            [PackExample("a", "b", "ASK {}")], weights=(0, 0, 0), embedder=HashedWords()
        )
    with pytest.raises(UsageError, match="unknown pack"):
        HybridRetriever("nowhere")


def test_random_examples_are_the_same_each_time_and_keep_what_is_left_out(woods: Pack) -> None:
    examples = load_examples(woods)
    any_ones = RandomRetriever(examples)
    questions = [f"question {number}" for number in range(40)]
    first = [any_ones.retrieve(question, 1)[0].example.id for question in questions]
    assert first == [any_ones.retrieve(question, 1)[0].example.id for question in questions]
    assert set(first) == {example.id for example in examples}
    others = RandomRetriever(examples, seed=1)
    assert first != [others.retrieve(question, 1)[0].example.id for question in questions]
    left = any_ones.without(["height"], ["number"]).retrieve("any", 9)
    assert [one.example.id for one in left] == ["near_pine"]
    assert any_ones.retrieve("any", 0) == []
