"""Honest numbers for small n."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

__all__ = ["Interval", "McNemar", "mcnemar_midp", "median_and_p95", "wilson"]


@dataclass(frozen=True)
class Interval:
    """A rate with its 95 % interval.

    Attributes:
        rate: Successes divided by trials; NaN for no trials.
        low: Lower end.
        high: Upper end.
    """

    rate: float
    low: float
    high: float


@dataclass(frozen=True)
class McNemar:
    """A paired comparison of two arms on the same tasks, one run a task.

    Attributes:
        n: Tasks that both arms have.
        only_first: Tasks that only the first arm solved.
        only_second: Tasks that only the second arm solved.
        difference: Rate of the first minus rate of the second.
        p: Two-sided mid-p value.
    """

    n: int
    only_first: int
    only_second: int
    difference: float
    p: float


def wilson(successes: int, trials: int, confidence: float = 0.95) -> Interval:
    """Return a rate with its Wilson score interval (Wilson 1927), from SciPy.

    Examples:
        >>> i = wilson(4, 30)
        >>> round(i.rate, 3), round(i.low, 3), round(i.high, 3)
        (0.133, 0.053, 0.297)
    """
    if trials == 0:
        return Interval(math.nan, 0.0, 1.0)
    found = stats.binomtest(successes, trials).proportion_ci(confidence, method="wilson")
    return Interval(successes / trials, float(found.low), float(found.high))


def mcnemar_midp(first: Sequence[bool], second: Sequence[bool]) -> McNemar:
    """Compare two arms task by task with McNemar's mid-p test (Fagerland et al. 2013).

    Args:
        first: Success of the first arm by task.
        second: Success of the second arm on the same tasks, in the same order.

    Examples:
        >>> m = mcnemar_midp([True] * 6 + [False] * 4, [True, *[False] * 9])
        >>> m.only_first, m.only_second, round(m.p, 4)
        (5, 0, 0.0312)
    """
    if len(first) != len(second):
        raise ValueError("the arms must have the same tasks")
    only_first = sum(a and not b for a, b in zip(first, second, strict=True))
    only_second = sum(b and not a for a, b in zip(first, second, strict=True))
    n, discordant = len(first), only_first + only_second
    p = 1.0
    if discordant:
        exact = stats.binomtest(only_first, discordant, 0.5).pvalue
        p = float(exact - stats.binom.pmf(only_first, discordant, 0.5))
    difference = (only_first - only_second) / n if n else math.nan
    return McNemar(n, only_first, only_second, difference, min(1.0, p))


def median_and_p95(values: Sequence[float]) -> tuple[float, float]:
    """Return the median and the 95th percentile; NaN for no values.

    Examples:
        >>> median_and_p95([1.0, 2.0, 10.0])
        (2.0, 9.2)
    """
    if not values:
        return math.nan, math.nan
    median, p95 = np.percentile(np.asarray(values, dtype=float), [50, 95])
    return float(median), round(float(p95), 9)
