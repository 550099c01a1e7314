"""Summaries count what they say they count."""

from __future__ import annotations

import math

import pytest
from scipy import stats

from reasoningbank.analysis import mcnemar_midp, median_and_p95, summarise, wilson
from reasoningbank.experiment import TrialKey, TrialRecord
from reasoningbank.trajectory import Trajectory, Usage


def trial(arm: str, task: str, strict: bool | None, status: str = "submitted") -> TrialRecord:
    verdict = None if strict is None else {"strict": strict, "f1": 1.0 if strict else 0.5}
    return TrialRecord(
        key=TrialKey(arm, task, 0),
        question="?",
        complexity="simple",
        form="SELECT",
        group="g",
        status=status,  # type: ignore[arg-type]
        sparql="ASK {}",
        answer="",
        error="",
        verdict=verdict,
        usage=Usage(prompt_tokens=100, completion_tokens=20, seconds=2.0),
        trajectory=Trajectory(),
        started="2026-01-01T00:00:00+00:00",
        model={},
    )


def test_infrastructure_errors_are_told_apart_and_bounded() -> None:
    trials = [trial("a", "1", True), trial("a", "2", False), trial("a", "3", None, "error")]
    (arm,) = summarise(trials).arms
    assert (arm.trials, arm.judged, arm.strict) == (3, 2, 1)
    assert arm.rate.rate == 0.5
    assert (arm.worst_case, arm.best_case) == (pytest.approx(1 / 3), pytest.approx(2 / 3))
    assert arm.f1 == 0.75
    assert arm.statuses == {"submitted": 2, "error": 1}
    assert arm.tokens == (120.0, 120.0)


def test_the_comparison_uses_only_tasks_that_both_arms_have_judged() -> None:
    first = [trial("a", str(n), True) for n in range(6)]
    second = [trial("b", str(n), False) for n in range(5)] + [trial("b", "5", None, "error")]
    summary = summarise([*first, *second], ["b", "a"], ("a", "b"))
    assert [arm.arm for arm in summary.arms] == ["b", "a"]
    assert summary.paired is not None
    assert (summary.paired.n, summary.paired.only_first, summary.paired.only_second) == (5, 5, 0)


def test_no_comparison_where_an_arm_has_no_trials() -> None:
    assert summarise([trial("a", "1", True)], comparison=("a", "b")).paired is None


def test_wilson_against_published_values() -> None:
    # Newcombe 1998, Statistics in Medicine 17:857, table I, method 3.
    for successes, n, low, high in [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605),
                                    (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)]:  # fmt: skip
        interval = wilson(successes, n)
        assert (round(interval.low, 4), round(interval.high, 4)) == (low, high)


def test_wilson_of_nothing_is_everything() -> None:
    interval = wilson(0, 0)
    assert math.isnan(interval.rate)
    assert (interval.low, interval.high) == (0.0, 1.0)


def test_mcnemar_midp_is_the_exact_p_less_half_the_observed_point_twice() -> None:
    first = [True] * 9 + [False] * 3 + [True] * 8
    second = [False] * 9 + [True] * 3 + [True] * 8
    got = mcnemar_midp(first, second)
    by_hand = 2 * stats.binom.cdf(2, 12, 0.5) + stats.binom.pmf(3, 12, 0.5)
    assert got.p == pytest.approx(by_hand)
    assert mcnemar_midp(second, first).p == pytest.approx(by_hand)
    assert mcnemar_midp([True], [True]).p == 1.0


def test_no_values_have_no_median() -> None:
    assert all(math.isnan(value) for value in median_and_p95([]))
