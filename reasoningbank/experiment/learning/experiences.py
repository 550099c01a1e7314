"""What a trial is worth to memory: whose verdict counts, and the attempts as experiences.

A record holds the gold; an experience has no place for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from reasoningbank.corpus import Task
from reasoningbank.experiment.config import Arm
from reasoningbank.experiment.records import TrialRecord
from reasoningbank.judge import rule_verdict
from reasoningbank.memory.distillation import Experience
from reasoningbank.trajectory import Trajectory

__all__ = ["Outcome", "experiences_of", "outcome_of", "retrieved_in"]

RAN = ("judged", "wrong_form")


@dataclass(frozen=True)
class Outcome:
    """What judges said of an attempt, and what is believed.

    Attributes:
        success: What is believed; None where nothing is.
        used: The judge that is believed.
        reason: Its reason.
        judges: What each judge said; None where it did not decide.
    """

    success: bool | None
    used: str
    reason: str = ""
    judges: Mapping[str, bool | None] = field(default_factory=dict)


def outcome_of(
    arm: Arm,
    metric: str,
    verdict: Mapping[str, Any] | None,
    judgements: Mapping[str, Mapping[str, Any]],
) -> Outcome:
    """Return what is believed of an attempt.

    A verdict of the LM judge is believed in its arm, right or wrong: that is how it would be
    where there is no gold.

    Args:
        arm: Says whose verdict counts.
        metric: The experiment's; with `lenient`, a lenient match is a success.
        verdict: The execution judge's verdict, as a record keeps it.
        judgements: What other judges said, as a record keeps it.
    """
    said = dict(verdict or {})
    counts = said.get("status") not in (None, "gold_defect")
    key = "lenient" if metric == "lenient" else "strict"
    judges: dict[str, bool | None] = {"execution": bool(said.get(key)) if counts else None}
    for name, words in judgements.items():
        success = words.get("success")
        judges[name] = success if isinstance(success, bool) else None
    rule = rule_verdict(said)
    judges.setdefault("rule", rule["success"] if rule else None)
    believed, lm = arm.memory.judge, f"lm:{arm.judge_lm}"
    reasons = {"execution": str(said.get("reason") or "")}
    reasons |= {name: str(words.get("reason") or "") for name, words in judgements.items()}
    if believed == "execution":
        return Outcome(judges["execution"], "execution", reasons["execution"], judges)
    if believed == "lm":
        return Outcome(judges.get(lm), lm, reasons.get(lm, ""), judges)
    both = judges["execution"], judges.get(lm)
    alike = both[0] if both[0] == both[1] else None
    return Outcome(alike, f"execution and {lm}", reasons["execution"], judges)


def experiences_of(record: TrialRecord, arm: Arm, task: Task, metric: str) -> list[Experience]:
    """Return the attempts of a trial of which something is believed, the chosen one first."""
    return list(_experiences(record, arm, task, metric))


def _experiences(record: TrialRecord, arm: Arm, task: Task, metric: str) -> Iterator[Experience]:
    attempts: list[tuple[Any, ...]] = [
        (record.sparql, record.verdict, record.judgements, record.trajectory, record.error)
    ]
    attempts += [
        (
            other.get("sparql"),
            other.get("verdict"),
            other.get("judgements") or {},
            Trajectory.from_json(other["trajectory"]),
            other.get("error") or "",
        )
        for other in record.rollouts
    ]
    for sparql, verdict, judgements, trajectory, error in attempts:
        believed = outcome_of(arm, metric, verdict, judgements)
        if believed.success is None:
            continue
        said = verdict or {}
        ran = said.get("status") in RAN
        yield Experience(
            task=task.id,
            group=task.group,
            corpus=task.corpus,
            question=record.question,
            sparql=sparql,
            success=believed.success,
            judge=believed.used,
            ran=ran,
            rows=int(said.get("n_predicted") or 0) if ran else None,
            error=error if ran else str(said.get("reason") or error),
            trajectory=trajectory,
            trial=f"{record.key.arm}/{record.key.task}.{record.key.seed}",
            model=arm.lm,
            reason=believed.reason,
            time=record.started,
        )


def retrieved_in(record: TrialRecord) -> tuple[str, ...]:
    """Return the ids of the items that a trial was shown, each once, in their order.

    Those that the other attempts of a sampled trial saw come after those of the chosen one.
    """
    found: dict[str, None] = {}
    others = (Trajectory.from_json(other["trajectory"]) for other in record.rollouts)
    for trajectory in (record.trajectory, *others):
        for event in trajectory.of("memory_retrieved"):
            for item in trajectory.resolve(event.data).get("items") or ():
                found[str(item["id"])] = None
    return tuple(found)
