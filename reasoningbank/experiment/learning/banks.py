"""Which bank an arm is evaluated with: a stream's last, exemplars of golds, or a file."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

from reasoningbank.corpus import Task
from reasoningbank.errors import RecordError
from reasoningbank.experiment.config import Arm, Experiment
from reasoningbank.experiment.learning.snapshots import Snapshots, read_bank
from reasoningbank.experiment.memory_config import bank_arm
from reasoningbank.experiment.records import StepFolder
from reasoningbank.experiment.storage import RunStorage
from reasoningbank.memory import MemoryBank, Snapshot
from reasoningbank.memory.distillation import Distilled

__all__ = ["Banks"]


class Banks:
    """The banks that trials of the evaluation see. Several threads may use it.

    Args:
        experiment: The experiment.
        run: Folder of the run.
        tasks: Training tasks that exemplars are made of.
        exemplars: Makes the exemplars of a task, for an arm.
        open_bank: Opens the bank of a snapshot.
    """

    def __init__(
        self,
        experiment: Experiment,
        run: Path,
        tasks: Sequence[Task],
        exemplars: Callable[[Arm, Task], Distilled],
        open_bank: Callable[[Snapshot], MemoryBank] = MemoryBank.from_snapshot,
    ) -> None:
        self._arms = {arm.name: arm for arm in experiment.arms}
        self._run = run
        self._snapshots = Snapshots(run)
        self._tasks = tasks
        self._exemplars = exemplars
        self._open_bank = open_bank
        self._names: dict[tuple[str, int | None], str] = {}
        self._open: dict[str, MemoryBank] = {}
        self._lock = threading.Lock()

    def bank(self, arm: Arm, seed: int) -> tuple[str, MemoryBank]:
        """Return the bank of an arm with its snapshot's hash.

        Raises:
            RecordError: If the stream that it comes of has not come to its end, or a snapshot is
                damaged.
            EndpointError: If exemplars cannot be checked.
        """
        root = bank_arm(self._arms, arm)
        place = (root.name, seed if root.memory.by_order else None)
        with self._lock:
            if place not in self._names:
                self._names[place] = self._named(root, seed)
            name = self._names[place]
            if name not in self._open:
                self._open[name] = self._open_bank(self._snapshots.read(name))
            return name, self._open[name]

    def close(self) -> None:
        """Close the banks."""
        for bank in self._open.values():
            bank.close()

    def _named(self, root: Arm, seed: int) -> str:
        if root.memory.learns:
            taken = StepFolder(self._run, root.name, seed).taken()
            if len(taken) < len(self._tasks):
                raise RecordError(
                    f"has taken {len(taken)} of {len(self._tasks)} steps",
                    where=f"stream {root.name}.{seed}",
                    hint="run the same command again",
                )
            return taken[-1].after
        if root.memory.source == "gold":
            return self._of_gold(root)
        snapshot = read_bank(root.memory, seed)
        self._snapshots.write(snapshot)
        return snapshot.hash

    def _of_gold(self, root: Arm) -> str:
        """Return the name of the training tasks' exemplars: made once, and read from then on."""
        storage, note = RunStorage(self._run), f"learning/{root.name}.bank.json"
        if storage.exists(note):
            # Either file can be made again: golds do not change in a run.
            with contextlib.suppress(RecordError, KeyError, TypeError):
                name = str(storage.read_json(note)["after"])
                self._snapshots.read(name)
                return name
        made = [self._exemplars(root, task) for task in self._tasks]
        with self._open_bank(Snapshot.of(())) as bank:
            added = bank.add([item for one in made for item in one.items], reason="gold")
            snapshot = bank.snapshot()
        self._snapshots.write(snapshot)
        storage.write_json(
            note,
            {
                "version": 1,
                "arm": root.name,
                "source": "gold",
                "after": snapshot.hash,
                "tasks": [task.id for task in self._tasks],
                "added": list(dict.fromkeys(added)),
                "rejected": [asdict(rejected) for one in made for rejected in one.rejected],
            },
        )
        return snapshot.hash
