"""Two arms on the same tasks, one run a task, right or wrong: McNemar and Tango."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import scipy

from reasoningbank.analysis.statistics.rates import Interval

__all__ = ["McNemar", "mcnemar_midp", "tango"]

#: Closer to the observed difference lies no end of an interval.
_NEAR = 1e-9


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
        seen = float(scipy.stats.binom.pmf(only_first, discordant, 0.5))
        exact = float(scipy.stats.binomtest(only_first, discordant, 0.5).pvalue)
        # At a tie what was seen lies in both tails and is taken off once for both.
        p = 1.0 - seen / 2 if only_first == only_second else exact - seen
    difference = (only_first - only_second) / n if n else math.nan
    return McNemar(n, only_first, only_second, difference, min(1.0, p))


def tango(only_first: int, only_second: int, n: int, confidence: float = 0.95) -> Interval:
    """Return the difference of two paired rates with Tango's score interval (1998).

    It is the set of differences that McNemar's score test does not reject: it stays within
    [-1, 1] and has a width also where no task tells the arms apart.

    Args:
        only_first: Tasks that only the first arm solved.
        only_second: Tasks that only the second arm solved.
        n: All tasks.
        confidence: Level of the interval.

    Examples:
        >>> i = tango(1, 7, 21)
        >>> round(i.rate, 3), round(i.low, 3), round(i.high, 3)
        (-0.286, -0.517, -0.026)
    """
    if min(only_first, only_second) < 0 or only_first + only_second > n:
        raise ValueError("the discordant tasks must be among the n tasks")
    if n == 0:
        return Interval(math.nan, -1.0, 1.0, "Tango")
    critical = float(scipy.stats.norm.ppf((1 + confidence) / 2))
    observed = (only_first - only_second) / n

    def excess(delta: float) -> float:
        # Positive where the score test rejects `delta`; continuous also where the variance is 0.
        distance = only_first - only_second - n * delta
        return distance**2 - critical**2 * _null_variance(only_first, only_second, n, delta)

    # Where no task tells the arms apart the excess is 0 at the observed difference, and that
    # is no end of the interval.
    low = -1.0 if excess(-1.0) <= 0 else _root(excess, -1.0, observed - _NEAR)
    high = 1.0 if excess(1.0) <= 0 else _root(excess, observed + _NEAR, 1.0)
    return Interval(observed, low, high, "Tango")


def _root(function: Callable[[float], float], low: float, high: float) -> float:
    return float(scipy.optimize.brentq(function, low, high, xtol=1e-12))


def _null_variance(only_first: int, only_second: int, n: int, delta: float) -> float:
    # Of the difference in counts, with the most likely rate of `only_second` given `delta`.
    b = (2 * n - only_first + only_second) * delta - only_first - only_second
    root = b * b + 8 * n * only_second * delta * (1 - delta)
    rate = (math.sqrt(max(root, 0.0)) - b) / (4 * n)
    return n * max(2 * rate + delta * (1 - delta), 0.0)
