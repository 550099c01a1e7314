"""Run an experiment: open what trials share once, run what is not on disk, record each trial."""

from __future__ import annotations

import contextlib
import logging
import time
from collections import Counter
from collections.abc import Callable, Collection, Generator, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from reasoningbank.agents import asks_model
from reasoningbank.errors import EndpointError, ReasoningBankError, RecordError, UsageError
from reasoningbank.experiment.config import Experiment
from reasoningbank.experiment.context import (
    RunContext,
    context_at,
    data_files,
    demonstration_files,
    hash_files,
    opened_endpoint,
    store_hash,
)
from reasoningbank.experiment.executors import Finished, Retrier, Started, in_chains
from reasoningbank.experiment.manifest import (
    build_manifest,
    memory_hashes,
    open_run,
    replacements,
)
from reasoningbank.experiment.plan import Job, Plan, plan_run, step_is_taken
from reasoningbank.experiment.records import RunFolder, TrialKey, TrialRecord
from reasoningbank.experiment.settings import LearnedMemory, Retries
from reasoningbank.experiment.state import StateWriter, Stop, hold_run, interruptible
from reasoningbank.experiment.trial import Trial
from reasoningbank.judge import GoldStore
from reasoningbank.lm import ModelHandle, open_lm, price_of
from reasoningbank.lm.names import check_hosted, parse_name

if TYPE_CHECKING:
    from reasoningbank.experiment.session import LearningSession


logger = logging.getLogger(__name__)

#: Slots of a local model's server: more would divide two cores and a context's memory.
LOCAL_SLOTS = 4
#: Sandboxes kept warm, at about 150 MB each.
SPARE_SANDBOXES = 8
#: Called with each trial once its record is on disk.
Observer = Callable[[TrialRecord], None]


@dataclass(frozen=True)
class Progress:
    """Progress of a run, reported before and after each trial.

    Attributes:
        total: Trials of this invocation, including those on disk.
        done: Trials on disk.
        fresh: Trials run by this invocation.
        key: The trial that has begun or just finished.
        record: The trial just finished; None if it has begun.
        seconds: Since the first trial of this invocation began.
    """

    total: int
    done: int
    fresh: int
    key: TrialKey
    record: TrialRecord | None
    seconds: float


def run_experiment(
    experiment: Experiment,
    folder: RunFolder,
    *,
    limit: int | None = None,
    only: Sequence[str] = (),
    tasks: Sequence[str] = (),
    again: Collection[TrialKey] = (),
    missing: bool = True,
    on_progress: Callable[[Progress], None] = lambda _: None,
    on_notice: Callable[[str], None] = lambda _: None,
    observers: Sequence[Observer] = (),
) -> RunFolder:
    """Run every trial of the experiment that is not on disk yet.

    After the first interrupt (Ctrl-C, SIGTERM) no further trial begins and those in flight are
    finished; the second interrupt abandons them.

    Args:
        experiment: What to run.
        folder: Where records go; a folder with records of the same run is resumed.
        limit: Only the first n tasks of each arm.
        only: Only these arms; empty for all.
        tasks: Only these tasks; empty for all.
        again: Trials to run even if they are on disk; the new record replaces the old one once it
            is written.
        missing: Whether trials that are not on disk are run.
        on_progress: Called when a trial begins, and when its record is on disk.
        on_notice: Called with one line for people, e.g. about a damaged file.
        observers: Called with each new record, one at a time; their exceptions are reported and
            end nothing.

    Returns:
        The folder.

    Raises:
        UsageError: If the experiment names something unknown, the folder holds another run or a
            run of other prompts, or another process runs this one.
        SetupError: If the machine lacks a part.
        RecordError: If a record cannot be written.
        EndpointError: If too many consecutive trials ended in infrastructure errors.
        KeyboardInterrupt: If the run was interrupted.
    """
    plan = plan_run(experiment, limit=limit, only=only, tasks=tasks)
    _check_models(experiment, plan.jobs)
    with hold_run(folder):
        damaged = set(folder.damaged())
        again = _repeatable(folder, plan, again, on_notice)
        todo = [
            job
            for job in plan.jobs
            if job.key in again
            or (missing and (not _is_done(folder, job) or folder.file(job.key) in damaged))
        ]
        observers = (*observers, replacements(folder, again))
        writer = RecordWriter(folder, experiment.retries, on_progress, on_notice, observers)
        run = _Run(experiment, folder, plan, todo, again, missing, on_notice, writer)
        with interruptible(on_notice) as stop:
            run.execute(damaged, stop)
        if stop.asked:
            raise KeyboardInterrupt
    return folder


