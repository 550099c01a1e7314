"""Trials in threads: each exactly once, stored before its worker goes on."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from reasoningbank.corpus import Task
from reasoningbank.experiment import Arm
from reasoningbank.experiment.executors import run_chains
from reasoningbank.experiment.plan import Job

ARM = Arm(name="a", agent="oracle")
JOBS = [Job(ARM, Task(f"t{i}", "?", "ASK {}", "http://e/")) for i in range(20)]


class Sink:
    """Keeps what begins and ends."""

    def __init__(self, on_end: Callable[[Job], None] = lambda _: None) -> None:
        self.begun: list[Job] = []
        self.records: list[Any] = []
        self.on_end = on_end

    def started(self, job: Job) -> None:
        self.begun.append(job)

    def ended(self, job: Job, record: Any) -> None:
        self.records.append(record)
        self.on_end(job)


def run_all(
    sink: Any, work: Callable[[Job, int], Any], workers: int, stop: threading.Event | None = None
) -> None:
    stop = stop or threading.Event()
    run_chains([[job] for job in JOBS], work, sink, workers=lambda: workers, stop=stop)


def test_as_many_trials_run_at_one_time_as_there_are_workers() -> None:
    lock, running, most = threading.Lock(), 0, 0
    together = threading.Barrier(4)

    def work(job: Job, worker: int) -> Any:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        together.wait()
        with lock:
            running -= 1
        return (job.key.task, worker)

    sink = Sink()
    run_all(sink, work, 4)
    assert sink.begun == JOBS
    assert sorted(task for task, _ in sink.records) == sorted(job.key.task for job in JOBS)
    assert {worker for _, worker in sink.records} == {0, 1, 2, 3}
    assert most == 4


def test_a_worker_begins_nothing_before_its_last_trial_is_stored() -> None:
    begun: list[str] = []

    def stored(job: Job) -> None:
        assert begun[-1] == job.key.task

    run_all(Sink(stored), lambda job, _: begun.append(job.key.task), 1)
    assert len(begun) == len(JOBS)


def test_after_stop_what_is_in_flight_ends_and_nothing_begins() -> None:
    stop, together = threading.Event(), threading.Barrier(3)

    def work(job: Job, worker: int) -> Any:
        together.wait()
        return job.key.task

    sink = Sink(lambda _: stop.set())
    run_all(sink, work, 3, stop)
    assert sorted(sink.records) == ["t0", "t1", "t2"]


def test_what_is_in_flight_is_kept_when_another_trial_ends_the_run() -> None:
    together = threading.Barrier(3)

    def work(job: Job, worker: int) -> Any:
        together.wait()
        if job.key.task == "t0":
            raise ZeroDivisionError
        assert stop.wait(120)
        return job.key.task

    sink, stop = Sink(), threading.Event()
    with pytest.raises(ZeroDivisionError):
        run_all(sink, work, 3, stop)
    assert sorted(sink.records) == ["t1", "t2"]
    assert stop.is_set()
