"""Comparisons pair by task, say how they were made, and claim no more than they know."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from reasoningbank.analysis import Score, adjust, compare_arms
from reasoningbank.analysis.statistics import detectable_mcnemar, mcnemar_midp, tango

BLANK = Score(
    arm="", task="", seed=0, group="", step=None, fate="judged", strict=0.0, lenient=0.0, f1=0.0,
    executed=True, status="submitted", seconds=1.0, tokens=1, dollars=None, lm_calls=1,
    cached_calls=0, tries=1,
)  # fmt: skip


def score(arm: str, task: str, value: float, **rest: Any) -> Score:
    fields = {"arm": arm, "task": task, "group": task, "strict": float(value == 1), "f1": value}
    return replace(BLANK, **{**fields, "lenient": fields["strict"], **rest})


def arm(name: str, values: list[float]) -> list[Score]:
    return [score(name, f"t{n}", value) for n, value in enumerate(values)]


def test_one_run_a_task_is_mcnemar_with_tangos_interval() -> None:
    first = [1.0] * 9 + [0.0] * 3 + [1.0] * 8
    second = [0.0] * 9 + [1.0] * 3 + [1.0] * 8
    found = compare_arms(arm("a", first), arm("b", second))
    assert found is not None
    test, interval = mcnemar_midp([v > 0 for v in first], [v > 0 for v in second]), tango(9, 3, 20)
    assert (found.p, found.low, found.high) == (test.p, interval.low, interval.high)
    assert (found.first_better, found.second_better, found.tasks) == (9, 3, 20)
    assert (found.first_mean, found.second_mean, found.difference) == (
        0.85, 0.55, pytest.approx(0.3),
    )  # fmt: skip
    assert found.detectable == detectable_mcnemar(20, 0.6)
    assert found.method == "McNemar mid-p, Tango interval"
    assert not found.resolved
    assert found.sentence() == (
        "a against b, strict, 20 tasks: 0.85 and 0.55, +0.30 (95% CI -0.04 to +0.57), p 0.092: "
        "unresolved (20 tasks would show a difference of 0.45 or more)"
    )


def test_a_difference_that_is_there_is_named() -> None:
    found = compare_arms(arm("a", [0.0] * 10), arm("b", [1.0] * 9 + [0.0]))
    assert found is not None
    assert found.resolved
    assert found.sentence().endswith("p 0.002: b is better")


def test_runs_of_a_task_are_averaged_and_tasks_are_what_is_drawn() -> None:
    rng = np.random.default_rng(0)
    first = [score("a", f"t{n}", float(rng.random() < 0.6), seed=s) for n in range(20)
             for s in range(3)]  # fmt: skip
    second = [score("b", f"t{n}", float(rng.random() < 0.4), seed=s) for n in range(20)
              for s in range(3)]  # fmt: skip
    found = compare_arms(first, second)
    assert found is not None
    assert found.method == "sign-flip test, bootstrap over tasks"
    assert (found.tasks, found.runs, found.seeds) == (20, (60, 60), (3, 3))
    assert found.difference == pytest.approx(np.mean(found.by_seed))
    each = ", ".join(f"{one:+.2f}" for one in found.by_seed)
    assert f"20 tasks × 3 seeds ({each})" in found.sentence()
    # The same runs ten times over are no more evidence.
    again = compare_arms(
        [replace(s, seed=s.seed + 3 * k) for s in first for k in range(10)],
        [replace(s, seed=s.seed + 3 * k) for s in second for k in range(10)],
    )
    assert again is not None
    assert (again.low, again.high, again.p) == pytest.approx((found.low, found.high, found.p))


def test_over_groups_a_group_is_one_observation() -> None:
    values = [(1.0, 0.0)] * 16 + [(0.0, 0.0)] * 4
    first = [score("a", f"t{n}", a, group=f"g{n // 4}") for n, (a, _) in enumerate(values)]
    second = [score("b", f"t{n}", b, group=f"g{n // 4}") for n, (_, b) in enumerate(values)]
    by_task, by_group = (compare_arms(first, second, unit=unit) for unit in ("task", "group"))
    assert by_task is not None
    assert by_group is not None
    assert by_task.resolved
    assert (by_group.unit, by_group.groups, by_group.tasks) == ("group", 5, 20)
    assert by_group.difference == by_task.difference == 0.8
    # Five groups cannot have a p-value below 2/32.
    assert by_group.p == pytest.approx(2 / 16)
    assert by_group.detectable is None
    assert not by_group.resolved
    assert "20 tasks in 5 groups" in by_group.sentence()


def test_arms_without_a_seed_in_common_have_no_difference_by_seed() -> None:
    first, second = (
        [score(name, "t", 1.0, seed=seed) for seed in seeds]
        for name, seeds in (("a", (0, 1)), ("b", (2, 3)))
    )
    found = compare_arms(first, second)
    assert found is not None
    assert found.by_seed == ()
    assert "1 task × 2 seeds: " in found.sentence()


def test_groups_of_one_task_are_compared_as_tasks() -> None:
    first, second = arm("a", [1.0] * 8 + [0.0] * 2), arm("b", [0.0] * 10)
    by_task, by_group = (compare_arms(first, second, unit=unit) for unit in ("task", "group"))
    assert by_task is not None
    assert by_group == replace(by_task, unit="group")


@pytest.mark.parametrize("losses", [0, 1, 2])
@pytest.mark.parametrize("n", [8, 12, 16, 20])
def test_more_wins_never_resolve_less(n: int, losses: int) -> None:
    def resolved(wins: int) -> bool:
        values = [1.0] * wins + [-1.0] * losses + [0.0] * (n - wins - losses)
        first, second = (
            [score(name, f"t{k}", float(value * sign > 0), seed=seed)
             for seed in (0, 1) for k, value in enumerate(values)]
            for name, sign in (("a", 1), ("b", -1))
        )  # fmt: skip
        found = compare_arms(first, second)
        assert found is not None
        return found.resolved

    found = [resolved(wins) for wins in range(n - losses + 1)]
    assert found == sorted(found)
    assert found[-1] or losses


def test_with_an_exact_test_the_detectable_difference_is_of_that_test() -> None:
    # Each task twice, all or nothing: six of them must differ, all one way, for p < 0.05.
    one = [score("a", f"t{n}", float(n < 2), seed=seed) for n in range(20) for seed in (0, 1)]
    found = compare_arms(one, [replace(s, arm="b", strict=0.0) for s in one])
    assert found is not None
    assert not found.resolved
    assert found.detectable is not None
    assert stats.binom.sf(5, 20, found.detectable) == pytest.approx(0.8, abs=1e-4)


def test_what_errors_could_reverse_is_not_resolved() -> None:
    second = [replace(one, fate="error") if n < 11 else one
              for n, one in enumerate(arm("b", [0.0] * 20))]  # fmt: skip
    found = compare_arms(arm("a", [0.0] * 11 + [1.0] * 9), second)
    assert found is not None
    assert (found.low > 0, found.p < 0.01, found.worst_case) == (True, True, pytest.approx(-0.1))
    assert not found.resolved


def test_f1_is_compared_by_the_bootstrap_also_with_one_run() -> None:
    rng = np.random.default_rng(1)
    second = rng.random(15) * 0.5
    found = compare_arms(
        arm("a", (second + 0.1 + 0.3 * rng.random(15)).tolist()), arm("b", second.tolist()),
        metric="f1",
    )  # fmt: skip
    assert found is not None
    assert found.method == "sign-flip test, bootstrap over tasks"
    assert found.resolved
    assert 0.1 < found.low < found.difference < found.high < 0.4


def test_only_tasks_that_both_have_judged_are_compared_and_the_rest_is_reported() -> None:
    first = [*arm("a", [1.0] * 8), score("a", "only", 1.0)]
    second = [*arm("b", [0.0] * 6), score("b", "t6", 0.0, fate="error"),
              score("b", "t7", 0.0, fate="defective")]  # fmt: skip
    found = compare_arms(first, second)
    assert found is not None
    assert (found.tasks, found.left_out, found.defective, found.errors) == (6, 2, 1, (0, 1))
    # Had the error been a success, the two arms would be even on that task.
    assert (found.worst_case, found.best_case) == (pytest.approx(6 / 7), 1.0)
    said = found.sentence()
    assert "2 tasks judged in only one arm left out" in said
    assert "1 task with a defective gold query left out" in said
    assert "1 unjudged trial, so at worst +0.86 and at best +1.00" in said


def test_nothing_in_common_is_not_a_comparison() -> None:
    assert compare_arms(arm("a", [1.0]), []) is None
    assert compare_arms(arm("a", [1.0]), [score("b", "t0", 0.0, fate="error")]) is None


def test_holm_is_over_what_could_be_tested() -> None:
    family = [compare_arms(arm("a", [1.0] * n + [0.0] * (10 - n)), arm("b", [0.0] * 10))
              for n in (5, 6, 9)]  # fmt: skip
    tested = [c for c in family if c is not None]
    untested = replace(tested[0], p=math.nan, p_holm=math.nan)
    five, _six, nine, none = adjust([*tested, untested])
    assert five.family == 3
    assert nine.p_holm == pytest.approx(3 * nine.p)
    assert five.p < 0.05
    assert five.p_holm == five.p, "the largest stands as it is"
    assert "after Holm" in nine.sentence()
    assert "no test" in none.sentence()
    assert not none.resolved


def test_what_is_still_to_come_belongs_to_the_family() -> None:
    found = compare_arms(arm("a", [1.0] * 6 + [0.0] * 4), arm("b", [0.0] * 10))
    assert found is not None
    assert adjust([found])[0].resolved
    (later,) = adjust([found], to_come=9)
    assert (later.family, later.p_holm) == (10, pytest.approx(10 * found.p))
    assert not later.resolved


def test_trials_that_are_missing_yet_resolve_nothing() -> None:
    first, second = arm("a", [1.0] * 10), arm("b", [0.0] * 10)
    part = compare_arms(first, second, planned=(10, 12))
    assert part is not None
    assert (part.missing, part.verdict, part.resolved) == (2, "incomplete", False)
    assert "a is better" not in part.sentence()
    whole = compare_arms(first, second, planned=(10, 10))
    assert whole is not None
    assert whole.verdict == "resolved"


def test_a_p_value_alone_resolves_nothing() -> None:
    found = compare_arms(arm("a", [1.0] * 5 + [0.0] * 5), arm("b", [0.0] * 10))
    assert found is not None
    assert found.resolved
    assert not replace(found, p_holm=0.06).resolved
    assert not replace(found, low=-0.01).resolved


def test_json_holds_the_verdict_and_no_nan() -> None:
    stream = [score(name, f"t{n}", 1.0, step=n) for name in "ab" for n in range(3)]
    found = compare_arms(stream[:3], stream[3:])
    assert found is not None
    reported = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert (reported["unit"], reported["p"], reported["low"], reported["resolved"]) == (
        "permutation",
        None,
        None,
        False,
    )
    assert "unresolved" in reported["sentence"]


VALUES = st.lists(
    st.tuples(*[st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=1, max_size=3)] * 2),
    min_size=1,
    max_size=12,
)


@settings(max_examples=25, deadline=None)
@given(VALUES, st.sampled_from(["strict", "f1"]))
def test_swapping_the_arms_mirrors_the_comparison(values: list[Any], metric: Any) -> None:
    arms = [
        [score(name, f"t{n}", v, seed=s) for n, pair in enumerate(values)
         for s, v in enumerate(pair[side])]
        for side, name in enumerate("ab")
    ]  # fmt: skip
    found, mirror = (compare_arms(*pair, metric=metric) for pair in (arms, arms[::-1]))
    assert found is not None
    assert mirror is not None
    assert mirror.difference == pytest.approx(-found.difference)
    assert mirror.p == pytest.approx(found.p, abs=0.02)
    # Ends of a bootstrap differ by the chance of its draws.
    assert mirror.low == pytest.approx(-found.high, abs=0.06)
    assert (mirror.worst_case, mirror.first_better) == (
        pytest.approx(-found.best_case),
        found.second_better,
    )
    assert found.resolved == (found.p < 0.05 and (found.low > 0 or found.high < 0))
    assert ("unresolved" in found.sentence()) != found.resolved