@dataclass
class _Run:
    """One invocation of a run."""

    experiment: Experiment
    folder: RunFolder
    plan: Plan
    todo: Sequence[Job]
    again: Collection[TrialKey]
    missing: bool
    on_notice: Callable[[str], None]
    writer: RecordWriter

    def execute(self, damaged: Collection[Path], stop: Stop) -> None:
        """Open what the trials need, check that the folder is this run's, and run them."""
        experiment, folder = self.experiment, self.folder
        workers = experiment.executor.workers
        with contextlib.ExitStack() as stack:
            slots = min(workers, LOCAL_SLOTS)
            models = {
                name: stack.enter_context(open_lm(name, workers=slots))
                for name in _models(self.todo)
            }
            open_run(folder, self._manifest(models), self.on_notice, resumes=bool(self.todo))
            for path in folder.set_damaged_aside(damaged) if self.missing else ():
                self.on_notice(f"{path}: could not be read and was set aside; it is run again")
            running = {
                job.key for job in self.todo if job.key in self.again or not folder.done(job.key)
            }
            done = sum(folder.done(j.key) for j in self.plan.jobs if j.key not in running)
            state = StateWriter(folder.path, done + len(running), done, workers)
            state.write("running")
            try:
                if self.todo:
                    self._run_trials(stack, models, state, stop)
            except BaseException as error:
                state.write("stopped" if stop.asked else "failed", str(error))
                raise
            state.write("stopped" if stop.asked else "finished")

    def _manifest(self, models: dict[str, ModelHandle]) -> dict[str, object]:
        experiment, plan = self.experiment, self.plan
        return build_manifest(
            experiment,
            plan.tasks,
            () if experiment.endpoint else data_files(plan.pack),
            {name: model.fingerprint for name, model in models.items()},
            {"demonstrations": hash_files(demonstration_files(plan.pack))},
            memory_hashes(experiment, plan.pack, plan.stream),
            plan.stream if experiment.mode == "learn" else (),
        )

    def _run_trials(
        self,
        stack: contextlib.ExitStack,
        models: dict[str, ModelHandle],
        state: StateWriter,
        stop: Stop,
    ) -> None:
        experiment, plan, executor = self.experiment, self.plan, self.experiment.executor
        config = stack.enter_context(opened_endpoint(plan.pack, experiment.endpoint, plan.services))
        if executor.kind == "dask":
            from reasoningbank.experiment.cluster import on_dask

            remote = on_dask(self.todo, experiment, config, plan, models, stop, self.on_notice)
            with contextlib.closing(remote) as events:
                self.writer.write_all(events, state, stop)
            return
        sandboxed = any(job.arm.agent == "rlm" for job in self.todo)
        context = stack.enter_context(
            context_at(
                config,
                plan.pack,
                GoldStore(self.folder.path / "gold", store_hash(plan.pack, experiment.endpoint)),
                models=models,
                spare_sandboxes=min(executor.workers, SPARE_SANDBOXES, len(self.todo)) * sandboxed,
                hidden=plan.hidden,
                hidden_by_task=plan.hidden_by_task,
            )
        )
        session = self._session(stack, context, stop)
        with contextlib.closing(self._events(context, session, stop)) as events:
            self.writer.write_all(events, state, stop)
        if session is not None:
            session.finish()

    def _session(
        self, stack: contextlib.ExitStack, context: RunContext, stop: Stop
    ) -> LearningSession | None:
        """Return the session of arms with memory; None if no arm uses memory."""
        if not self.experiment.uses_memory:
            return None
        # Runs without memory need not import it.
        from reasoningbank.experiment.session import LearningSession

        session = LearningSession(
            self.experiment,
            self.plan,
            self.folder,
            context,
            self.todo,
            again=self.again,
            missing=self.missing,
            stop=stop,
            on_notice=self.on_notice,
        )
        stack.callback(session.close)
        return session

    def _events(
        self, context: RunContext, session: LearningSession | None, stop: Stop
    ) -> Generator[Started | Finished]:
        """Run the trials in waves: those that depend on others come after these."""

        def make(job: Job, worker: int) -> Trial:
            if session is not None:
                return session.trial(job, worker)
            return Trial(context, self.experiment, job.arm, job.task, job.key, worker)

        retrier = Retrier(make, self.experiment.retries, stop.event.wait)
        waves: Iterable[Sequence[Iterable[Job]]] = [[[job] for job in self.todo]]
        for chains in session.waves() if session is not None else waves:
            workers = min(self.experiment.executor.workers, len(chains))
            yield from in_chains(chains, retrier.run, workers=workers, stop=stop.event)


