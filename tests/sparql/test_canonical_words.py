"""Trees that differ in names and in the order of bags have the same words; no others have."""

from __future__ import annotations

import random
import time
from collections.abc import Iterable
from itertools import combinations, permutations

import pytest

from reasoningbank.sparql.shape import Bag, Name, Node, Row, canonical_words

Links = frozenset[tuple[str, str]]


def tree(links: Iterable[tuple[str, str]]) -> Node:
    return Bag(tuple(Row((Name(a), "to", Name(b))) for a, b in links))


def renamed(links: Links, names: str, others: Iterable[str]) -> Links:
    called = dict(zip(names, others, strict=True))
    return frozenset((called[a], called[b]) for a, b in links)


def test_all_graphs_of_three_names_are_told_apart_by_their_words_alone() -> None:
    names = "abc"
    every = [(a, b) for a in names for b in names]
    graphs = [frozenset(some) for n in range(len(every) + 1) for some in combinations(every, n)]
    by_words: dict[tuple[str, ...], set[Links]] = {}
    for links in graphs:
        by_words.setdefault(canonical_words(tree(links)), set()).add(links)
    for alike in by_words.values():
        one = min(alike, key=sorted)
        assert alike <= {renamed(one, names, others) for others in permutations(names)}
    assert len(by_words) == 104, "as many as there are, loops included"


@pytest.mark.parametrize("seed", range(40))
def test_any_names_in_any_order_give_the_same_words(seed: int) -> None:
    chance = random.Random(seed)
    names = "abcdefghij"[: chance.randrange(3, 11)]
    links = [(chance.choice(names), chance.choice(names)) for _ in range(chance.randrange(3, 14))]
    told = canonical_words(tree(links))
    for _ in range(8):
        others = dict(zip(names, chance.sample("klmnopqrstuvwxyz", len(names)), strict=True))
        shuffled = chance.sample(links, len(links))
        assert canonical_words(tree((others[a], others[b]) for a, b in shuffled)) == told


def ring(names: str) -> list[tuple[str, str]]:
    return list(zip(names, names[1:] + names[0], strict=True))


def test_what_places_alone_do_not_tell_apart_is_told_apart() -> None:
    six, threes = ring("abcdef"), ring("abc") + ring("def")
    assert canonical_words(tree(six)) != canonical_words(tree(threes))
    both = [*ring("abc"), *ring("def"), *ring("ghijkl")]
    turned = [*ring("lkjihg"), *ring("fab"), *ring("cde")]
    assert canonical_words(tree(both)) == canonical_words(tree(turned))


def test_kinds_of_names_and_the_order_of_rows_count() -> None:
    assert canonical_words(Row((Name("a"), Name("b", "<<")))) == ("?0", "<<1")
    assert canonical_words(Row(("x", Name("a")))) != canonical_words(Row((Name("a"), "x")))
    assert canonical_words(Bag(("x", "y", Name("a")))) == canonical_words(
        Bag((Name("b"), "y", "x"))
    )


@pytest.mark.parametrize(
    "links",
    [
        [("p", f"x{n}") for n in range(1_500)],
        [(f"x{n}", f"y{n}") for n in range(1_000)],
        [(f"x{n}", f"x{n + 1}") for n in range(1_500)],
        [(f"x{n}", f"x{(n + 1) % 500}") for n in range(500)],
    ],
    ids=["alike", "pairs", "chain", "ring"],
)
def test_a_thousand_names_that_look_alike_take_no_time(links: list[tuple[str, str]]) -> None:
    began = time.process_time()
    words = canonical_words(tree(links))
    assert time.process_time() - began < 5
    assert len(set(words)) == 1 + len({name for link in links for name in link})
