"""A run in numbers: one line an arm, the comparison stated beforehand, and what memory did.

Comparisons are made of held-out trials alone. What happened in learning streams stands apart: its
trials are practice, and a task met there was met with a bank that was still growing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from reasoningbank.analysis.arm_summary import ArmSummary, summarise_arm
from reasoningbank.analysis.comparison import Comparison, adjust, compare_arms
from reasoningbank.analysis.finite import finite
from reasoningbank.analysis.leak import Leakage
from reasoningbank.analysis.leakage import LeakageAudit
from reasoningbank.analysis.memory_records import MemoryRecords
from reasoningbank.analysis.memory_summary import ArmMemory, MemoryTally
from reasoningbank.analysis.online import Online, summarise_streams
from reasoningbank.analysis.planned import controls, planned_streams, planned_trials
from reasoningbank.analysis.scores import METRICS, Metric, Score, Unit, held_out, in_streams
from reasoningbank.experiment import RunFolder, TrialRecord
from reasoningbank.experiment.manifest import CodeChange, code_changes

__all__ = ["RunSummary", "summarise", "summarise_run"]


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
        waiting: Pairs stated beforehand of which no task is judged in both arms yet.
        others: Every other arm against the base line (the second of the stated comparison) where
            that pair was not stated, with Holm's correction over these, those without a trial yet
            included.
        online: What happened in learning streams; None without any.
        memory: What memory did, for each arm that has one.
        code: When the run went on with other code than before, oldest first.
        replaced: Trials that had been judged and were run again, by arm.
    """

    leakage: Leakage
    arms: tuple[ArmSummary, ...]
    metric: str = "strict"
    unit: str = "task"
    comparison: Comparison | None = None
    claims: tuple[Comparison, ...] = ()
    waiting: tuple[tuple[str, str], ...] = ()
    others: tuple[Comparison, ...] = ()
    online: Online | None = None
    memory: tuple[ArmMemory, ...] = ()
    code: tuple[CodeChange, ...] = ()
    replaced: Mapping[str, int] = field(default_factory=dict)

    def stated_lines(self) -> list[str]:
        """Return what is known of each pair stated beforehand; of several, of all together."""
        told = [one for one in (self.comparison, *self.claims) if one is not None]
        lines = [f"stated beforehand: {one.sentence()}" for one in told]
        lines += [
            f"stated beforehand: {first} against {second}: no task is judged in both yet"
            for first, second in self.waiting
        ]
        if len(lines) > 1:
            held = sum(one.resolved and one.difference > 0 for one in told)
            lines.append(
                f"of {len(lines)} pairs stated beforehand {held} resolved for the first arm; a "
                "claim that rests on several holds where all of them are"
            )
        return lines

    def to_json(self) -> dict[str, Any]:
        """Return the summary as JSON-able data; what is not defined is None."""
        return {
            "leakage": self.leakage.to_json(),
            "arms": [arm.to_json() for arm in self.arms],
            "metric": self.metric,
            "unit": self.unit,
            "comparison": self.comparison.to_json() if self.comparison else None,
            "claims": [claim.to_json() for claim in self.claims],
            "waiting": [list(pair) for pair in self.waiting],
            "others": [other.to_json() for other in self.others],
            "online": self.online.to_json() if self.online else None,
            "memory": [finite(asdict(arm)) for arm in self.memory],
            "code": [change._asdict() for change in self.code],
            "replaced": dict(self.replaced),
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

    planned = planned_trials(manifest)

    def compared(first: str, second: str) -> Comparison | None:
        return compare_arms(
            tested.get(first, []),
            tested.get(second, []),
            metric=metric,
            unit=unit,
            planned=(planned.get(first, 0), planned.get(second, 0)),
        )

    pairs = ([comparison] if comparison else []) + list(claims)
    stated = {pair: compared(*pair) for pair in pairs}
    rivals = [(name, comparison[1]) for name in tested if comparison and name not in comparison]
    others = [compared(*pair) for pair in rivals if pair not in stated]
    there = [one for one in others if one is not None]
    return RunSummary(
        leakage=audit.finish(),
        arms=_arms(tested, metric, unit),
        metric=metric,
        unit=unit,
        comparison=stated[comparison] if comparison else None,
        claims=tuple(one for pair in claims if (one := stated[pair]) is not None),
        waiting=tuple(pair for pair, one in stated.items() if one is None),
        others=adjust(there, to_come=len(others) - len(there)),
        online=summarise_streams(
            {name: in_streams(trials) for name, trials in by_arm.items()},
            metric,
            unit,
            controls(manifest),
            planned_streams(manifest),
        ),
        memory=tally.finish(by_arm),
        code=code_changes(manifest or {}),
        replaced=_replaced(manifest or {}),
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


def _replaced(manifest: Mapping[str, Any]) -> dict[str, int]:
    """Return by arm how many trials took the place of judged ones; one run twice counts twice."""
    told = manifest.get("replaced") or ()
    return dict(Counter(str(one.get("trial")).partition("/")[0] for one in told))
