"""How a paired difference is tested: by tasks, by groups of tasks, or by orders of a stream."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from reasoningbank.analysis.scores import Metric, Score, Unit
from reasoningbank.analysis.statistics import (
    UnitMean,
    bootstrap_mean,
    detectable_mcnemar,
    detectable_mean,
    mcnemar_midp,
    sign_flip_p,
    t_mean,
    t_p,
    tango,
)

__all__ = ["ALPHA", "Paired", "by_mcnemar", "over_orders", "over_units", "with_errors"]

#: Level of every test.
ALPHA = 0.05


class Paired(NamedTuple):
    """A paired difference.

    Attributes:
        unit: What counts as one observation.
        spread: The difference with its interval.
        p: Two-sided p-value; NaN where no test can be made.
        detectable: Smallest difference that is found in four runs of five; None where none is.
        method: Test and interval, for people.
    """

    unit: str
    spread: UnitMean
    p: float
    detectable: float | None
    method: str


def by_mcnemar(first: Sequence[bool], second: Sequence[bool]) -> Paired:
    """Compare one run a task, right or wrong."""
    test = mcnemar_midp(first, second)
    interval = tango(test.only_first, test.only_second, test.n)
    spread = UnitMean(interval.rate, interval.low, interval.high, math.nan, test.n, "Tango")
    discordance = (test.only_first + test.only_second) / test.n
    least = detectable_mcnemar(test.n, discordance)
    return Paired("task", spread, test.p, least, "McNemar mid-p, Tango interval")


def over_units(delta: Mapping[str, float], group: Mapping[str, str], unit: Unit) -> Paired:
    """Compare by the difference that each task shows, drawing tasks or groups again.

    Args:
        delta: Difference of the arms by task.
        group: The group of each task.
        unit: What is drawn again.
    """
    sums: dict[str, float] = defaultdict(float)
    sizes: dict[str, float] = defaultdict(float)
    for task, difference in delta.items():
        name = group[task] if unit == "group" else task
        sums[name] += difference
        sizes[name] += 1
    spread = bootstrap_mean(list(sums.values()), list(sizes.values()), bounds=(-1.0, 1.0))
    p = sign_flip_p(list(sums.values()))
    # With five units even five signs that agree have p = 2/32.
    testable = 2 ** (1 - spread.units) < ALPHA
    least = None
    if testable and spread.deviating is not None:
        # Too little spread was seen to go by: what it takes if whole units change sides.
        least = detectable_mcnemar(spread.units, spread.deviating / spread.units)
    elif testable:
        least = detectable_mean(spread.units, spread.sd)
    return Paired(unit, spread, p, least, f"sign-flip test, {spread.method} over {unit}s")


def over_orders(first: Sequence[Score], second: Sequence[Score], metric: Metric) -> Paired:
    """Compare two learning arms: the same order in both is a pair.

    Within an order only tasks count that both arms have judged there.
    """
    one, two = ({(s.seed, s.task): s.value(metric) for s in arm} for arm in (first, second))
    orders: dict[int, list[float]] = defaultdict(list)
    for seed, task in sorted(one.keys() & two.keys()):
        orders[seed].append(one[seed, task] - two[seed, task])
    means = [math.fsum(values) / len(values) for values in orders.values()]
    spread = t_mean(means)
    # No difference of rates lies beyond these.
    low, high = (float(np.clip(bound, -1, 1)) for bound in (spread.low, spread.high))
    spread = replace(spread, low=low, high=high)
    least = detectable_mean(spread.units, spread.sd)
    return Paired("order", spread, t_p(means), least, f"paired t over orders, {spread.method}")


def with_errors(
    first: Sequence[Score], second: Sequence[Score], metric: Metric
) -> tuple[float, float]:
    """Return the least and the largest difference, whatever the errors would have become.

    Args:
        first: All trials of the first arm.
        second: All trials of the second arm.
        metric: Which metric.
    """

    def means(arm: Sequence[Score], error: float) -> dict[str, float]:
        values: dict[str, list[float]] = defaultdict(list)
        for score in arm:
            if score.fate != "defective":
                values[score.task].append(error if score.fate == "error" else score.value(metric))
        return {task: math.fsum(runs) / len(runs) for task, runs in values.items()}

    def difference(for_first: float, for_second: float) -> float:
        a, b = means(first, for_first), means(second, for_second)
        tasks = sorted(a.keys() & b.keys())
        return math.fsum(a[t] - b[t] for t in tasks) / len(tasks)

    return difference(0.0, 1.0), difference(1.0, 0.0)
