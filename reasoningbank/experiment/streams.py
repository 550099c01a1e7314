"""Learning streams: training tasks one after another, each with what was learned before it.

A stream's state is only on disk: the records of its trials, a snapshot of the bank per step, and
a file per step that is written last.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from reasoningbank.corpus import Task
from reasoningbank.errors import EndpointError, ModelError, RecordError, UsageError
from reasoningbank.experiment.config import Arm
from reasoningbank.experiment.executors import waits
from reasoningbank.experiment.plan import Job
from reasoningbank.experiment.records import RunFolder, Step, StepFolder, TrialKey, TrialRecord
from reasoningbank.experiment.settings import LearnedMemory, Retries
from reasoningbank.experiment.storage import RunStorage
from reasoningbank.judge import findings_of, rule_verdict
from reasoningbank.memory import Counters, MemoryBank, Snapshot
from reasoningbank.memory.experience import Experience
from reasoningbank.trajectory import Trajectory, Usage

if TYPE_CHECKING:
    from reasoningbank.memory.experience import Distilled


#: Statuses of a verdict on a query that ran.
RAN = ("judged", "wrong_form")


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
        path = self.file(name)
        try:
            raw = self._storage.read(f"memory/{name}.jsonl")
            return Snapshot.parse(raw, name=f"{name}.jsonl", where=str(path))
        except UsageError as error:
            raise RecordError(f"is damaged ({error.what})", where=str(path)) from error

    def set_aside(self, name: str) -> Path | None:
        """Rename a damaged snapshot so that it is made again; return None if it does not exist."""
        if not self._storage.exists(f"memory/{name}.jsonl"):
            return None
        return self._storage.set_aside(f"memory/{name}.jsonl")


@dataclass(frozen=True)
class Outcome:
    """The verdicts of judges on an attempt, and the one that is learned from."""

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
    """Return the verdict on an attempt that an arm learns from."""
    said = dict(verdict or {})
    counts = said.get("status") not in (None, "gold_defect")
    key = "lenient" if metric == "lenient" else "strict"
    judges: dict[str, bool | None] = {"execution": bool(said.get(key)) if counts else None}
    for name, words in judgements.items():
        success = words.get("success")
        judges[name] = success if isinstance(success, bool) else None
    rule = rule_verdict(said)
    judges.setdefault("rule", rule["success"] if rule else None)
    lm = f"lm:{arm.judge_lm}"
    reasons = {"execution": str(said.get("reason") or "")}
    reasons |= {name: str(words.get("reason") or "") for name, words in judgements.items()}
    believed = _judge_of(arm)
    if believed != "both":
        used = "execution" if believed == "execution" else lm
        return Outcome(judges.get(used), used, reasons.get(used, ""), judges)
    agreed = judges["execution"] if judges["execution"] == judges.get(lm) else None
    return Outcome(agreed, f"execution and {lm}", reasons["execution"], judges)


def _judge_of(arm: Arm) -> str:
    return arm.memory.judge if isinstance(arm.memory, LearnedMemory) else "execution"


def experiences_of(record: TrialRecord, arm: Arm, task: Task, metric: str) -> Iterator[Experience]:
    """Yield the attempts of a trial that can be learned from, the chosen one first."""
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
        outcome = outcome_of(arm, metric, verdict, judgements)
        if outcome.success is None:
            continue
        said = verdict or {}
        ran = said.get("status") in RAN
        yield Experience(
            task=task.id,
            group=task.group,
            corpus=task.corpus,
            question=record.question,
            sparql=sparql,
            success=outcome.success,
            judge=outcome.used,
            ran=ran,
            rows=int(said.get("n_predicted") or 0) if ran else None,
            error=error if ran else str(said.get("reason") or error),
            trajectory=trajectory,
            trial=str(record.key),
            model=arm.lm,
            reason=outcome.reason,
            findings=findings_of(said) if _judge_of(arm) != "lm" else (),
            time=record.started,
        )


def retrieved_in(record: TrialRecord) -> tuple[str, ...]:
    """Return the ids of the items that a trial was shown, each once."""
    found: dict[str, None] = {}
    others = (Trajectory.from_json(other["trajectory"]) for other in record.rollouts)
    for trajectory in (record.trajectory, *others):
        for event in trajectory.of("memory_retrieved"):
            for item in trajectory.resolve(event.data).get("items") or ():
                found[str(item["id"])] = None
    return tuple(found)


class Distils(Protocol):
    """Makes items of one task's experiences, as `Distiller` does."""

    def distil(self, experiences: Sequence[Experience]) -> Distilled:
        """Return what they teach."""
        ...


@dataclass(frozen=True)
class Learner:
    """Takes the learning steps of one arm's streams."""

    arm: Arm
    metric: str
    distiller: Distils
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
        helped = hurt = False
        name = ""
        if control is not None and control.verdict is not None and found.success is not None:
            without = outcome_of(self.arm, self.metric, control.verdict, control.judgements).success
            if without is not None:
                name = str(control.key)
                helped, hurt = found.success and not without, without and not found.success
        success, failure = found.success is True, found.success is False
        return Counters(1, int(success), int(failure), int(helped), int(hurt)), name


