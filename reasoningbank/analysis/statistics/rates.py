"""Rates with intervals that hold for few trials."""

from __future__ import annotations

import math
from dataclasses import dataclass

import scipy

__all__ = ["Interval", "clopper_pearson", "wilson"]


@dataclass(frozen=True)
class Interval:
    """A rate or a mean with its interval.

    Attributes:
        rate: The estimate: a rate, or the mean of a metric; NaN for no trials.
        low: Lower end; NaN where no interval can be given.
        high: Upper end; NaN where no interval can be given.
        method: How the interval was made, for people.
    """

    rate: float
    low: float
    high: float
    method: str = ""


def wilson(successes: int, trials: int, confidence: float = 0.95) -> Interval:
    """Return a rate with its Wilson score interval (Wilson 1927), from SciPy.

    It takes trials as independent: right for one run a task, too narrow for several.

    Examples:
        >>> i = wilson(4, 30)
        >>> round(i.rate, 3), round(i.low, 3), round(i.high, 3)
        (0.133, 0.053, 0.297)
    """
    return _proportion(successes, trials, confidence, "wilson", "Wilson")


def clopper_pearson(successes: int, trials: int, confidence: float = 0.95) -> Interval:
    """Return a rate with its exact interval (Clopper and Pearson 1934), from SciPy.

    It covers at least as often as it says, and is wider than Wilson's for that.

    Examples:
        >>> i = clopper_pearson(0, 10)
        >>> i.low, round(i.high, 4)
        (0.0, 0.3085)
    """
    return _proportion(successes, trials, confidence, "exact", "exact")


def _proportion(
    successes: int, trials: int, confidence: float, method: str, label: str
) -> Interval:
    if trials == 0:
        return Interval(math.nan, 0.0, 1.0, label)
    found = scipy.stats.binomtest(successes, trials).proportion_ci(confidence, method=method)
    return Interval(successes / trials, float(found.low), float(found.high), label)
