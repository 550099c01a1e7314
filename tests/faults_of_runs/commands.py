"""Commands of `reasoningbank` in processes of their own, which can be signalled and killed.

Each is forked from a server that has imported everything already, so that it begins in a tenth
of a second; it has a session of its own, as a command in a terminal has.
"""

from __future__ import annotations

import multiprocessing
import os
import re
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from multiprocessing import forkserver
from multiprocessing.context import ForkServerContext, ForkServerProcess
from pathlib import Path
from unittest import mock

__all__ = ["Command", "Done", "begin"]

#: `[3/6] direct · t002: right · …`, and what a terminal would show of the bar.
_PROGRESS = re.compile(r"\[\d+/\d+\] |(starting|\w+ · t\d+) ")
_TESTS = Path(__file__).resolve().parents[1]
#: Two threads that look at the same process would both take its exit status.
_ONE_AT_A_TIME = threading.Lock()
#: A change made in the process before the command begins: a plain function.
Change = Callable[[], None]


@dataclass(frozen=True)
class Done:
    """How a command ended.

    Attributes:
        status: Exit status; the negative number of the signal that killed it.
        out: What it wrote to standard output.
        err: What it wrote to standard error.
    """

    status: int
    out: str
    err: str

    @property
    def said(self) -> str:
        """Its lines on standard error besides its progress, each once."""
        lines = [line for line in self.err.splitlines() if line and not _PROGRESS.match(line)]
        return " · ".join(dict.fromkeys(line.removeprefix("reasoningbank: ") for line in lines))


class Command:
    """A command that runs."""

    def __init__(self, process: ForkServerProcess, out: Path, err: Path) -> None:
        self._process = process
        self._out, self._err = out, err
        self._began = time.monotonic()

    @property
    def pid(self) -> int:
        pid = self._process.pid
        assert pid is not None
        return pid

    @property
    def status(self) -> int | None:
        """Its exit status; None while it runs."""
        with _ONE_AT_A_TIME:
            return self._process.exitcode

    @property
    def err(self) -> str:
        """What it wrote to standard error until now."""
        return self._err.read_text(encoding="utf-8", errors="replace")

    def press_ctrl_c(self) -> None:
        """Send SIGINT as a terminal does: to the command and all that it started."""
        os.killpg(self.pid, signal.SIGINT)

    def send(self, number: signal.Signals) -> None:
        """Send a signal to the command alone."""
        os.kill(self.pid, number)

    def wait(self, seconds: float = 240.0) -> Done:
        """Wait for its end.

        Raises:
            TimeoutError: It does not end; it is killed then.
        """
        while (status := self.status) is None:
            if time.monotonic() > self._began + seconds:
                os.kill(self.pid, signal.SIGKILL)
                raise TimeoutError(f"the command goes on after {seconds} s: {self.err[-2000:]}")
            time.sleep(0.005)
        out = self._out.read_text(encoding="utf-8", errors="replace")
        return Done(status, out, self.err)


def begin(
    words: tuple[str, ...],
    folder: Path,
    environment: Mapping[str, str],
    changes: tuple[Change, ...] = (),
) -> Command:
    """Begin `reasoningbank WORDS` in a folder.

    Args:
        words: Its arguments.
        folder: Where it runs.
        environment: Variables set beside those at hand.
        changes: Made in the process before the command begins.
    """
    number = sum(1 for _ in folder.glob("command-*.out"))
    out, err = (folder / f"command-{number}.{kind}" for kind in ("out", "err"))
    out.touch(), err.touch()
    with _ONE_AT_A_TIME:
        process = _context().Process(
            target=_live, args=(words, str(folder), dict(environment), changes, str(out), str(err))
        )
        process.start()
    return Command(process, out, err)


def _context() -> ForkServerContext:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["faults_of_runs.warm"])
    # The server has the environment of the moment in which it begins.
    settings = {"PYTHONPATH": str(_TESTS), "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    with mock.patch.dict(os.environ, settings):
        forkserver.ensure_running()
    return context


def _live(
    words: tuple[str, ...],
    folder: str,
    environment: dict[str, str],
    changes: tuple[Change, ...],
    out: str,
    err: str,
) -> None:
    os.setsid()
    os.chdir(folder)
    os.environ.update(environment)
    for path, number in ((out, 1), (err, 2)):
        file = os.open(path, os.O_WRONLY | os.O_APPEND)
        os.dup2(file, number)
        os.close(file)
    os.environ.pop("PYTHONPATH", None)
    sys.argv = ["reasoningbank", *words]
    from reasoningbank.cli import main

    for change in changes:
        change()
    main()
    sys.stdout.flush()
    sys.stderr.flush()
