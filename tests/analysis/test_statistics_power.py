"""Power and the smallest difference found, against formulas, tables and simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.power import TTestPower

from reasoningbank.analysis.statistics import (
    detectable_mcnemar,
    detectable_mean,
    holm,
    mcnemar_midp,
    mcnemar_power,
    sign_flip_p,
)


@pytest.mark.parametrize(("n", "discordance", "effect"), [(12, 0.5, 0.4), (40, 0.3, 0.2)])
def test_mcnemar_power_by_enumeration(n: int, discordance: float, effect: float) -> None:
    first, second = (discordance + effect) / 2, (discordance - effect) / 2
    power = 0.0
    for a in range(n + 1):
        for b in range(n + 1 - a):
            if mcnemar_midp([True] * a + [False] * b, [False] * a + [True] * b).p < 0.05:
                power += stats.multinomial.pmf(
                    [a, b, n - a - b], n, [first, second, 1 - discordance]
                )
    assert mcnemar_power(n, discordance, effect) == pytest.approx(power, abs=1e-9)


def test_power_at_no_effect_is_the_level_of_the_test() -> None:
    # Fagerland et al. 2013: the mid-p test keeps its level but for a hair's breadth.
    for n in (10, 20, 50, 100):
        for discordance in (0.2, 0.5, 0.9):
            assert mcnemar_power(n, discordance, 0.0) < 0.0515
    assert mcnemar_power(0, 0.5, 0.0) == mcnemar_power(10, 0.0, 0.0) == 0.0
    with pytest.raises(ValueError, match="discordance"):
        mcnemar_power(10, 0.2, 0.3)


@pytest.mark.parametrize(("n", "discordance"), [(200, 0.3), (500, 0.4), (1000, 0.2)])
def test_for_many_tasks_it_is_connors_formula(n: int, discordance: float) -> None:
    # Connor 1987, Biometrics 43:207, solved for the difference by its own sample size.
    effect = detectable_mcnemar(n, discordance)
    assert effect is not None
    z = stats.norm.ppf(0.975) * math.sqrt(discordance)
    z += stats.norm.ppf(0.8) * math.sqrt(discordance - effect**2)
    assert (z / effect) ** 2 == pytest.approx(n, rel=0.05)


def test_the_detectable_difference_is_found_in_four_runs_of_five() -> None:
    effect = detectable_mcnemar(20, 0.4)
    assert effect is not None
    rng = np.random.default_rng(6)
    rates = [(0.4 + effect) / 2, (0.4 - effect) / 2, 0.6]
    found = [
        mcnemar_midp([True] * a + [False] * b, [False] * a + [True] * b).p < 0.05
        for a, b, _ in rng.multinomial(20, rates, size=2000)
    ]
    assert np.mean(found) == pytest.approx(0.8, abs=2.5 * math.sqrt(0.16 / 2000))


def test_a_difference_above_the_discordance_comes_without_losses() -> None:
    # With none discordant the test needs five tasks, all one way: 1/16 - 1/32 < 0.05.
    effect = detectable_mcnemar(20, 0.0)
    assert effect is not None
    assert stats.binom.sf(4, 20, effect) == pytest.approx(0.8, abs=1e-4)
    assert detectable_mcnemar(4, 0.5) is None
    assert detectable_mcnemar(5, 0.0) == pytest.approx(0.8 ** (1 / 5), abs=1e-4)


# Cohen 1988, table 2.4.1 (two-tailed 0.05, power 0.80), for one sample: n = 34 at d = 0.5 and
# n = 199 at d = 0.2, as G*Power 3.1 gives them.
@pytest.mark.parametrize(("n", "d"), [(34, 0.495), (199, 0.1995), (15, 0.778)])
def test_the_detectable_mean_as_published_and_as_statsmodels_has_it(n: int, d: float) -> None:
    found = detectable_mean(n, 1.0)
    assert found == pytest.approx(d, abs=0.006)
    assert found == pytest.approx(float(TTestPower().solve_power(None, n, 0.05, 0.8)), abs=1e-4)


def test_the_detectable_mean_holds_for_the_test_that_is_used() -> None:
    rng = np.random.default_rng(7)
    effect = detectable_mean(20, 0.3)
    assert effect is not None
    found = [sign_flip_p(rng.normal(effect, 0.3, 20).tolist()) < 0.05 for _ in range(400)]
    assert np.mean(found) == pytest.approx(0.8, abs=2.5 * math.sqrt(0.16 / 400))


def test_nothing_is_claimed_without_spread_or_observations() -> None:
    assert detectable_mean(1, 0.3) is None
    assert detectable_mean(20, 0.0) is None
    assert detectable_mean(20, math.nan) is None
    assert detectable_mean(2, 0.3) is None, "a difference above 1 cannot be"


def test_holm_as_r_gives_it() -> None:
    # R: p.adjust(c(0.01, 0.02, 0.03, 0.04, 0.05), "holm"), and Holm 1979's step-down by hand.
    assert holm([0.01, 0.02, 0.03, 0.04, 0.05]) == pytest.approx((0.05, 0.08, 0.09, 0.09, 0.09))
    assert holm([0.04, 0.01, 0.03]) == pytest.approx((0.06, 0.03, 0.06))
    assert holm([0.6, 0.7]) == (1.0, 1.0)
    assert holm([0.04]) == (0.04,)
    assert holm([]) == ()
