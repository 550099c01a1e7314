"""Faults of a run's disk and of the files on it."""

from __future__ import annotations

import json
import os
import resource
import shutil
import time
from collections.abc import Callable

from lm.scripted import Reply

from .changes import QUOTA, disk_quota, without_rights
from .commands import Command, Done
from .model import right
from .scenario import Fault, Scenario

__all__ = ["DISK", "FILES", "wait_for"]


def wait_for(command: Command, words: str, seconds: float = 120.0) -> None:
    """Wait until a command has said something."""
    end = time.monotonic() + seconds
    while words not in command.err:
        assert command.status is None, command.err
        assert time.monotonic() < end, command.err
        time.sleep(0.01)


def wordy(_: int, task: int) -> Reply:
    """Answer rightly, and the third task with more words than a file may have bytes."""
    reply = right(task)
    message = reply.body["choices"][0]["message"]
    message["content"] = "so " * (QUOTA if task == 2 else 0) + "\n" + message["content"]
    return reply


def full(scenario: Scenario) -> Done:
    scenario.model.answer = wordy
    return scenario.run(disk_quota)


def full_for_a_while(scenario: Scenario) -> Done:
    scenario.model.answer = wordy
    scenario.experiment(retries={"write_s": 30})
    command = scenario.begin(disk_quota)
    wait_for(command, "writing is retried")
    unbounded = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    resource.prlimit(command.pid, resource.RLIMIT_FSIZE, unbounded)
    return command.wait()


def read_only(scenario: Scenario) -> Done:
    scenario.path.mkdir()
    scenario.path.chmod(0o555)
    scenario.repairs.callback(scenario.path.chmod, 0o755)
    return scenario.run(without_rights)


def read_only_later(scenario: Scenario) -> Done:
    scenario.model.hold(3)
    command = scenario.begin(without_rights)
    assert scenario.model.held.wait(120), command.err
    folder = scenario.trial(0).parent
    folder.chmod(0o555)
    scenario.repairs.callback(folder.chmod, 0o755)
    scenario.model.release.set()
    return command.wait()


def after(change: Callable[[Scenario], object]) -> Callable[[Scenario], Done]:
    """Return what finishes a run, changes its files, and gives the command again."""

    def inject(scenario: Scenario) -> Done:
        first = scenario.run()
        assert first.status == 0, first.err
        change(scenario)
        return scenario.run()

    return inject


def spoiled(content: bytes) -> Callable[[Scenario], Done]:
    """Return what finishes a run, spoils its third trial, and gives the command again."""
    return after(lambda scenario: scenario.trial(2).write_bytes(content))


def halved(scenario: Scenario) -> None:
    os.truncate(scenario.trial(2), scenario.trial(2).stat().st_size // 2)


def another(scenario: Scenario) -> None:
    shutil.copyfile(scenario.trial(1), scenario.trial(2))


def no_manifest(content: str) -> Callable[[Scenario], Done]:
    """Return what spoils the manifest, and restores it before the command is given again."""

    def change(scenario: Scenario) -> None:
        manifest = scenario.path / "manifest.json"
        scenario.repairs.callback(manifest.write_bytes, manifest.read_bytes())
        manifest.write_text(content, encoding="utf-8")

    return after(change)


def spoil(name: str, content: str) -> Callable[[Scenario], Done]:
    return after(lambda scenario: (scenario.path / name).write_text(content, encoding="utf-8"))


DISK = [
    Fault("a record larger than the disk takes", full, r"t002\S+ cannot be written", 1, 2),
    Fault("the same, until space is made", full_for_a_while, r"writing is retried", 0, 6),
    Fault("a folder that may not be written", read_only, r"run\S* cannot be written", 1, 0),
    Fault("the same, from the third trial on", read_only_later, r"cannot be written", 1, 2),
]

FILES = [
    Fault("half of a trial's file", after(halved), r"t002.0.json.* set aside", 0, 6),
    Fault("an empty trial's file", spoiled(b""), r"t002.0.json.* set aside", 0, 6),
    Fault("bytes that are no text", spoiled(bytes(range(256))), r"t002.* set aside", 0, 6),
    Fault("JSON of another thing", spoiled(json.dumps([1, 2]).encode()), r"t002.* set aside", 0, 6),
    Fault("another trial's record under its name", after(another), r"t002.* set aside", 0, 6),
    Fault("a file left by a killed write", spoil("trials/direct/.x.tmp", "{"), "", 0, 6),
    Fault("a state that is no JSON", spoil("state.json", "{"), "", 0, 6),
    Fault("a summary that is no JSON", spoil("summary.json", "{"), "", 0, 6),
    Fault("half of a manifest", no_manifest('{"vers'), r"manifest.json: .*", 1, 6),
    Fault("a manifest of another thing", no_manifest("[1]"), r"manifest.json: .*", 1, 6),
]