@dataclass
class RecordWriter:
    """Writes records and reports progress: each record is on disk before its worker goes on."""

    folder: RunFolder
    retries: Retries
    on_progress: Callable[[Progress], None]
    on_notice: Callable[[str], None]
    observers: Sequence[Observer] = ()

    def write_all(
        self, events: Iterable[Started | Finished], state: StateWriter, stop: Stop
    ) -> None:
        """Write what comes out of the trials, and report it."""
        retries = self.retries
        failure: ReasoningBankError | None = None
        began, fresh, errors, errored = time.monotonic(), 0, 0, 0
        unjudged: Counter[str] = Counter()

        def report(key: TrialKey, record: TrialRecord | None) -> None:
            seconds = time.monotonic() - began
            self.on_progress(Progress(state.total, state.done, fresh, key, record, seconds))

        for event in events:
            key = event.job.key
            if isinstance(event, Started):
                state.started(key)
                report(key, None)
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
            report(key, record)
            self._observe(record)
            errors = errors + 1 if record.status == "error" else 0
            errored += record.status == "error"
            judge = event.job.arm.judge_lm
            if judge and record.verdict and not _is_judged_later(event.job):
                unjudged[judge] += f"lm:{judge}" not in record.judgements
            if retries.stop_after is not None and errors >= retries.stop_after and not failure:
                stop.event.set()
                failure = EndpointError(
                    f"{errors} trials in a row ended in infrastructure errors ({record.error})",
                    where=str(self.folder.path),
                    hint="fix the cause, then: reasoningbank rerun RUN --status error --missing",
                )
        if failure is not None:
            raise failure
        for judge, trials in unjudged.items():
            if trials:
                self.on_notice(
                    f"{_trials(trials)} without a judgement of {judge}; to add it: "
                    f"reasoningbank judge run {self.folder.path} --with lm:{judge}"
                )
        if errored:
            self.on_notice(
                f"{_trials(errored)} ended in infrastructure errors; to run again: "
                f"reasoningbank rerun {self.folder.path} --status error"
            )

    def _observe(self, record: TrialRecord) -> None:
        for observer in self.observers:
            try:
                observer(record)
            except Exception as error:
                logger.warning("an observer failed", exc_info=True)
                self.on_notice(f"{type(error).__name__}: {error} (the run goes on)")


def write_patiently(
    folder: RunFolder,
    record: TrialRecord,
    patience_s: float,
    on_notice: Callable[[str], None],
    sleep: Callable[[float], None] = time.sleep,
) -> Path:
    """Write a record; retry while that fails, e.g. on a full disk."""
    waited, wait, reported = 0.0, 0.5, False
    while True:
        try:
            return folder.write(record)
        except RecordError as error:
            if waited >= patience_s:
                raise
            if not reported:
                on_notice(f"{error}; writing is retried for {patience_s:g} s")
                reported = True
            wait = min(2 * wait, patience_s - waited, 10.0)
            sleep(wait)
            waited += wait


def _trials(number: int) -> str:
    return f"{number} trial{'s' * (number > 1)}"


def _is_judged_later(job: Job) -> bool:
    """Return whether a stream asks the LM judge again, since it learns from its verdict."""
    memory = job.arm.memory
    return job.teaches and isinstance(memory, LearnedMemory) and memory.judge != "execution"


def _is_done(folder: RunFolder, job: Job) -> bool:
    """Return whether a trial is on disk, with what is learned from it."""
    return folder.done(job.key) and (not job.teaches or step_is_taken(folder.path, job))


def _repeatable(
    folder: RunFolder,
    plan: Plan,
    again: Collection[TrialKey],
    on_notice: Callable[[str], None],
) -> frozenset[TrialKey]:
    """Return what can be run again: not trials from which a stream has learned."""
    chosen, kept = set(again), 0
    for job in plan.jobs:
        if job.key in chosen and job.teaches and step_is_taken(folder.path, job):
            with contextlib.suppress(RecordError):
                if folder.read(job.key).status != "error":
                    chosen.discard(job.key)
                    kept += 1
    if kept:
        on_notice(f"{_trials(kept)} not run again: a stream has learned from them")
    return frozenset(chosen)


def _check_models(experiment: Experiment, jobs: Sequence[Job]) -> None:
    for name in _models(jobs):
        if not parse_name(name).is_local:
            check_hosted(name)
    for arm in {job.arm.name: job.arm for job in jobs}.values():
        limit = (arm.budget or experiment.budget).dollars
        if limit is not None and asks_model(arm.agent) and price_of(arm.lm) is None:
            what = f"a budget in dollars needs a price, and none is known for {arm.lm}"
            hint = "limit tokens instead"
            raise UsageError(what, where=f"arm {arm.name}", hint=hint, code="no-price")


def _models(jobs: Sequence[Job]) -> list[str]:
    """Return the names of the models that trials need, sorted."""
    names = set()
    for job in {(job.arm.name, job.teaches): job for job in jobs}.values():
        arm = job.arm
        names |= {arm.lm, arm.fast_lm} if asks_model(arm.agent) else set()
        names |= {arm.judge_lm}
        if job.teaches and isinstance(arm.memory, LearnedMemory):
            names |= {arm.memory.distiller}
    return sorted(names - {"", "rules"})
