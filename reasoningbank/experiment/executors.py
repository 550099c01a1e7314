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
from reasoningbank.experiment.records import TrialKey, TrialRecord

__all__ = ["Finished", "Job", "Started", "in_chains", "in_threads"]


@dataclass(frozen=True)
class Job:
    """A trial to be run.

    Attributes:
        arm: The system under test.
        task: The task, with its gold.
        key: Which trial it is.
        step: Place in a learning stream, from 0; None outside one.
    """

    arm: Arm
    task: Task
    key: TrialKey
    step: int | None = None

    @property
    def teaches(self) -> bool:
        """Whether it is a step of a stream that something is learned from."""
        return self.step is not None and self.arm.memory.learns


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
    """Run jobs that have nothing to do with one another; see `in_chains`."""
    return in_chains(([job] for job in jobs), work, workers=workers, stop=stop)


def in_chains(
    chains: Iterable[Iterable[Job]],
    work: Callable[[Job, int], TrialRecord | None],
    *,
    workers: int,
    stop: threading.Event,
) -> Generator[Started | Finished]:
    """Run chains of jobs in threads and tell what happens, in the order in which it does.

    One worker runs a chain from its first job to its last. It asks for the next job when the
    consumer has asked for the event after `Finished`: what the consumer stores of a trial is on
    disk by then, and a chain that is a generator can go by it. Closing the iterator leaves the
    trials in flight to themselves; their threads end with the process.

    Args:
        chains: What to run; taken one at a time.
        work: Runs a job; given the job and the number of the worker, from 0.
        workers: Chains at one time, at least 1.
        stop: When set, no further job is begun; those in flight are finished.

    Raises:
        Exception: What `work` or a chain raises, in the consumer, once all trials in flight have
            ended.
    """
    events: queue.SimpleQueue[tuple[int, Started | Finished | BaseException | None]]
    events = queue.SimpleQueue()
    stored = [threading.Event() for _ in range(workers)]
    source = iter(chains)
    taking = threading.Lock()

    def take() -> Iterable[Job] | None:
        with taking:
            return None if stop.is_set() else next(source, None)

    def serve(number: int) -> None:
        try:
            while (chain := take()) is not None:
                for job in chain:
                    if stop.is_set():
                        break
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
    except BaseException:
        stop.set()
        raise
