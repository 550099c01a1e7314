"""What is learned from one trial of a stream: verdicts, experiences, and the step they make."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from reasoningbank.corpus import Task
from reasoningbank.errors import RecordError, UsageError
from reasoningbank.experiment.config import Arm
from reasoningbank.experiment.records import Step, TrialRecord
from reasoningbank.experiment.storage import RunStorage
from reasoningbank.judge import RAN, findings_of, is_judged, rule_verdict
from reasoningbank.memory import Counters, MemoryBank, Snapshot
from reasoningbank.memory.distill import Distiller
from reasoningbank.memory.experience import Experience
from reasoningbank.trajectory import Usage


class Snapshots:
    """The bank snapshots of a run: `memory/<hash>.jsonl`."""

    def __init__(self, run: Path) -> None:
        self._storage = RunStorage(run)

    def file(self, name: str) -> Path:
        """Return where a snapshot lies or would lie."""
        return self._storage.path(f"memory/{name}.jsonl")

    def write(self, snapshot: Snapshot) -> None:
        """Write a snapshot unless it exists."""
        if not self._storage.exists(f"memory/{snapshot.hash}.jsonl"):
            snapshot.write(self._storage.root / "memory")

    def read(self, name: str) -> Snapshot:
        """Return a snapshot by its hash."""
        where = str(self.file(name))
        try:
            raw = self._storage.read(f"memory/{name}.jsonl")
            return Snapshot.parse(raw, name=f"{name}.jsonl", where=where)
        except UsageError as error:
            raise RecordError(f"is damaged ({error.what})", where=where) from error

    def set_aside(self, name: str) -> Path | None:
        """Rename a damaged snapshot so that it is made again; return None if it does not exist."""
        there = self._storage.exists(f"memory/{name}.jsonl")
        return self._storage.set_aside(f"memory/{name}.jsonl") if there else None


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


@dataclass(frozen=True)
class Learner:
    """Takes the learning steps of one arm's streams."""

    arm: Arm
    metric: str
    distiller: Distiller
    consolidate: Callable[[MemoryBank, Sequence[str]], Sequence[Any]] | None = None

    def learn(
        self,
        bank: MemoryBank,
        before: str,
        record: TrialRecord,
        task: Task,
        control: TrialRecord | None = None,
    ) -> Step:
        """Learn from a trial; the bank is changed."""
        began = time.monotonic()
        found = outcome_of(self.arm, self.metric, record.verdict, record.judgements)
        experiences = list(experiences_of(record, self.arm, task, self.metric))
        distilled = self.distiller.distil(experiences) if experiences else None
        shown = retrieved_in(record)
        counters, used_control = self._counters(found, control)
        bank.count(shown, counters)
        known = {item.id for item in bank.items(status=None)}
        ids = bank.add(distilled.items, reason=str(record.key)) if distilled else []
        added = tuple(dict.fromkeys(one for one in ids if one not in known))
        changes = self.consolidate(bank, added) if self.consolidate is not None else ()
        return Step(
            arm=self.arm.name,
            order=record.key.seed,
            step=record.step or 0,
            task=record.key.task,
            trial=str(record.key),
            before=before,
            after=bank.snapshot().hash,
            retrieved=shown,
            added=added,
            merged=tuple(dict.fromkeys(one for one in ids if one in known)),
            rejected=tuple(asdict(one) for one in distilled.rejected) if distilled else (),
            changes=tuple(
                {"action": str(one.action), "item": str(one.item_id), "reason": str(one.reason)}
                for one in changes
            ),
            judges=dict(found.judges),
            used=found.used,
            success=found.success,
            control=used_control,
            usage=distilled.usage if distilled else Usage(),
            seconds=round(time.monotonic() - began, 3),
        )

    def _counters(self, found: Outcome, control: TrialRecord | None) -> tuple[Counters, str]:
        """Return what is counted for each item that was shown, and the control's name."""
        without, said = None, found.success
        if control is not None and control.verdict is not None and said is not None:
            without = outcome_of(self.arm, self.metric, control.verdict, control.judgements).success
        name = str(control.key) if control is not None and without is not None else ""
        # Helped: only this trial succeeded; hurt: only the one without memory.
        helped, hurt = without is False and said is True, without is True and said is False
        return Counters(1, int(said is True), int(said is False), int(helped), int(hurt)), name
