"""Running, dead or finished: the system's lock decides, not what a file says."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from reasoningbank.errors import UsageError
from reasoningbank.experiment import RunFolder, TrialKey, read_state
from reasoningbank.experiment.state import StateWriter, hold_run, is_held

HOLDER = """
import sys, time
from pathlib import Path
from reasoningbank.experiment import RunFolder, TrialKey
from reasoningbank.experiment.state import StateWriter, hold_run
folder = RunFolder(Path(sys.argv[1]))
with hold_run(folder):
    writer = StateWriter(folder.path, 9, 4, 2)
    writer.started(TrialKey("a", "t", 0))
    time.sleep(60)
"""


def test_a_run_is_held_by_one_process_and_dead_when_that_is_killed(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    assert read_state(folder) is None
    assert not is_held(folder)
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, str(folder.path)])
    try:
        end = time.monotonic() + 60
        while (state := read_state(folder)) is None and time.monotonic() < end:
            assert holder.poll() is None
            time.sleep(0.05)
        assert state is not None
        assert (state.status, state.pid, state.total, state.done) == ("running", holder.pid, 9, 4)
        assert state.in_flight == (TrialKey("a", "t", 0),)
        with pytest.raises(UsageError), hold_run(folder):
            pass
    finally:
        holder.kill()
        holder.wait()
    dead = read_state(folder)
    assert dead is not None
    assert dead.status == "dead"
    with hold_run(folder):
        assert is_held(folder)


def test_a_run_that_ended_says_how(tmp_path: Path) -> None:
    writer = StateWriter(tmp_path, 2, 0, 1)
    key = TrialKey("a", "t", 0)
    writer.started(key)
    writer.ended(key, recorded=True)
    writer.write(status="failed", error="the endpoint is gone")
    state = read_state(RunFolder(tmp_path))
    assert state is not None
    assert (state.status, state.done, state.in_flight) == ("failed", 1, ())
    assert (state.error, state.pid) == ("the endpoint is gone", os.getpid())


@pytest.mark.parametrize("text", ["", "[]", '{"status": "running"}', "\x00\x01"])
def test_a_broken_state_is_not_a_state(tmp_path: Path, text: str) -> None:
    (tmp_path / "state.json").write_text(text, encoding="utf-8")
    assert read_state(RunFolder(tmp_path)) is None


def test_a_reader_who_may_not_write_the_lock_does_not_see_a_dead_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = RunFolder(tmp_path)
    (tmp_path / "run.lock").touch()
    StateWriter(tmp_path, 2, 0, 1).write()

    def refused(*_: object, **__: object) -> None:
        raise PermissionError

    monkeypatch.setattr("reasoningbank.experiment.state.FileLock", refused)
    state = read_state(folder)
    assert state is not None
    assert state.status == "running"
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    path = tmp_path / "state.json"
    text = path.read_text(encoding="utf-8").replace(str(os.getpid()), str(gone.pid))
    path.write_text(text, encoding="utf-8")
    dead = read_state(folder)
    assert dead is not None
    assert dead.status == "dead"
