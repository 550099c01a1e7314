"""A run in numbers: one line per arm, the pre-registered comparison, streams, and memory.

Comparisons use held-out trials only. Trials in learning streams are practice, since their bank was
still growing; they are summarised separately.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from reasoningbank.analysis.comparison import ArmComparison, adjust, compare_arms
from reasoningbank.analysis.leakage import Leakage, LeakageAudit
from reasoningbank.analysis.memory import (
    ArmMemory,
    MemoryRecords,
    cause_of_failure,
    memory_of_arms,
    stream_levels,
)
from reasoningbank.analysis.scores import (
    BINARY,
    EXECUTION,
    Metric,
    RunPlan,
    Score,
    Unit,
    average,
    by_permutation,
    curve_of,
    in_stream,
    pooled_rate,
    whole_streams,
)
from reasoningbank.analysis.statistics import (
    Interval,
    LearningCurve,
    median_and_p95,
    pass_all_k,
    pass_at_k,
)
from reasoningbank.analysis.tables import jsonable
from reasoningbank.corpus import LEVELS
from reasoningbank.experiment import RunFolder, TrialRecord
from reasoningbank.experiment.manifest import CodeChange, code_changes
from reasoningbank.judge import Agreement, agreement


@dataclass(frozen=True)
class Passes:
    """Several runs of a task."""

    k: int
    tasks: int
    one: float
    all: float


@dataclass(frozen=True)
class SampledTrials:
    """Trials with several attempts, one of which was chosen."""

    trials: int
    attempts: int
    each: float
    any: float
    chosen: float
    spent: float | None = None
    least: float | None = None


@dataclass(frozen=True)
class ArmSummary:
    """One arm of a run."""

    arm: str
    trials: int  #: Trials on disk, including infrastructure errors
    judged: int  #: Trials that count: all but infrastructure errors and defective gold queries
    errors: int  #: Trials ended by an infrastructure error
    defective: int  #: Trials on a task with a defective gold query
    tasks: int  #: Tasks with a judged trial
    seeds: int  #: Seeds (repeats, or task permutations) with a judged trial
    strict: int  #: Strict matches
    #: Strict matches by judged trials: Wilson's interval with one run per task, else a bootstrap
    #: over tasks or groups.
    rate: Interval
    metric: str  #: The primary metric
    mean: Interval  #: Its mean over tasks, of the mean over a task's runs, with a 95% CI
    f1: float  #: Mean row F1 of the judged trials
    executed: int  #: Judged trials whose query ran
    timed_out: int  #: Judged trials whose query timed out; depends on the load of the machine
    statuses: Mapping[str, int]  #: Trials by how the attempt ended
    #: Attempts ended by a budget, by budget; all attempts of sampled trials count.
    exhausted: Mapping[str, int]
    seconds: tuple[float, float]  #: Median and p95 of the seconds of a trial
    #: Median and p95 of its prompt and completion tokens; cached calls have none.
    tokens: tuple[float, float]
    dollars: float | None  #: Sum over all trials with a price; None if none has one
    dollars_each: tuple[float, float]  #: Median and p95 of a trial's price; NaN if none has one
    judge_dollars: float | None  #: Cost of other judges; None if none has a price
    unpriced: int  #: Trials whose model has no price
    lm_calls: int  #: Calls that reached the model, of all trials
    cached_calls: int  #: Calls answered by a cache, of all trials
    retried: int  #: Trials that were run more than once because of the infrastructure
    #: pass@k and pass^k by strict match (lenient if that is the metric), for each k from 2 to the
    #: most runs of a task. Empty if runs saw different banks: task permutations are not repeats.
    passes: tuple[Passes, ...]
    sampled: SampledTrials | None  #: The trials with several attempts; None without any
    #: For each other judge, its agreement with the execution judge's strict match over all
    #: attempts, with the plain rule for comparison.
    judges: Mapping[str, Agreement]
    best_case: float  #: Mean metric if every infrastructure error had been a success
    worst_case: float  #: The same if every one had been a failure
    templates: int = 0  #: Templates (or groups) of the tasks with a judged trial
    level: str = ""  #: The level of generalization of these trials; empty for all


@dataclass(frozen=True)
class Online:
    """The learning streams of a run.

    Permutations shorter than the longest of their arm are left out of all but `judges`: their
    means cover only the beginning.
    """

    #: One line per arm with a stream; the replicate is a task permutation.
    arms: tuple[ArmSummary, ...]
    #: The metric along the stream, by arm: the mean of all tasks so far, with its band over
    #: permutations.
    curves: Mapping[str, LearningCurve]
    #: Every learning arm against the arm that differs only in memory, by permutations, with Holm's
    #: correction. If the control did not run a permutation, its first one is used instead, since
    #: without memory a trial does not depend on earlier ones. The difference is then reported and
    #: not tested.
    comparisons: tuple[ArmComparison, ...]
    #: Every other judge and the plain rule against the execution judge, over all attempts of all
    #: streams.
    judges: Mapping[str, Agreement]
    #: Every arm's stream at every level that its tasks have, relative to the tasks before them.
    levels: tuple[ArmSummary, ...] = ()
    #: The curves of the tasks of each level, by level and arm.
    level_curves: Mapping[str, Mapping[str, LearningCurve]] = field(default_factory=dict)
    errors: int = 0  #: Trials of all streams ended by the infrastructure; they count nowhere else
    defective: int = 0  #: Trials of all streams with a defective gold query; likewise


@dataclass(frozen=True)
class RunSummary:
    """A run in numbers."""

    leakage: Leakage  #: The result of the leakage audit
    arms: tuple[ArmSummary, ...]  #: Its arms by their held-out trials, in the requested order
    metric: str = "strict"  #: The primary metric
    unit: str = "task"  #: What counts as one observation
    #: Every arm at every level of generalization that its tasks have.
    levels: tuple[ArmSummary, ...] = ()
    level: str = ""  #: The level of the pre-registered pairs; empty for all
    #: The pre-registered comparison over held-out trials; None if there is none, or no task is
    #: judged in both arms. It stands alone and is not corrected.
    comparison: ArmComparison | None = None
    #: Further pre-registered pairs, uncorrected: a claim that needs all of them needs no correction
    #: for their number.
    claims: tuple[ArmComparison, ...] = ()
    #: Pre-registered pairs without a task judged in both arms yet.
    waiting: tuple[tuple[str, str], ...] = ()
    #: Every other arm against the baseline (the second arm of the pre-registered comparison), with
    #: Holm's correction over these, including those without trials yet.
    others: tuple[ArmComparison, ...] = ()
    online: Online | None = None  #: The learning streams; None without any
    memory: tuple[ArmMemory, ...] = ()  #: What memory did, for each arm with one
    #: What optimizers compiled, for each arm and seed: cost, and what they changed.
    compiled: tuple[Mapping[str, Any], ...] = ()
    code: tuple[CodeChange, ...] = ()  #: When the run continued with changed code, oldest first
    #: Trials that had been judged and were run again, by arm.
    replaced: Mapping[str, int] = field(default_factory=dict)
    #: Wrong i.i.d. trials of each arm with a memory, by cause.
    failures: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    @property
    def registered(self) -> list[ArmComparison]:
        """The pre-registered comparisons that have data."""
        return [one for one in (self.comparison, *self.claims) if one is not None]

    @property
    def held(self) -> int:
        """How many pre-registered pairs are resolved in favour of the first arm."""
        return sum(one.resolved and one.difference > 0 for one in self.registered)

    def preregistered_lines(self) -> list[str]:
        """Return one line per pre-registered pair, and one for several of them together."""
        head = f"pre-registered, {self.level}" if self.level else "pre-registered"
        lines = [f"{head}: {one.sentence()}" for one in self.registered]
        lines += [
            f"{head}: {first} against {second}: no task is judged in both yet"
            for first, second in self.waiting
        ]
        if len(lines) > 1:
            lines.append(
                f"{self.held} of {len(lines)} pre-registered pairs resolved in favour of the first "
                "arm; a claim based on several holds if all of them do"
            )
        return lines

    def to_json(self) -> dict[str, Any]:
        """Return the summary as JSON-able data; undefined numbers are None."""
        return dict(jsonable(vars(self)))


def summarise(
    records: Iterable[TrialRecord],
    arms: Iterable[str] = (),
    comparison: tuple[str, str] | None = None,
    *,
    metric: Metric = "strict",
    unit: Unit = "task",
    claims: Sequence[tuple[str, str]] = (),
    manifest: Mapping[str, Any] | None = None,
    memory: MemoryRecords | None = None,
) -> RunSummary:
    """Summarise trials by arm.

    Args:
        records: The trials of a run.
        arms: Order of the arms; others follow in the order of their trials.
        comparison: The two arms of the pre-registered comparison; the second is the baseline of
            every other comparison.
        metric: The primary metric.
        unit: What counts as one observation.
        claims: Further pre-registered pairs of arms.
        manifest: The run's manifest, if there is one.
        memory: The run's banks and streams, if it has any.
    """
    manifest, memory = manifest or {}, memory or MemoryRecords()
    audit, plan = LeakageAudit(manifest, memory), RunPlan(manifest)
    by_arm: dict[str, list[Score]] = {name: [] for name in arms}
    golds: dict[str, str] = {}
    failures: dict[str, Counter[str]] = defaultdict(Counter)
    for record in records:
        audit.add(record)
        score = Score.of(record)
        by_arm.setdefault(score.arm, []).append(score)
        if record.step is not None:
            golds[record.key.task] = record.gold
        elif cause := cause_of_failure(record, memory.patterns):
            failures[score.arm][cause] += 1
    places = [(t.seed, t.step, t.task) for ts in by_arm.values() for t in ts if t.step is not None]
    found = stream_levels(places, golds, memory.begun_with())
    by_arm = {
        name: [t if t.level or t.step is None
               else replace(t, level=found.get((t.seed, t.task), "")) for t in trials]
        for name, trials in by_arm.items()
    }  # fmt: skip
    tested = {name: [t for t in trials if t.step is None] for name, trials in by_arm.items()}

    level = str(plan.settings.get("level") or "")
    # Manifests of earlier versions hold no levels, but trials do.
    known = dict(manifest.get("levels") or {})
    known |= {t.task: t.level for one in tested.values() for t in one}
    elsewhere = {task for task, its_level in known.items() if its_level not in (level, "")}

    def compared(first: str, second: str, level: str = "") -> ArmComparison | None:
        others = elsewhere if level else ()
        planned = (plan.trials(first, others), plan.trials(second, others))
        one, two = (
            [t for t in tested.get(name, ()) if not level or t.level == level]
            for name in (first, second)
        )
        return compare_arms(one, two, metric=metric, unit=unit, planned=planned)

    pairs = ([comparison] if comparison else []) + list(claims)
    registered = {pair: compared(*pair, level=level) for pair in pairs}
    rivals = [(name, comparison[1]) for name in tested if comparison and name not in comparison]
    others = [compared(*pair) for pair in rivals if pair not in registered]
    there = [one for one in others if one is not None]
    again = (str(one.get("trial")) for one in manifest.get("replaced") or ())
    return RunSummary(
        leakage=audit.finish(),
        arms=tuple(
            _summarise_arm(name, trials, metric, unit) for name, trials in tested.items() if trials
        ),
        metric=metric,
        unit=unit,
        levels=_by_level(tested, metric, unit),
        level=level,
        comparison=registered[comparison] if comparison else None,
        claims=tuple(one for pair in claims if (one := registered[pair]) is not None),
        waiting=tuple(pair for pair, one in registered.items() if one is None),
        others=adjust(there, to_come=len(others) - len(there)),
        online=_summarise_streams(by_arm, metric, unit, plan),
        memory=tuple(memory_of_arms(by_arm, plan.arms, memory)),
        code=code_changes(manifest),
        # A trial that was run twice counts twice.
        replaced=dict(Counter(trial.partition("/")[0] for trial in again)),
        failures={name: dict(causes) for name, causes in failures.items()},
    )


def summarise_run(
    folder: RunFolder,
    records: Iterable[TrialRecord] | None = None,
    memory: MemoryRecords | None = None,
) -> RunSummary:
    """Summarise a run as its manifest says.

    Args:
        folder: The run.
        records: Its trials, if they are being read anyway; by default all readable ones.
        memory: Its banks and streams, if they were read anyway.
    """
    plan = RunPlan(manifest := folder.manifest)
    pair = plan.settings.get("comparison")
    memory = MemoryRecords.read(folder) if memory is None else memory
    summary = summarise(
        folder.trials(skip_damaged=True) if records is None else records,
        plan.arms,
        (str(pair[0]), str(pair[1])) if pair else None,
        metric=plan.metric,
        unit=plan.unit,
        claims=[(str(one), str(other)) for one, other in plan.settings.get("claims") or ()],
        manifest=manifest,
        memory=memory,
    )
    return replace(summary, compiled=tuple(map(_compiled, memory.programs)))


def _compiled(found: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is said of a compiled agent; its programs are counted."""
    before, programs = found["before"], found["programs"]
    parts = [(name, part) for program in programs.values() for name, part in program.items()]
    new = sum(part["instructions"] != before[name]["instructions"] for name, part in parts)
    demos = sum(len(part["demos"]) for _, part in parts) / len(programs)
    kept = {name: one for name, one in found.items() if name not in ("before", "programs")}
    return {**kept, "programs": len(programs), "demonstrations": demos, "new_instructions": new}


