"""Learning curves: the replicate is an order in which the tasks were met."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from reasoningbank.analysis.statistics.bootstrap import t_mean

__all__ = ["LearningCurve", "learning_curve"]


@dataclass(frozen=True)
class LearningCurve:
    """A metric along a stream of tasks.

    Attributes:
        steps: Places in the stream, from 0.
        mean: Mean over orders at each step.
        low: Lower end of its band; NaN with one order.
        high: Upper end of its band; NaN with one order.
        orders: How many orders.
        window: How many of the last tasks are averaged at each step; None for all so far.
    """

    steps: tuple[int, ...]
    mean: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    orders: int
    window: int | None

    @property
    def quarters(self) -> tuple[float, ...]:
        """The mean after each quarter of the stream; NaN where it has no step."""
        n = len(self.mean)
        if not n:
            return (math.nan,) * 4
        return tuple(self.mean[max(0, n * part // 4 - 1)] for part in range(1, 5))


def learning_curve(
    values: Mapping[int, Mapping[int, float]],
    *,
    window: int | None = None,
    bounds: tuple[float, float] = (0.0, 1.0),
    confidence: float = 0.95,
) -> LearningCurve:
    """Average a metric along several orders of a stream.

    Within an order, each step has the mean of the last `window` tasks. These means are averaged
    over orders; the band is Student's over orders, since what one learns from a task depends on
    all before it, and only whole orders are independent. With one order there is no band.

    Args:
        values: By order (its seed), by step, the metric of the task met there; a step that
            could not be judged is left out.
        window: How many tasks to average; None for all so far.
        bounds: Least and largest possible value; the band is cut there.
        confidence: Level of the band.

    Examples:
        >>> c = learning_curve({0: {0: 0.0, 1: 1.0}, 1: {0: 0.0, 1: 0.0}})
        >>> c.mean, c.orders
        ((0.0, 0.25), 2)
    """
    if window is not None and window < 1:
        raise ValueError("window must be at least 1")
    steps = 1 + max((step for order in values.values() for step in order), default=-1)
    table = np.full((len(values), steps), math.nan)
    for row, order in enumerate(sorted(values)):
        for step, value in values[order].items():
            table[row, step] = value
    known = ~np.isnan(table)
    total = _running(np.where(known, table, 0.0), window)
    count = _running(known.astype(float), window)
    means = np.divide(total, count, out=np.full_like(total, math.nan), where=count > 0)
    points = [t_mean(column[~np.isnan(column)].tolist(), confidence) for column in means.T]
    return LearningCurve(
        steps=tuple(range(steps)),
        mean=tuple(p.value for p in points),
        low=tuple(_cut(p.low, bounds) for p in points),
        high=tuple(_cut(p.high, bounds) for p in points),
        orders=len(values),
        window=window,
    )


def _running(
    table: np.ndarray[tuple[int, int], np.dtype[np.float64]], window: int | None
) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    summed = np.cumsum(table, axis=1)
    if window is not None and window < table.shape[1]:
        summed[:, window:] -= summed[:, :-window].copy()
    return summed


def _cut(value: float, bounds: tuple[float, float]) -> float:
    return value if math.isnan(value) else min(max(value, bounds[0]), bounds[1])
