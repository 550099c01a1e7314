"""Statistics for small samples: functions of numbers, independent of records.

Runs of one task are not independent, nor are tasks that share a template. Where a task has several
runs, whole units (tasks, or groups of tasks) are resampled.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import scipy

#: Level of every test, and the power for detectable differences.
ALPHA, POWER = 0.05, 0.8
#: The quantile at which a 95% CI ends above.
_UPPER = 1 - ALPHA / 2
#: Resamples of a bootstrap or a randomisation test.
RESAMPLES = 9999
#: With fewer units the sign-flip test has no p-value below 0.05 and a bootstrap sees too little
#: of the spread.
FEWEST = 6
#: Numbers held at a time while resampling.
_BATCH = 2_000_000
#: Values closer than this are equal.
_EQUAL = 1e-9


@dataclass(frozen=True)
class Interval:
    """A rate or a mean with its confidence interval."""

    rate: float  #: The estimate; NaN without trials
    low: float  #: Lower bound; NaN where no interval can be given
    high: float  #: Upper bound; NaN where no interval can be given
    method: str = ""  #: Name of the method


@dataclass(frozen=True)
class UnitMean(Interval):
    """A mean over units."""

    sd: float = math.nan
    units: int = 0
    deviating: int | None = None  #: Units that differ from most, if these are few


@dataclass(frozen=True)
class McNemar:
    """A paired comparison of two arms with one run per task."""

    n: int  #: Tasks that both arms have
    only_first: int  #: Tasks that only the first arm solved
    only_second: int  #: Tasks that only the second arm solved
    difference: float  #: Rate of the first minus rate of the second
    p: float  #: Two-sided mid-p value


@dataclass(frozen=True)
class LearningCurve:
    """A metric along a stream of tasks."""

    steps: tuple[int, ...]  #: Positions in the stream, from 0
    mean: tuple[float, ...]  #: Mean over task permutations at each step
    low: tuple[float, ...]  #: Lower bound of the confidence band; NaN with one permutation
    high: tuple[float, ...]  #: Upper bound of the confidence band; NaN with one permutation
    permutations: int  #: Number of task permutations

    @property
    def quarters(self) -> tuple[float, ...]:
        """The mean after each quarter of the stream; NaN for an empty stream."""
        n = len(self.mean)
        if not n:
            return (math.nan,) * 4
        return tuple(self.mean[max(0, n * part // 4 - 1)] for part in range(1, 5))


def wilson(successes: int, trials: int) -> Interval:
    """Return a rate with its Wilson score interval (Wilson 1927), from SciPy.

    It takes trials as independent: correct for one run per task, too narrow for several.
    """
    return _proportion(successes, trials, "Wilson")


def clopper_pearson(successes: int, trials: int) -> Interval:
    """Return a rate with its exact interval (Clopper and Pearson 1934), from SciPy.

    It covers at least as often as it says and is therefore wider than Wilson's.
    """
    return _proportion(successes, trials, "exact")


def median_and_p95(values: Sequence[float]) -> tuple[float, float]:
    """Return the median and the 95th percentile; NaN without values."""
    if not values:
        return math.nan, math.nan
    median, p95 = np.percentile(np.asarray(values, dtype=float), [50, 95])
    return float(median), round(float(p95), 9)


def bootstrap_mean(
    sums: Sequence[float],
    sizes: Sequence[float] | None = None,
    *,
    bounds: tuple[float, float],
    seed: int = 0,
) -> UnitMean:
    """Return the mean over units with an expanded percentile bootstrap interval.

    The percentile interval is too narrow for few units. It is therefore taken at the level at
    which, for normal data, it is as wide as Student's (Hesterberg 2015, section 3.3); with 8 to 40
    tasks this covers better than BCa and the studentised bootstrap (docs/statistics.md).

    Resampling fails in two cases. If most units share one value and fewer than six differ, the
    interval is the exact bound on the shares of units above and below that value, and of units
    beyond 0: where an arm mostly wins, a tie is not counted as a loss. Otherwise, below six units,
    it is Student's interval.

    Args:
        sums: The sum of each unit's values.
        sizes: The number of each unit's values; 1 each if not given. The mean is the sum of
            `sums` divided by the sum of `sizes`.
        bounds: Least and largest possible value.
        seed: Seed of the draws: the same numbers give the same interval.
    """
    total = np.asarray(sums, dtype=float)
    size = np.ones_like(total) if sizes is None else np.asarray(sizes, dtype=float)
    n = len(total)
    if n == 0:
        return UnitMean(math.nan, *bounds, "no units")
    mean = float(total.sum() / size.sum())
    # By linearisation; for units of one size this is their standard deviation.
    residuals = (total - mean * size) / size.mean()
    sd = float(np.sqrt((residuals**2).sum() / (n - 1))) if n > 1 else math.nan
    rates = total / size
    found, counts = np.unique(np.round(rates, 9), return_counts=True)
    common = float(rates[np.abs(rates - found[counts.argmax()]).argmin()])
    # Where a bound counts units by the common value, and where by 0.
    least, most = min(common, 0.0), max(common, 0.0)
    above, positive = (int(np.sum(rates > x + _EQUAL)) for x in (common, most))
    below, negative = (int(np.sum(rates < x - _EQUAL)) for x in (common, least))
    if above + below < FEWEST and 2 * (above + below) < n:
        # Clopper and Pearson's upper bound at the effective number of units (Korn and Graubard
        # 1998), which equals their number if all have one size.
        effective = float(size.sum() ** 2 / (size**2).sum())
        up, over, down, under = (
            float(scipy.stats.beta.ppf(_UPPER, k / n * effective + 1, (1 - k / n) * effective))
            for k in (above, positive, below, negative)
        )
        low = common - down * (common - least) - under * (least - bounds[0])
        high = common + up * (most - common) + over * (bounds[1] - most)
        return UnitMean(mean, low, high, "exact bound", sd, n, above + below)
    if n < FEWEST:
        return _students(mean, sd, n, bounds)
    drawn = scipy.stats.bootstrap(
        (total, size),
        lambda sums, sizes, axis=-1: np.asarray(sums.sum(axis=axis) / sizes.sum(axis=axis)),
        paired=True,
        vectorized=True,
        n_resamples=RESAMPLES,
        batch=max(1, _BATCH // n),
        method="percentile",
        rng=np.random.default_rng(seed),
    ).bootstrap_distribution
    quantile = math.sqrt(n / (n - 1)) * scipy.stats.t.ppf(_UPPER, n - 1)
    tail = float(scipy.stats.norm.sf(quantile))
    low, high = (float(q) for q in np.quantile(drawn, [tail, 1 - tail]))
    return UnitMean(mean, low, high, "bootstrap", sd, n)


def t_mean(values: Sequence[float], bounds: tuple[float, float]) -> UnitMean:
    """Return the mean of a few replicates with Student's interval, cut at the bounds."""
    data = np.asarray(values, dtype=float)
    n = len(data)
    mean = float(data.mean()) if n else math.nan
    sd = float(data.std(ddof=1)) if n > 1 else math.nan
    if not sd > _EQUAL:
        why = "no spread seen" if n > 1 else "one replicate"
        return UnitMean(mean, math.nan, math.nan, why, sd, n)
    return _students(mean, sd, n, bounds)