def _summarise_arm(
    name: str, trials: Sequence[Score], metric: Metric, unit: Unit, level: str = ""
) -> ArmSummary:
    judged = [t for t in trials if t.fate == "judged"]
    errors = sum(t.fate == "error" for t in trials)
    total = math.fsum(t.value(metric) for t in judged)
    tried = len(judged) + errors
    prices = [t.dollars for t in trials if t.dollars is not None]
    judging = [t.judge_dollars for t in trials if t.judge_dollars is not None]
    return ArmSummary(
        arm=name,
        level=level,
        trials=len(trials),
        judged=len(judged),
        errors=errors,
        defective=len(trials) - tried,
        tasks=len({t.task for t in judged}),
        templates=len({t.group for t in judged}),
        seeds=len({t.seed for t in judged}),
        strict=sum(t.strict > 0 for t in judged),
        rate=pooled_rate(trials, unit),
        metric=metric,
        mean=average(trials, metric, unit),
        f1=math.fsum(t.f1 for t in judged) / len(judged) if judged else 0.0,
        executed=sum(t.executed for t in judged),
        timed_out=sum(t.timed_out for t in judged),
        statuses=dict(Counter(t.status for t in trials)),
        exhausted=dict(Counter(cause for t in trials for cause in t.exhausted).most_common()),
        seconds=median_and_p95([t.seconds for t in judged]),
        tokens=median_and_p95([float(t.tokens) for t in judged]),
        dollars=math.fsum(prices) if prices else None,
        dollars_each=median_and_p95([t.dollars for t in judged if t.dollars is not None]),
        judge_dollars=math.fsum(judging) if judging else None,
        unpriced=sum(t.dollars is None and t.lm_calls > 0 for t in trials),
        lm_calls=sum(t.lm_calls for t in trials),
        cached_calls=sum(t.cached_calls for t in trials),
        retried=sum(t.tries > 1 for t in trials),
        passes=_passes(judged, metric if metric in BINARY else "strict"),
        sampled=_sampled(judged),
        judges=_agreements(judged),
        best_case=(total + errors) / tried if tried else math.nan,
        worst_case=total / tried if tried else math.nan,
    )


