"""Paired comparisons of two arms, task by task, and the answers that differ between them."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from statistics import fmean
from typing import Any

from reasoningbank.analysis import statistics as stats
from reasoningbank.analysis.scores import (
    BINARY,
    Metric,
    Score,
    Unit,
    in_stream,
    one_run_each,
    sums_of,
    values_by_task,
)
from reasoningbank.analysis.tables import jsonable, number
from reasoningbank.corpus import LEVELS
from reasoningbank.experiment import TrialRecord
from reasoningbank.findings import counted


@dataclass(frozen=True)
class ArmComparison:
    """What is known of the difference between two arms."""

    first: str  #: Name of the first arm
    second: str  #: Name of the second arm: the baseline
    metric: str
    unit: str  #: What counts as one observation: `task`, `group`, or `permutation` of a stream
    tasks: int  #: Tasks that both arms have judged: the arms are compared on these
    groups: int  #: Groups of these tasks
    runs: tuple[int, int]  #: Judged runs of the first and of the second arm on these tasks
    seeds: tuple[int, int]  #: Seeds of the first and of the second arm there
    #: The difference with the runs of each seed alone, if an arm has several. In learning runs a
    #: seed is a task permutation: the interval is for these banks, not for those of other orders.
    by_seed: tuple[float, ...]
    first_mean: float  #: Mean of the first arm: over tasks, of the mean over a task's runs
    second_mean: float  #: Mean of the second arm
    difference: float  #: The first minus the second
    low: float  #: Lower bound of its 95% CI; NaN where none can be given
    high: float  #: Upper bound
    p: float  #: Two-sided p-value; NaN where no test is possible
    p_holm: float  #: The p-value after Holm's correction over its family; `p` if it stands alone
    family: int  #: Number of comparisons that the correction covers
    #: Smallest difference that as many observations detect with 80% power, at the observed spread;
    #: None if none would be, or without spread.
    detectable: float | None
    method: str  #: Names of the interval and the test
    first_better: int  #: Tasks on which the first arm has the higher mean
    second_better: int  #: Tasks on which the second has
    left_out: int  #: Tasks that only one of the arms has judged
    defective: int  #: Tasks with a defective gold query
    errors: tuple[int, int]  #: Infrastructure errors of the first and of the second arm
    #: The difference if each error of the first arm had been a success and each of the second a
    #: failure, on all tasks that both arms tried.
    best_case: float
    worst_case: float  #: The difference in the opposite case
    #: Planned trials of both arms that are not on disk yet. Until then nothing is resolved:
    #: checking for significance after every trial eventually finds a difference.
    missing: int = 0

    @property
    def resolved(self) -> bool:
        """Whether the arms differ, by the corrected p-value, the interval, and at worst."""
        apart = min(self.low, self.worst_case) > 0 or max(self.high, self.best_case) < 0
        return not self.missing and self.p_holm < stats.ALPHA and apart

    @property
    def verdict(self) -> str:
        """`resolved`, `unresolved`, or `incomplete` while trials are missing."""
        if self.missing:
            return "incomplete"
        return "resolved" if self.resolved else "unresolved"

    @property
    def observations(self) -> int:
        """Number of observations."""
        return {"task": self.tasks, "group": self.groups}.get(self.unit, min(self.seeds))

    def sentence(self) -> str:
        """Return what is known in one line."""
        head = f"{self.first} against {self.second}, {self.metric}"
        if math.isnan(self.difference):
            return f"{head}: unresolved, the arms share no {self.unit}"
        most = max(self.seeds)
        kind = "permutations" if self.unit == "permutation" else "seeds"
        groups = f" in {counted(self.groups, 'group')}" if self.unit == "group" else ""
        each = ", ".join(f"{one:+z.2f}" for one in self.by_seed)
        repeats = f" × {most} {kind}{f' ({each})' if each else ''}" if most > 1 else ""
        scope = f"{counted(self.tasks, 'task')}{groups}{repeats}"
        interval = f"95% CI {self.low:+z.2f} to {self.high:+z.2f}"
        holm = f", {_p(self.p_holm)} after Holm" if self.family > 1 else ""
        parts = [
            f"{head}, {scope}: {self.first_mean:.2f} and {self.second_mean:.2f}, "
            f"{self.difference:+z.2f} ({'no CI' if math.isnan(self.low) else interval}), "
            f"{'no test' if math.isnan(self.p) else f'p {_p(self.p)}{holm}'}: {self._conclusion()}"
        ]
        if self.left_out:
            parts.append(f"{counted(self.left_out, 'task')} judged in only one arm left out")
        if self.defective:
            parts.append(f"{counted(self.defective, 'task')} with a defective gold query left out")
        if any(self.errors):
            parts.append(
                f"{counted(sum(self.errors), 'unjudged trial')}, so at worst "
                f"{self.worst_case:+z.2f} and at best {self.best_case:+z.2f}"
            )
        return "; ".join(parts)

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON-able data; undefined numbers are None."""
        return {**jsonable(asdict(self)), "verdict": self.verdict, "resolved": self.resolved,
                "sentence": self.sentence()}  # fmt: skip

    def _conclusion(self) -> str:
        if self.missing:
            return f"incomplete, {counted(self.missing, 'trial')} missing"
        if self.resolved:
            return f"{self.first if self.difference > 0 else self.second} is better"
        if self.detectable is None:
            return "unresolved"
        n = counted(self.observations, self.unit)
        return f"unresolved ({n} would show a difference of {number(self.detectable)} or more)"


