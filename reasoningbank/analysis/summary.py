"""A run in numbers: one line an arm, the comparison stated beforehand, and what memory did.

Comparisons are made of held-out trials alone. What happened in learning streams stands apart: its
trials are practice, and a task met there was met with a bank that was still growing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from reasoningbank.analysis.arm_summary import ArmSummary, agreements, summarise_arm
from reasoningbank.analysis.averages import in_stream
from reasoningbank.analysis.comparison import Comparison, adjust, compare_arms
from reasoningbank.analysis.leakage import Leakage, LeakageAudit
from reasoningbank.analysis.learning import curves_of
from reasoningbank.analysis.memory_records import MemoryRecords
from reasoningbank.analysis.memory_summary import ArmMemory, MemoryTally
from reasoningbank.analysis.scores import METRICS, Metric, Score, Unit, held_out, in_streams
from reasoningbank.analysis.statistics import LearningCurve
from reasoningbank.errors import UsageError
from reasoningbank.experiment import RunFolder, TrialRecord
from reasoningbank.experiment.code_history import CodeChange, code_changes
from reasoningbank.experiment.config import parse_experiment
from reasoningbank.experiment.memory_config import control_of
from reasoningbank.judge import Agreement

__all__ = ["Online", "RunSummary", "summarise", "summarise_run"]


@dataclass(frozen=True)
class Online:
    """What happened in the learning streams of a run.

    Attributes:
        arms: One line an arm that has a stream; the replicate is an order.
        curves: The metric along the stream, by arm: the mean of all tasks so far, with its band
            over orders.
        comparisons: Every arm that learns against the arm without memory that runs the stream and
            is alike in all else, by orders, with Holm's correction over them; an arm that has no
            such other is in none. An order that the latter did not run is taken to be as its
            first: without memory nothing depends on what was met before.
        judges: Every other judge and the plain rule against the execution judge, over all
            attempts of all streams.
    """

    arms: tuple[ArmSummary, ...]
    curves: Mapping[str, LearningCurve]
    comparisons: tuple[Comparison, ...]
    judges: Mapping[str, Agreement]

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON-able data; what is not defined is None."""
        return {
            "arms": [_arm_json(arm) for arm in self.arms],
            "curves": {name: _finite(asdict(curve)) for name, curve in self.curves.items()},
            "comparisons": [found.to_json() for found in self.comparisons],
            "judges": {name: found.to_json() for name, found in self.judges.items()},
        }


