"""A Dask cluster started by hand, as in docs/scaling.md, and a pupil that can be held up in it."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import trees

from reasoningbank.agents import AGENTS, Attempt, Episode
from reasoningbank.corpus import Task

from .orchard import Pupil, enrol

#: Where a file `wait` holds up the trial of a task until it is gone; `held` names the process.
_GATE = "PUPIL_GATE"
#: The task whose trial is held up: not the first of a stream.
HELD = 8
_QUIET = ("--host", "127.0.0.1", "--no-dashboard")
_TESTS = Path(trees.__file__).parent


class HeldPupil(Pupil):
    """Waits in one trial for as long as there is a file."""

    def solve(self, task: Task, episode: Episode) -> Attempt:
        gate = Path(os.environ[_GATE])
        if f"than {HELD} m" in task.query and (gate / "wait").exists():
            (gate / f"held.{os.getpid()}").touch()
            while (gate / "wait").exists():
                time.sleep(0.02)
        return super().solve(task, episode)


def enrol_on_dask() -> None:
    """Enrol the pupil where trials are handed to workers, or run by one."""
    enrol()
    from reasoningbank.experiment import cluster, trial

    vars(cluster)["datetime"] = vars(trial)["datetime"]


def dask_setup(worker: Any) -> None:
    """Enrol the pupil in a worker that preloads this module."""
    enrol_on_dask()
    AGENTS["pupil"] = HeldPupil


class Workers:
    """A scheduler and two workers, each with a cache of its own."""

    def __init__(self, folder: Path) -> None:
        self.gate = folder / "gate"
        self.gate.mkdir(parents=True)
        self._folder, self._started = folder, list[subprocess.Popen[bytes]]()
        self.address = ""

    def start(self) -> None:
        """Start them all."""
        port = self.address.rpartition(":")[2] or "0"
        file = self._folder / "scheduler.json"
        file.unlink(missing_ok=True)
        self._dask("scheduler", *_QUIET, "--port", port, "--scheduler-file", str(file))
        wait_for(file.exists)
        self.address = json.loads(file.read_text(encoding="utf-8"))["address"]
        for number in range(2):
            self.add_worker("--preload", "experiment.learning.on_workers", number=number)

    def add_worker(self, *preload: str, number: int) -> subprocess.Popen[bytes]:
        """Start a worker; without a preload it does not know the pupil."""
        return self._dask(
            "worker", self.address, *_QUIET, "--nthreads", "1", *preload, number=number
        )

    def kill(self) -> None:
        """Kill the scheduler and the workers."""
        for process in self._started:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        self._started.clear()

    def hold(self) -> None:
        """Hold up the trial of `HELD` when it comes."""
        (self.gate / "wait").touch()

    def held(self) -> int:
        """Wait until it came, and return the worker's process."""
        found: list[Path] = []
        wait_for(lambda: bool(found.extend(self.gate.glob("held.*")) or found))
        found[0].unlink()
        return int(found[0].suffix[1:])

    def release(self) -> None:
        """Let it go on."""
        (self.gate / "wait").unlink()

    def _dask(self, *words: str, number: int = 9) -> subprocess.Popen[bytes]:
        home = self._folder / f"home-{number}"
        home.mkdir(exist_ok=True)
        paths = (str(_TESTS.parent), str(_TESTS))
        settings = {
            "PYTHONPATH": os.pathsep.join(paths),
            "REASONINGBANK_CACHE": str(home / "cache"),
            "DASK_TEMPORARY_DIRECTORY": str(home),
            _GATE: str(self.gate),
        }
        with (home / f"{words[0]}.log").open("ab") as log:
            self._started.append(
                subprocess.Popen(
                    [sys.executable, "-m", "dask", *words],
                    cwd=home,
                    env={**os.environ, **settings},
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )
            )
        return self._started[-1]


def wait_for(ready: Callable[[], bool], seconds: float = 300.0) -> None:
    """Wait until something is so."""
    end = time.monotonic() + seconds
    while not ready():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.02)


@contextlib.contextmanager
def workers(folder: Path) -> Iterator[Workers]:
    """Start a scheduler and two workers for the length of a block."""
    started = Workers(folder)
    try:
        started.start()
        yield started
    finally:
        started.kill()