def _by_level(
    arms: Mapping[str, Sequence[Score]], metric: Metric, unit: Unit
) -> tuple[ArmSummary, ...]:
    """Summarise every arm at every level that its judged trials have."""
    pairs = [(level, arm, [t for t in arms[arm] if t.level == level])
             for level in LEVELS for arm in arms]  # fmt: skip
    return tuple(
        _summarise_arm(arm, trials, metric, unit, level)
        for level, arm, trials in pairs
        if any(t.fate == "judged" for t in trials)
    )


def _passes(judged: Sequence[Score], metric: Metric) -> tuple[Passes, ...]:
    if in_stream(judged) or len({t.memory for t in judged}) > 1:
        return ()
    runs = Counter(t.task for t in judged)
    right = Counter(t.task for t in judged if t.value(metric) > 0)
    found = []
    for k in range(2, max(runs.values(), default=0) + 1):
        tasks = [task for task, n in runs.items() if n >= k]
        one = math.fsum(pass_at_k(runs[t], right[t], k) for t in tasks) / len(tasks)
        every = math.fsum(pass_all_k(runs[t], right[t], k) for t in tasks) / len(tasks)
        found.append(Passes(k, len(tasks), one, every))
    return tuple(found)


def _sampled(judged: Sequence[Score]) -> SampledTrials | None:
    tries = [[one[EXECUTION] for one in t.opinions] for t in judged if t.sampled or t.tokens_wanted]
    if not tries:
        return None
    matched = [(t.tokens, t.tokens_wanted) for t in judged if t.tokens_wanted]
    wanted = sum(most for _, most in matched)
    return SampledTrials(
        trials=len(tries),
        attempts=sum(map(len, tries)),
        each=math.fsum(sum(one) / len(one) for one in tries) / len(tries),
        any=sum(any(one) for one in tries) / len(tries),
        chosen=sum(one[0] for one in tries) / len(tries),
        spent=sum(spent for spent, _ in matched) / wanted if matched else None,
        least=min((spent / most for spent, most in matched), default=None),
    )


