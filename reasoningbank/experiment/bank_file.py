"""Which file an arm's bank is read from: one that it names, or a snapshot of an earlier run."""

from __future__ import annotations

from pathlib import Path

from reasoningbank.errors import UsageError
from reasoningbank.experiment.memory_config import MemorySettings
from reasoningbank.experiment.steps import StepFolder

__all__ = ["bank_file", "snapshot_file"]


def snapshot_file(run: Path, name: str) -> Path:
    """Return where a run's snapshot of a hash lies, or would lie compressed."""
    path = run / "memory" / f"{name}.jsonl"
    return path if path.exists() else path.with_name(f"{path.name}.gz")


def bank_file(memory: MemorySettings, seed: int) -> Path:
    """Return the file of the bank that `memory.bank` means for a seed.

    Raises:
        UsageError: If there is none.
        RecordError: If a step of the earlier run is damaged.
    """
    where = Path(memory.bank)
    if memory.stream:
        taken = StepFolder(where, memory.stream, seed).taken()
        if not taken:
            what = f"there is no stream {memory.stream}.{seed} in {memory.bank}"
            raise UsageError(what, hint="name a run in mode 'learn', its arm, and seeds it had")
        where = snapshot_file(where, taken[-1].after)
    if not where.is_file():
        hint = "name a file that `reasoningbank memory export` wrote, or a bank"
        if where.is_dir():
            hint = "of a run's folder, name the arm whose streams are meant as memory.stream"
        raise UsageError(f"there is no bank {where}", hint=hint)
    return where
