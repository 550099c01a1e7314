"""Keeping what comes out of trials: each record on disk before its worker begins another."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from reasoningbank.errors import EndpointError, ReasoningBankError, RecordError
from reasoningbank.experiment.config import Retries
from reasoningbank.experiment.executors import Finished, Job, Started
from reasoningbank.experiment.interrupts import Stop
from reasoningbank.experiment.records import RunFolder, TrialKey, TrialRecord
from reasoningbank.experiment.retrying import write_patiently
from reasoningbank.experiment.state import StateWriter

__all__ = ["Keeper", "Observer", "Progress"]

logger = logging.getLogger(__name__)

#: Told of each trial once its record is on disk.
Observer = Callable[[TrialRecord], None]


@dataclass(frozen=True)
class Progress:
    """Where a run stands, told before and after each trial.

    Attributes:
        total: Trials of this invocation, those on disk included.
        done: Trials on disk.
        fresh: Trials run by this invocation.
        key: The trial that has begun, or just finished.
        record: The trial just finished; None where it has begun.
        seconds: Since the first trial of this invocation began.
    """

    total: int
    done: int
    fresh: int
    key: TrialKey
    record: TrialRecord | None
    seconds: float


@dataclass
class Keeper:
    """Stores records and tells of them.

    Attributes:
        folder: Where records go.
        retries: How long a record that cannot be written is tried again, and when errors end a run.
        on_progress: Called when a trial begins, and when its record is on disk.
        on_notice: Told in one line what a person should know.
        observers: Called with each new record; what they raise is told and ends nothing.
    """

    folder: RunFolder
    retries: Retries
    on_progress: Callable[[Progress], None]
    on_notice: Callable[[str], None]
    observers: Sequence[Observer] = ()

    def keep(self, events: Iterable[Started | Finished], state: StateWriter, stop: Stop) -> None:
        """Store what comes out of the trials, and tell of it.

        Where the run cannot go on, no further trial begins; those in flight are kept before that
        is raised.
        """
        retries = self.retries
        failure: ReasoningBankError | None = None
        began, fresh, errors, errored = time.monotonic(), 0, 0, 0
        unheard: Counter[str] = Counter()

        def tell(key: TrialKey, record: TrialRecord | None) -> None:
            seconds = time.monotonic() - began
            self.on_progress(Progress(state.total, state.done, fresh, key, record, seconds))

        for event in events:
            key = event.job.key
            if isinstance(event, Started):
                state.started(key)
                tell(key, None)
                continue
            record = event.record
            if record is not None:
                patience = 0.0 if isinstance(failure, RecordError) else retries.write_s
                try:
                    write_patiently(self.folder, record, patience, self.on_notice)
                    fresh += 1
                except RecordError as error:
                    failure, record = failure or error, None
                    stop.event.set()
            state.ended(key, recorded=record is not None)
            if record is None:
                continue
            tell(key, record)
            self._observe(record)
            errors = errors + 1 if record.status == "error" else 0
            errored += record.status == "error"
            asked = "" if _is_heard_later(event.job) else event.job.arm.judge_lm
            if asked and record.verdict is not None and f"lm:{asked}" not in record.judgements:
                unheard[asked] += 1
            if retries.stop_after is not None and errors >= retries.stop_after and not failure:
                stop.event.set()
                failure = EndpointError(
                    f"{errors} trials in a row ended in infrastructure errors ({record.error})",
                    where=str(self.folder.path),
                    hint="mend that, then: reasoningbank rerun RUN --status error --missing",
                )
        if failure is not None:
            raise failure

        for judge, trials in unheard.items():
            self.on_notice(
                f"{trials} trial{'s' * (trials > 1)} lack the judgement of {judge}; to add it: "
                f"reasoningbank judge run {self.folder.path} --with lm:{judge}"
            )
        if errored:
            self.on_notice(
                f"{errored} trial{'s' * (errored > 1)} ended in infrastructure errors; to run "
                f"again what did: reasoningbank rerun {self.folder.path} --status error"
            )

    def _observe(self, record: TrialRecord) -> None:
        for observer in self.observers:
            try:
                observer(record)
            except Exception as error:
                logger.warning("an observer failed", exc_info=True)
                self.on_notice(f"{type(error).__name__}: {error} (the run goes on)")


def _is_heard_later(job: Job) -> bool:
    """Tell whether a stream asks the LM judge again, since it learns from what that says."""
    memory = job.arm.memory
    return job.step is not None and memory.learns and memory.judge != "execution"
