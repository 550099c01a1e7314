"""The state of a run: one process at a time, orderly interrupts, and whether it is alive.

The lock is the operating system's: it ends with the process that held it. `state.json` beside it
holds the last report of that process.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import Any, Literal

from filelock import FileLock, Timeout

from reasoningbank.errors import RecordError, UsageError
from reasoningbank.experiment.records import RunFolder, TrialKey
from reasoningbank.experiment.storage import read_json, write_atomically

_LOCK, _STATE = "run.lock", "state.json"
RunStatus = Literal["running", "dead", "finished", "stopped", "failed"]


@dataclass(frozen=True)
class RunState:
    """The last report of the process that runs, or ran, a run."""

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


@dataclass
class Stop:
    """Whether a run is to end."""

    event: threading.Event = field(default_factory=threading.Event)
    asked: bool = False


@contextlib.contextmanager
def interruptible(on_notice: Callable[[str], None]) -> Iterator[Stop]:
    """Turn the first interrupt into an orderly end, for the length of a block."""
    stop = Stop()

    def interrupt(number: int, frame: FrameType | None) -> None:
        if stop.asked:
            raise KeyboardInterrupt
        stop.asked = True
        stop.event.set()
        on_notice("stopping after the trials in flight; interrupt again to abandon them")

    main = threading.current_thread() is threading.main_thread()
    caught = [signal.SIGINT, signal.SIGTERM] if main else []
    before = {kind: signal.signal(kind, interrupt) for kind in caught}
    try:
        yield stop
    finally:
        for kind, handler in before.items():
            signal.signal(kind, handler)


@contextlib.contextmanager
def hold_run(folder: RunFolder) -> Iterator[None]:
    """Keep other processes from running the same run, for the length of a block."""
    lock = FileLock(folder.path / _LOCK)
    made = [path for path in (folder.path, *folder.path.parents) if not path.exists()]
    try:
        folder.path.mkdir(parents=True, exist_ok=True)
        lock.acquire(timeout=1.0)
    except Timeout:
        raise _held_by_another(folder) from None
    except OSError as error:
        what = f"cannot be written ({error.strerror or error})"
        hint = "choose another folder with --out"
        raise RecordError(what, where=str(folder.path), hint=hint) from error
    try:
        yield
    finally:
        lock.release()
        # Created folders that hold nothing but the lock are deleted.
        with contextlib.suppress(OSError):
            if made and [file.name for file in folder.path.iterdir()] == [_LOCK]:
                (folder.path / _LOCK).unlink()
                for one in made:
                    one.rmdir()


def check_free(folder: RunFolder) -> None:
    """Check that no process is running a run."""
    if is_held(folder):
        raise _held_by_another(folder)


def _held_by_another(folder: RunFolder) -> UsageError:
    what = "another process is running this run"
    hint = "wait for it (see `reasoningbank status`), or choose another folder with --out"
    return UsageError(what, where=str(folder.path), hint=hint, code="run-is-held")


def is_held(folder: RunFolder) -> bool | None:
    """Return whether a process is running the run; None if that cannot be determined."""
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
    """Return what a run is doing, or how it ended; None without a report."""
    try:
        data = dict(read_json(folder.path / _STATE))
        data["in_flight"] = tuple(TrialKey(**key) for key in data["in_flight"])
        state = RunState(**data)
    except (RecordError, TypeError, KeyError):
        return None
    if state.status == "running" and not _lives(folder, state):
        return replace(state, status="dead")
    return state


def _lives(folder: RunFolder, state: RunState) -> bool:
    """Return whether a run that reports to be running is; if in doubt, True."""
    held = is_held(folder)
    if held is not None or state.host != socket.gethostname():
        return held is not False
    # The lock is somebody else's.
    with contextlib.suppress(PermissionError):
        try:
            os.kill(state.pid, 0)
        except ProcessLookupError:
            return False
    return True


class StateWriter:
    """Keeps `state.json` up to date. A state that cannot be written does not end the run."""

    def __init__(self, folder: Path, total: int, done: int, workers: int) -> None:
        self._path = folder / _STATE
        host, began = socket.gethostname(), now()
        self.state = RunState("running", os.getpid(), host, began, began, total, done, workers)

    def started(self, key: TrialKey) -> None:
        """Note that a trial has begun."""
        self.write(in_flight=(*self.state.in_flight, key))

    def ended(self, key: TrialKey, *, recorded: bool) -> None:
        """Note that a trial has ended."""
        left = tuple(one for one in self.state.in_flight if one != key)
        self.write(in_flight=left, done=self.state.done + recorded)

    def write(self, **changes: Any) -> None:
        """Change fields of the state, and write it."""
        self.state = replace(self.state, updated=now(), **changes)
        with contextlib.suppress(RecordError):
            write_atomically(self._path, asdict(self.state), durable=False)


def now() -> str:
    """Return the time in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")