#: What one way of testing gives: the difference, its p-value, what is detectable, and its name.
_Tested = tuple[stats.Interval, float, float | None, str]


def compare_arms(
    first: Iterable[Score],
    second: Iterable[Score],
    *,
    metric: Metric = "strict",
    unit: Unit = "task",
    planned: tuple[int, int] = (0, 0),
) -> ArmComparison | None:
    """Compare two arms on the tasks that both have judged.

    With one run per task and a binary metric: McNemar's mid-p and Tango's interval. Otherwise each
    task's runs are averaged first, the interval is an expanded percentile bootstrap over tasks or
    groups, and p is from a sign-flip test. In a learning stream the observation is a task
    permutation, with Student's t.

    Args:
        first: Trials of the first arm.
        second: Trials of the second arm, the baseline.
        metric: The metric.
        unit: What counts as one observation.
        planned: Planned trials of the first and the second arm; by default those on disk.

    Returns:
        The comparison; None if no task is judged in both arms.
    """
    one, two = list(first), list(second)
    a, b = values_by_task(one, metric), values_by_task(two, metric)
    shared = sorted(a.keys() & b.keys())
    if not shared:
        return None
    a, b = ({task: values[task] for task in shared} for values in (a, b))
    mean_a, mean_b = ({task: fmean(runs) for task, runs in values.items()} for values in (a, b))
    delta = {task: mean_a[task] - mean_b[task] for task in shared}
    group = {s.task: s.group for s in (*two, *one)}
    judged_a, judged_b = ([s for s in x if s.fate == "judged" and s.task in a] for x in (one, two))
    streams = in_stream(one) or in_stream(two)
    groups = len({group[task] for task in shared})
    alone = unit == "task" or groups == len(shared)
    if streams:
        found = _over_permutations(judged_a, judged_b, metric)
    elif metric in BINARY and alone and one_run_each(a) and one_run_each(b):
        found = _by_mcnemar([mean_a[t] > 0 for t in shared], [mean_b[t] > 0 for t in shared])
    else:
        found = _over_units(delta, group, unit)
    mean, p, detectable, method = found
    every = {s.task for s in (*one, *two)}
    defective = {s.task for s in (*one, *two) if s.fate == "defective"} - set(shared)
    return ArmComparison(
        first=one[0].arm,
        second=two[0].arm,
        metric=metric,
        unit="permutation" if streams else unit,
        tasks=len(shared),
        groups=groups,
        runs=(len(judged_a), len(judged_b)),
        seeds=(len({s.seed for s in judged_a}), len({s.seed for s in judged_b})),
        by_seed=_by_seed(judged_a, judged_b, metric),
        first_mean=fmean(mean_a.values()),
        second_mean=fmean(mean_b.values()),
        difference=mean.rate,
        low=mean.low,
        high=mean.high,
        p=p,
        p_holm=p,
        family=1,
        detectable=detectable,
        method=method,
        first_better=sum(d > 0 for d in delta.values()),
        second_better=sum(d < 0 for d in delta.values()),
        left_out=len(every - set(shared) - defective),
        defective=len(defective),
        errors=(sum(s.fate == "error" for s in one), sum(s.fate == "error" for s in two)),
        best_case=_with_errors(one, two, metric, (1.0, 0.0)),
        worst_case=_with_errors(one, two, metric, (0.0, 1.0)),
        missing=max(0, planned[0] - len(one)) + max(0, planned[1] - len(two)),
    )


