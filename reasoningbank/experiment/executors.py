"""Who runs the trials: threads of this process. What they run and keep is the runner's matter.

Agents wait for a model, a sandbox or an endpoint nearly all of the time, so threads serve.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass

from reasoningbank.corpus import Task
from reasoningbank.experiment.config import Arm
from reasoningbank.experiment.trial_record import TrialKey, TrialRecord

__all__ = ["Finished", "Job", "Started", "in_threads"]


@dataclass(frozen=True)
class Job:
    """A trial to be run."""

    arm: Arm
    task: Task
    key: TrialKey


@dataclass(frozen=True)
class Started:
    """A worker has begun a trial."""

    job: Job


@dataclass(frozen=True)
class Finished:
    """A worker has ended a trial; `record` is None where it was given up unfinished."""

    job: Job
    record: TrialRecord | None


def in_threads(
    jobs: Iterable[Job],
    work: Callable[[Job, int], TrialRecord | None],
    *,
    workers: int,
    stop: threading.Event,
) -> Generator[Started | Finished]:
    """Run jobs in threads and tell what happens, in the order in which it does.

    A worker takes its next job when the consumer has asked for the event after `Finished`: what
    the consumer stores of a trial is on disk before that worker begins another. Closing the
    iterator leaves the trials in flight to themselves; their threads end with the process.

    Args:
        jobs: What to run; taken one at a time.
        work: Runs a job; given the job and the number of the worker, from 0.
        workers: Jobs at one time, at least 1.
        stop: When set, no further job is begun; those in flight are finished.

    Raises:
        Exception: What `work` raises, in the consumer, once all trials in flight have ended.
    """
    events: queue.SimpleQueue[tuple[int, Started | Finished | BaseException | None]]
    events = queue.SimpleQueue()
    stored = [threading.Event() for _ in range(workers)]
    source = iter(jobs)
    taking = threading.Lock()

    def take() -> Job | None:
        with taking:
            return None if stop.is_set() else next(source, None)

    def serve(number: int) -> None:
        try:
            while (job := take()) is not None:
                events.put((number, Started(job)))
                stored[number].clear()
                events.put((number, Finished(job, work(job, number))))
                stored[number].wait()
        except BaseException as error:
            events.put((number, error))
        finally:
            events.put((number, None))

    for number in range(workers):
        threading.Thread(target=serve, args=(number,), name=f"trial-{number}", daemon=True).start()
    try:
        running = workers
        failure: BaseException | None = None
        while running:
            number, event = events.get()
            if event is None:
                running -= 1
            elif isinstance(event, BaseException):
                # What the other workers are at is whole and paid for: it is waited for.
                failure = failure or event
                stop.set()
            else:
                yield event
                if isinstance(event, Finished):
                    stored[number].set()
        if failure is not None:
            raise failure
    finally:
        stop.set()
