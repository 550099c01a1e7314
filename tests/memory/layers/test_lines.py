"""Lines in a budget: whole, by rank, in the order given."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from reasoningbank.lm.tokens import count_tokens
from reasoningbank.memory.layer import Entry, Line, pack_lines

WORDS = st.text("abc de:->", min_size=1, max_size=30).map(str.strip).filter(bool)
ENTRIES = st.lists(st.tuples(WORDS, st.integers(0, 20)), max_size=5)
LINES = st.lists(st.tuples(WORDS, ENTRIES, st.integers(0, 20)), max_size=6)


@given(LINES, st.integers(0, 60))
def test_no_budget_is_exceeded_and_nothing_is_cut(
    given_lines: list[tuple[str, list[tuple[str, int]], int]], budget: int
) -> None:
    lines = [
        Line(head, tuple(Entry(text, rank) for text, rank in entries), rank)
        for head, entries, rank in given_lines
    ]
    layer = pack_lines(lines, budget, title="Title:")
    assert layer.tokens == count_tokens(layer.text) <= budget
    head, *written = layer.text.split("\n")
    assert (head, bool(written)) in {("Title:", True), ("", False)}
    places = []
    for text in written:
        # Each is a head, with some of its own entries in their order.
        fits = [at for at, line in enumerate(lines) if _some_of(text, line)]
        assert fits
        places.append(fits)
    assert len(written) <= len(lines)


def _some_of(text: str, line: Line) -> bool:
    number = len(line.entries)
    return any(
        text == line.written([at for at in range(number) if mask >> at & 1])
        for mask in range(2**number)
        if mask or not line.entries
    )


def test_a_budget_is_used_up() -> None:
    rng = random.Random(4)
    lines = [Line(" word" * rng.randint(1, 9), rank=rng.random()) for _ in range(12)]
    whole = "\n".join(line.head for line in lines)
    sizes = [pack_lines(lines, budget).tokens for budget in range(0, 120, 7)]
    assert sizes[0] == 0
    assert all(budget - size < 10 for budget, size in zip(range(0, 56, 7), sizes, strict=False))
    assert pack_lines(lines, count_tokens(whole) + 1).text == whole


def test_the_lowest_ranks_are_kept_in_written_order() -> None:
    lines = [Line("third", rank=3), Line("first", rank=1), Line("second", rank=2)]
    assert pack_lines(lines, 5).text == "first\nsecond"
    assert pack_lines(lines, 0).text == ""


def test_neighbours_of_one_stem_share_it() -> None:
    line = Line("a", (*(Entry(text, 0, "p -> ") for text in "xyz"), Entry("q", 1)))
    assert line.written([0, 2, 3]) == "a: p -> x | z, q"


def test_a_line_about_names_waits_for_one_of_them() -> None:
    warning = Line("Beware.", rank=0.5, about=frozenset({"n"}))
    assert pack_lines([Line("m", rank=0), warning], 50).text == "m"
    named = Line("n", (Entry("e", 0, names=frozenset({"n"})),))
    assert pack_lines([named, warning], 50).text == "n: e\nBeware."
    # What would come in only behind the warning does not bring it.
    late = Line("n", (Entry("e", 1, names=frozenset({"n"})),), rank=0)
    assert pack_lines([late, warning], 50).text == "n: e"
