"""Trials in threads: each exactly once, stored before its worker goes on."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from reasoningbank.corpus import Task
from reasoningbank.experiment import Arm, TrialKey
from reasoningbank.experiment.executors import Finished, Started, in_chains
from reasoningbank.experiment.plan import Job

ARM = Arm(name="a", agent="oracle")
JOBS = [Job(ARM, Task(f"t{i}", "?", "ASK {}", "http://e/"), TrialKey("a", f"t{i}", 0)) for i in
        range(20)]  # fmt: skip


def test_every_job_once_and_no_more_at_a_time_than_workers() -> None:
    running, most, lock = 0, 0, threading.Lock()

    def work(job: Job, worker: int) -> Any:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        time.sleep(0.01)
        with lock:
            running -= 1
        return (job.key.task, worker)

    events = list(in_chains([[job] for job in JOBS], work, workers=4, stop=threading.Event()))
    started = [event.job for event in events if isinstance(event, Started)]
    finished = [event for event in events if isinstance(event, Finished)]
    assert started == JOBS
    assert sorted(event.record[0] for event in finished) == sorted(job.key.task for job in JOBS)  # type: ignore[index]
    assert {event.record[1] for event in finished} == {0, 1, 2, 3}  # type: ignore[index]
    assert most == 4


def test_a_worker_begins_nothing_before_its_last_trial_is_stored() -> None:
    begun: list[str] = []

    def work(job: Job, worker: int) -> Any:
        begun.append(job.key.task)

    for event in in_chains([[job] for job in JOBS[:5]], work, workers=1, stop=threading.Event()):
        if isinstance(event, Finished):
            time.sleep(0.02)
            assert begun[-1] == event.job.key.task


def test_after_stop_what_is_in_flight_ends_and_nothing_begins() -> None:
    stop = threading.Event()

    def work(job: Job, worker: int) -> Any:
        time.sleep(0.02)
        return job

    finished = []
    for event in in_chains([[job] for job in JOBS], work, workers=3, stop=stop):
        if isinstance(event, Finished):
            finished.append(event.job)
            stop.set()
    assert sorted(job.key.task for job in finished) == ["t0", "t1", "t2"]


def test_what_is_in_flight_is_kept_when_another_trial_ends_the_run() -> None:
    def work(job: Job, worker: int) -> Any:
        if job.key.task == "t0":
            raise ZeroDivisionError
        time.sleep(0.05)
        return job

    events: list[Started | Finished] = []
    with pytest.raises(ZeroDivisionError):
        events.extend(in_chains([[job] for job in JOBS], work, workers=3, stop=threading.Event()))
    ended = [event.job.key.task for event in events if isinstance(event, Finished)]
    assert sorted(ended) == ["t1", "t2"]


def test_what_work_raises_reaches_the_consumer() -> None:
    def work(job: Job, worker: int) -> Any:
        raise ZeroDivisionError(job.key.task)

    stop = threading.Event()
    with pytest.raises(ZeroDivisionError, match="t0"):
        list(in_chains([[job] for job in JOBS], work, workers=1, stop=stop))
    assert stop.is_set()
