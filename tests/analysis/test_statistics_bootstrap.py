"""Means over tasks: coverage, and the cases beyond resampling."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from reasoningbank.analysis import statistics
from reasoningbank.analysis.statistics import (
    bootstrap_mean,
    clopper_pearson,
    sign_flip_p,
    t_mean,
    t_p,
)

BOTH = (-1.0, 1.0)


def test_the_same_numbers_give_the_same_interval() -> None:
    values = np.random.default_rng(1).uniform(-1, 1, 30).tolist()
    assert bootstrap_mean(values, bounds=BOTH) == bootstrap_mean(values, bounds=BOTH)
    other = bootstrap_mean(values, bounds=BOTH, seed=1)
    assert other.low == pytest.approx(bootstrap_mean(values, bounds=BOTH).low, abs=0.02)


def test_for_many_normal_values_it_is_students_interval() -> None:
    values = np.random.default_rng(2).normal(0.1, 0.2, 200)
    found = bootstrap_mean(values.tolist(), bounds=BOTH)
    half = stats.t.ppf(0.975, 199) * values.std(ddof=1) / math.sqrt(200)
    assert found.low == pytest.approx(values.mean() - half, abs=0.002)
    assert found.high == pytest.approx(values.mean() + half, abs=0.002)
    assert found.sd == pytest.approx(values.std(ddof=1))


def _runs_of_three(rng: np.random.Generator, n: int) -> list[float]:
    share = rng.beta(0.6, 0.8, n)
    return ((rng.binomial(3, share) - rng.binomial(3, 0.6 * share)) / 3).tolist()


def _f1(rng: np.random.Generator, n: int) -> list[float]:
    sign = np.where(rng.random(n) < 0.75, 1, -1)
    return np.where(rng.random(n) < 0.5, 0, rng.beta(0.5, 1.5, n) * sign).tolist()


def _rare(rng: np.random.Generator, n: int) -> list[float]:
    share = np.where(rng.random(n) < 0.25, rng.beta(1, 1, n), 0)
    return (rng.binomial(3, share) / 3).tolist()


@pytest.mark.parametrize("n", [8, 20])
@pytest.mark.parametrize(
    ("draw", "mean"),
    [
        (_runs_of_three, 0.4 * 0.6 / 1.4),
        (_f1, 0.5 * 0.25 * 0.5),
        (_rare, 0.125),
    ],
)
def test_it_covers_what_tasks_are_like(
    draw: Callable[[np.random.Generator, int], list[float]],
    mean: float,
    n: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(statistics, "RESAMPLES", 999)
    rng = np.random.default_rng(3)
    inside = []
    for seed in range(500):
        found = bootstrap_mean(draw(rng, n), bounds=BOTH, seed=seed)
        inside.append(found.low <= mean <= found.high)
    # 92 % and more of 1,000 draws were measured (docs/statistics.md); two and a half standard
    # errors below. BCa has 76 % (F1) and 88 % (three runs) at n = 8.
    assert np.mean(inside) > 0.92 - 2.5 * math.sqrt(0.92 * 0.08 / 500)


def test_where_one_unit_deviates_the_exact_bound_of_a_share_stands() -> None:
    found = bootstrap_mean([1.0] + [0.0] * 19, bounds=BOTH)
    assert (found.method, found.deviating) == ("exact bound", 1)
    assert found.high == pytest.approx(clopper_pearson(1, 20).high)
    assert found.low == pytest.approx(-clopper_pearson(0, 20).high)
    alike = bootstrap_mean([1.0] * 10, bounds=(0.0, 1.0))
    assert (alike.low, alike.high) == (pytest.approx(clopper_pearson(10, 10).low), 1.0)


def test_less_seen_is_never_narrower() -> None:
    # A single small difference must not make the interval shrink to what was seen.
    nothing, little = ([0.0] * 20, [0.05] + [0.0] * 19)
    widths = [(m.high - m.low) for m in (bootstrap_mean(v, bounds=BOTH) for v in (nothing, little))]
    assert widths[1] > widths[0] > 0.3


def test_groups_of_unequal_size_weigh_by_their_tasks() -> None:
    rng = np.random.default_rng(4)
    sizes = rng.integers(1, 5, 40).astype(float)
    sums = sizes * rng.uniform(-0.2, 0.6, 40)
    found = bootstrap_mean(sums.tolist(), sizes.tolist(), bounds=BOTH)
    assert found.value == pytest.approx(sums.sum() / sizes.sum())
    # The ratio's standard error by linearisation (Cochran 1977, section 6).
    residuals = sums - found.value * sizes
    error = residuals.std(ddof=1) / math.sqrt(40) / sizes.mean()
    assert found.high - found.low == pytest.approx(2 * stats.t.ppf(0.975, 39) * error, rel=0.1)
    # Fewer effective units bound less than as many of one size would.
    unequal = bootstrap_mean([0.0] * 4, [1.0, 1.0, 1.0, 9.0], bounds=BOTH)
    assert unequal.high > bootstrap_mean([0.0] * 4, bounds=BOTH).high


def test_few_and_no_units() -> None:
    few = bootstrap_mean([0.1, 0.3, 0.2, 0.5], bounds=BOTH)
    expected = stats.t.interval(0.95, 3, 0.275, stats.sem([0.1, 0.3, 0.2, 0.5]))
    assert (few.low, few.high) == (pytest.approx(expected[0]), pytest.approx(expected[1]))
    one = bootstrap_mean([0.5], bounds=BOTH)
    assert one.low < -0.9
    assert one.high > 0.9
    none = bootstrap_mean([], bounds=BOTH)
    assert math.isnan(none.value)
    assert (none.low, none.high) == BOTH


@settings(max_examples=30, deadline=None)
@given(st.lists(st.sampled_from([-1.0, -0.5, 0.0, 1 / 3, 1.0]), min_size=1, max_size=25))
def test_an_interval_holds_its_mean_and_stays_in_bounds(values: list[float]) -> None:
    found = bootstrap_mean(values, bounds=BOTH)
    assert -1 <= found.low <= found.value + 1e-9
    assert found.value - 1e-9 <= found.high <= 1


@pytest.mark.parametrize("n", [5, 12, 40])
def test_sign_flips_as_scipy_has_them(n: int) -> None:
    values = np.random.default_rng(n).normal(0.3, 1, n)
    expected = stats.permutation_test(
        (values,), np.sum, permutation_type="samples", vectorized=True, n_resamples=9999, rng=0
    ).pvalue
    assert sign_flip_p(values.tolist()) == pytest.approx(expected, abs=0 if n < 14 else 0.02)


def test_sign_flips_of_fishers_example() -> None:
    # Darwin's maize, Fisher 1935, section 21: 1,726 of 32,768 ways are as extreme, 863 each way.
    darwin = [49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48]
    assert sign_flip_p([d / 100 for d in darwin]) == pytest.approx(1726 / 32768, abs=0.006)
    assert sign_flip_p([0.2] * 5) == 2 / 32
    assert sign_flip_p([0.2]) == sign_flip_p([]) == sign_flip_p([0.0] * 30) == 1.0
    # Sums that differ by rounding alone are ties.
    assert sign_flip_p([0.1, 0.2, -0.3]) == 1.0


def test_the_level_of_the_sign_flip_test() -> None:
    rng = np.random.default_rng(5)
    rejected = [
        sign_flip_p((rng.choice([-1, 0, 1], 12) * rng.random(12)).tolist()) < 0.05
        for _ in range(600)
    ]
    assert np.mean(rejected) < 0.05 + 2.5 * math.sqrt(0.05 * 0.95 / 600)


def test_replicates_have_students_interval() -> None:
    values = [0.10, 0.25, 0.15, 0.30]
    found = t_mean(values)
    expected = stats.t.interval(0.95, 3, np.mean(values), stats.sem(values))
    assert (found.low, found.high) == (pytest.approx(expected[0]), pytest.approx(expected[1]))
    assert t_p(values) == pytest.approx(stats.ttest_1samp(values, 0).pvalue)
    for no_spread in ([0.2], [0.2, 0.2], []):
        assert math.isnan(t_mean(no_spread).low)
        assert math.isnan(t_p(no_spread))
