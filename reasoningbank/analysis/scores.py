"""Trials as statistics see them, without trajectories, and what the manifest plans for the arms."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import fsum
from statistics import fmean
from typing import Any, Literal

from reasoningbank.analysis import statistics as stats
from reasoningbank.analysis.memory import filtered_out, shown_items
from reasoningbank.errors import UsageError
from reasoningbank.experiment import TrialRecord, parse_experiment
from reasoningbank.experiment.config import bank_arm, control_of, seeds_of
from reasoningbank.judge import RAN, rule_verdict

Metric = Literal["strict", "lenient", "f1"]
Unit = Literal["task", "group"]

#: Metrics that are 0 or 1.
BINARY: frozenset[Metric] = frozenset({"strict", "lenient"})

#: The opinions of the execution judge (by its name, `EXECUTION`) and others on an attempt.
Opinions = Mapping[str, bool]
EXECUTION = "execution"


@dataclass(frozen=True, slots=True)
class Score:
    """A trial as statistics see it."""

    arm: str
    task: str
    seed: int  #: Its seed; in a learning stream, the task permutation
    group: str  #: Its task's template or group; the task itself if it has neither
    step: int | None  #: Position in a learning stream; None outside one
    #: `judged`, or why it does not count: `error` of the infrastructure, or `defective` gold.
    fate: Literal["judged", "error", "defective"]
    strict: float  #: Strict match, 0 or 1
    lenient: float  #: Lenient match, 0 or 1
    f1: float  #: Row F1, in [0, 1]
    executed: bool = True  #: Whether its query ran
    status: str = "submitted"  #: How the attempt ended
    seconds: float = 0.0  #: Wall time of the attempt
    tokens: int = 0  #: Prompt and completion tokens of calls that reached the model
    dollars: float | None = None  #: Price, earlier tries included; None if the model has none
    lm_calls: int = 0  #: Calls that reached the model
    cached_calls: int = 0  #: Calls answered from a cache
    tries: int = 1  #: How often the trial was run
    #: The judges' opinions on each judged attempt, that on the chosen one first.
    opinions: tuple[Opinions, ...] = ()
    sampled: bool = False  #: Whether one of several attempts was chosen
    judge_dollars: float | None = None  #: Price of other judges; None if none has one
    memory: str = ""  #: Snapshot of the bank that it saw; empty without memory
    tokens_wanted: int | None = None  #: In a token-matched control, the tokens to spend; else None
    #: For each attempt that a budget ended: the budget, as a field of `Budget`, or
    #: `context_window`; `other` in records that do not name it.
    exhausted: tuple[str, ...] = ()
    #: Whether the judge's execution of its query timed out; depends on the machine.
    timed_out: bool = False
    level: str = ""  #: Its task's level of generalization; may be empty
    items_shown: int = 0  #: Different memory items that it was shown
    tokens_shown: float = 0  #: Their tokens, with those of demonstrations
    retrieval_seconds: float = 0.0  #: Duration of retrieval
    filtered_out: int = 0  #: Memory items that the leakage filter removed
    demonstrated: bool = False  #: Whether it was shown a demonstration

    @classmethod
    def of(cls, record: TrialRecord) -> Score:
        """Read from a record what statistics need."""
        verdict = record.verdict or {}
        outcome = verdict.get("status")
        usage = record.usage
        judging = [(one.get("usage") or {}).get("dollars") for one in record.judgements.values()]
        prices = [price for price in judging if price is not None]
        retrievals, attempts = record.trajectory.of("memory_retrieved"), record.attempts()
        return cls(
            arm=record.key.arm,
            task=record.key.task,
            seed=record.key.seed,
            group=record.template or record.group or record.key.task,
            level=record.level,
            step=record.step,
            fate="judged" if record.judged else "defective" if verdict else "error",
            strict=float(record.strict),
            lenient=float(bool(verdict.get("lenient", record.strict))),
            f1=record.f1,
            executed=outcome in RAN,
            status=record.status,
            seconds=usage.seconds,
            tokens=usage.tokens,
            dollars=(usage + record.wasted).dollars,
            lm_calls=usage.lm_calls,
            cached_calls=usage.cached_calls,
            tries=record.tries,
            opinions=tuple(_opinions(attempts)),
            sampled=bool(record.rollouts),
            judge_dollars=sum(prices) if prices else None,
            memory=record.memory,
            tokens_wanted=record.tokens_wanted,
            exhausted=tuple(a.budget or "other" for a in attempts if a.status == "exhausted"),
            timed_out=outcome == "query_timeout",
            items_shown=len(shown_items(record)),
            tokens_shown=sum(event.data.get("tokens") or 0 for event in retrievals),
            retrieval_seconds=sum(event.seconds for event in retrievals),
            filtered_out=sum(len(filtered_out(event.data)) for event in retrievals),
            demonstrated=any(event.data.get("demonstrations") for event in retrievals),
        )

    def value(self, metric: Metric) -> float:
        """Return the trial's value of a metric, in [0, 1]."""
        return float(getattr(self, metric))


def _opinions(attempts: Iterable[TrialRecord]) -> Iterator[Opinions]:
    for attempt in attempts:
        if attempt.judged:
            found: dict[str, Any] = {EXECUTION: attempt.strict}
            found["rule"] = (rule_verdict(attempt.verdict or {}) or {}).get("success")
            found |= {name: one.get("success") for name, one in attempt.judgements.items()}
            yield {name: yes for name, yes in found.items() if isinstance(yes, bool)}


