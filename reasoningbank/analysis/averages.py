"""Means of a metric over an arm's trials, with intervals that fit how the trials came about."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from reasoningbank.analysis.scores import YES_NO, Metric, Score, Unit
from reasoningbank.analysis.statistics import Interval, bootstrap_mean, t_mean, wilson

__all__ = [
    "average",
    "by_order",
    "in_stream",
    "longest",
    "one_run_each",
    "pooled_rate",
    "values_by_task",
]


def values_by_task(scores: Iterable[Score], metric: Metric) -> dict[str, list[float]]:
    """Return the values of the judged trials, by task."""
    found: dict[str, list[float]] = defaultdict(list)
    for score in scores:
        if score.fate == "judged":
            found[score.task].append(score.value(metric))
    return dict(found)


def by_order(scores: Iterable[Score]) -> dict[int, list[Score]]:
    """Return the trials of each order of a learning stream, by its seed."""
    found: dict[int, list[Score]] = defaultdict(list)
    for score in scores:
        found[score.seed].append(score)
    return dict(found)


def longest(lengths: Mapping[int, int]) -> set[int]:
    """Return the orders that went as far as the longest, by how many trials each has.

    Means of the others are of the beginning of a stream only.
    """
    most = max(lengths.values(), default=0)
    return {order for order, length in lengths.items() if length == most}


def in_stream(scores: Iterable[Score]) -> bool:
    """Tell whether trials belong to a learning stream."""
    return any(score.step is not None for score in scores)


def one_run_each(values: Mapping[str, Sequence[float]]) -> bool:
    """Tell whether every task was judged once."""
    return all(len(runs) == 1 for runs in values.values())


def average(scores: Sequence[Score], metric: Metric, unit: Unit) -> Interval:
    """Return the mean over tasks of the mean over a task's runs, with an interval.

    One run a task of a yes/no metric has Wilson's interval. Otherwise tasks (or groups) are
    drawn again whole, since runs of one task are not independent. In a learning stream the
    replicate is an order: Student's interval over orders, and none with one order.

    Args:
        scores: Trials of one arm.
        metric: Which metric.
        unit: What is drawn again.
    """
    values = values_by_task(scores, metric)
    if in_stream(scores):
        orders = by_order(s for s in scores if s.fate == "judged")
        found = t_mean([_mean(s.value(metric) for s in order) for order in orders.values()])
        low, high = max(found.low, 0.0), min(found.high, 1.0)
        if math.isnan(found.low):
            low = high = math.nan
        return Interval(found.value, low, high, f"{found.method} over orders")
    if metric in YES_NO and unit == "task" and one_run_each(values):
        return wilson(round(sum(runs[0] for runs in values.values())), len(values))
    means = {task: _mean(runs) for task, runs in values.items()}
    return _drawn(means, dict.fromkeys(means, 1), scores, unit)


def pooled_rate(scores: Sequence[Score], unit: Unit) -> Interval:
    """Return strict matches by judged trials, with the interval that `average` would give it."""
    values = values_by_task(scores, "strict")
    if in_stream(scores) or (unit == "task" and one_run_each(values)):
        return average(scores, "strict", unit)
    sums = {task: sum(runs) for task, runs in values.items()}
    return _drawn(sums, {task: len(runs) for task, runs in values.items()}, scores, unit)


def _drawn(
    sums: Mapping[str, float], sizes: Mapping[str, int], scores: Iterable[Score], unit: Unit
) -> Interval:
    group = {s.task: s.group if unit == "group" else s.task for s in scores}
    total: dict[str, float] = defaultdict(float)
    size: dict[str, float] = defaultdict(float)
    for task, value in sums.items():
        total[group[task]] += value
        size[group[task]] += sizes[task]
    found = bootstrap_mean(list(total.values()), list(size.values()), bounds=(0.0, 1.0))
    return Interval(found.value, found.low, found.high, f"{found.method} over {unit}s")


def _mean(values: Iterable[float]) -> float:
    kept = list(values)
    return math.fsum(kept) / len(kept)
