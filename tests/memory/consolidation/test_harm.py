"""Harm is judged by pairs only, and seldom by chance."""

from __future__ import annotations

import itertools
import math

import pytest

from reasoningbank.memory import Counters
from reasoningbank.memory.consolidate import harm, harm_midp


def exact(hurt: int, helped: int) -> float:
    n = hurt + helped
    more = sum(math.comb(n, k) for k in range(hurt + 1, n + 1))
    return (more + math.comb(n, hurt) / 2) / 2**n


@pytest.mark.parametrize(("hurt", "helped"), [*itertools.product((0, 1, 4, 9), (0, 2, 7))])
def test_midp_is_that_of_the_sign_test(hurt: int, helped: int) -> None:
    assert harm_midp(Counters(hurt=hurt, helped=helped)) == pytest.approx(exact(hurt, helped))


def test_what_came_after_an_item_says_nothing() -> None:
    assert harm(Counters(retrieved=500, success=0, failure=500)) == ""


def test_the_fewest_tasks_that_retire() -> None:
    fewest = {
        helped: next(h for h in range(99) if harm(Counters(hurt=h, helped=helped)))
        for helped in (0, 1, 2, 3)
    }
    assert fewest == {0: 6, 1: 9, 2: 11, 3: 13}


def test_an_item_that_does_nothing_is_seldom_retired_however_often_it_is_looked_at() -> None:
    alive, retired = {0: 1.0}, 0.0
    for n in range(1, 31):
        after: dict[int, float] = {}
        for hurt, chance in alive.items():
            for now in (hurt, hurt + 1):
                after[now] = after.get(now, 0.0) + chance / 2
        out = {hurt for hurt in after if harm(Counters(hurt=hurt, helped=n - hurt))}
        retired += sum(after[hurt] for hurt in out)
        alive = {hurt: chance for hurt, chance in after.items() if hurt not in out}
    assert 0.03 < retired < 0.05
