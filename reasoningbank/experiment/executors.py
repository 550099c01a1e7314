"""Run trials in threads, retry them after infrastructure errors, and write their records.

Agents wait for a model, a sandbox or an endpoint nearly all of the time, so threads suffice.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from reasoningbank.agents import UNJUDGED
from reasoningbank.errors import EndpointError, ReasoningBankError, RecordError, UsageError
from reasoningbank.experiment.manifest import check_served
from reasoningbank.experiment.plan import Job
from reasoningbank.experiment.records import RunFolder, TrialKey, TrialRecord
from reasoningbank.experiment.settings import Retries
from reasoningbank.experiment.state import StateWriter, Stop
from reasoningbank.experiment.trial import Trial
from reasoningbank.findings import counted
from reasoningbank.trajectory import Usage

logger = logging.getLogger(__name__)


#: What ended a trial that is not judged, by its status.
FAILURES = {"error": "infrastructure errors", "bug": "bugs of the agent or another part"}
#: Seconds after which more threads are started if there are more workers.
_LOOK_S = 1.0
#: Called with each trial once its record is on disk.
Observer = Callable[[TrialRecord], None]


@dataclass(frozen=True)
class Progress:
    """Progress of a run, reported before and after each trial."""

    total: int
    done: int
    fresh: int
    key: TrialKey
    record: TrialRecord | None
    seconds: float


@dataclass
class RecordWriter:
    """Writes records and reports progress."""

    folder: RunFolder
    retries: Retries
    state: StateWriter
    stop: Stop
    on_progress: Callable[[Progress], None]
    on_notice: Callable[[str], None]
    observers: Sequence[Observer] = ()
    _began: float = field(default_factory=time.monotonic)
    _fresh: int = 0
    _in_a_row: int = 0
    _failed: Counter[str] = field(default_factory=Counter)
    _shown: set[str] = field(default_factory=set)
    _unjudged: Counter[str] = field(default_factory=Counter)
    _failure: ReasoningBankError | None = None

    def started(self, job: Job) -> None:
        """Note that a trial has begun."""
        self.state.started(job.key)
        self._report(job.key, None)

    def ended(self, job: Job, record: TrialRecord | None) -> None:
        """Write the record of a trial, and stop the run if that, or too many trials, failed."""
        if record is not None:
            try:
                check_served(self.folder, record)
                self._write(record)
                self._fresh += 1
            except (RecordError, UsageError) as error:
                self._end(error)
                record = None
        self.state.ended(job.key, recorded=record is not None)
        if record is None:
            return
        self._report(job.key, record)
        for observer in self.observers:
            try:
                observer(record)
            except Exception as error:
                logger.warning("an observer failed", exc_info=True)
                self.on_notice(f"{type(error).__name__}: {error} (the run goes on)")
        # A stream that learns from the LM judge's verdict asks it again.
        judge, asks_again = job.arm.judge_lm, job.teaches and job.arm.learns_from != "execution"
        if judge and record.verdict and not asks_again:
            self._unjudged[judge] += f"lm:{judge}" not in record.judgements
        self._in_a_row = self._in_a_row + 1 if record.failed else 0
        if record.failed:
            self._note_failure(record)

    def finish(self) -> None:
        """Raise what stopped the run, or say what is left to do."""
        if self._failure is not None:
            raise self._failure
        where = self.folder.path
        for judge, trials in self._unjudged.items():
            if trials:
                how = f"to add it: reasoningbank judge run {where} --with lm:{judge}"
                self.on_notice(f"{counted(trials, 'trial')} without a judgement of {judge}; {how}")
        for status in UNJUDGED:
            if trials := self._failed[status]:
                how = f"to run again: reasoningbank rerun {where} --status {status}"
                self.on_notice(f"{counted(trials, 'trial')} ended in {FAILURES[status]}; {how}")

    def _write(self, record: TrialRecord) -> Path:
        """Write a record; retry while that fails, e.g. on a full disk."""
        patience_s = 0.0 if isinstance(self._failure, RecordError) else self.retries.write_s
        waited, wait = 0.0, 0.5
        while True:
            try:
                return self.folder.write(record)
            except RecordError as error:
                if waited >= patience_s:
                    raise
                if not waited:
                    self.on_notice(f"{error}; writing is retried for {patience_s:g} s")
                wait = min(2 * wait, patience_s - waited, 10.0)
                time.sleep(wait)
                waited += wait

    def _note_failure(self, record: TrialRecord) -> None:
        self._failed[record.status] += 1
        for finding in record.findings:
            shown = (finding.get("fields") or {}).get("traceback")
            if shown and shown not in self._shown:
                self.on_notice(f"{record.key}: a bug, so it is not retried\n{shown}")
                self._shown.add(shown)
        if self._in_a_row == self.retries.stop_after:
            kind = EndpointError if record.status == "error" else UsageError
            ended = f"ended in {FAILURES[record.status]} ({record.error})"
            what, where = f"{self._in_a_row} trials in a row {ended}", str(self.folder.path)
            again = f"reasoningbank rerun {where} --status {record.status} --missing"
            hint = f"fix the cause, then: {again}"
            self._end(kind(what, where=where, hint=hint, code="too-many-failures"))

    def _end(self, failure: ReasoningBankError) -> None:
        """Let the run end with an error; the first one counts."""
        self._failure = self._failure or failure
        self.stop.event.set()

    def _report(self, key: TrialKey, record: TrialRecord | None) -> None:
        state, seconds = self.state.state, time.monotonic() - self._began
        self.on_progress(Progress(state.total, state.done, self._fresh, key, record, seconds))


def run_chains(
    chains: Sequence[Iterable[Job]],
    work: Callable[[Job, int], TrialRecord | None],
    writer: RecordWriter,
    *,
    workers: Callable[[], int],
    stop: threading.Event,
) -> None:
    """Run chains of jobs in threads; a worker begins a trial once its last one is stored.

    The number of workers may grow.
    """
    source = iter(chains)
    taking, storing = threading.Lock(), threading.Lock()
    failures: list[BaseException] = []

    def take() -> Iterable[Job] | None:
        with taking:
            return None if stop.is_set() else next(source, None)

    def serve(number: int) -> None:
        try:
            while (chain := take()) is not None:
                for job in chain:
                    if stop.is_set():
                        break
                    with storing:
                        writer.started(job)
                    record = work(job, number)
                    with storing:
                        writer.ended(job, record)
        except BaseException as error:
            # Trials of other workers are paid for: they end before this is raised.
            failures.append(error)
            stop.set()

    threads: list[threading.Thread] = []
    try:
        while True:
            for number in range(len(threads), min(workers(), len(chains))):
                name = f"trial-{number}"
                thread = threading.Thread(target=serve, args=(number,), name=name, daemon=True)
                threads.append(thread)
                thread.start()
            alive = [thread for thread in threads if thread.is_alive()]
            if not alive:
                break
            alive[0].join(_LOOK_S)
    except BaseException:
        stop.set()
        raise
    if failures:
        raise failures[0]


def waits(retries: Retries) -> Iterator[float]:
    """Yield the seconds to wait before each retry of a trial."""
    for number in range(retries.infrastructure):
        yield retries.backoff_s * 3.0**number


@dataclass
class Retrier:
    """Runs trials until no infrastructure error ends them, or retries run out. Thread-safe."""

    retries: Retries
    pause: Callable[[float], bool | None]
    _down: bool = False

    def run(self, trial: Trial) -> TrialRecord | None:
        """Return the record of a trial's last try; None if the run was stopped during a wait."""
        record, tries, wasted = trial.run(), 1, Usage()
        for seconds in () if self._down else waits(self.retries):
            if record.status != "error":
                break
            # A provider may say when it will answer again.
            asked = (one.get("fields", {}).get("retry_after") or 0.0 for one in record.findings)
            seconds = max(seconds, *asked, 0.0)
            logger.info("%s: %s; retry in %g s", record.key, record.error, seconds)
            if self.pause(seconds):
                return None
            spent, record, tries = record.usage, trial.run(), tries + 1
            if record.usage is not spent:
                # Otherwise only the judging of the same attempt was repeated.
                wasted += spent
        self._down = record.status == "error"
        return replace(record, tries=tries, wasted=wasted)