@dataclass
class TaskStream:
    """One arm's way through the training tasks in one task permutation."""

    learner: Learner
    order: int
    tasks: Sequence[Task]
    folder: RunFolder
    begin: Callable[[], Snapshot]
    open_bank: Callable[[Snapshot], MemoryBank] = MemoryBank.from_snapshot
    judge: Callable[[TrialRecord], TrialRecord] = lambda record: record
    control: Callable[[TrialKey], TrialRecord | None] = lambda _: None
    retries: Retries = field(default_factory=Retries)
    pause: Callable[[float], bool] = lambda _: False
    again: Collection[TrialKey] = ()
    missing: bool = True
    limit: int | None = None
    on_notice: Callable[[str], None] = lambda _: None
    stopped: str = ""
    _bank: MemoryBank | None = field(default=None, repr=False)
    _at: str = field(default="", repr=False)

    @cached_property
    def steps(self) -> StepFolder:
        """Its steps on disk."""
        return StepFolder(self.folder.path, self.learner.arm.name, self.order)

    @cached_property
    def snapshots(self) -> Snapshots:
        """The run's snapshots."""
        return Snapshots(self.folder.path)

    @property
    def bank(self) -> tuple[str, MemoryBank]:
        """The bank that the current trial may see, with its snapshot's hash."""
        assert self._bank is not None
        return self._at, self._bank

    def jobs(self) -> Iterator[Job]:
        """Yield the missing trials in order, and take each step once its trial is stored."""
        begins = self.begin()
        self.snapshots.write(begins)
        after = [begins.hash]
        while len(after) <= len(self.tasks[: self.limit]):
            number, task = len(after) - 1, self.tasks[len(after) - 1]
            key = TrialKey(self.learner.arm.name, task.id, self.order)
            step = self._taken(number, after[number], task)
            if step is not None:
                if not self._there(key) and (self.missing or key in self.again):
                    # Its record was lost or damaged; what was learned from it remains.
                    if self._open(step.before):
                        yield Job(self.learner.arm, task, key, number)
                    else:
                        self.on_notice(f"{key.path}: is lost, and so is the memory it saw")
                after.append(step.after)
                continue
            if not self._open(after[number]):
                if number == 0:
                    self.snapshots.set_aside(after[0])
                    self.snapshots.write(begins)
                    continue
                # The step that made the snapshot is taken again, from the bank before it.
                self.steps.set_aside(number - 1)
                after.pop()
                continue
            if not self._there(key):
                if not (self.missing or key in self.again):
                    return
                yield Job(self.learner.arm, task, key, number)
                if not self.folder.done(key):
                    return
            taken = self._take(key, task)
            if taken is None:
                return
            after.append(taken.after)

    def close(self) -> None:
        """Close the bank; everything that matters is on disk."""
        if self._bank is not None:
            self._bank.close()
        self._bank = None

    def _there(self, key: TrialKey) -> bool:
        """Return whether a trial is on disk and need not be run again."""
        if not self.folder.done(key):
            return False
        return key not in self.again or self.folder.read(key).status != "error"

    def _taken(self, number: int, before: str, task: Task) -> Step | None:
        """Return a step that is on disk and follows its predecessor."""
        try:
            step = self.steps.read(number)
        except RecordError:
            aside = self.steps.set_aside(number)
            self.on_notice(f"{aside}: could not be read and was set aside; it is made again")
            return None
        if step is not None and step.before != before:
            raise RecordError(
                f"begins from the bank {step.before}, and the step before it ended with {before}",
                where=str(self.steps.file(number)),
                hint="move the files of this step and all later ones away, with their trials",
                code="step-does-not-follow",
            )
        if step is not None and step.task != task.id:
            raise RecordError(
                f"is of {step.task}, and this task permutation has {task.id} there",
                where=str(self.steps.file(number)),
                hint="resume with the version of this package that began the run",
                code="step-of-another-task",
            )
        return step

    def _open(self, name: str) -> bool:
        """Open the bank of a snapshot; return whether that succeeded."""
        if self._bank is not None and self._at == name:
            return True
        try:
            snapshot = self.snapshots.read(name)
        except RecordError as error:
            aside = self.snapshots.set_aside(name)
            self.on_notice(f"{error}{'; it was set aside' if aside else ''}; it is made again")
            return False
        self.close()
        self._bank, self._at = self.open_bank(snapshot), name
        return True

    def _take(self, key: TrialKey, task: Task) -> Step | None:
        """Learn from a trial on disk; return None if the infrastructure prevented it."""
        record = self.folder.read(key)
        place = f"stream {key.arm}.{key.seed}, step {record.step} of {len(self.tasks)}"
        if record.status == "error":
            self.stopped = f"{place}: {record.error}"
            return None
        name, _ = self.bank
        if record.memory != name:
            raise RecordError(
                f"saw the bank {record.memory or 'of no stream'}, and the stream is at {name}",
                where=str(self.folder.file(key)),
                hint="move the file away and run the same command again",
                code="trial-of-another-bank",
            )
        failure: Exception | None = None
        for seconds in itertools.chain([0.0], waits(self.retries)):
            if seconds and self.pause(seconds):
                return None
            try:
                record = self.judge(record)
                step = self.learner.learn(self.bank[1], name, record, task, self.control(key))
                break
            except (EndpointError, ModelError) as error:
                failure = error
                # Undo whatever was done to the bank.
                self.close()
                self._open(name)
        else:
            self.stopped = f"{place}: nothing could be learned ({failure})"
            return None
        self.snapshots.write(self.bank[1].snapshot())
        self.steps.write(step)
        # The next step begins from disk: the history of a bank decides how it is consolidated, and
        # a bank reopened after a crash would have another history.
        self.close()
        return step
