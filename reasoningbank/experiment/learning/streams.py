"""A stream: training tasks one after another, each with what was learned from those before."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from reasoningbank.corpus import Task
from reasoningbank.errors import EndpointError, ModelError, RecordError
from reasoningbank.experiment.config import Retries
from reasoningbank.experiment.executors import Job
from reasoningbank.experiment.learning.learner import Learner
from reasoningbank.experiment.learning.snapshots import Snapshots
from reasoningbank.experiment.records import RunFolder, Step, StepFolder, TrialKey, TrialRecord
from reasoningbank.experiment.retrying import waits
from reasoningbank.memory import MemoryBank, Snapshot

__all__ = ["Stream"]


@dataclass
class Stream:
    """One arm's way through the training tasks in one order.

    Its state is on disk alone: the records of its trials, a snapshot of the bank a step, and a
    file a step that is written last. Whatever ends the process, the next one goes on after the
    last whole step: a trial on disk is not run again, and nothing is learned from it twice, since
    a step begins from the snapshot before it.

    Attributes:
        learner: Takes its steps.
        order: Number of its order: the seed of its trials.
        tasks: Its tasks, in order.
        folder: The run.
        begin: Returns what its bank holds at first.
        open_bank: Opens the bank of a snapshot.
        judge: Returns a record with the judgement that is believed, asking for it if need be.
        control: Returns the trial without memory on a task, where there is one.
        retries: How often a step is tried again that the infrastructure spoiled.
        pause: Waits so many seconds; tells whether the run was stopped meanwhile.
        again: Trials to be run again; only those that ended in an error are.
        missing: Whether trials that are not on disk are run.
        limit: Steps to take at most, those on disk included; None for all.
        on_notice: Told what a person should know.
        stopped: Why it ended before its last step; empty where it did not.
    """

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
        """The bank that the trial in hand may see, with its snapshot's hash."""
        assert self._bank is not None
        return self._at, self._bank

    def jobs(self) -> Iterator[Job]:
        """Yield the trials that are missing, in order, taking each step once its trial is stored.

        Whoever iterates asks for the next trial when the record of the last is on disk.

        Raises:
            RecordError: If what is on disk does not fit together, or cannot be written.
        """
        begins = self.begin()
        self._store(begins)
        after = [begins.hash]
        while len(after) <= len(self.tasks[: self.limit]):
            number, task = len(after) - 1, self.tasks[len(after) - 1]
            key = TrialKey(self.learner.arm.name, task.id, self.order)
            step = self._taken(number, after[number], task)
            if step is not None:
                if not self._there(key) and (self.missing or key in self.again):
                    # Its record was lost or damaged; what was learned from it stays.
                    if self._open(step.before):
                        yield Job(self.learner.arm, task, key, number)
                    else:
                        self.on_notice(f"{key.path}: is lost, and so is the memory it saw")
                after.append(step.after)
                continue
            if not self._open(after[number]):
                if number == 0:
                    self.snapshots.set_aside(after[0])
                    self._store(begins)
                    continue
                # The step that made it is taken again, from the bank before it.
                self.steps.set_aside(number - 1)
                after.pop()
                continue
            if not self._there(key):
                if not (self.missing or key in self.again):
                    return
                yield Job(self.learner.arm, task, key, number)
                if not self._there(key, ran=True):
                    return
            taken = self._take(key, task)
            if taken is None:
                return
            after.append(taken.after)

    def _there(self, key: TrialKey, *, ran: bool = False) -> bool:
        """Tell whether a trial is on disk, and need not be run again."""
        if not self.folder.done(key):
            return False
        return ran or key not in self.again or self.folder.read(key).status != "error"

    def _taken(self, number: int, before: str, task: Task) -> Step | None:
        """Return a step that is on disk and follows on what is before it."""
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
            )
        if step is not None and step.task != task.id:
            raise RecordError(
                f"is of {step.task}, and this order has {task.id} there",
                where=str(self.steps.file(number)),
                hint="go on with the version of this package that the run was begun with",
            )
        return step

    def _open(self, name: str) -> bool:
        """Open the bank of a snapshot; tell whether that could be done."""
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

    def close(self) -> None:
        """Close the bank; all that matters is on disk."""
        if self._bank is not None:
            self._bank.close()
        self._bank = None

    def _take(self, key: TrialKey, task: Task) -> Step | None:
        """Learn from a trial on disk; None where the infrastructure did not let it."""
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
                # Whatever was done to it is undone.
                self.close()
                self._open(name)
        else:
            self.stopped = f"{place}: nothing could be learned ({failure})"
            return None
        self._store(self.bank[1].snapshot())
        self.steps.write(step)
        # The next step begins from what is on disk: the history of a bank decides how it is
        # consolidated, and one that was opened anew after a crash would have another.
        self.close()
        return step

    def _store(self, snapshot: Snapshot) -> None:
        self.snapshots.write(snapshot)
