"""Two arms against each other, task by task."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from reasoningbank.analysis.averages import in_stream, one_run_each, values_by_task
from reasoningbank.analysis.cell_text import counted
from reasoningbank.analysis.finite import finite
from reasoningbank.analysis.pairing import ALPHA, by_mcnemar, over_orders, over_units, with_errors
from reasoningbank.analysis.scores import YES_NO, Metric, Score, Unit
from reasoningbank.analysis.statistics import holm

__all__ = ["Comparison", "adjust", "compare_arms"]


@dataclass(frozen=True)
class Comparison:
    """What is known of the difference between two arms.

    Attributes:
        first: Name of the first arm.
        second: Name of the second arm: the base line.
        metric: What is compared.
        unit: What counts as one observation: `task`, `group`, or `order` of a learning stream.
        tasks: Tasks that both arms have judged: on these the arms are compared.
        groups: Groups of these tasks.
        runs: Judged runs of the first and of the second arm on these tasks.
        seeds: How many seeds the first and the second arm have there.
        first_mean: Mean of the first arm: over tasks, of the mean over a task's runs.
        second_mean: Mean of the second arm.
        difference: The first minus the second.
        low: Lower end of its 95 % interval; NaN where none can be given.
        high: Upper end.
        p: Two-sided p-value; NaN where no test can be made.
        p_holm: The p-value after Holm's correction over its family; `p` where it stands alone.
        family: How many comparisons the correction is over.
        detectable: Smallest difference that so many observations show in four runs of five, at
            the spread that was seen; None where none would, or where no spread was seen.
        method: Interval and test, for people.
        first_better: Tasks on which the first arm has the higher mean.
        second_better: Tasks on which the second has.
        left_out: Tasks that only one of the arms has judged.
        defective: Tasks whose gold is at fault.
        errors: Infrastructure errors of the first and of the second arm.
        best_case: The difference if each error of the first arm had been a success and each of
            the second a failure, on all tasks that both arms have tried.
        worst_case: The difference the other way round.
        missing: Trials of both arms that are planned and not on disk yet. While there are any
            nothing is resolved: who looks after each trial finds something in the end.
    """

    first: str
    second: str
    metric: str
    unit: str
    tasks: int
    groups: int
    runs: tuple[int, int]
    seeds: tuple[int, int]
    first_mean: float
    second_mean: float
    difference: float
    low: float
    high: float
    p: float
    p_holm: float
    family: int
    detectable: float | None
    method: str
    first_better: int
    second_better: int
    left_out: int
    defective: int
    errors: tuple[int, int]
    best_case: float
    worst_case: float
    missing: int = 0

    @property
    def resolved(self) -> bool:
        """Whether the arms differ: by the corrected p-value, and by the interval as well."""
        return not self.missing and self.p_holm < ALPHA and (self.low > 0 or self.high < 0)

    @property
    def verdict(self) -> str:
        """One word: resolved, unresolved, or incomplete where trials are missing yet."""
        if self.missing:
            return "incomplete"
        return "resolved" if self.resolved else "unresolved"

    def sentence(self) -> str:
        """Return one line that says what is known, and "unresolved" where nothing is."""
        if math.isnan(self.difference):
            named = f"{self.first} against {self.second}, {self.metric}"
            return f"{named}: unresolved, there is no {self.unit} that both have"
        parts = [
            f"{self.first} against {self.second}, {self.metric}, {self._scope()}: "
            f"{self.first_mean:.2f} and {self.second_mean:.2f}, {_signed(self.difference)} "
            f"({self._interval()}), {self._test()}: {self._verdict()}"
        ]
        if self.left_out:
            parts.append(f"{counted(self.left_out, 'task')} judged in one arm only left out")
        if self.defective:
            parts.append(f"{counted(self.defective, 'task')} with a defective gold left out")
        if any(self.errors):
            parts.append(
                f"{counted(sum(self.errors), 'infrastructure error')}, so at worst "
                f"{_signed(self.worst_case)} and at best {_signed(self.best_case)}"
            )
        return "; ".join(parts)

    def to_json(self) -> dict[str, Any]:
        """Return all of it as JSON-able data; what is not defined is None."""
        return {**finite(asdict(self)), "verdict": self.verdict, "resolved": self.resolved,
                "sentence": self.sentence()}  # fmt: skip

    def _scope(self) -> str:
        most = max(self.seeds)
        runs = "" if most == 1 else f" × {most} {'orders' if self.unit == 'order' else 'seeds'}"
        groups = f" in {counted(self.groups, 'group')}" if self.unit == "group" else ""
        return f"{counted(self.tasks, 'task')}{groups}{runs}"

    def _interval(self) -> str:
        if math.isnan(self.low):
            return "no interval"
        return f"95 % {_signed(self.low)} to {_signed(self.high)}"

    def _test(self) -> str:
        if math.isnan(self.p):
            return "no test"
        corrected = f", {_p(self.p_holm)} after Holm" if self.family > 1 else ""
        return f"p {_p(self.p)}{corrected}"

    def _verdict(self) -> str:
        if self.missing:
            return f"incomplete, {counted(self.missing, 'trial')} missing yet"
        if self.resolved:
            return f"{self.first if self.difference > 0 else self.second} is better"
        n = {"task": self.tasks, "group": self.groups}.get(self.unit, min(self.seeds))
        if self.detectable is None:
            return "unresolved"
        shown = f"{self.detectable:.2f}"
        return f"unresolved ({counted(n, self.unit)} would show a difference of {shown} or more)"


def compare_arms(
    first: Iterable[Score],
    second: Iterable[Score],
    *,
    metric: Metric = "strict",
    unit: Unit = "task",
    names: tuple[str, str] | None = None,
    planned: tuple[int, int] | None = None,
) -> Comparison | None:
    """Compare two arms on the tasks that both have judged.

    With one run a task and a metric of right or wrong: McNemar's mid-p and Tango's interval.
    Otherwise each task's runs are averaged first, the interval is an expanded percentile
    bootstrap over tasks or groups, and p comes from turning their signs at random. In a learning
    stream the observation is an order, with Student's t.

    Args:
        first: Trials of the first arm.
        second: Trials of the second arm, the base line.
        metric: What to compare.
        unit: What counts as one observation.
        names: What to call the arms; by default their own names.
        planned: How many trials the first and the second arm are to have; those on disk by default.

    Returns:
        The comparison; None where no task is judged in both arms.
    """
    one, two = list(first), list(second)
    a, b = values_by_task(one, metric), values_by_task(two, metric)
    shared = sorted(a.keys() & b.keys())
    if not shared:
        return None
    a, b = {task: a[task] for task in shared}, {task: b[task] for task in shared}
    mean_a, mean_b = ({t: math.fsum(v) / len(v) for t, v in x.items()} for x in (a, b))
    delta = {task: mean_a[task] - mean_b[task] for task in shared}
    group = {s.task: s.group for s in (*two, *one)}
    judged_a, judged_b = ([s for s in x if s.fate == "judged" and s.task in a] for x in (one, two))
    if in_stream(one) or in_stream(two):
        found = over_orders(judged_a, judged_b, metric)
    elif metric in YES_NO and unit == "task" and one_run_each(a) and one_run_each(b):
        found = by_mcnemar([mean_a[t] > 0 for t in shared], [mean_b[t] > 0 for t in shared])
    else:
        found = over_units(delta, group, unit)
    worst, best = with_errors(one, two, metric)
    to_do = planned or (0, 0)
    every = {s.task for s in (*one, *two)}
    defective = {s.task for s in (*one, *two) if s.fate == "defective"} - set(shared)
    return Comparison(
        first=names[0] if names else one[0].arm,
        second=names[1] if names else two[0].arm,
        metric=metric,
        unit=found.unit,
        tasks=len(shared),
        groups=len({group[task] for task in shared}),
        runs=(len(judged_a), len(judged_b)),
        seeds=(len({s.seed for s in judged_a}), len({s.seed for s in judged_b})),
        first_mean=math.fsum(mean_a.values()) / len(shared),
        second_mean=math.fsum(mean_b.values()) / len(shared),
        difference=found.spread.value,
        low=found.spread.low,
        high=found.spread.high,
        p=found.p,
        p_holm=found.p,
        family=1,
        detectable=found.detectable,
        method=found.method,
        first_better=sum(d > 0 for d in delta.values()),
        second_better=sum(d < 0 for d in delta.values()),
        left_out=len(every - set(shared) - defective),
        defective=len(defective),
        errors=(sum(s.fate == "error" for s in one), sum(s.fate == "error" for s in two)),
        best_case=best,
        worst_case=worst,
        missing=max(0, to_do[0] - len(one)) + max(0, to_do[1] - len(two)),
    )


def adjust(family: Sequence[Comparison], to_come: int = 0) -> tuple[Comparison, ...]:
    """Return comparisons with Holm's correction over all of them that could be tested.

    Args:
        family: The comparisons.
        to_come: How many more belong to the family and have no data yet. They count as the least
            that they can be, so that no result fades when the others come in.
    """
    tested = [c.p for c in family if not math.isnan(c.p)]
    corrected = iter(holm([*tested, *[1.0] * to_come]))
    n = len(tested) + to_come
    return tuple(
        c if math.isnan(c.p) else replace(c, p_holm=next(corrected), family=n) for c in family
    )


def _p(p: float) -> str:
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def _signed(value: float) -> str:
    """Return a difference for people; what rounds to nothing has no minus."""
    text = f"{value:+.2f}"
    return "+0.00" if text == "-0.00" else text
