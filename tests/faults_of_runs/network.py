"""Faults of a run's endpoint and model."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from lm.scripted import Reply, chat, failure

from .changes import hurried
from .commands import Done
from .model import right
from .scenario import Fault, Scenario, third_trial

__all__ = ["ENDPOINT", "MODEL", "REPLIES", "down_for", "storm"]


def down_for(scenario: Scenario, seconds: float, *changes: Callable[[], None]) -> Done:
    """Let the endpoint be down for a while, from the third trial on."""
    command = third_trial(scenario, *changes)
    scenario.endpoint.close()
    opening = threading.Timer(seconds, scenario.endpoint.open)
    opening.start()
    scenario.model.release.set()
    done = command.wait(seconds + 120)
    opening.join()
    return done


def briefly_down(scenario: Scenario) -> Done:
    scenario.experiment(retries={"backoff_s": 0.2})
    return down_for(scenario, 1.0)


def gone(scenario: Scenario) -> Done:
    command = third_trial(scenario)
    scenario.endpoint.close()
    scenario.repairs.callback(scenario.endpoint.open)
    scenario.model.release.set()
    return command.wait()


def never_there(scenario: Scenario) -> Done:
    scenario.endpoint.close()
    scenario.repairs.callback(scenario.endpoint.open)
    return scenario.run(hurried)


def storm(
    scenario: Scenario, seconds: float, retry_after: str, *changes: Callable[[], None]
) -> Done:
    """Let the model refuse every call for a while, from the third trial on."""
    began: list[float] = []

    def answer(number: int, task: int) -> Reply:
        if number >= 3:
            began.append(time.monotonic())
        if began and time.monotonic() < began[0] + seconds:
            return failure(429, "slow down", "rate_limit_exceeded", retry_after=retry_after)
        return right(task)

    scenario.model.answer = answer
    return scenario.begin(*changes).wait(seconds + 120)


def always(status: int) -> Callable[[Scenario], Done]:
    """Return what lets the model fail from the third call on, for good."""

    def inject(scenario: Scenario) -> Done:
        scenario.experiment(retries={"infrastructure": 1})
        scenario.model.answer = lambda number, task: (
            right(task) if number < 3 else failure(status, "no", retry_after="0")
        )
        scenario.repairs.callback(well, scenario)
        return scenario.run(hurried)

    return inject


def well(scenario: Scenario) -> None:
    scenario.model.answer = lambda _, task: right(task)


def model_gone(scenario: Scenario) -> Done:
    scenario.experiment(retries={"infrastructure": 1})
    command = third_trial(scenario, hurried)
    scenario.model.close()
    scenario.repairs.callback(scenario.model.open)
    return command.wait()


def hanging(scenario: Scenario) -> Done:
    scenario.experiment(rest="[budget]\nseconds = 1\n")
    scenario.model.hold(3)
    done = scenario.run()
    scenario.model.release.set()
    return done


def replying(content: object) -> Callable[[Scenario], Done]:
    """Return what lets the third call be answered so."""
    reply = chat(content) if isinstance(content, str) else Reply(200, content)

    def inject(scenario: Scenario) -> Done:
        scenario.experiment(retries={"infrastructure": 0})
        scenario.model.answer = lambda _, task: reply if task == 2 else right(task)
        scenario.repairs.callback(well, scenario)
        return scenario.run(hurried)

    return inject


RERUN = ("rerun", "run", "--status", "error", "--missing")

ENDPOINT = [
    Fault("down for a second in the third trial", briefly_down, "", 0, 6),
    Fault("gone from the third trial on", gone, r"3 trials in a row", 1, 2, RERUN),
    Fault("not there from the beginning", never_there, r"no connection", 1, 0, RERUN),
]

MODEL = [
    Fault("429 with Retry-After for 2 s", lambda s: storm(s, 2.0, "1"), "", 0, 6),
    Fault("429 for good", always(429), r"rate limit", 1, 2, RERUN),
    Fault("500 for good", always(500), r"3 trials in a row", 1, 2, RERUN),
    Fault("401 from the third call on", always(401), r"key", 1, 2),
    Fault("gone from the third call on", model_gone, r"3 trials in a row", 1, 3, RERUN),
    Fault("one call that is never answered", hanging, "", 0, 6),
]

ENDED = r"1 trials? ended in infrastructure errors"
HUGE = "word " * 1_000_000

REPLIES = [
    Fault("an empty reply", replying(""), "", 0, 6),
    Fault("a reply that holds no query", replying("I do not know."), "", 0, 6),
    Fault("five megabytes of words", replying(HUGE), "", 0, 6),
    Fault("control characters and NUL", replying("\0\x01\x1b[2J SELECT\0"), "", 0, 6),
    Fault("halves of surrogate pairs", replying("SELECT \ud83d ?x {"), "", 0, 6),
    Fault("status 200 with a page", replying(b"<html>busy</html>"), ENDED, 0, 5, RERUN),
    Fault("bytes that are no text", replying(bytes(range(128, 256))), ENDED, 0, 5, RERUN),
    Fault("half of the JSON", replying(b'{"choices": [{"mess'), ENDED, 0, 5, RERUN),
    Fault("JSON without choices", replying({"object": "x"}), ENDED, 0, 5, RERUN),
    Fault("no choices", replying({"choices": []}), ENDED, 0, 5, RERUN),
]
