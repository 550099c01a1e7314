"""Trying again what the infrastructure spoiled: a trial, or the writing of its record."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from reasoningbank.errors import RecordError
from reasoningbank.experiment.config import Retries
from reasoningbank.experiment.records import RunFolder, TrialRecord
from reasoningbank.trajectory import Usage

__all__ = ["Retrier", "waits", "write_patiently"]

logger = logging.getLogger(__name__)


def waits(retries: Retries) -> Iterator[float]:
    """Yield the seconds to wait before each further try of a trial.

    Examples:
        >>> list(waits(Retries(infrastructure=3, backoff_s=5)))
        [5.0, 15.0, 45.0]
    """
    for number in range(retries.infrastructure):
        yield retries.backoff_s * 3.0**number


class Retrier:
    """Runs trials until they end otherwise than by an infrastructure error, or tries run out.

    Once a trial has used up its tries, the infrastructure is taken to be down: further trials are
    tried once each until one gets through. Safe between threads.

    Args:
        retries: How often, and how long to wait.
        pause: Waits so many seconds; tells whether the run was stopped meanwhile.
    """

    def __init__(self, retries: Retries, pause: Callable[[float], bool]) -> None:
        self._retries = retries
        self._pause = pause
        self._down = False

    def settle(self, run: Callable[[], TrialRecord]) -> TrialRecord | None:
        """Return the record of a trial's last try; None if the run was stopped while it waited.

        Args:
            run: Runs the trial once.
        """
        record, tries, wasted = run(), 1, Usage()
        for seconds in () if self._down else waits(self._retries):
            if record.status != "error":
                break
            logger.info("%s: %s; tried again in %g s", record.key, record.error, seconds)
            if self._pause(seconds):
                return None
            spent, record, tries = record.usage, run(), tries + 1
            if record.usage is not spent:
                # Otherwise the attempt is the same, and only its judging was tried again.
                wasted += spent
        self._down = record.status == "error"
        return replace(record, tries=tries, wasted=wasted)


def write_patiently(
    folder: RunFolder,
    record: TrialRecord,
    patience_s: float,
    on_notice: Callable[[str], None],
    sleep: Callable[[float], None] = time.sleep,
) -> Path:
    """Write a record; while that cannot be done, for want of space say, keep it and try again.

    Args:
        folder: The run's folder.
        record: What to write.
        patience_s: Seconds to go on trying.
        on_notice: Told once that it waits.
        sleep: Waits.

    Raises:
        RecordError: If it still cannot be written; the trial will be run again.
    """
    waited, wait, told = 0.0, 0.5, False
    while True:
        try:
            return folder.write(record)
        except RecordError as error:
            if waited >= patience_s:
                raise
            if not told:
                on_notice(f"{error}; the record is kept and tried again for {patience_s:g} s")
                told = True
            wait = min(2 * wait, patience_s - waited, 10.0)
            sleep(wait)
            waited += wait
