"""Statistics agree with published tables, other implementations and simulation."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.power import TTestPower

from reasoningbank.analysis import statistics
from reasoningbank.analysis.statistics import (
    bootstrap_mean,
    clopper_pearson,
    detectable_mcnemar,
    detectable_mean,
    holm,
    learning_curve,
    mcnemar_midp,
    mcnemar_power,
    median_and_p95,
    pass_all_k,
    pass_at_k,
    sign_flip_p,
    t_mean,
    t_p,
    tango,
    wilson,
)

__all__ = []

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


def paired(both: int, first: int, second: int, neither: int) -> tuple[list[bool], list[bool]]:
    cells = [(True, True)] * both + [(True, False)] * first
    cells += [(False, True)] * second + [(False, False)] * neither
    return [a for a, _ in cells], [b for _, b in cells]


# Fagerland, Lydersen and Laake 2013, BMC Medical Research Methodology 13:91: airway
# hyper-responsiveness (Bentur et al.) and complete response (Cavo et al.).
@pytest.mark.parametrize(
    ("cells", "exact", "midp"),
    [((1, 1, 7, 12), 0.070, 0.039), ((59, 6, 16, 80), 0.052, 0.035)],
)
def test_midp_as_published(cells: tuple[int, int, int, int], exact: float, midp: float) -> None:
    found = mcnemar_midp(*paired(*cells))
    assert round(found.p, 3) == midp
    table = [[cells[0], cells[1]], [cells[2], cells[3]]]
    assert round(mcnemar(table, exact=True).pvalue, 3) == exact
    assert found.difference == (cells[1] - cells[2]) / sum(cells)


@pytest.mark.parametrize(("each", "midp"), [(1, 0.75), (2, 0.8125), (5, 0.876953125)])
def test_at_a_tie_half_of_the_observed_point_is_taken_off(each: int, midp: float) -> None:
    # Fagerland et al. 2013: 1 - f(n12 | n) / 2 where n12 = n21.
    assert mcnemar_midp(*paired(3, each, each, 4)).p == pytest.approx(midp)


def test_midp_is_the_exact_p_less_the_observed_point() -> None:
    first = [True] * 9 + [False] * 3 + [True] * 8
    second = [False] * 9 + [True] * 3 + [True] * 8
    found = mcnemar_midp(first, second)
    by_hand = 2 * stats.binom.cdf(2, 12, 0.5) + stats.binom.pmf(3, 12, 0.5)
    assert found.p == pytest.approx(by_hand)
    assert mcnemar_midp(second, first).p == pytest.approx(by_hand)
    assert mcnemar_midp([True], [True]).p == 1.0


def test_arms_must_have_the_same_tasks() -> None:
    with pytest.raises(ValueError, match="shorter"):
        mcnemar_midp([True], [])


# Fagerland, Lydersen and Laake 2014, Statistics in Medicine 33:2850 (the two tables above);
# PropCIs 0.3 for R, scoreci.mp(25, 28, 618, 0.90), which is of the second minus the first.
@pytest.mark.parametrize(
    ("first", "second", "n", "confidence", "ends", "places"),
    [
        (1, 7, 21, 0.95, (-0.517, -0.026), 3),
        (6, 16, 161, 0.95, (-0.124, -0.005), 3),
        (28, 25, 618, 0.90, (-0.0148, 0.0247), 4),
    ],
)
def test_tango_as_published(
    first: int, second: int, n: int, confidence: float, ends: tuple[float, float], places: int
) -> None:
    found = tango(first, second, n, confidence)
    assert (round(found.low, places), round(found.high, places)) == ends


def test_where_no_task_tells_the_arms_apart_the_interval_is_that_of_a_rate_of_nothing() -> None:
    # The score equation then is n d = z^2 (1 - d): Wilson's upper end of 0 of n.
    found = tango(0, 0, 20)
    wilson = stats.binomtest(0, 20).proportion_ci(method="wilson")
    assert (found.low, found.high) == (pytest.approx(-wilson.high), pytest.approx(wilson.high))


@given(st.integers(0, 30), st.integers(0, 30), st.integers(0, 30))
def test_the_ends_solve_the_score_equation_and_are_mirrored(
    first: int, second: int, rest: int
) -> None:
    n = first + second + rest
    if not n:
        return
    found, mirror = tango(first, second, n), tango(second, first, n)
    assert -1 <= found.low <= found.rate <= found.high <= 1
    assert (mirror.low, mirror.high) == (
        pytest.approx(-found.high, abs=1e-6),
        pytest.approx(-found.low, abs=1e-6),
    )
    for end in (found.low, found.high):
        if abs(end) < 1 - 1e-9:
            assert abs(_score(first, second, n, end)) == pytest.approx(1.959964, abs=1e-3)


def _score(first: int, second: int, n: int, delta: float) -> float:
    # The restricted likelihood is maximised by search, independently of the closed form.
    low, high = max(0.0, -delta) + 1e-12, (1 - delta) / 2 - 1e-12
    grid = np.linspace(low, high, 200_001)
    with np.errstate(divide="ignore"):
        likelihood = (
            first * np.log(grid + delta)
            + second * np.log(grid)
            + (n - first - second) * np.log(1 - 2 * grid - delta)
        )
    rate = float(grid[np.nanargmax(likelihood)])
    return (first - second - n * delta) / math.sqrt(n * (2 * rate + delta - delta**2))


def test_coverage_of_tango_with_twenty_tasks() -> None:
    rng = np.random.default_rng(0)
    for first, second in ((0.1, 0.1), (0.3, 0.1), (0.05, 0.0)):
        draws = rng.multinomial(20, [first, second, 1 - first - second], size=1500)
        ends = {(a, b): tango(int(a), int(b), 20) for a, b in {(x[0], x[1]) for x in draws}}
        inside = [ends[a, b].low <= first - second <= ends[a, b].high for a, b, _ in draws]
        assert np.mean(inside) > 0.93


def human_eval(n: int, c: int, k: int) -> float:
    """The estimator as printed in Chen et al. 2021, figure 3."""
    if n - c < k:
        return 1.0
    return float(1.0 - np.prod(1.0 - k / np.arange(n - c + 1, n + 1)))


@pytest.mark.parametrize("n", [1, 3, 5, 20, 200])
def test_pass_at_k_is_the_estimator_of_human_eval(n: int) -> None:
    for c in {0, 1, n // 2, n}:
        for k in {1, (n + 1) // 2, n}:
            assert pass_at_k(n, c, k) == pytest.approx(human_eval(n, c, k), abs=1e-12)


def test_both_are_the_share_of_the_draws_of_k_runs() -> None:
    runs = [1, 1, 0, 1, 0]
    for k in range(1, 6):
        draws = list(itertools.combinations(runs, k))
        assert pass_at_k(5, 3, k) == pytest.approx(np.mean([any(d) for d in draws]))
        # tau-bench, Yao et al. 2024, section 4: C(c, k) / C(n, k).
        assert pass_all_k(5, 3, k) == pytest.approx(np.mean([all(d) for d in draws]))


def test_neither_is_biased() -> None:
    rate, n, k = 0.3, 6, 3
    chance = [math.comb(n, c) * rate**c * (1 - rate) ** (n - c) for c in range(n + 1)]
    one = sum(p * pass_at_k(n, c, k) for c, p in enumerate(chance))
    every = sum(p * pass_all_k(n, c, k) for c, p in enumerate(chance))
    assert one == pytest.approx(1 - (1 - rate) ** k)
    assert every == pytest.approx(rate**k)


@pytest.mark.parametrize(("runs", "successes", "k"), [(3, 4, 1), (3, 1, 4), (3, 1, 0), (3, -1, 1)])
def test_what_cannot_be_is_refused(runs: int, successes: int, k: int) -> None:
    for estimate in (pass_at_k, pass_all_k):
        with pytest.raises(ValueError, match="needs 1 <= k <= runs"):
            estimate(runs, successes, k)


def test_no_values_have_no_median() -> None:
    assert all(math.isnan(value) for value in median_and_p95([]))
    assert median_and_p95([float(n) for n in range(101)]) == (50.0, 95.0)


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


BOTH = (-1.0, 1.0)


def test_the_same_numbers_give_the_same_interval() -> None:
    values = np.random.default_rng(1).uniform(-1, 1, 30).tolist()
    assert bootstrap_mean(values, bounds=BOTH) == bootstrap_mean(values, bounds=BOTH)
    other = bootstrap_mean(values, bounds=BOTH, seed=1)
    assert other.low == pytest.approx(bootstrap_mean(values, bounds=BOTH).low, abs=0.02)


def test_for_many_normal_values_it_is_students_interval() -> None:
    values = np.random.default_rng(2).normal(0.1, 0.2, 200)
    found = bootstrap_mean(values.tolist(), bounds=BOTH)
    half = stats.t.ppf(0.975, 199) * values.std(ddof=1) / math.sqrt(200)
    assert found.low == pytest.approx(values.mean() - half, abs=0.002)
    assert found.high == pytest.approx(values.mean() + half, abs=0.002)
    assert found.sd == pytest.approx(values.std(ddof=1))


def _runs_of_three(rng: np.random.Generator, n: int) -> list[float]:
    share = rng.beta(0.6, 0.8, n)
    return ((rng.binomial(3, share) - rng.binomial(3, 0.6 * share)) / 3).tolist()


def _f1(rng: np.random.Generator, n: int) -> list[float]:
    sign = np.where(rng.random(n) < 0.75, 1, -1)
    return np.where(rng.random(n) < 0.5, 0, rng.beta(0.5, 1.5, n) * sign).tolist()


def _rare(rng: np.random.Generator, n: int) -> list[float]:
    share = np.where(rng.random(n) < 0.25, rng.beta(1, 1, n), 0)
    return (rng.binomial(3, share) / 3).tolist()


@pytest.mark.parametrize("n", [8, 20])
@pytest.mark.parametrize(
    ("draw", "mean"),
    [
        (_runs_of_three, 0.4 * 0.6 / 1.4),
        (_f1, 0.5 * 0.25 * 0.5),
        (_rare, 0.125),
    ],
)
def test_it_covers_what_tasks_are_like(
    draw: Callable[[np.random.Generator, int], list[float]],
    mean: float,
    n: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(statistics, "RESAMPLES", 999)
    rng = np.random.default_rng(3)
    inside = []
    for seed in range(500):
        found = bootstrap_mean(draw(rng, n), bounds=BOTH, seed=seed)
        inside.append(found.low <= mean <= found.high)
    # 92 % and more of 1,000 draws were measured (docs/statistics.md); two and a half standard
    # errors below. BCa has 76 % (F1) and 88 % (three runs) at n = 8.
    assert np.mean(inside) > 0.92 - 2.5 * math.sqrt(0.92 * 0.08 / 500)


def test_where_one_unit_deviates_the_exact_bound_of_a_share_stands() -> None:
    found = bootstrap_mean([1.0] + [0.0] * 19, bounds=BOTH)
    assert (found.method, found.deviating) == ("exact bound", 1)
    assert found.high == pytest.approx(clopper_pearson(1, 20).high)
    assert found.low == pytest.approx(-clopper_pearson(0, 20).high)
    alike = bootstrap_mean([1.0] * 10, bounds=(0.0, 1.0))
    assert (alike.low, alike.high) == (pytest.approx(clopper_pearson(10, 10).low), 1.0)


def test_where_an_arm_mostly_wins_a_tie_is_not_counted_as_a_loss() -> None:
    found = bootstrap_mean([1.0] * 8 + [0.0] * 2, bounds=BOTH)
    losses = clopper_pearson(0, 10).high
    assert (found.method, found.high) == ("exact bound", 1.0)
    assert found.low == pytest.approx(clopper_pearson(8, 10).low - losses)
    mirrored = bootstrap_mean([-1.0] * 8 + [0.0] * 2, bounds=BOTH)
    assert (mirrored.low, mirrored.high) == (-found.high, pytest.approx(-found.low))
    # Of a rate, a lower value is one between.
    rate = bootstrap_mean([1.0] * 8 + [0.0] * 2, bounds=(0.0, 1.0))
    assert rate.low == pytest.approx(clopper_pearson(8, 10).low)


def test_less_seen_is_never_narrower() -> None:
    # A single small difference must not make the interval shrink to what was seen.
    nothing, little = ([0.0] * 20, [0.05] + [0.0] * 19)
    widths = [(m.high - m.low) for m in (bootstrap_mean(v, bounds=BOTH) for v in (nothing, little))]
    assert widths[1] > widths[0] > 0.3


def test_groups_of_unequal_size_weigh_by_their_tasks() -> None:
    rng = np.random.default_rng(4)
    sizes = rng.integers(1, 5, 40).astype(float)
    sums = sizes * rng.uniform(-0.2, 0.6, 40)
    found = bootstrap_mean(sums.tolist(), sizes.tolist(), bounds=BOTH)
    assert found.rate == pytest.approx(sums.sum() / sizes.sum())
    # The ratio's standard error by linearisation (Cochran 1977, section 6).
    residuals = sums - found.rate * sizes
    error = residuals.std(ddof=1) / math.sqrt(40) / sizes.mean()
    assert found.high - found.low == pytest.approx(2 * stats.t.ppf(0.975, 39) * error, rel=0.1)
    # Fewer effective units bound less than as many of one size would.
    unequal = bootstrap_mean([0.0] * 4, [1.0, 1.0, 1.0, 9.0], bounds=BOTH)
    assert unequal.high > bootstrap_mean([0.0] * 4, bounds=BOTH).high


def test_few_and_no_units() -> None:
    few = bootstrap_mean([0.1, 0.3, 0.2, 0.5], bounds=BOTH)
    expected = stats.t.interval(0.95, 3, 0.275, stats.sem([0.1, 0.3, 0.2, 0.5]))
    assert (few.low, few.high) == (pytest.approx(expected[0]), pytest.approx(expected[1]))
    one = bootstrap_mean([0.5], bounds=BOTH)
    assert one.low < -0.9
    assert one.high > 0.9
    none = bootstrap_mean([], bounds=BOTH)
    assert math.isnan(none.rate)
    assert (none.low, none.high) == BOTH


@settings(max_examples=30, deadline=None)
@given(st.lists(st.sampled_from([-1.0, -0.5, 0.0, 1 / 3, 1.0]), min_size=1, max_size=25))
def test_an_interval_holds_its_mean_and_stays_in_bounds(values: list[float]) -> None:
    found = bootstrap_mean(values, bounds=BOTH)
    assert -1 <= found.low <= found.rate + 1e-9
    assert found.rate - 1e-9 <= found.high <= 1


@pytest.mark.parametrize("n", [5, 12, 40])
def test_sign_flips_as_scipy_has_them(n: int) -> None:
    values = np.random.default_rng(n).normal(0.3, 1, n)
    expected = stats.permutation_test(
        (values,), np.sum, permutation_type="samples", vectorized=True, n_resamples=9999, rng=0
    ).pvalue
    assert sign_flip_p(values.tolist()) == pytest.approx(expected, abs=0 if n < 14 else 0.02)


def test_sign_flips_of_fishers_example() -> None:
    # Darwin's maize, Fisher 1935, section 21: 1,726 of 32,768 ways are as extreme, 863 each way.
    darwin = [49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48]
    assert sign_flip_p([d / 100 for d in darwin]) == pytest.approx(1726 / 32768, abs=0.006)
    assert sign_flip_p([0.2] * 5) == 2 / 32
    assert sign_flip_p([0.2]) == sign_flip_p([]) == sign_flip_p([0.0] * 30) == 1.0
    # Sums that differ by rounding alone are ties.
    assert sign_flip_p([0.1, 0.2, -0.3]) == 1.0


def test_the_level_of_the_sign_flip_test() -> None:
    rng = np.random.default_rng(5)
    rejected = [
        sign_flip_p((rng.choice([-1, 0, 1], 12) * rng.random(12)).tolist()) < 0.05
        for _ in range(600)
    ]
    assert np.mean(rejected) < 0.05 + 2.5 * math.sqrt(0.05 * 0.95 / 600)


def test_replicates_have_students_interval() -> None:
    values = [0.10, 0.25, 0.15, 0.30]
    found = t_mean(values, (0.0, 1.0))
    expected = stats.t.interval(0.95, 3, np.mean(values), stats.sem(values))
    assert (found.low, found.high) == (pytest.approx(expected[0]), pytest.approx(expected[1]))
    assert t_p(values) == pytest.approx(stats.ttest_1samp(values, 0).pvalue)
    for no_spread in ([0.2], [0.2, 0.2], []):
        assert math.isnan(t_mean(no_spread, (0.0, 1.0)).low)
        assert math.isnan(t_p(no_spread))


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


def test_one_order_has_no_band() -> None:
    curve = learning_curve({7: {0: 1.0, 1: 0.0}})
    assert curve.mean == (1.0, 0.5)
    assert all(math.isnan(end) for end in (*curve.low, *curve.high))


def test_a_step_that_was_not_judged_is_left_out_of_its_order() -> None:
    curve = learning_curve({0: {0: 1.0, 2: 0.0}, 1: {1: 1.0, 2: 1.0}})
    assert curve.mean == pytest.approx((1.0, 1.0, 0.75))
    assert learning_curve({}).steps == ()
