"""Trials as statistics see them, without trajectories, and what the manifest plans for the arms."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from reasoningbank.analysis.statistics import Interval, bootstrap_mean, t_mean, wilson
from reasoningbank.errors import UsageError
from reasoningbank.experiment import Experiment, TrialRecord, parse_experiment
from reasoningbank.experiment.config import bank_arm, control_of, seeds_of
from reasoningbank.judge import rule_verdict

Metric = Literal["strict", "lenient", "f1"]
Unit = Literal["task", "group"]

#: Metrics that are 0 or 1.
BINARY: frozenset[Metric] = frozenset({"strict", "lenient"})


class Opinions(NamedTuple):
    """The judges' opinions on one attempt."""

    strict: bool
    others: tuple[tuple[str, bool], ...]

    @classmethod
    def of(cls, verdict: Any, judgements: Any) -> Opinions | None:
        """Read a record's verdict and judgements; None if the attempt was not judged."""
        verdict, judgements = verdict or {}, judgements or {}
        if verdict.get("status") == "gold_defect" or not verdict:
            return None
        found = {"rule": (rule_verdict(verdict) or {}).get("success")}
        found |= {name: one.get("success") for name, one in judgements.items()}
        others = tuple((name, yes) for name, yes in found.items() if isinstance(yes, bool))
        return cls(bool(verdict.get("strict")), others)


@dataclass(frozen=True, slots=True)
class Score:
    """A trial as statistics see it.

    Attributes:
        arm: Its arm.
        task: Its task.
        seed: Its seed; in a learning stream, the task permutation.
        group: Its task's template or group; the task itself if it has neither.
        level: Its task's level of generalization; may be empty.
        step: Position in a learning stream; None outside one.
        fate: `judged`, or why it does not count: `error` of the infrastructure, or `defective`
            gold.
        strict: Strict match, 0 or 1.
        lenient: Lenient match, 0 or 1.
        f1: Row F1, in [0, 1].
        executed: Whether its query ran.
        timed_out: Whether the judge's execution of its query timed out; depends on the machine.
        status: How the attempt ended.
        seconds: Wall time of the attempt.
        tokens: Prompt and completion tokens of calls that reached the model.
        dollars: Price, earlier tries included; None if the model has none.
        judge_dollars: Price of other judges; None if none has one.
        lm_calls: Calls that reached the model.
        cached_calls: Calls answered from a cache.
        tries: How often the trial was run.
        opinions: The judges' opinions; None if it was not judged.
        rollouts: The judges' opinions on the other attempts of a sampled trial.
        memory: Snapshot of the bank that it saw; empty without memory.
        tokens_wanted: In a token-matched control, the tokens to spend; else None.
        exhausted: For each attempt that a budget ended: the budget, as a field of `Budget`, or
            `context_window`; `other` in records that do not name it.
    """

    arm: str
    task: str
    seed: int
    group: str
    step: int | None
    fate: Literal["judged", "error", "defective"]
    strict: float
    lenient: float
    f1: float
    executed: bool = True
    status: str = "submitted"
    seconds: float = 0.0
    tokens: int = 0
    dollars: float | None = None
    lm_calls: int = 0
    cached_calls: int = 0
    tries: int = 1
    opinions: Opinions | None = None
    rollouts: tuple[Opinions | None, ...] = ()
    judge_dollars: float | None = None
    memory: str = ""
    tokens_wanted: int | None = None
    exhausted: tuple[str, ...] = ()
    timed_out: bool = False
    level: str = ""

    @classmethod
    def of(cls, record: TrialRecord) -> Score:
        """Read from a record what statistics need."""
        verdict = record.verdict or {}
        outcome = verdict.get("status")
        usage = record.usage
        judging = [(one.get("usage") or {}).get("dollars") for one in record.judgements.values()]
        prices = [price for price in judging if price is not None]
        return cls(
            arm=record.key.arm,
            task=record.key.task,
            seed=record.key.seed,
            group=record.template or record.group or record.key.task,
            level=record.level,
            step=record.step,
            fate="error" if not verdict else "defective" if outcome == "gold_defect" else "judged",
            strict=float(record.strict),
            lenient=float(bool(verdict.get("lenient", record.strict))),
            f1=record.f1,
            executed=outcome in {"judged", "wrong_form"},
            status=record.status,
            seconds=usage.seconds,
            tokens=usage.tokens,
            dollars=(usage + record.wasted).dollars,
            lm_calls=usage.lm_calls,
            cached_calls=usage.cached_calls,
            tries=record.tries,
            opinions=Opinions.of(record.verdict, record.judgements),
            rollouts=tuple(
                Opinions.of(one.get("verdict"), one.get("judgements")) for one in record.rollouts
            ),
            judge_dollars=sum(prices) if prices else None,
            memory=record.memory,
            tokens_wanted=record.tokens_wanted,
            exhausted=tuple(_exhausted(record)),
            timed_out=outcome == "query_timeout",
        )

    def value(self, metric: Metric) -> float:
        """Return the trial's value of a metric, in [0, 1]."""
        return float(getattr(self, metric))


def scores(records: Iterable[TrialRecord]) -> Iterator[Score]:
    """Yield the scores of records, one at a time, keeping no record."""
    return (Score.of(record) for record in records)


def held_out(trials: Iterable[Score]) -> list[Score]:
    """Return the trials outside learning streams: those that are compared."""
    return [trial for trial in trials if trial.step is None]


