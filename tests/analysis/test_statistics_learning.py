"""Learning curves: the replicate is an order."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from reasoningbank.analysis.statistics import learning_curve


def orders(table: np.ndarray) -> dict[int, dict[int, float]]:
    return {row: dict(enumerate(values.tolist())) for row, values in enumerate(table)}


def test_mean_and_band_are_over_orders() -> None:
    table = np.random.default_rng(8).integers(0, 2, (5, 12)).astype(float)
    curve = learning_curve(orders(table))
    so_far = np.cumsum(table, axis=1) / np.arange(1, 13)
    assert curve.mean == pytest.approx(so_far.mean(axis=0))
    last = so_far[:, -1]
    low, high = stats.t.interval(0.95, 4, last.mean(), stats.sem(last))
    assert (curve.low[-1], curve.high[-1]) == (
        pytest.approx(max(low, 0)),
        pytest.approx(min(high, 1)),
    )
    assert (curve.permutations, curve.steps) == (5, tuple(range(12)))


def test_a_window_forgets() -> None:
    table = np.random.default_rng(9).random((3, 10))
    curve = learning_curve(orders(table), window=4)
    assert curve.mean[9] == pytest.approx(table[:, 6:10].mean())
    assert curve.mean[2] == pytest.approx(table[:, :3].mean())
    assert learning_curve(orders(table), window=10).mean[9] == pytest.approx(table.mean())
    with pytest.raises(ValueError, match="window"):
        learning_curve(orders(table), window=0)


def test_one_order_has_no_band() -> None:
    curve = learning_curve({7: {0: 1.0, 1: 0.0}})
    assert curve.mean == (1.0, 0.5)
    assert all(math.isnan(end) for end in (*curve.low, *curve.high))


def test_a_step_that_was_not_judged_is_left_out_of_its_order() -> None:
    curve = learning_curve({0: {0: 1.0, 2: 0.0}, 1: {1: 1.0, 2: 1.0}})
    assert curve.mean == pytest.approx((1.0, 1.0, 0.75))
    assert learning_curve({}).steps == ()
