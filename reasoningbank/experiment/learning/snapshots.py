"""The bank snapshots of a run, and the banks that experiment files name."""

from __future__ import annotations

from pathlib import Path

from reasoningbank.errors import RecordError, UsageError
from reasoningbank.experiment.memory_config import MemorySettings, find_bank
from reasoningbank.experiment.storage import RunStorage
from reasoningbank.memory import MemoryBank, Snapshot

__all__ = ["Snapshots", "read_bank"]


class Snapshots:
    """The snapshots of a run: `memory/<hash>.jsonl`.

    Args:
        run: Folder of the run.
    """

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
        """Return a snapshot by its hash.

        Raises:
            RecordError: If it is missing or damaged.
        """
        path = self.file(name)
        try:
            raw = self._storage.read(f"memory/{name}.jsonl")
            return Snapshot.parse(raw, name=f"{name}.jsonl", where=str(path))
        except UsageError as error:
            raise RecordError(f"is damaged ({error.what})", where=str(path)) from error

    def set_aside(self, name: str) -> Path | None:
        """Rename a damaged snapshot so that it is made again; return None if there is none."""
        if not self._storage.exists(f"memory/{name}.jsonl"):
            return None
        return self._storage.set_aside(f"memory/{name}.jsonl")


def read_bank(memory: MemorySettings, seed: int) -> Snapshot:
    """Return the content of the bank that an arm names.

    Raises:
        UsageError: If it is missing, empty or not a bank.
    """
    storage, name = find_bank(memory, seed)
    path = storage.path(name)
    try:
        if path.suffix in (".sqlite", ".db"):
            with MemoryBank(path, readonly=True) as bank:
                return bank.snapshot()
        return Snapshot.parse(storage.read(name), name=path.name, where=str(path))
    except RecordError as error:
        raise UsageError(error.what, where=error.where, hint=error.hint) from error
