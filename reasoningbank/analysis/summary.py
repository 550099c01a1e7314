"""A run in numbers: one line an arm, and the comparison stated beforehand."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from reasoningbank.analysis.statistics import (
    Interval,
    McNemar,
    mcnemar_midp,
    median_and_p95,
    wilson,
)
from reasoningbank.experiment import TrialRecord

__all__ = ["ArmSummary", "RunSummary", "summarise"]


@dataclass(frozen=True)
class ArmSummary:
    """One arm of a run.

    Attributes:
        arm: Its name.
        trials: Trials on disk, infrastructure errors included.
        judged: Trials that count: all but infrastructure errors and defective golds.
        strict: Strict matches.
        rate: Strict matches by judged trials, with a Wilson interval.
        f1: Mean row F1 of the judged trials.
        executed: Judged trials whose query ran.
        statuses: Trials by how the attempt ended.
        seconds: Median and p95 of the seconds a trial took.
        tokens: Median and p95 of its tokens, sent and generated.
        best_case: Rate if every infrastructure error had been a success.
        worst_case: Rate if every one had been a failure.
    """

    arm: str
    trials: int
    judged: int
    strict: int
    rate: Interval
    f1: float
    executed: int
    statuses: Mapping[str, int]
    seconds: tuple[float, float]
    tokens: tuple[float, float]
    best_case: float
    worst_case: float


@dataclass(frozen=True)
class RunSummary:
    """A run: its arms, and the pre-stated comparison where both arms have trials."""

    arms: tuple[ArmSummary, ...]
    comparison: tuple[str, str] | None = None
    paired: McNemar | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the summary as JSON-able data."""
        return asdict(self)


def summarise(
    records: Iterable[TrialRecord],
    arms: Iterable[str] = (),
    comparison: tuple[str, str] | None = None,
) -> RunSummary:
    """Summarise trials by arm.

    Args:
        records: The trials of a run.
        arms: Order of the arms; arms not named follow in the order they are met.
        comparison: The two arms to compare, on the tasks and seeds that both have judged.
    """
    by_arm: dict[str, list[TrialRecord]] = defaultdict(list)
    for name in arms:
        by_arm[name] = []
    for record in records:
        by_arm[record.key.arm].append(record)
    paired = None
    if comparison is not None:
        first, second = (
            {(r.key.task, r.key.seed): r.strict for r in by_arm.get(name, []) if _counts(r)}
            for name in comparison
        )
        both = sorted(first.keys() & second.keys())
        if both:
            paired = mcnemar_midp([first[k] for k in both], [second[k] for k in both])
    lines = tuple(_arm(name, trials) for name, trials in by_arm.items() if trials)
    return RunSummary(lines, comparison if paired else None, paired)


def _arm(name: str, trials: list[TrialRecord]) -> ArmSummary:
    judged = [t for t in trials if _counts(t)]
    strict = sum(t.strict for t in judged)
    lost = len(trials) - len(judged)
    return ArmSummary(
        arm=name,
        trials=len(trials),
        judged=len(judged),
        strict=strict,
        rate=wilson(strict, len(judged)),
        f1=sum(t.f1 for t in judged) / len(judged) if judged else 0.0,
        executed=sum(_executed(t) for t in judged),
        statuses=dict(Counter(t.status for t in trials)),
        seconds=median_and_p95([t.usage.seconds for t in judged]),
        tokens=median_and_p95([float(t.usage.tokens) for t in judged]),
        best_case=(strict + lost) / len(trials),
        worst_case=strict / len(trials),
    )


def _counts(trial: TrialRecord) -> bool:
    return trial.verdict is not None and trial.verdict.get("status") != "gold_defect"


def _executed(trial: TrialRecord) -> bool:
    return bool(trial.verdict and trial.verdict.get("status") in {"judged", "wrong_form"})
