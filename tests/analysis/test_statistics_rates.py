"""Intervals of rates, against published tables."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from reasoningbank.analysis.statistics import clopper_pearson, wilson

# Newcombe 1998, Statistics in Medicine 17:857, table I: method 3 (score), method 5 (exact).
NEWCOMBE = [
    (81, 263, (0.2553, 0.3662), (0.2527, 0.3676)),
    (15, 148, (0.0624, 0.1605), (0.0578, 0.1617)),
    (0, 20, (0.0, 0.1611), (0.0, 0.1684)),
    (1, 29, (0.0061, 0.1718), (0.0009, 0.1776)),
]


@pytest.mark.parametrize(("successes", "n", "score", "exact"), NEWCOMBE)
def test_intervals_as_published(
    successes: int, n: int, score: tuple[float, float], exact: tuple[float, float]
) -> None:
    for found, published in (
        (wilson(successes, n), score),
        (clopper_pearson(successes, n), exact),
    ):
        assert (round(found.low, 4), round(found.high, 4)) == published


@given(st.integers(0, 60), st.integers(1, 60))
def test_the_exact_interval_holds_and_both_are_mirrored(successes: int, n: int) -> None:
    successes = min(successes, n)
    for make in (wilson, clopper_pearson):
        found, mirror = make(successes, n), make(n - successes, n)
        assert 0 <= found.low <= found.rate <= found.high <= 1
        assert mirror.low == pytest.approx(1 - found.high, abs=1e-9)
    exact = clopper_pearson(successes, n)
    # Its ends are the rates at which so extreme a count has a chance of 2.5 %.
    if successes:
        assert stats.binom.sf(successes - 1, n, exact.low) == pytest.approx(0.025, rel=1e-6)
    if successes < n:
        assert stats.binom.cdf(successes, n, exact.high) == pytest.approx(0.025, rel=1e-6)


@pytest.mark.parametrize("n", [10, 20, 40])
def test_coverage_by_enumeration(n: int) -> None:
    # Agresti and Coull 1998: exact intervals never cover too rarely, Wilson's do so on average.
    rates = np.linspace(0.02, 0.98, 97)
    counts = np.arange(n + 1)
    chance = stats.binom.pmf(counts[:, None], n, rates)
    coverage = {}
    for make in (wilson, clopper_pearson):
        ends = [make(int(k), n) for k in counts]
        low, high = (np.array([getattr(e, side) for e in ends]) for side in ("low", "high"))
        inside = (low[:, None] <= rates) & (rates <= high[:, None])
        coverage[make] = (chance * inside).sum(axis=0)
    assert coverage[clopper_pearson].min() >= 0.95
    assert 0.945 < coverage[wilson].mean() < 0.965


def test_of_nothing_is_everything() -> None:
    for found in (wilson(0, 0), clopper_pearson(0, 0)):
        assert math.isnan(found.rate)
        assert (found.low, found.high) == (0.0, 1.0)
