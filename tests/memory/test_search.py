"""Retrieval: filtered, ranked, packed and recorded; and its random control."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest

from reasoningbank.agents import FewShotExample
from reasoningbank.memory import (
    Counters,
    LeakageFilter,
    MemoryBank,
    MemoryItem,
    Provenance,
    Ranking,
    Scope,
    retrieve,
    retrieve_random,
)
from reasoningbank.memory.search import item_text
from reasoningbank.sparql.entity_linking import EntityLinker, EntityMention

HERE = Scope(pack="trees", endpoint="https://trees.example/sparql/")
QUESTION = "How tall is the oak?"


def words(text: str) -> int:
    return len(text.split())


@pytest.fixture(autouse=True)
def counted_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reasoningbank.memory.search.count_tokens", words)


def item(title: str, **parts: object) -> MemoryItem:
    plain = MemoryItem(title, "", "Say what it is.", "success")
    return replace(plain, **parts)  # type: ignore[arg-type]


@pytest.fixture
def bank() -> Iterator[MemoryBank]:
    with MemoryBank() as made:
        yield made


def titles(bank: MemoryBank, question: str = QUESTION, **how: object) -> list[str]:
    given = {"leakage": LeakageFilter(), "scope": HERE} | how
    found = retrieve(bank, question, **given)  # type: ignore[arg-type]
    return [one.item.title for one in found.found]


def test_what_fits_the_question_comes_first_in_either_language(bank: MemoryBank) -> None:
    bank.add(
        [
            item("Height of a tree", description="How tall something is"),
            item("Neighbours of a tree", description="What stands beside it"),
            item("Names in Latin", description="Scientific names"),
        ]
    )
    assert titles(bank, k=1) == ["Height of a tree"]
    assert titles(bank, "Quanto è alta la quercia?", k=1) == ["Height of a tree"]
    assert titles(bank, "", k=1) == []


def test_filtered_items_are_left_out_and_recorded(bank: MemoryBank) -> None:
    own = item("Height of the oak", provenance=Provenance(task="t1", corpus="trees"))
    other = item("Height of a tree", provenance=Provenance(task="t2", trial="a/t2.0"))
    bank.add([own, other])
    found = retrieve(bank, QUESTION, leakage=LeakageFilter(task="t1", corpus="trees"))
    assert [one.item for one in found.found] == [other]
    assert [(one, why.code) for one, why in found.filtered_out] == [(own.id, "own-task")]
    event = found.to_event()
    assert json.loads(json.dumps(event)) == event
    assert [(one["id"], one["code"]) for one in event["filtered_out"]] == [(own.id, "own-task")]
    (shown,) = event["items"]
    assert set(shown) == {"id", "title", "src", "score", "text", "task", "trial"}
    assert (shown["task"], shown["trial"], shown["text"]) == ("t2", "a/t2.0", item_text(other))
    assert event["tokens"] == words(item_text(other))


def test_many_filtered_items_do_not_hide_the_others(bank: MemoryBank) -> None:
    held = Provenance(task="t1")
    leaks = [item(f"How tall is the oak, {n}", provenance=held) for n in range(90)]
    bank.add([*leaks, item("Names in Latin")])
    found = retrieve(bank, QUESTION, leakage=LeakageFilter(evaluation=frozenset({"t1"})))
    assert [one.item.title for one in found.found] == ["Names in Latin"]
    assert {item_id for item_id, _ in found.filtered_out} == {leak.id for leak in leaks}


def test_where_texts_are_alike_the_place_decides(bank: MemoryBank) -> None:
    there = replace(HERE, pack="stones", endpoint="https://stones.example/")
    spelt = replace(HERE, endpoint="https://Trees.example:443/sparql")
    bank.add([item("Height", scope=scope) for scope in (there, Scope(), spelt)])
    found = retrieve(bank, QUESTION, leakage=LeakageFilter(), scope=HERE)
    assert [one.item.scope for one in found.found] == [spelt, Scope(), there]
    assert found.found[0].score > found.found[1].score > found.found[2].score


def test_paired_evidence_counts_and_mere_co_occurrence_does_not(bank: MemoryBank) -> None:
    often = Counters(retrieved=90, success=80, failure=10)
    counted = {
        "hurt": Counters(hurt=4),
        "nothing": Counters(),
        "often": often,
        "once": Counters(helped=1),
        "helped": Counters(helped=9, hurt=1),
    }
    bank.add([item("Height", content=name, counters=n) for name, n in counted.items()])
    found = retrieve(bank, QUESTION, leakage=LeakageFilter(), k=5)
    assert [one.item.content for one in found.found][:2] == ["helped", "once"]
    assert found.found[-1].item.content == "hurt"
    assert found.found[2].score == found.found[3].score


def test_what_repeats_gives_way_to_what_adds(bank: MemoryBank) -> None:
    alike = [item("How tall an oak is", content=f"Way {n}") for n in range(4)]
    bank.add([*alike, item("Height of oaks and pines"), item("Laws on the import of cheese")])
    shown = [titles(bank, k=3, ranking=Ranking(repetition=rate)) for rate in (0.0, 0.5)]
    assert shown[0] == ["How tall an oak is"] * 3
    assert shown[1][:2] == ["How tall an oak is", "Height of oaks and pines"]


def test_kinds_and_budgets_restrict(bank: MemoryBank) -> None:
    bank.add([item("Height of an oak"), item("Height of an oak, wrong", src="failure")])
    assert titles(bank, kinds=frozenset({"failure"})) == ["Height of an oak, wrong"]
    assert titles(bank, tokens=3) == []
    found = retrieve(bank, QUESTION, leakage=LeakageFilter(), tokens=3)
    assert len(found.skipped) == 2
    assert {(why.code, why.fields["budget"]) for _, why in found.skipped} == {("over-budget", 3)}


def test_equals_come_in_the_order_of_their_ids_whatever_came_in_first() -> None:
    items = [item("Height", content=f"{n}") for n in range(6)]
    orders = []
    for given in (items, items[::-1]):
        with MemoryBank() as bank:
            bank.add(given)
            found = retrieve(bank, QUESTION, leakage=LeakageFilter(), k=6)
            orders.append([one.item.id for one in found.found])
    assert orders[0] == orders[1] == sorted(one.id for one in items)


def draw(bank: MemoryBank, like: int, seed: int = 0, task: str = "t", **how: object) -> list[str]:
    leakage = LeakageFilter(task=task)
    found = retrieve_random(bank, "q", tokens=like, leakage=leakage, seed=seed, **how)  # type: ignore[arg-type]
    assert found.at_random
    assert found.tokens == sum(one.tokens for one in found.found)
    return [one.item.title for one in found.found]


def test_random_items_have_as_many_tokens_within_one_item(bank: MemoryBank) -> None:
    bank.add([item(f"Item {n}", content="word " * (5 + 7 * (n % 9))) for n in range(60)])
    sizes = [words(item_text(one)) for one in bank.items()]
    for like in (0, 4, 20, 77, 300):
        found = retrieve_random(bank, "q", tokens=like, leakage=LeakageFilter())
        assert like - max(sizes) < found.tokens <= like
        assert all(one.text == item_text(one.item) for one in found.found)


def test_the_random_draw_depends_on_task_and_seed_only(bank: MemoryBank) -> None:
    bank.add([item(f"Item {n}") for n in range(40)])
    assert draw(bank, 30) == draw(bank, 30)
    assert draw(bank, 30) != draw(bank, 30, seed=1)
    assert draw(bank, 30) != draw(bank, 30, task="u")
    one = retrieve_random(bank, "Item 3", tokens=30, leakage=LeakageFilter(task="t"))
    assert [found.item.title for found in one.found] == draw(bank, 30)


def test_every_item_has_a_chance_of_being_drawn(bank: MemoryBank) -> None:
    bank.add([item(f"Item {n:02}") for n in range(10)])
    size = words(item_text(item("Item 00")))
    first = [title for seed in range(200) for title in draw(bank, size, seed=seed)]
    assert len(first) == 200
    # 20 of 200 are expected of each; 5 and 41 lie four standard deviations away.
    assert all(5 <= first.count(f"Item {n:02}") <= 41 for n in range(10))


def test_the_random_control_is_filtered_and_keeps_to_kinds(bank: MemoryBank) -> None:
    leak = item("Leak", provenance=Provenance(task="t"))
    bank.add([leak, item("Item"), item("Wrong", src="failure")])
    found = retrieve_random(bank, "q", tokens=1_000, leakage=LeakageFilter(task="t"))
    assert {one.item.title for one in found.found} == {"Item", "Wrong"}
    assert [(one, why.code) for one, why in found.filtered_out] == [(leak.id, "own-task")]
    assert draw(bank, 1_000, kinds=frozenset({"failure"})) == ["Wrong"]


def test_a_question_is_searched_without_its_identifiers(bank: MemoryBank) -> None:
    height = item("How tall is a tree?", question="How tall is T31415?")
    other = item("Which trees stand beside T27182?", question="What is near T27182?")
    bank.add([height, other])
    assert titles(bank, "How tall is T27182?", k=1) == ["How tall is a tree?"]
    assert titles(bank, "T27182", k=1) == ["Which trees stand beside T27182?"]


def test_a_query_of_another_form_than_is_asked_for_comes_later(bank: MemoryBank) -> None:
    forms = {
        form: item(f"How tall is a tree? {form}", pattern=f"{form} {{ ?t t:height <<h>> }}")
        for form in ("SELECT *", "CONSTRUCT WHERE", "ASK")
    }
    bank.add([*forms.values(), item("How tall is a tree? In words")])

    def scores(question: str, form: float) -> dict[str, float]:
        found = retrieve(bank, question, leakage=LeakageFilter(), k=9, ranking=Ranking(form=form))
        return {one.item.title.split("? ")[1]: one.score for one in found.found}

    for question, right in ((QUESTION, "SELECT *"), (f"{QUESTION} As a graph.", "CONSTRUCT WHERE")):
        plain, ranked = scores(question, 0.0), scores(question, 0.3)
        lost = {form: round(plain[form] - ranked[form], 6) for form in plain}
        wrong = {form: 0.3 for form in forms if form != right}
        assert lost == {right: 0.0, "In words": 0.0} | wrong


class FixedLinker(EntityLinker):
    """A linker that knows the entities of a few questions."""

    def __init__(self, known: Mapping[str, EntityMention]) -> None:
        self._mentions = known

    def mentions(self, question: str) -> tuple[EntityMention, ...]:
        return tuple(one for text, one in self._mentions.items() if text == question)


def test_items_whose_question_names_the_same_kinds_come_first(bank: MemoryBank) -> None:
    kinds = {"How tall?": "Tree", "How old?": "Person", QUESTION: "Tree"}
    bank.add(
        item(f"Item {n}", question=asked, query="ASK {}")
        for n, asked in enumerate(kinds)
        if asked != QUESTION
    )
    named = FixedLinker({asked: EntityMention("", "", (kind,)) for asked, kind in kinds.items()})

    def scores(**rest: Any) -> dict[str, float]:
        found = retrieve(bank, QUESTION, leakage=LeakageFilter(), k=2, linker=named, **rest)
        return {one.item.question: one.score for one in found.found}

    before, after = scores(ranking=Ranking(entities=0.0)), scores()
    assert after["How tall?"] == pytest.approx(before["How tall?"] + Ranking().entities)
    assert after["How old?"] == before["How old?"]


def test_quoted_names_do_not_draw_the_search(bank: MemoryBank) -> None:
    same = item("A", question="?", description='Which part of speech is "mountain ash"?')
    like = item("B", question="?", description='Which height has "<<tree>>"?')
    bank.add([same, like])
    assert like.dense_text == "Which height has ?\nB"
    assert titles(bank, 'What is the height of "mountain ash"?') == ["B", "A"]


def test_a_question_without_kinds_is_neither_like_nor_unlike(bank: MemoryBank) -> None:
    bank.add([item("Item", question='How tall is "ash"?', query="ASK {}")])
    linker = FixedLinker({QUESTION: EntityMention("", "", ("Tree",))})

    def score(**rest: Any) -> float:
        found = retrieve(bank, QUESTION, leakage=LeakageFilter(), linker=linker, **rest)
        return found.found[0].score

    half = Ranking().entities / 2
    assert score() == pytest.approx(score(ranking=Ranking(entities=0.0)) + half)


def test_names_of_entities_do_not_draw_the_search(bank: MemoryBank) -> None:
    by_name = item("A", description="Is the Mountain Ash a tall story of the region?")
    by_kind = item("B", description="Which height has the tree?")
    bank.add([by_name, by_kind])
    question = "What is the height of the Mountain Ash?"
    linker = FixedLinker({question: EntityMention("Mountain Ash", "t:ash", ("http://e/Tree",))})
    assert linker.generalized(question) == "What is the height of the tree?"
    first = [
        retrieve(bank, question, leakage=LeakageFilter(), linker=one).found[0].item.title
        for one in (None, linker)
    ]
    assert first == ["A", "B"]


def test_an_answered_question_is_shown_as_one_where_that_is_asked_for(bank: MemoryBank) -> None:
    worked = item("Worked", question="How tall is the ash?", query="SELECT ?h {}")
    bank.add([worked, item("Said")])
    found = retrieve(bank, QUESTION, leakage=LeakageFilter(), examples=True)
    shown = {one.item.title: one for one in found.found}
    assert shown["Worked"].example == FewShotExample("How tall is the ash?", "SELECT ?h {}")
    assert shown["Worked"].text == "Question: How tall is the ash?\nQuery:\nSELECT ?h {}"
    assert shown["Worked"].tokens == words(shown["Worked"].text)
    assert shown["Said"].example is None
    drawn = retrieve_random(bank, "", tokens=99, leakage=LeakageFilter(), examples=True)
    assert {one.item.title: one.example for one in drawn.found}["Worked"] == shown["Worked"].example
    assert all(
        one.example is None for one in retrieve(bank, QUESTION, leakage=LeakageFilter()).found
    )


def test_near_lessons_do_not_hide_answered_questions(bank: MemoryBank) -> None:
    lessons = [item(f"{QUESTION} No. {n}", src="failure", content=f"Way {n}") for n in range(60)]
    worked = item("Age", question="How old is the ash?", query="SELECT ?age {}")
    bank.add([*lessons, worked])
    found = retrieve(bank, QUESTION, leakage=LeakageFilter(), k=2, examples=True)
    assert [one.item.title for one in found.found if one.example] == ["Age"]


def test_the_random_control_draws_as_much_of_each_kind(bank: MemoryBank) -> None:
    worked = [
        item(f"Worked {n}", question=f"How tall is the ash {n}?", query=f"SELECT ?h {{ {n} }}")
        for n in range(30)
    ]
    bank.add([*worked, *(item(f"Said {n}", src="failure") for n in range(30))])
    how: dict[str, Any] = {"leakage": LeakageFilter(task="t"), "examples": True}
    sizes = {words(one.text) for one in retrieve(bank, QUESTION, k=60, tokens=9_999, **how).found}
    for answered in (0, 40, 80):
        found = retrieve_random(bank, "", tokens=80, example_tokens=answered, **how)
        drawn = sum(one.tokens for one in found.found if one.example is not None)
        assert answered - max(sizes) < drawn <= answered
        assert 80 - answered - max(sizes) < found.tokens - drawn <= 80 - answered


@pytest.mark.parametrize("at_random", [False, True])
def test_what_is_linked_is_counted_and_recorded_as_it_is_shown(
    bank: MemoryBank, at_random: bool
) -> None:
    worked = [
        item(f"Worked {n}", question=f"How tall is the ash {n}?", query=f"SELECT ?h {{ {n} }}")
        for n in range(4)
    ]
    bank.add([*worked, item("Said")])
    asked: list[str] = []

    class Linker(FixedLinker):
        def annotated(self, question: str) -> str:
            asked.append(question)
            return question.replace("ash", "ash (t:ash of many words)")

    how = {"leakage": LeakageFilter(), "examples": True, "linker": Linker({})}
    if at_random:
        found = retrieve_random(bank, "", tokens=30, **how)  # type: ignore[arg-type]
        # What cannot fit is not asked about.
        assert len(asked) == 1
    else:
        found = retrieve(bank, QUESTION, tokens=36, **how)  # type: ignore[arg-type]
    shown = [one for one in found.found if one.example is not None]
    assert shown
    for one in shown:
        assert one.example is not None
        assert "(t:ash of many words)" in one.example.question
        assert one.example.question in one.text
        assert one.tokens == words(one.text)
    assert found.tokens == sum(one.tokens for one in found.found) <= (30 if at_random else 36)
    entry = {one["id"]: one for one in found.to_event()["items"]}
    for one in found.found:
        assert entry[one.item.id]["text"] == one.text
        # An audit knows a question by its own words.
        assert entry[one.item.id].get("question", "") == one.item.question