def t_p(differences: Sequence[float]) -> float:
    """Return the two-sided p-value of the paired t test; NaN without spread."""
    data = np.asarray(differences, dtype=float)
    if len(data) < 2 or not data.std(ddof=1) > _EQUAL:
        return math.nan
    return float(scipy.stats.ttest_1samp(data, 0.0).pvalue)


def sign_flip_p(differences: Sequence[float]) -> float:
    """Return the two-sided p-value of the randomisation test of paired differences."""
    data = np.asarray(differences, dtype=float)
    data = data[np.abs(data) > _EQUAL]
    n = len(data)
    # Sums that differ only by rounding are equal.
    least = abs(data.sum()) - _EQUAL * np.abs(data).sum()
    if 2**n <= RESAMPLES:
        every = (np.arange(2**n)[:, None] >> np.arange(n)) & 1
        return float(np.mean(np.abs((2 * every - 1) @ data) >= least))
    rng, extreme, left = np.random.default_rng(0), 0, RESAMPLES
    while left:
        rows = min(left, max(1, _BATCH // n))
        signs = 2 * rng.integers(0, 2, (rows, n), dtype=np.int8) - 1
        extreme += int(np.sum(np.abs(signs @ data) >= least))
        left -= rows
    # The observed signs are one of the combinations.
    return (extreme + 1) / (RESAMPLES + 1)


def holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """Return p-values adjusted by Holm's step-down procedure (1979)."""
    order = np.argsort(p_values, kind="stable")
    steps = np.asarray(p_values, dtype=float)[order] * np.arange(len(order), 0, -1)
    adjusted = np.empty(len(order))
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1)
    return tuple(adjusted.tolist())


def mcnemar_midp(first: Sequence[bool], second: Sequence[bool]) -> McNemar:
    """Compare two arms task by task with McNemar's mid-p test (Fagerland et al. 2013).

    Args:
        first: Success of the first arm by task.
        second: Success of the second arm on the same tasks, in the same order.
    """
    only_first = sum(a and not b for a, b in zip(first, second, strict=True))
    only_second = sum(b and not a for a, b in zip(first, second, strict=True))
    n, discordant = len(first), only_first + only_second
    p = 1.0
    if discordant:
        seen = float(scipy.stats.binom.pmf(only_first, discordant, 0.5))
        exact = float(scipy.stats.binomtest(only_first, discordant, 0.5).pvalue)
        # In a tie the observation lies in both tails and is halved once for both.
        p = 1.0 - seen / 2 if only_first == only_second else exact - seen
    difference = (only_first - only_second) / n if n else math.nan
    return McNemar(n, only_first, only_second, difference, min(1.0, p))


def tango(only_first: int, only_second: int, n: int, confidence: float = 0.95) -> Interval:
    """Return the difference of two paired rates with Tango's score interval (1998)."""
    if min(only_first, only_second) < 0 or only_first + only_second > n:
        raise ValueError("the discordant tasks must be among the n tasks")
    if n == 0:
        return Interval(math.nan, -1.0, 1.0, "Tango")
    critical = float(scipy.stats.norm.ppf((1 + confidence) / 2))
    observed = (only_first - only_second) / n

    def excess(delta: float) -> float:
        # Positive where the score test rejects `delta`; continuous where the variance is 0.
        b = (2 * n - only_first + only_second) * delta - only_first - only_second
        root = b * b + 8 * n * only_second * delta * (1 - delta)
        rate = (math.sqrt(max(root, 0.0)) - b) / (4 * n)
        variance = n * max(2 * rate + delta * (1 - delta), 0.0)
        return (only_first - only_second - n * delta) ** 2 - critical**2 * variance

    # If no task separates the arms, the excess is 0 at the observed difference, which is not a
    # bound of the interval.
    bound = functools.partial(scipy.optimize.brentq, excess, xtol=1e-12)
    low = -1.0 if excess(-1.0) <= 0 else bound(-1.0, observed - _EQUAL)
    high = 1.0 if excess(1.0) <= 0 else bound(observed + _EQUAL, 1.0)
    return Interval(observed, low, high, "Tango")


def mcnemar_power(n: int, discordance: float, effect: float, *, midp: bool = True) -> float:
    """Return the exact power of the two-sided McNemar test: mid-p, or exact (the sign test)."""
    if not abs(effect) <= discordance <= 1:
        raise ValueError("effect must be at most discordance, and discordance at most 1")
    if n == 0 or discordance == 0:
        return 0.0
    # Counts of discordant tasks with negligible probability are left out.
    least, most = scipy.stats.binom.ppf([1e-12, 1 - 1e-12], n, discordance)
    m = np.arange(max(1, int(least)), int(most) + 1)
    # The p-value of k out of m is cdf(k-1) + cdf(k), or 2 cdf(k) if exact: the critical k is where
    # the cdf passes ALPHA / 2, or the one before.
    k = scipy.stats.binom.ppf(ALPHA / 2, m, 0.5)
    p = scipy.stats.binom.cdf(k - midp, m, 0.5) + scipy.stats.binom.cdf(k, m, 0.5)
    k = np.where(p < ALPHA, k, k - 1)
    share = (discordance + effect) / (2 * discordance)
    rejects = scipy.stats.binom.cdf(k, m, share) + scipy.stats.binom.sf(m - k - 1, m, share)
    return float(np.sum(scipy.stats.binom.pmf(m, n, discordance) * rejects))


def detectable_mcnemar(n: int, discordance: float, *, midp: bool = True) -> float | None:
    """Return the smallest difference of rates that the McNemar test, mid-p or exact, detects."""

    def missing(effect: float) -> float:
        return mcnemar_power(n, max(discordance, effect), effect, midp=midp) - POWER

    return None if missing(1.0) < 0 else float(scipy.optimize.brentq(missing, 0, 1, xtol=1e-6))


def detectable_mean(n: int, sd: float) -> float | None:
    """Return the smallest mean paired difference that Student's t test detects (Cohen 1988)."""
    if n < 2 or not sd > 0:
        return None
    critical = float(scipy.stats.t.ppf(_UPPER, n - 1))

    def missing(shift: float) -> float:
        # The other tail adds less than a millionth at this power.
        return float(scipy.stats.nct.sf(critical, n - 1, shift)) - POWER

    # A noncentrality of 20 is detected even with two observations.
    effect = float(scipy.optimize.brentq(missing, 0, 20)) * sd / math.sqrt(n)
    return effect if effect <= 1 else None


def pass_at_k(runs: int, successes: int, k: int) -> float:
    """Return the unbiased estimate that one of `k` runs succeeds (Chen et al. 2021)."""
    return 1 - pass_all_k(runs, runs - successes, k)


def pass_all_k(runs: int, successes: int, k: int) -> float:
    """Return the unbiased estimate that `k` of `k` runs succeed: pass^k (Yao et al. 2024)."""
    if not 0 <= successes <= runs or not 1 <= k <= runs:
        raise ValueError("needs 1 <= k <= runs and 0 <= successes <= runs")
    return math.comb(successes, k) / math.comb(runs, k)


def learning_curve(values: Mapping[int, Mapping[int, float]]) -> LearningCurve:
    """Average a metric along several task permutations of a stream.

    Within a permutation, each step has the mean of the tasks so far. These means are averaged
    over permutations. The band is Student's over permutations, since what is learned from
    a task depends on all tasks before it, so only whole permutations are independent.

    Args:
        values: By permutation (its seed), by step, the metric of that step's task; a step that
            could not be judged is left out. Values, and with them the band, are in [0, 1].
    """
    steps = range(1 + max((step for stream in values.values() for step in stream), default=-1))
    table = np.array([[one.get(step, math.nan) for step in steps] for one in values.values()])
    points = []
    for step in steps:
        done = table[:, : step + 1]
        done = done[~np.isnan(done).all(axis=1)]
        points.append(t_mean(np.nanmean(done, axis=1).tolist(), (0.0, 1.0)))
    return LearningCurve(
        steps=tuple(steps),
        mean=tuple(p.rate for p in points),
        low=tuple(p.low for p in points),
        high=tuple(p.high for p in points),
        permutations=len(values),
    )


def _proportion(successes: int, trials: int, method: str) -> Interval:
    if trials == 0:
        return Interval(math.nan, 0.0, 1.0, method)
    found = scipy.stats.binomtest(successes, trials).proportion_ci(method=method.lower())
    return Interval(successes / trials, float(found.low), float(found.high), method)


def _students(mean: float, sd: float, n: int, bounds: tuple[float, float]) -> UnitMean:
    half = scipy.stats.t.ppf(_UPPER, n - 1) * sd / math.sqrt(n)
    low, high = np.clip([mean - half, mean + half], *bounds).tolist()
    return UnitMean(mean, low, high, "Student's t", sd, n)
