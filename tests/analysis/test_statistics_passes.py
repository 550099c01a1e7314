"""pass@k and pass^k: unbiased, as published."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from reasoningbank.analysis.statistics import median_and_p95, pass_all_k, pass_at_k


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
