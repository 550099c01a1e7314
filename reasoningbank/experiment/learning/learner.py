"""One step of a stream: what a judged trial teaches, and the bank with it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Protocol

from reasoningbank.corpus import Task
from reasoningbank.experiment.config import Arm
from reasoningbank.experiment.learning.experiences import (
    Outcome,
    experiences_of,
    outcome_of,
    retrieved_in,
)
from reasoningbank.experiment.records import Step, TrialRecord
from reasoningbank.memory import Counters
from reasoningbank.trajectory import Usage

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from reasoningbank.memory.bank import MemoryBank
    from reasoningbank.memory.distillation import Distilled, Experience

__all__ = ["Learner", "Learns"]


class Learns(Protocol):
    """Makes items of one task's experiences, as `Distiller` does."""

    def distil(self, experiences: Sequence[Experience]) -> Distilled:
        """Return what they teach."""
        ...


@dataclass(frozen=True)
class Learner:
    """Takes the steps of one arm's streams.

    Attributes:
        arm: The arm.
        metric: The experiment's metric: what counts as a success.
        distiller: Makes items of experiences.
        consolidate: Consolidates a bank, given the ids of what is new; None leaves it as it is.
    """

    arm: Arm
    metric: str
    distiller: Learns
    consolidate: Callable[[MemoryBank, Sequence[str]], Sequence[Any]] | None = None

    def learn(
        self,
        bank: MemoryBank,
        before: str,
        record: TrialRecord,
        task: Task,
        control: TrialRecord | None = None,
    ) -> Step:
        """Take in what a trial teaches; the bank is changed.

        Args:
            bank: The bank that the trial saw.
            before: Its snapshot.
            record: The trial.
            task: Its task.
            control: The same task without memory, where that was run.

        Returns:
            The step; its `after` is the bank as it is now.

        Raises:
            EndpointError: If what was distilled cannot be checked. The bank is as it was.
            ModelError: If the distiller's model cannot be reached. The bank is as it was.
        """
        began = time.monotonic()
        found = outcome_of(self.arm, self.metric, record.verdict, record.judgements)
        experiences = experiences_of(record, self.arm, task, self.metric)
        distilled = self.distiller.distil(experiences) if experiences else None
        shown = retrieved_in(record)
        trial = f"{record.key.arm}/{record.key.task}.{record.key.seed}"
        counters, used_control = self._counters(found, control)
        bank.count(shown, counters)
        known = {item.id for item in bank.items(status=None)}
        ids = bank.add(distilled.items, reason=trial) if distilled else []
        added = tuple(dict.fromkeys(one for one in ids if one not in known))
        changes: Sequence[Any] = ()
        if self.consolidate is not None:
            changes = self.consolidate(bank, added)
        return Step(
            arm=self.arm.name,
            order=record.key.seed,
            step=record.step or 0,
            task=record.key.task,
            trial=trial,
            before=before,
            after=bank.snapshot().hash,
            retrieved=shown,
            added=added,
            merged=tuple(dict.fromkeys(one for one in ids if one in known)),
            rejected=tuple(asdict(one) for one in distilled.rejected) if distilled else (),
            changes=tuple(_told(change) for change in changes),
            judges=dict(found.judges),
            used=found.used,
            success=found.success,
            control=used_control,
            usage=distilled.usage if distilled else Usage(),
            seconds=round(time.monotonic() - began, 3),
        )

    def _counters(self, found: Outcome, control: TrialRecord | None) -> tuple[Counters, str]:
        """Return what is counted for each item that was shown, and the control's name.

        That an item was there when a task succeeded says little: an easy task succeeds with any.
        Helped and hurt are of the same task with and without memory, by the same judge.
        """
        helped = hurt = False
        name = ""
        if control is not None and control.verdict is not None and found.success is not None:
            without = outcome_of(self.arm, self.metric, control.verdict, control.judgements).success
            if without is not None:
                key = control.key
                name = f"{key.arm}/{key.task}.{key.seed}"
                helped, hurt = found.success and not without, without and not found.success
        success = found.success is True
        failure = found.success is False
        counted = Counters(1, int(success), int(failure), int(helped), int(hurt))
        return counted, name


def _told(change: Any) -> Mapping[str, Any]:
    """Return a change of the bank as a step keeps it: what was done to which item, and why."""
    return {
        "action": str(change.action),
        "item": str(change.item_id),
        "reason": str(change.reason),
    }