def adjust(family: Sequence[ArmComparison], to_come: int = 0) -> tuple[ArmComparison, ...]:
    """Return comparisons with Holm's correction over all of them that could be tested.

    Args:
        family: The comparisons.
        to_come: Further comparisons of the family without data yet. They count with p = 1, so
            that the correction does not grow when their data arrive.
    """
    tested = [c.p for c in family if not math.isnan(c.p)]
    corrected = iter(stats.holm([*tested, *[1.0] * to_come]))
    n = len(tested) + to_come
    return tuple(
        c if math.isnan(c.p) else replace(c, p_holm=next(corrected), family=n) for c in family
    )


def _by_mcnemar(first: Sequence[bool], second: Sequence[bool]) -> _Tested:
    test = stats.mcnemar_midp(first, second)
    interval = stats.tango(test.only_first, test.only_second, test.n)
    least = stats.detectable_mcnemar(test.n, (test.only_first + test.only_second) / test.n)
    return interval, test.p, least, "McNemar mid-p, Tango interval"


def _over_units(delta: Mapping[str, float], group: Mapping[str, str], unit: Unit) -> _Tested:
    groups = group if unit == "group" else None
    sums, sizes = sums_of({task: [one] for task, one in delta.items()}, groups)
    spread = stats.bootstrap_mean(sums, sizes, bounds=(-1.0, 1.0))
    least = None
    # With five units even five equal signs have p = 2/32.
    if 2 ** (1 - spread.units) < stats.ALPHA:
        moved = [abs(one / size) for one, size in zip(sums, sizes, strict=True) if one]
        if spread.deviating is not None or all(one == 1 for one in moved):
            # Whole units change sides, or too little spread was seen to say otherwise.
            share = len(moved) / spread.units
            least = stats.detectable_mcnemar(spread.units, share, midp=False)
        else:
            least = stats.detectable_mean(spread.units, spread.sd)
    method = f"sign-flip test, {spread.method} over {unit}s"
    return spread, stats.sign_flip_p(sums), least, method


def _over_permutations(first: Sequence[Score], second: Sequence[Score], metric: Metric) -> _Tested:
    one, two = ({(s.seed, s.task): s.value(metric) for s in arm} for arm in (first, second))
    streams: dict[int, list[float]] = defaultdict(list)
    for seed, task in sorted(one.keys() & two.keys()):
        streams[seed].append(one[seed, task] - two[seed, task])
    means = [fmean(values) for values in streams.values()]
    spread = stats.t_mean(means, (-1.0, 1.0))
    least = stats.detectable_mean(spread.units, spread.sd)
    return spread, stats.t_p(means), least, f"paired t over task permutations, {spread.method}"


def _by_seed(first: Sequence[Score], second: Sequence[Score], metric: Metric) -> tuple[float, ...]:
    arms = [(arm, {score.seed for score in arm}) for arm in (first, second)]
    found = []
    for seed in sorted(set.union(*(seeds for _, seeds in arms))):
        own = ([s for s in arm if len(seeds) == 1 or s.seed == seed] for arm, seeds in arms)
        a, b = (values_by_task(scores, metric) for scores in own)
        if both := a.keys() & b.keys():
            found.append(fmean(fmean(a[task]) - fmean(b[task]) for task in both))
    return tuple(found) if len(found) > 1 else ()


def _with_errors(
    first: Sequence[Score], second: Sequence[Score], metric: Metric, errors: tuple[float, float]
) -> float:
    """Return the difference with the errors of each arm valued as given."""
    a = values_by_task(first, metric, errors[0])
    b = values_by_task(second, metric, errors[1])
    return fmean(fmean(a[task]) - fmean(b[task]) for task in sorted(a.keys() & b.keys()))


def _p(p: float) -> str:
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def changed_answers(
    records: Iterable[TrialRecord], first: str, second: str, most: int = 2
) -> list[tuple[TrialRecord, TrialRecord]]:
    """Return pairs of held-out trials, of `second` and then of `first`, that only `first` solved.

    Each question has one pair. Easier levels of generalization come first, then the order of the
    records.
    """
    arms: dict[str, dict[tuple[str, int], TrialRecord]] = {first: {}, second: {}}
    for record in records:
        if record.step is None and record.judged and record.key.arm in arms:
            arms[record.key.arm][record.key.task, record.key.seed] = record
    found: dict[str, tuple[TrialRecord, TrialRecord]] = {}
    for place, after in arms[first].items():
        before = arms[second].get(place)
        if before and after.strict and not before.strict:
            found.setdefault(place[0], (before, after))
    order: dict[str, int] = {level: place for place, level in enumerate(LEVELS)}
    return sorted(found.values(), key=lambda pair: order.get(pair[1].level, len(order)))[:most]
