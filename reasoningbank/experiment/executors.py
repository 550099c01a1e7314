"""Run trials in threads, and run a trial again after infrastructure errors.

Agents wait for a model, a sandbox or an endpoint nearly all of the time, so threads suffice.
"""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass, replace

from reasoningbank.experiment.plan import Job
from reasoningbank.experiment.records import TrialRecord
from reasoningbank.experiment.settings import Retries
from reasoningbank.experiment.trial import Trial
from reasoningbank.trajectory import Usage

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Started:
    """A worker has begun a trial."""

    job: Job


@dataclass(frozen=True)
class Finished:
    """A worker has ended a trial; `record` is None if it was abandoned."""

    job: Job
    record: TrialRecord | None


def in_chains(
    chains: Iterable[Iterable[Job]],
    work: Callable[[Job, int], TrialRecord | None],
    *,
    workers: int,
    stop: threading.Event,
) -> Generator[Started | Finished]:
    """Run chains of jobs in threads and yield events in the order in which they happen."""
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
                # Trials of other workers are paid for: wait for them.
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


def waits(retries: Retries) -> Iterator[float]:
    """Yield the seconds to wait before each retry of a trial."""
    for number in range(retries.infrastructure):
        yield retries.backoff_s * 3.0**number


class Retrier:
    """Runs jobs until they end without an infrastructure error, or retries run out. Thread-safe."""

    def __init__(
        self,
        make: Callable[[Job, int], Trial],
        retries: Retries,
        pause: Callable[[float], bool | None],
    ) -> None:
        self._make = make
        self._retries = retries
        self._pause = pause
        self._down = False

    def run(self, job: Job, worker: int) -> TrialRecord | None:
        """Return the record of a job's last try; None if the run was stopped during a wait."""
        trial = self._make(job, worker)
        record, tries, wasted = trial.run(), 1, Usage()
        for seconds in () if self._down else waits(self._retries):
            if record.status != "error":
                break
            logger.info("%s: %s; retry in %g s", record.key, record.error, seconds)
            if self._pause(seconds):
                return None
            spent, record, tries = record.usage, trial.run(), tries + 1
            if record.usage is not spent:
                # Otherwise only the judging of the same attempt was repeated.
                wasted += spent
        self._down = record.status == "error"
        return replace(record, tries=tries, wasted=wasted)
