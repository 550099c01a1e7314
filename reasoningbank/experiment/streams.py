"""What is learned from one trial of a stream: verdicts, experiences, and the step they make."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from reasoningbank.corpus import Task
from reasoningbank.errors import RecordError, UsageError
from reasoningbank.experiment.config import Arm
from reasoningbank.experiment.records import TrialRecord, snapshot_name
from reasoningbank.experiment.storage import RunStorage
from reasoningbank.judge import RAN, findings_of, is_judged, rule_verdict
from reasoningbank.memory import Snapshot
from reasoningbank.memory.experience import Experience


def read_snapshot(folder: RunStorage, name: str) -> Snapshot:
    """Return a bank's snapshot by its hash."""
    file = snapshot_name(name)
    where = str(folder.file(file))
    try:
        return Snapshot.parse(folder.content(file), name=f"{name}.jsonl", where=where)
    except UsageError as error:
        raise RecordError(f"is damaged ({error.what})", where=where) from error


def write_snapshot(folder: RunStorage, snapshot: Snapshot) -> None:
    """Write a bank's snapshot unless it exists."""
    if not folder.exists(snapshot_name(snapshot.hash)):
        snapshot.write(folder.path / "memory")


@dataclass(frozen=True)
class Outcome:
    """The verdicts of judges on an attempt, and the one that is learned from."""

    success: bool | None
    used: str
    judges: Mapping[str, bool | None] = field(default_factory=dict)


def outcome_of(
    arm: Arm,
    metric: str,
    verdict: Mapping[str, Any] | None,
    judgements: Mapping[str, Mapping[str, Any]],
) -> Outcome:
    """Return the verdict on an attempt that an arm learns from."""
    said, key = dict(verdict or {}), "lenient" if metric == "lenient" else "strict"
    judges: dict[str, bool | None] = {"execution": bool(said.get(key)) if is_judged(said) else None}
    successes = {name: words.get("success") for name, words in judgements.items()}
    judges |= {name: one if isinstance(one, bool) else None for name, one in successes.items()}
    rule = rule_verdict(said)
    judges.setdefault("rule", rule["success"] if rule else None)
    lm, believed = f"lm:{arm.judge_lm}", arm.learns_from
    if believed != "both":
        used = "execution" if believed == "execution" else lm
        return Outcome(judges.get(used), used, judges)
    agreed = judges["execution"] if judges["execution"] == judges.get(lm) else None
    return Outcome(agreed, f"execution and {lm}", judges)


def experiences_of(record: TrialRecord, arm: Arm, task: Task, metric: str) -> Iterator[Experience]:
    """Yield the attempts of a trial that can be learned from, the chosen one first."""
    for attempt in record.attempts():
        said = attempt.verdict or {}
        outcome = outcome_of(arm, metric, said, attempt.judgements)
        if outcome.success is None:
            continue
        ran = said.get("status") in RAN
        yield Experience(
            task=task.id,
            group=task.group,
            corpus=task.corpus,
            question=record.question,
            sparql=attempt.sparql,
            success=outcome.success,
            judge=outcome.used,
            ran=ran,
            rows=int(said.get("n_predicted") or 0) if ran else None,
            trajectory=attempt.trajectory,
            trial=str(record.key),
            model=arm.lm,
            findings=findings_of(said) if arm.learns_from != "lm" else (),
            time=record.started,
        )


def retrieved_in(record: TrialRecord) -> tuple[str, ...]:
    """Return the ids of the items that a trial was shown, each once."""
    shown = (
        item
        for trajectory in (attempt.trajectory for attempt in record.attempts())
        for event in trajectory.of("memory_retrieved")
        for item in trajectory.resolve(event.data).get("items") or ()
    )
    return tuple(dict.fromkeys(str(item["id"]) for item in shown))
