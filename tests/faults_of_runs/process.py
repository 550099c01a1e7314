"""Faults of a run's process."""

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
from .commands import Done
from .disk import wait_for
from .scenario import Fault, Scenario, third_trial

__all__ = ["CLOCK", "PARTS", "PROCESS"]


ENDING = "interrupt again to abandon"


def killed(scenario: Scenario) -> Done:
    command = third_trial(scenario)
    command.send(signal.SIGKILL)
    done = command.wait()
    scenario.model.release.set()
    return done


def interrupted(scenario: Scenario, by: signal.Signals) -> Done:
    command = third_trial(scenario)
    command.send(by)
    wait_for(command, ENDING)
    scenario.model.release.set()
    return command.wait()


def interrupted_twice(scenario: Scenario) -> Done:
    command = third_trial(scenario)
    command.press_ctrl_c()
    wait_for(command, ENDING)
    command.press_ctrl_c()
    done = command.wait()
    scenario.model.release.set()
    return done


def interrupted_early(scenario: Scenario) -> Done:
    """Interrupt before the endpoint is opened."""
    scenario.experiment(embedded=True)
    return scenario.run(interrupted_at_the_manifest)


def endpoint_killed(scenario: Scenario) -> Done:
    """Kill the endpoint that the run serves by itself."""
    scenario.experiment(embedded=True)
    command = third_trial(scenario)
    for pid in children(command.pid, "oxigraph serve"):
        os.kill(pid, signal.SIGKILL)
    scenario.model.release.set()
    return command.wait()


def sandbox_killed(scenario: Scenario) -> Done:
    """Kill the sandbox while its trial waits for the model."""
    scenario.experiment(agent="rlm", rest='[tasks]\nids = ["t002"]\n')
    scenario.planned = 1
    # No turn repeats another: a repeated one would not be run.
    scenario.model.answer = lambda number, task: code(
        RUNS if number == 1 else f"{SUBMITS}  # {number}", task
    )
    scenario.model.hold(2)
    command = scenario.begin()
    assert scenario.model.held.wait(60), command.err
    killed = [os.kill(pid, signal.SIGKILL) for pid in children(command.pid, "runner.js")]
    assert killed
    scenario.model.release.set()
    return command.wait()


def worker_killed(scenario: Scenario) -> Done:
    """Kill one of two Dask workers in the midst of its trial."""
    scenario.experiment(agent="oracle", rest='[executor]\nkind = "dask"\nworkers = 2\n')
    scenario.endpoint.hold()
    command = scenario.begin()
    assert scenario.endpoint.held.wait(120), command.err
    os.kill(max(children(command.pid, "spawn_main")), signal.SIGKILL)
    scenario.endpoint.release.set()
    return command.wait(120)


def two_at_once(scenario: Scenario) -> Done:
    first = third_trial(scenario)
    second = scenario.run()
    scenario.model.release.set()
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
