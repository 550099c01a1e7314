"""What so many tasks can show: the smallest difference found in four runs of five.

Power is computed for the test that is used, at the spread that was seen, and never for the
difference that was seen: that would only say the p-value again (Hoenig and Heisey 2001).
"""

from __future__ import annotations

import math

import numpy as np
import scipy

__all__ = ["detectable_mcnemar", "detectable_mean", "mcnemar_power"]

ALPHA = 0.05
POWER = 0.8
#: Noncentrality that every test finds, with two observations too.
_FAR = 20.0
#: Chance of what is not reckoned with.
_RARE = 1e-12


def mcnemar_power(n: int, discordance: float, effect: float, alpha: float = ALPHA) -> float:
    """Return the power of the two-sided mid-p McNemar test, exactly.

    Args:
        n: Tasks.
        discordance: Share of tasks that only one of the arms solves, in [0, 1].
        effect: Difference of the two rates; at most `discordance`.
        alpha: Level of the test.

    Examples:
        >>> round(mcnemar_power(20, 0.4, 0.3), 3)
        0.583
    """
    if not abs(effect) <= discordance <= 1:
        raise ValueError("the effect can be no larger than the discordance, and that at most 1")
    if n == 0 or discordance == 0:
        return 0.0
    # Counts of discordant tasks that are all but impossible are left out.
    least, most = scipy.stats.binom.ppf([_RARE, 1 - _RARE], n, discordance)
    m = np.arange(max(1, int(least)), int(most) + 1)
    # Mid-p of k out of m is cdf(k-1) + cdf(k): the critical k is where the cdf passes alpha/2,
    # or the one before.
    k = scipy.stats.binom.ppf(alpha / 2, m, 0.5)
    midp = scipy.stats.binom.cdf(k - 1, m, 0.5) + scipy.stats.binom.cdf(k, m, 0.5)
    k = np.where(midp < alpha, k, k - 1)
    share = (discordance + effect) / (2 * discordance)
    rejects = scipy.stats.binom.cdf(k, m, share) + scipy.stats.binom.sf(m - k - 1, m, share)
    return float(np.sum(scipy.stats.binom.pmf(m, n, discordance) * rejects))


def detectable_mcnemar(
    n: int, discordance: float, *, alpha: float = ALPHA, power: float = POWER
) -> float | None:
    """Return the smallest difference of rates that the mid-p McNemar test finds.

    Args:
        n: Tasks.
        discordance: Share of tasks that only one of the arms solves. A difference larger than
            it is taken to come with no task lost.
        alpha: Level of the test.
        power: How often it should be found.

    Returns:
        The difference; None where none whatever would be found so often.

    Examples:
        >>> round(detectable_mcnemar(20, 0.4), 2), detectable_mcnemar(4, 0.4)
        (0.36, None)
    """

    def missing(effect: float) -> float:
        return mcnemar_power(n, max(discordance, effect), effect, alpha) - power

    if missing(1.0) < 0:
        return None
    return float(scipy.optimize.brentq(missing, 0.0, 1.0, xtol=1e-6))


def detectable_mean(
    n: int, sd: float, *, largest: float = 1.0, alpha: float = ALPHA, power: float = POWER
) -> float | None:
    """Return the smallest mean paired difference that is found, by Student's t (Cohen 1988).

    Args:
        n: Units: tasks, groups or orders.
        sd: Standard deviation of the units' differences.
        largest: Largest difference that there can be.
        alpha: Level of the test.
        power: How often it should be found.

    Returns:
        The difference; None where none up to `largest` would be found so often, or where no
        spread was seen to judge by.

    Examples:
        >>> round(detectable_mean(34, 1.0), 2)
        0.5
    """
    if n < 2 or not sd > 0:
        return None
    df = n - 1
    critical = float(scipy.stats.t.ppf(1 - alpha / 2, df))

    def missing(shift: float) -> float:
        # The other tail adds less than a millionth at such a power.
        return float(scipy.stats.nct.sf(critical, df, shift)) - power

    effect = float(scipy.optimize.brentq(missing, 0.0, _FAR)) * sd / math.sqrt(n)
    return effect if effect <= largest else None