@dataclass(frozen=True)
class RunSummary:
    """A run in numbers.

    Attributes:
        leakage: What the audit found: whether any trial was shown what it should not have been.
        arms: Its arms by their held-out trials, in the order asked for.
        metric: The primary metric.
        unit: What counts as one observation.
        comparison: The comparison stated beforehand, over held-out trials; None where none was,
            or where no task is judged in both arms. It stands alone and is not corrected.
        claims: The further pairs that were stated beforehand, each told as it is: a claim that
            rests on all of them needs no correction for their number.
        others: Every other arm against the base line (the second of the stated comparison), with
            Holm's correction over these.
        online: What happened in learning streams; None without any.
        memory: What memory did, for each arm that has one.
        code: When the run went on with other code than before, oldest first.
    """

    leakage: Leakage
    arms: tuple[ArmSummary, ...]
    metric: str = "strict"
    unit: str = "task"
    comparison: Comparison | None = None
    claims: tuple[Comparison, ...] = ()
    others: tuple[Comparison, ...] = ()
    online: Online | None = None
    memory: tuple[ArmMemory, ...] = ()
    code: tuple[CodeChange, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the summary as JSON-able data; what is not defined is None."""
        return {
            "leakage": self.leakage.to_json(),
            "arms": [_arm_json(arm) for arm in self.arms],
            "metric": self.metric,
            "unit": self.unit,
            "comparison": self.comparison.to_json() if self.comparison else None,
            "claims": [claim.to_json() for claim in self.claims],
            "others": [other.to_json() for other in self.others],
            "online": self.online.to_json() if self.online else None,
            "memory": [_finite(asdict(arm)) for arm in self.memory],
            "code": [change._asdict() for change in self.code],
        }


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

    Records are read one at a time and only their scores are kept.

    Args:
        records: The trials of a run.
        arms: Order of the arms; arms not named follow in the order they are met.
        comparison: The two arms whose comparison was stated beforehand; the second is the base
            line of every other comparison.
        metric: The primary metric.
        unit: What counts as one observation where something is drawn again.
        claims: Further pairs of arms that were stated beforehand.
        manifest: The run's manifest, where there is one.
        memory: The run's banks and streams, where it has such.
    """
    audit, tally = LeakageAudit(manifest, memory), MemoryTally(manifest, memory)
    by_arm: dict[str, list[Score]] = {name: [] for name in arms}
    for record in records:
        audit.add(record)
        tally.add(record)
        score = Score.of(record)
        by_arm.setdefault(score.arm, []).append(score)
    tested = {name: held_out(trials) for name, trials in by_arm.items()}

    def compared(pairs: Iterable[tuple[str, str]]) -> tuple[Comparison, ...]:
        found = (
            compare_arms(tested.get(first, []), tested.get(second, []), metric=metric, unit=unit)
            for first, second in pairs
        )
        return tuple(one for one in found if one is not None)

    stated: tuple[Comparison, ...] = ()
    others: tuple[Comparison, ...] = ()
    if comparison is not None:
        stated = compared([comparison])
        others = compared((name, comparison[1]) for name in tested if name not in comparison)
    return RunSummary(
        leakage=audit.finish(),
        arms=_arms(tested, metric, unit),
        metric=metric,
        unit=unit,
        comparison=stated[0] if stated else None,
        claims=compared(claims),
        others=adjust(others),
        online=_online(
            {name: in_streams(t) for name, t in by_arm.items()}, metric, unit, _controls(manifest)
        ),
        memory=tally.finish(by_arm),
        code=code_changes(manifest or {}),
    )


def summarise_run(
    folder: RunFolder,
    records: Iterable[TrialRecord] | None = None,
    memory: MemoryRecords | None = None,
) -> RunSummary:
    """Summarise a run as its manifest says.

    Args:
        folder: The run.
        records: Its trials, where they are being read anyway; trials that cannot be read are
            left out otherwise.
        memory: Its banks and streams, where they were read anyway.
    """
    manifest = folder.manifest or {}
    experiment = manifest.get("experiment") or {}
    pair = experiment.get("comparison")
    stated = experiment.get("metric")
    return summarise(
        folder.trials(skip_damaged=True) if records is None else records,
        [str(arm["name"]) for arm in experiment.get("arms") or ()],
        (str(pair[0]), str(pair[1])) if pair else None,
        metric=next((metric for metric in METRICS if metric == stated), "strict"),
        unit="group" if experiment.get("unit") == "group" else "task",
        claims=[(str(first), str(second)) for first, second in experiment.get("claims") or ()],
        manifest=manifest,
        memory=MemoryRecords.read(folder) if memory is None else memory,
    )


def _arms(
    by_arm: Mapping[str, Sequence[Score]], metric: Metric, unit: Unit
) -> tuple[ArmSummary, ...]:
    return tuple(
        summarise_arm(name, trials, metric, unit) for name, trials in by_arm.items() if trials
    )


def _controls(manifest: Mapping[str, Any] | None) -> dict[str, str] | None:
    """Return, for each arm that has one, the arm that is alike in all but memory.

    None where the manifest does not say what the arms are.
    """
    try:
        experiment = parse_experiment((manifest or {}).get("experiment") or {})
    except UsageError:
        return None
    found = ((arm, control_of(experiment, arm)) for arm in experiment.arms)
    return {arm.name: control.name for arm, control in found if control is not None}


def _online(
    by_arm: Mapping[str, Sequence[Score]],
    metric: Metric,
    unit: Unit,
    controls: Mapping[str, str] | None,
) -> Online | None:
    streams = {name: trials for name, trials in by_arm.items() if in_stream(trials)}
    if not streams:
        return None
    plain = [name for name, trials in streams.items() if not any(t.memory for t in trials)]
    if controls is None:
        controls = dict.fromkeys(streams, plain[0]) if plain else {}
    found = [
        compare_arms(
            trials, _in_all_orders(streams[controls[name]], trials), metric=metric, unit=unit
        )
        for name, trials in streams.items()
        if name not in plain and controls.get(name) in streams
    ]
    everything = [trial for trials in streams.values() for trial in trials]
    return Online(
        arms=_arms(streams, metric, unit),
        curves=curves_of(everything, metric=metric),
        comparisons=adjust([one for one in found if one is not None]),
        judges=agreements(everything, rule_alone=True),
    )


def _in_all_orders(plain: Sequence[Score], learned: Sequence[Score]) -> list[Score]:
    """Return an arm without memory as it would be in every order of one that learns.

    Without memory nothing depends on what was met before, so its trials of one order stand for
    those that it did not run.
    """
    known = {trial.seed for trial in plain}
    first = min(known)
    missing = sorted({trial.seed for trial in learned} - known)
    stand_in = [replace(t, seed=order) for order in missing for t in plain if t.seed == first]
    return [*plain, *stand_in]


def _arm_json(arm: ArmSummary) -> dict[str, Any]:
    judges = {name: found.to_json() for name, found in arm.judges.items()}
    return {**_finite(asdict(arm)), "judges": judges}


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _finite(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
