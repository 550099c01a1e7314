"""McNemar and Tango, against published examples."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.contingency_tables import mcnemar

from reasoningbank.analysis.statistics import mcnemar_midp, tango


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
    with pytest.raises(ValueError, match="same tasks"):
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
