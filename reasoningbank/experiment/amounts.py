"""Totals foretold from a few that were measured: expected, with an interval; or a bound."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

__all__ = ["NOTHING", "Amount", "Spread", "predict", "spread_of"]


@dataclass(frozen=True)
class Amount:
    """How much of one thing several trials will take together.

    Attributes:
        low: Lower end of the 90 % prediction interval; None where nothing was measured.
        expected: The expected total; None where nothing was measured.
        high: Upper end; where nothing was measured an upper bound, and None if there is none.
    """

    low: float | None = None
    expected: float | None = None
    high: float | None = None

    @property
    def is_bound(self) -> bool:
        """Whether it is an upper bound and no estimate."""
        return self.expected is None and self.high is not None

    def __add__(self, other: Amount) -> Amount:
        """Return the sum; its interval is as wide as if all erred in the same direction."""
        return Amount(
            *(
                None if a is None or b is None else a + b
                for a, b in zip(
                    (self.low, self.expected, self.high),
                    (other.low, other.expected, other.high),
                    strict=True,
                )
            )
        )

    def __mul__(self, factor: float) -> Amount:
        """Return so many times as much."""
        ends = (self.low, self.expected, self.high)
        return Amount(*(None if end is None else end * factor for end in ends))


NOTHING = Amount(0.0, 0.0, 0.0)


@dataclass(frozen=True)
class Spread:
    """Median and 95th percentile of what one trial took; None where nothing was measured."""

    median: float | None = None
    p95: float | None = None


def predict(values: Sequence[float], n: int, most: float | None) -> Amount:
    """Return the total of `n` further draws of what gave `values`, each at most `most`.

    The interval is the 90 % prediction interval by Student's t (Hahn and Meeker 1991) for a sum,
    with mean and standard deviation s of m values: n · mean ± t · s · sqrt(n + n²/m).

    Args:
        values: What was measured.
        n: How many are to come.
        most: The most that one can be; None where nothing limits it.

    Examples:
        >>> predict([2.0, 4.0, 3.0, 3.0], 10, None).expected
        30.0
        >>> predict([], 10, 5.0)
        Amount(low=None, expected=None, high=50.0)
    """
    if n == 0:
        return NOTHING
    ceiling = None if most is None else n * most
    if not values:
        return Amount(high=ceiling)
    if most is not None:
        values = [min(value, most) for value in values]
    m, mean = len(values), float(np.mean(values))
    if m == 1:
        return Amount(0.0, n * mean, ceiling)
    # A third of a second to import, which no other command should wait for.
    from scipy import stats

    half = float(stats.t.ppf(0.95, m - 1) * np.std(values, ddof=1) * math.sqrt(n + n * n / m))
    low, high = max(n * min(values), n * mean - half), n * mean + half
    return Amount(low, n * mean, high if ceiling is None else min(high, ceiling))


def spread_of(values: Sequence[float]) -> Spread:
    """Return median and 95th percentile of what was measured."""
    if not values:
        return Spread()
    median, p95 = np.percentile(np.asarray(values, dtype=float), [50, 95])
    return Spread(float(median), float(p95))
