"""Changes made in a command's process before it begins: who learns in it, and where it dies."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from .orchard import enrol

__all__ = [
    "dies_before_the_program",
    "dies_before_the_second_trial",
    "dies_before_the_step",
    "dies_in_mid_snapshot",
    "dies_in_mid_step",
]


def dies_in_mid_snapshot() -> None:
    """Let SIGKILL come when half of the fourth snapshot is written."""
    _die_syncing(".jsonl.", 4)


def dies_before_the_step() -> None:
    """Let SIGKILL come when a snapshot is there and its step has no name yet."""
    enrol()
    _die_naming("learned.0/0002.json")


def dies_before_the_program() -> None:
    """Let SIGKILL come when an agent is compiled and its program has no name yet."""
    _die_naming("compiled/made.0.json")


def dies_before_the_second_trial() -> None:
    """Let SIGKILL come when the second trial has no name yet."""
    _die_naming("trials/made/t006.0.json")


def dies_in_mid_step() -> None:
    """Let SIGKILL come when half of a step's file is written."""
    _die_syncing("0003.json.", 1)


def _die_naming(name: str) -> None:
    replace = os.replace

    def die(source: object, target: object) -> None:
        if str(target).endswith(name):
            os.kill(os.getpid(), signal.SIGKILL)
        replace(source, target)  # type: ignore[arg-type]

    # pathlib holds no reference of its own: it looks the function up in os.
    os.replace = die  # type: ignore[assignment]


def _die_syncing(part: str, number: int) -> None:
    enrol()
    sync = os.fsync
    synced: list[int] = []

    def half(handle: int) -> None:
        written = os.fstat(handle)
        open_files = [path for path in Path("run").rglob(".*.tmp") if part in path.name]
        if any(os.path.samestat(written, path.stat()) for path in open_files):
            synced.append(handle)
            if len(synced) == number:
                os.ftruncate(handle, written.st_size // 2)
                os.kill(os.getpid(), signal.SIGKILL)
        sync(handle)

    os.fsync = half  # type: ignore[assignment]
