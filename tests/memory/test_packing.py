"""Whole items in a budget: nothing cut, each family its share, and what did not fit is reported."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from reasoningbank.agents import FewShotExample
from reasoningbank.memory import FoundItem, ItemSource, MemoryItem
from reasoningbank.memory.search import FAMILIES, item_text, pack, pack_examples

SOURCES: tuple[ItemSource, ...] = ("success", "failure", "contrast", "seed", "gold")


def found(number: int, src: ItemSource, tokens: int) -> FoundItem:
    return FoundItem(MemoryItem(f"Item {number}", "", "x", src), 1 / (number + 1), "x", tokens)


candidates = st.lists(st.tuples(st.sampled_from(SOURCES), st.integers(1, 300)), max_size=12).map(
    lambda parts: [found(n, src, tokens) for n, (src, tokens) in enumerate(parts)]
)


@given(candidates, st.integers(1, 6), st.integers(0, 900))
def test_a_budget_is_kept_in_items_and_tokens_and_the_order_stays(
    ranked: list[FoundItem], items: int, tokens: int
) -> None:
    packed = pack(ranked, items=items, tokens=tokens)
    assert len(packed.chosen) <= items
    assert sum(one.tokens for one in packed.chosen) <= tokens
    places = [ranked.index(one) for one in packed.chosen]
    assert places == sorted(set(places))
    ids = {one.item.id for one in packed.chosen}
    assert ids.isdisjoint(item_id for item_id, _ in packed.skipped)


@given(candidates, st.integers(0, 900))
def test_nothing_that_fits_is_left_out_while_there_is_room(
    ranked: list[FoundItem], tokens: int
) -> None:
    packed = pack(ranked, items=len(ranked) + 1, tokens=tokens)
    left = tokens - sum(one.tokens for one in packed.chosen)
    assert all(one.tokens > left for one in ranked if one not in packed.chosen)


@given(candidates, st.integers(0, 900))
def test_each_family_has_an_item_where_the_smallest_of_all_fit_together(
    ranked: list[FoundItem], tokens: int
) -> None:
    smallest: dict[str, int] = {}
    for one in ranked:
        family = FAMILIES[one.item.src]
        smallest[family] = min(one.tokens, smallest.get(family, one.tokens))
    packed = pack(ranked, items=3, tokens=tokens)
    if sum(smallest.values()) <= tokens:
        assert {FAMILIES[one.item.src] for one in packed.chosen} == set(smallest)


def test_one_item_is_the_best_whatever_its_family() -> None:
    ranked = [found(0, "gold", 50), found(1, "failure", 50), found(2, "success", 50)]
    assert pack(ranked, items=1, tokens=600).chosen == (ranked[0],)


def test_no_room_is_kept_for_what_fits_nowhere() -> None:
    best, second, tiny = found(0, "success", 300), found(1, "success", 280), found(3, "success", 20)
    huge = found(2, "failure", 700)
    assert pack([best, second, huge, tiny], items=2, tokens=600).chosen == (best, second)
    large, small = found(0, "success", 400), found(1, "success", 300)
    alone = found(2, "failure", 590)
    assert pack([large, small, alone], items=2, tokens=600).chosen == (large,)


def test_items_over_the_budget_are_reported() -> None:
    ranked = [found(0, "seed", 700), found(1, "seed", 400), found(2, "seed", 300)]
    packed = pack(ranked, items=3, tokens=600)
    assert packed.chosen == (ranked[1],)
    assert [(one, why.code, why.fields["tokens"]) for one, why in packed.skipped] == [
        (ranked[0].item.id, "over-budget", 700),
        (ranked[2].item.id, "over-budget", 300),
    ]


def answered(number: int, tokens: int, query: str = "") -> FoundItem:
    item = MemoryItem(f"Item {number}", "", "x", "gold")
    example = FewShotExample(f"Question {number}?", query or f"ASK {{ {number} }}")
    return FoundItem(item, 1 / (number + 1), "x", tokens, example)


def test_lessons_do_not_take_the_place_of_answered_questions() -> None:
    lessons = [found(n, "failure", 50) for n in range(3)]
    solved = [answered(n, 100) for n in range(3, 7)]
    packed = pack_examples([*lessons, *solved], items=3, tokens=1_000)
    assert packed.chosen == (lessons[0], *solved[:3])
    assert pack_examples([*lessons, *solved], items=3, tokens=340).chosen == tuple(solved[:3])


def test_lessons_fill_what_answered_questions_leave() -> None:
    lessons = [found(n, "failure", 50) for n in range(4)]
    ranked = [*lessons, answered(4, 100)]
    assert pack_examples(ranked, items=3, tokens=600).chosen == (*lessons[:2], ranked[4])
    assert pack_examples(lessons, items=3, tokens=600).chosen == tuple(lessons[:3])


def test_a_query_is_shown_once() -> None:
    query = "SELECT ?h { ?tree :height ?h }"
    twice = [answered(0, 90, query), answered(1, 40, query.replace(" ", "\n")), answered(2, 80)]
    packed = pack_examples(twice, items=2, tokens=600)
    assert packed.chosen == (twice[0], twice[2])
    assert packed.skipped == ()


def test_a_query_that_is_too_long_once_is_shown_where_it_fits() -> None:
    query = "SELECT ?h { ?tree :height ?h }"
    long, short, other = answered(0, 700, query), answered(1, 90, query), answered(2, 80)
    packed = pack_examples([long, short, other], items=2, tokens=600)
    assert packed.chosen == (short, other)
    assert packed.skipped == ()
    none = pack_examples([long, short], items=2, tokens=60)
    assert [one for one, _ in none.skipped] == [long.item.id, short.item.id]


@given(candidates, st.integers(1, 6), st.integers(0, 900))
def test_a_budget_is_kept_beside_answered_questions_too(
    lessons: list[FoundItem], items: int, tokens: int
) -> None:
    ranked = [*lessons, *(answered(n + 20, 10 + 60 * n) for n in range(5))]
    packed = pack_examples(ranked, items=items, tokens=tokens)
    assert sum(one.example is not None for one in packed.chosen) <= items
    assert len(packed.chosen) <= items + 1
    assert sum(one.tokens for one in packed.chosen) <= tokens
    places = [ranked.index(one) for one in packed.chosen]
    assert places == sorted(set(places))


def test_a_text_says_each_thing_once() -> None:
    pattern = "SELECT ?m { <<protein>> up:sequence/up:mass ?m }"
    question = "What is the mass of P05067?"
    example = MemoryItem(question, question, "", "gold", pattern, question=question)
    assert item_text(example) == f"Example: {question}\nQuery:\n{pattern}"
    entry = MemoryItem("Mass", "", f"Write {pattern} for it.", "success", pattern)
    assert item_text(entry) == f"Strategy: Mass\nWrite {pattern} for it."
    heads = [item_text(MemoryItem("T", "", "x", src)).split(":")[0] for src in SOURCES]
    assert heads == ["Strategy", "Pitfall", "Contrast", "Hint", "Example"]
