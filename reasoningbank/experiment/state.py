"""Whether a run is running, dead or finished, and that no two processes run it at once.

The lock is the operating system's: it is gone with the process that held it, however that
ended. `state.json` beside it says what the process was doing when it last wrote.
"""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from filelock import FileLock, Timeout

from reasoningbank.errors import RecordError, UsageError
from reasoningbank.experiment.records import RunFolder, TrialKey
from reasoningbank.experiment.storage import read_json, write_atomically

__all__ = [
    "RunState",
    "RunStatus",
    "StateWriter",
    "check_free",
    "hold_run",
    "is_held",
    "read_state",
]

_LOCK, _STATE = "run.lock", "state.json"
RunStatus = Literal["running", "dead", "finished", "stopped", "failed"]


@dataclass(frozen=True)
class RunState:
    """What the process that ran, or runs, a run said of itself last.

    Attributes:
        status: `running`; `finished`: everything it was asked for is on disk; `stopped`: it was
            interrupted and ended in order; `failed`: it ended by an error; `dead`: it was killed.
        pid: Its process.
        host: Its machine.
        began: When it began, ISO 8601 in UTC.
        updated: When it last said something.
        total: Trials it was asked for, those on disk included.
        done: Trials on disk.
        workers: Trials at one time.
        in_flight: Trials that had begun and not ended.
        error: What ended it, where something did.
    """

    status: RunStatus
    pid: int
    host: str
    began: str
    updated: str
    total: int
    done: int
    workers: int = 1
    in_flight: tuple[TrialKey, ...] = ()
    error: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return the state as JSON-able data."""
        return asdict(self)


@contextlib.contextmanager
def hold_run(folder: RunFolder) -> Iterator[None]:
    """Keep every other process from running the same run, for the length of a block.

    Raises:
        UsageError: If another process runs it.
        RecordError: If the folder cannot be written.
    """
    lock = FileLock(folder.path / _LOCK)
    made = [path for path in (folder.path, *folder.path.parents) if not path.exists()]
    try:
        folder.path.mkdir(parents=True, exist_ok=True)
        lock.acquire(timeout=1.0)
    except Timeout:
        raise _taken(folder) from None
    except OSError as error:
        raise RecordError(
            f"cannot be written ({error.strerror or error})",
            where=str(folder.path),
            hint="choose another folder with --out",
        ) from error
    try:
        yield
    finally:
        lock.release()
        _leave_no_trace(folder.path, made)


def check_free(folder: RunFolder) -> None:
    """Check that no process runs a run now.

    Raises:
        UsageError: If one does.
    """
    if is_held(folder):
        raise _taken(folder)


def _taken(folder: RunFolder) -> UsageError:
    return UsageError(
        "another process runs this run",
        where=str(folder.path),
        hint="wait for it (`reasoningbank status` tells), or choose another folder with --out",
    )


def _leave_no_trace(path: Path, made: Sequence[Path]) -> None:
    """Delete the folders that were made if nothing came to be in them but the lock."""
    with contextlib.suppress(OSError):
        if made and [file.name for file in path.iterdir()] == [_LOCK]:
            (path / _LOCK).unlink()
            for folder in made:
                folder.rmdir()


def is_held(folder: RunFolder) -> bool | None:
    """Tell whether a process runs the run now; nothing is written.

    Returns:
        None where that cannot be found out: only who may write the lock can try it.
    """
    path = folder.path / _LOCK
    if not path.exists():
        return False
    try:
        with FileLock(path, timeout=0):
            return False
    except Timeout:
        return True
    except OSError:
        return None


def read_state(folder: RunFolder) -> RunState | None:
    """Return what a run is doing, or how it ended; None where no process left word."""
    try:
        data = dict(read_json(folder.path / _STATE))
        data["in_flight"] = tuple(TrialKey(**key) for key in data["in_flight"])
        state = RunState(**data)
    except (RecordError, TypeError, KeyError):
        return None
    if state.status == "running" and not _lives(folder, state):
        return RunState(**{**state.__dict__, "status": "dead"})
    return state


def _lives(folder: RunFolder, state: RunState) -> bool:
    """Tell whether a run that says it is running is; in doubt it is believed."""
    held = is_held(folder)
    if held is not None or state.host != socket.gethostname():
        return held is not False
    with contextlib.suppress(PermissionError):
        try:
            os.kill(state.pid, 0)
        except ProcessLookupError:
            return False
    return True


@dataclass
class StateWriter:
    """Keeps `state.json` while a run goes on. A state that cannot be written ends no run."""

    folder: Path
    total: int
    done: int
    workers: int
    began: str = field(default_factory=lambda: _now())
    in_flight: list[TrialKey] = field(default_factory=list)

    def started(self, key: TrialKey) -> None:
        """Note that a trial has begun."""
        self.in_flight.append(key)
        self.write("running")

    def ended(self, key: TrialKey, *, recorded: bool) -> None:
        """Note that a trial has ended."""
        if key in self.in_flight:
            self.in_flight.remove(key)
        self.done += recorded
        self.write("running")

    def write(self, status: RunStatus, error: str = "") -> None:
        """Write the state."""
        state = RunState(
            status,
            os.getpid(),
            socket.gethostname(),
            self.began,
            _now(),
            self.total,
            self.done,
            self.workers,
            tuple(self.in_flight),
            error,
        )
        with contextlib.suppress(RecordError):
            write_atomically(self.folder / _STATE, state.to_json(), durable=False)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
