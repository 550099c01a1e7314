"""Measure how often intervals of a mean over few tasks hold the true mean.

Prints the table of docs/statistics.md: python scripts/measure_coverage.py [experiments]
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import stats

from reasoningbank.analysis import statistics
from reasoningbank.analysis.statistics import bootstrap_mean

RESAMPLES = 999
Draw = Callable[[np.random.Generator, int], Any]


def difference_of_runs(rng: np.random.Generator, n: int) -> Any:
    """Three runs of each arm; the second arm succeeds in 0.6 of the cases of the first."""
    share = rng.beta(0.6, 0.8, n)
    return (rng.binomial(3, share) - rng.binomial(3, 0.6 * share)) / 3


def difference_of_f1(rng: np.random.Generator, n: int) -> Any:
    """On half of the tasks no difference, on the others a skewed one."""
    sign = np.where(rng.random(n) < 0.75, 1, -1)
    return np.where(rng.random(n) < 0.5, 0, rng.beta(0.5, 1.5, n) * sign)


def rate_of_runs(rng: np.random.Generator, n: int) -> Any:
    """Three runs; three quarters of the tasks are never solved."""
    share = np.where(rng.random(n) < 0.25, rng.beta(1, 1, n), 0)
    return rng.binomial(3, share) / 3


CASES: list[tuple[str, Draw, float, tuple[int, ...]]] = [
    ("difference of three runs' means", difference_of_runs, 0.4 * 0.6 / 1.4, (8, 20, 40)),
    ("difference of F1, half of them zero", difference_of_f1, 0.5 * 0.25 * 0.5, (8, 20, 40)),
    ("a rate of three runs, most tasks never solved", rate_of_runs, 0.125, (12, 40)),
]


def intervals(values: Any, rng: np.random.Generator) -> dict[str, tuple[float, float]]:
    """Return the interval of each method; only the last where nothing varies."""
    built = bootstrap_mean(values.tolist(), bounds=(-1.0, 1.0), seed=int(rng.integers(2**31)))
    found = {"as built": (built.low, built.high)}
    error = values.std(ddof=1) / np.sqrt(len(values))
    if not error > 1e-12:
        return found
    for method in ("BCa", "percentile"):
        ends = stats.bootstrap(
            (values,), np.mean, n_resamples=RESAMPLES, method=method, rng=rng
        ).confidence_interval
        found[method] = (ends.low, ends.high)
    drawn = values[rng.integers(0, len(values), (RESAMPLES, len(values)))]
    errors = drawn.std(axis=1, ddof=1) / np.sqrt(len(values))
    seen = errors > 1e-12
    low, high = np.quantile(
        (drawn.mean(axis=1)[seen] - values.mean()) / errors[seen], [0.025, 0.975]
    )
    found["studentised"] = (values.mean() - high * error, values.mean() - low * error)
    return found


def main() -> None:
    """Print the table."""
    experiments = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    statistics.RESAMPLES = RESAMPLES
    warnings.simplefilter("ignore", stats.DegenerateDataWarning)
    methods = ("BCa", "percentile", "studentised", "as built")
    print("| what is averaged by task | tasks |", " | ".join(methods), "|")
    print("|" + "---|" * (2 + len(methods)))
    for name, draw, mean, sizes in CASES:
        for n in sizes:
            rng = np.random.default_rng(n)
            hits: dict[str, list[bool]] = {method: [] for method in methods}
            for _ in range(experiments):
                for method, (low, high) in intervals(draw(rng, n), rng).items():
                    hits[method].append(bool(low <= mean <= high))
            shares = " | ".join(f"{np.mean(hits[method]):.0%}" for method in methods)
            print(f"| {name} | {n} | {shares} |", flush=True)


if __name__ == "__main__":
    main()