def _agreements(judged: Iterable[Score], *, rule_alone: bool = False) -> dict[str, Agreement]:
    """Compare every other judge with the execution judge; the rule alone only if asked for."""
    pairs: dict[str, list[tuple[bool, bool]]] = defaultdict(list)
    for trial in judged:
        for opinions in trial.opinions:
            for name in opinions.keys() - {EXECUTION}:
                pairs[name].append((opinions[EXECUTION], opinions[name]))
    if set(pairs) == {"rule"} and not rule_alone:
        return {}
    return {name: agreement(pairs[name]) for name in sorted(pairs)}


def _summarise_streams(
    by_arm: Mapping[str, Sequence[Score]], metric: Metric, unit: Unit, plan: RunPlan
) -> Online | None:
    by_arm = {name: [t for t in ts if t.step is not None] for name, ts in by_arm.items()}
    everything = [trial for trials in by_arm.values() for trial in trials]
    streams = {name: whole_streams(trials) for name, trials in by_arm.items() if trials}
    if not streams:
        return None
    without = [name for name, trials in streams.items() if not any(t.memory for t in trials)]
    controls = plan.controls
    if controls is None:
        controls = dict.fromkeys(streams, without[0]) if without else {}
    to_do = {
        name: max(0, plan.streams.get(name, 0) - len(trials)) for name, trials in by_arm.items()
    }
    found = [
        _against_control(trials, streams[other], metric, unit, to_do[name] + to_do[other])
        for name, trials in streams.items()
        if name not in without and (other := controls.get(name, "")) in streams
    ]

    def curves(level: str) -> dict[str, LearningCurve]:
        own = {name: [t for t in ts if level in ("", t.level)] for name, ts in streams.items()}
        found = {name: curve_of(trials, metric) for name, trials in own.items()}
        return {name: curve for name, curve in found.items() if curve.mean}

    return Online(
        arms=tuple(_summarise_arm(name, trials, metric, unit) for name, trials in streams.items()),
        curves=curves(""),
        levels=_by_level(streams, metric, unit),
        level_curves={level: curves(level) for level in LEVELS},
        comparisons=adjust([one for one in found if one is not None]),
        judges=_agreements(everything, rule_alone=True),
        errors=sum(trial.fate == "error" for trial in everything),
        defective=sum(trial.fate == "defective" for trial in everything),
    )


def _against_control(
    learned: Sequence[Score], control: Sequence[Score], metric: Metric, unit: Unit, to_do: int
) -> ArmComparison | None:
    """Compare a learning arm with its control, in every permutation of the learning arm."""
    known = by_permutation(control)
    missing = sorted({trial.seed for trial in learned} - set(known))
    stand_in = [replace(t, seed=seed) for seed in missing for t in known[min(known)]]
    found = compare_arms(learned, [*control, *stand_in], metric=metric, unit=unit)
    if found is None:
        return None
    found = replace(found, missing=to_do)
    alone = compare_arms(learned, control, metric=metric, unit=unit) if missing else None
    if alone is None:
        return found
    method = f"not tested: {found.second} ran {len(known)} of these task permutations"
    nothing: dict[str, Any] = dict.fromkeys(("low", "high", "p", "p_holm"), math.nan)
    same: dict[str, Any] = {name: getattr(alone, name) for name in ("runs", "seeds", "errors")}
    return replace(found, **nothing, **same, detectable=None, method=method)
