"""What befalls the process of a run."""

from __future__ import annotations

import contextlib
import os
import signal

import psutil
from lm.scripted import Reply, chat

from .changes import (
    clock_that_jumps_back,
    dies_before_renaming,
    dies_in_mid_write,
    dies_writing_the_manifest,
    interrupted_at_the_manifest,
)
from .disk import wait_for
from .nursery import Done
from .scene import Fault, Stage, third_trial

__all__ = ["CLOCK", "PARTS", "PROCESS"]


ENDING = "interrupt again to abandon"


def killed(stage: Stage) -> Done:
    command = third_trial(stage)
    command.send(signal.SIGKILL)
    done = command.wait()
    stage.model.release.set()
    return done


def interrupted(stage: Stage, by: signal.Signals) -> Done:
    command = third_trial(stage)
    command.send(by)
    wait_for(command, ENDING)
    stage.model.release.set()
    return command.wait()


def interrupted_twice(stage: Stage) -> Done:
    command = third_trial(stage)
    command.press_ctrl_c()
    wait_for(command, ENDING)
    command.press_ctrl_c()
    done = command.wait()
    stage.model.release.set()
    return done


def interrupted_early(stage: Stage) -> Done:
    """Interrupt before the endpoint is opened."""
    stage.experiment(embedded=True)
    return stage.run(interrupted_at_the_manifest)


def endpoint_killed(stage: Stage) -> Done:
    """Kill the endpoint that the run serves by itself."""
    stage.experiment(embedded=True)
    command = third_trial(stage)
    for pid in children(command.pid, "oxigraph serve"):
        os.kill(pid, signal.SIGKILL)
    stage.model.release.set()
    return command.wait()


def sandbox_killed(stage: Stage) -> Done:
    """Kill the sandbox while its trial waits for the model."""
    stage.experiment(agent="rlm", rest='[tasks]\nids = ["t002"]\n')
    stage.planned = 1
    # No turn repeats another: a repeated one would not be run.
    stage.model.answer = lambda number, task: code(
        RUNS if number == 1 else f"{SUBMITS}  # {number}", task
    )
    stage.model.hold(2)
    command = stage.begin()
    assert stage.model.held.wait(60), command.err
    killed = [os.kill(pid, signal.SIGKILL) for pid in children(command.pid, "runner.js")]
    assert killed
    stage.model.release.set()
    return command.wait()


def worker_killed(stage: Stage) -> Done:
    """Kill one of two Dask workers in the midst of its trial."""
    stage.experiment(agent="oracle", rest='[executor]\nkind = "dask"\nworkers = 2\n')
    stage.endpoint.hold()
    command = stage.begin()
    assert stage.endpoint.held.wait(120), command.err
    os.kill(max(children(command.pid, "spawn_main")), signal.SIGKILL)
    stage.endpoint.release.set()
    return command.wait(120)


def two_at_once(stage: Stage) -> Done:
    first = third_trial(stage)
    second = stage.run()
    stage.model.release.set()
    assert first.wait().status == 0
    return second


#: Turns of an agent that writes code: one that looks, and one that answers.
RUNS = 'print(sparql_query("SELECT ?plant WHERE {{ ?plant t:height ?h . FILTER(?h > {0}) }}"))'
SUBMITS = 'SUBMIT(sparql="SELECT ?plant WHERE {{ ?plant t:height ?h . FILTER(?h > {0}) }}")'


def code(text: str, task: int) -> Reply:
    body = f"```python\n{text.format(task)}\n```"
    return chat(f"[[ ## reasoning ## ]]\nnext\n\n[[ ## code ## ]]\n{body}\n\n[[ ## completed ## ]]")


def children(pid: int, words: str) -> list[int]:
    """Return the processes below one whose command line holds certain words."""
    found = []
    for child in psutil.Process(pid).children(recursive=True):
        with contextlib.suppress(psutil.Error):
            if words in " ".join(child.cmdline()):
                found.append(child.pid)
    return found


PROCESS = [
    Fault("SIGKILL in the third trial", killed, "", -9, 2),
    Fault("SIGTERM in the third trial", lambda s: interrupted(s, signal.SIGTERM), ENDING, 130, 3),
    Fault("SIGKILL when a record is half written", lambda s: s.run(dies_in_mid_write), "", -9, 2),
    Fault(
        "SIGKILL when a record is written and has no name yet",
        lambda s: s.run(dies_before_renaming),
        "",
        -9,
        2,
    ),
    Fault(
        "SIGKILL before the manifest has its name",
        lambda s: s.run(dies_writing_the_manifest),
        "",
        -9,
        0,
    ),
    Fault("Ctrl-C in the third trial", lambda s: interrupted(s, signal.SIGINT), ENDING, 130, 3),
    Fault("Ctrl-C, and again", interrupted_twice, r"interrupted; the same command", 130, 2),
    Fault("Ctrl-C before the first trial", interrupted_early, r"interrupted", 130, 0),
    Fault("the same run by two processes", two_at_once, r"another process is running", 1, 6),
]

CLOCK = [
    Fault("it goes back by a day in mid run", lambda s: s.run(clock_that_jumps_back), "", 0, 6),
]

#: Parts of a run that are processes of their own.
PARTS = [
    Fault("SIGKILL of the embedded endpoint", endpoint_killed, "", 0, 6),
    Fault("SIGKILL of the sandbox in mid trial", sandbox_killed, "", 0, 1),
    Fault("SIGKILL of a Dask worker in mid trial", worker_killed, "Dask workers", 0, 6),
]
