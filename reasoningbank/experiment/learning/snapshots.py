"""The snapshots of a run's banks: `memory/<hash>.jsonl`, compressed or not."""

from __future__ import annotations

from pathlib import Path

from reasoningbank.errors import RecordError, UsageError
from reasoningbank.experiment.bank_file import snapshot_file
from reasoningbank.memory import Snapshot

__all__ = ["Snapshots"]


class Snapshots:
    """The snapshots of a run.

    Args:
        run: Folder of the run.
    """

    def __init__(self, run: Path) -> None:
        self.folder = run / "memory"

    def file(self, name: str) -> Path:
        """Return where a snapshot lies, or would lie compressed."""
        return snapshot_file(self.folder.parent, name)

    def write(self, snapshot: Snapshot) -> None:
        """Store a snapshot, unless it is there."""
        if not self.file(snapshot.hash).exists():
            snapshot.write(self.folder)

    def read(self, name: str) -> Snapshot:
        """Return a snapshot by its hash.

        Raises:
            RecordError: If it is missing or damaged.
        """
        path = self.file(name)
        try:
            return Snapshot.read(path)
        except UsageError as error:
            raise RecordError(f"is damaged ({error.what})", where=str(path)) from error

    def set_aside(self, name: str) -> Path | None:
        """Rename a damaged snapshot, so that it is made again; None where there is none."""
        path = self.file(name)
        if not path.exists():
            return None
        return path.replace(path.with_name(f"{path.name}.damaged"))