def in_stream(trials: Iterable[Score]) -> bool:
    """Return whether trials belong to a learning stream."""
    return any(trial.step is not None for trial in trials)


def values_by_task(
    trials: Iterable[Score], metric: Metric, error: float | None = None
) -> dict[str, list[float]]:
    """Return the values of the judged trials by task; `error` is the value of errors, if any."""
    found: dict[str, list[float]] = defaultdict(list)
    for trial in trials:
        if trial.fate == "judged":
            found[trial.task].append(trial.value(metric))
        elif trial.fate == "error" and error is not None:
            found[trial.task].append(error)
    return dict(found)


def by_permutation(trials: Iterable[Score]) -> dict[int, list[Score]]:
    """Return the trials of a learning stream by task permutation."""
    found: dict[int, list[Score]] = defaultdict(list)
    for trial in trials:
        found[trial.seed].append(trial)
    return dict(found)


def whole_streams(trials: Iterable[Score]) -> list[Score]:
    """Return the trials of the permutations that are as long as the longest one."""
    streams = by_permutation(trials).values()
    most = max(map(len, streams), default=0)
    return [trial for stream in streams if len(stream) == most for trial in stream]


def curve_of(trials: Iterable[Score], metric: Metric) -> stats.LearningCurve:
    """Return the metric along the stream of an arm."""
    values: dict[int, dict[int, float]] = defaultdict(dict)
    for trial in trials:
        if trial.step is not None and trial.fate == "judged":
            values[trial.seed][trial.step] = trial.value(metric)
    return stats.learning_curve(values)


def one_run_each(values: Mapping[str, Sequence[float]]) -> bool:
    """Return whether every task was judged once."""
    return all(len(runs) == 1 for runs in values.values())


def average(trials: Sequence[Score], metric: Metric, unit: Unit) -> stats.Interval:
    """Return the mean over tasks of the mean over a task's runs, with a 95% CI."""
    if in_stream(trials):
        streams = by_permutation(t for t in trials if t.fate == "judged").values()
        means = [fmean(t.value(metric) for t in stream) for stream in streams]
        found, over = stats.t_mean(means, (0.0, 1.0)), "task permutations"
        return stats.Interval(found.rate, found.low, found.high, f"{found.method} over {over}")
    values = values_by_task(trials, metric)
    binary = metric in BINARY and one_run_each(values)
    averaged = {task: [fmean(runs)] for task, runs in values.items()}
    return pooled_mean(averaged, group_of(trials, unit), binary=binary)


def pooled_rate(trials: Sequence[Score], unit: Unit) -> stats.Interval:
    """Return strict matches by judged trials, with the interval that `average` would give."""
    if in_stream(trials):
        return average(trials, "strict", unit)
    return pooled_mean(values_by_task(trials, "strict"), group_of(trials, unit))


def pooled_mean(
    values: Mapping[str, Sequence[float]],
    groups: Mapping[str, str] | None = None,
    *,
    binary: bool = True,
) -> stats.Interval:
    """Return the mean of all values of all tasks.

    With one binary value per task it has Wilson's interval; otherwise whole tasks, or the groups
    that they belong to, are resampled.
    """
    if binary and groups is None and one_run_each(values):
        return stats.wilson(round(sum(runs[0] for runs in values.values())), len(values))
    found = stats.bootstrap_mean(*sums_of(values, groups), bounds=(0.0, 1.0))
    unit = "groups" if groups is not None else "tasks"
    return stats.Interval(found.rate, found.low, found.high, f"{found.method} over {unit}")


def sums_of(
    values: Mapping[str, Sequence[float]], groups: Mapping[str, str] | None
) -> tuple[list[float], list[float]]:
    """Return the sum and the number of the values of each task, or of each group of tasks."""
    units: dict[str, list[float]] = defaultdict(list)
    for task, runs in values.items():
        units[groups[task] if groups else task] += runs
    return [fsum(unit) for unit in units.values()], [float(len(unit)) for unit in units.values()]


def group_of(trials: Iterable[Score], unit: Unit) -> dict[str, str] | None:
    """Return the group of each task; None if tasks are the observations."""
    return {trial.task: trial.group for trial in trials} if unit == "group" else None


class RunPlan:
    """What a run's manifest says of its experiment.

    One of an earlier version, or none, has settings as far as they are there, and plans nothing.
    """

    def __init__(self, manifest: Mapping[str, Any] | None) -> None:
        manifest = manifest or {}
        self.settings: Mapping[str, Any] = manifest.get("experiment") or {}
        self.arms = {str(arm.get("name")): arm for arm in self.settings.get("arms") or ()}
        metric, unit = self.settings.get("metric"), self.settings.get("unit")
        self.metric: Metric = metric if metric in ("strict", "lenient", "f1") else "strict"
        self.unit: Unit = "group" if unit == "group" else "task"
        self.tasks: dict[str, tuple[tuple[str, ...], int]] = {}
        self.streams: dict[str, int] = {}
        self.controls: dict[str, str] | None = None
        self.bank_arms: dict[str, str] = {}
        try:
            experiment = parse_experiment(self.settings)
        except UsageError:
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

    def trials(self, arm: str, without: Collection[str] = ()) -> int:
        """Return how many held-out trials an arm should have, but those of tasks; 0 if unknown."""
        tasks, seeds = self.tasks.get(arm, ((), 0))
        return seeds * sum(task not in without for task in tasks)
