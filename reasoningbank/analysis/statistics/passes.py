"""Of several runs of a task: is one right (pass@k), are all right (pass^k)."""

from __future__ import annotations

import math

__all__ = ["pass_all_k", "pass_at_k"]


def pass_at_k(runs: int, successes: int, k: int) -> float:
    """Return the unbiased estimate that one of `k` runs succeeds (Chen et al. 2021).

    Args:
        runs: Runs of the task, at least `k`.
        successes: Of these, the right ones.
        k: How many runs one would draw.

    Examples:
        >>> pass_at_k(3, 1, 2)
        0.6666666666666667
    """
    _check(runs, successes, k)
    return 1 - math.comb(runs - successes, k) / math.comb(runs, k)


def pass_all_k(runs: int, successes: int, k: int) -> float:
    """Return the unbiased estimate that `k` of `k` runs succeed: pass^k (Yao et al. 2024).

    Examples:
        >>> pass_all_k(3, 2, 2)
        0.3333333333333333
    """
    _check(runs, successes, k)
    return math.comb(successes, k) / math.comb(runs, k)


def _check(runs: int, successes: int, k: int) -> None:
    if not 0 <= successes <= runs or not 1 <= k <= runs:
        raise ValueError("needs 1 <= k <= runs and 0 <= successes <= runs")