def in_stream(trials: Iterable[Score]) -> bool:
    """Return whether trials belong to a learning stream."""
    return any(trial.step is not None for trial in trials)


def values_by_task(trials: Iterable[Score], metric: Metric) -> dict[str, list[float]]:
    """Return the values of the judged trials by task."""
    found: dict[str, list[float]] = defaultdict(list)
    for trial in trials:
        if trial.fate == "judged":
            found[trial.task].append(trial.value(metric))
    return dict(found)


def by_permutation(trials: Iterable[Score]) -> dict[int, list[Score]]:
    """Return the trials of a learning stream by task permutation."""
    found: dict[int, list[Score]] = defaultdict(list)
    for trial in trials:
        found[trial.seed].append(trial)
    return dict(found)


def longest(lengths: Mapping[int, int]) -> set[int]:
    """Return the permutations that are as long as the longest one."""
    most = max(lengths.values(), default=0)
    return {permutation for permutation, length in lengths.items() if length == most}


def one_run_each(values: Mapping[str, Sequence[float]]) -> bool:
    """Return whether every task was judged once."""
    return all(len(runs) == 1 for runs in values.values())


def average(trials: Sequence[Score], metric: Metric, unit: Unit) -> Interval:
    """Return the mean over tasks of the mean over a task's runs, with a 95% CI."""
    values = values_by_task(trials, metric)
    if in_stream(trials):
        streams = by_permutation(t for t in trials if t.fate == "judged").values()
        found = t_mean([_mean([t.value(metric) for t in stream]) for stream in streams])
        # max and min would drop a NaN.
        none = math.isnan(found.low)
        low, high = (math.nan, math.nan) if none else (max(found.low, 0.0), min(found.high, 1.0))
        return Interval(found.value, low, high, f"{found.method} over task permutations")
    if metric in BINARY and unit == "task" and one_run_each(values):
        return wilson(round(sum(runs[0] for runs in values.values())), len(values))
    means = {task: _mean(runs) for task, runs in values.items()}
    return _resampled(means, dict.fromkeys(means, 1), trials, unit)


def pooled_rate(trials: Sequence[Score], unit: Unit) -> Interval:
    """Return strict matches by judged trials, with the interval that `average` would give."""
    values = values_by_task(trials, "strict")
    if in_stream(trials) or (unit == "task" and one_run_each(values)):
        return average(trials, "strict", unit)
    sums = {task: sum(runs) for task, runs in values.items()}
    return _resampled(sums, {task: len(runs) for task, runs in values.items()}, trials, unit)


def metric_of(manifest: Mapping[str, Any] | None) -> Metric:
    """Return the primary metric of a run; `strict` if its manifest names none."""
    given = _experiment(manifest).get("metric")
    return given if given in ("strict", "lenient", "f1") else "strict"


def unit_of(manifest: Mapping[str, Any] | None) -> Unit:
    """Return what counts as one observation; `task` if the manifest does not say."""
    return "group" if _experiment(manifest).get("unit") == "group" else "task"


class RunPlan:
    """What a run's manifest plans for its arms; empty without a readable experiment."""

    def __init__(self, manifest: Mapping[str, Any] | None) -> None:
        manifest = manifest or {}
        self.tasks: dict[str, tuple[tuple[str, ...], int]] = {}
        self.streams: dict[str, int] = {}
        self.controls: dict[str, str] | None = None
        self.bank_arms: dict[str, str] = {}
        try:
            experiment: Experiment = parse_experiment(manifest.get("experiment") or {})
        except UsageError:
            # A manifest of an earlier version, or none.
            return
        tasks = tuple(map(str, manifest.get("tasks") or ()))
        length = len(manifest.get("stream") or ())
        self.controls = {}
        for arm in experiment.arms:
            name = arm.name
            seeds = len(seeds_of(experiment, arm))
            if tasks:
                self.tasks[name] = ((arm.tasks or tasks)[: arm.first], seeds)
            if length and (arm.learns or arm.stream):
                self.streams[name] = length * seeds
            if (control := control_of(experiment, arm)) is not None:
                self.controls[name] = control.name
            self.bank_arms[name] = bank_arm(experiment, arm).name

    def trials(self, arm: str) -> int:
        """Return how many held-out trials an arm should have; 0 if unknown."""
        tasks, seeds = self.tasks.get(arm, ((), 0))
        return len(tasks) * seeds


def _experiment(manifest: Mapping[str, Any] | None) -> Mapping[str, Any]:
    return (manifest or {}).get("experiment") or {}


def _exhausted(record: TrialRecord) -> Iterator[str]:
    ends = [(record.status, record.findings)]
    ends += [(one.get("status", ""), one.get("findings") or ()) for one in record.rollouts]
    for status, findings in ends:
        if status == "exhausted":
            fields = (one.get("fields") or {} for one in findings)
            yield next((str(one["budget"]) for one in fields if "budget" in one), "other")


def _resampled(
    sums: Mapping[str, float], sizes: Mapping[str, int], trials: Iterable[Score], unit: Unit
) -> Interval:
    group = {t.task: t.group if unit == "group" else t.task for t in trials}
    total: dict[str, float] = defaultdict(float)
    size: dict[str, float] = defaultdict(float)
    for task, value in sums.items():
        total[group[task]] += value
        size[group[task]] += sizes[task]
    found = bootstrap_mean(list(total.values()), list(size.values()), bounds=(0.0, 1.0))
    return Interval(found.value, found.low, found.high, f"{found.method} over {unit}s")


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)
