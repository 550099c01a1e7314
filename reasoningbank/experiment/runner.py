"""Running an experiment: open the world once, run what is not yet on disk, record each trial."""

from __future__ import annotations

import contextlib
import logging
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

from reasoningbank.agents import asks_model
from reasoningbank.errors import EndpointError, ReasoningBankError, RecordError, UsageError
from reasoningbank.experiment.config import Experiment
from reasoningbank.experiment.distributed import on_dask
from reasoningbank.experiment.executors import Finished, Job, Started, in_threads
from reasoningbank.experiment.interrupts import Stop, interruptible
from reasoningbank.experiment.manifest import build_manifest, hash_files, open_run
from reasoningbank.experiment.plan import Plan, plan_run
from reasoningbank.experiment.records import RunFolder
from reasoningbank.experiment.retrying import Retrier, write_patiently
from reasoningbank.experiment.state import StateWriter, hold_run
from reasoningbank.experiment.trial import Trial
from reasoningbank.experiment.trial_record import TrialKey, TrialRecord
from reasoningbank.experiment.world import (
    World,
    data_files,
    demonstration_files,
    opened_endpoint,
    store_hash,
    world_at,
)
from reasoningbank.judge import GoldStore
from reasoningbank.lm import ModelHandle, open_lm, price_of
from reasoningbank.lm.names import check_hosted, parse_name

__all__ = ["Observer", "Progress", "run_experiment"]

logger = logging.getLogger(__name__)

#: Told of each trial once its record is on disk.
Observer = Callable[[TrialRecord], None]
#: Slots of a local model's server: more would share two cores and a context's memory.
LOCAL_SLOTS = 4
#: Sandboxes kept warm, at about 150 MB each.
SPARE_SANDBOXES = 8


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

    The first interrupt (Ctrl-C, SIGTERM) begins no further trial and finishes those in flight;
    the second abandons them.

    Args:
        experiment: What to run.
        folder: Where records go; a folder with records of the same run is continued.
        limit: Only the first so many tasks of each arm.
        only: Only these arms; empty for all.
        tasks: Only these tasks; empty for all.
        again: Trials that are run although they are on disk; a new record takes the old one's
            place once it is there.
        missing: Whether trials that are not on disk are run.
        on_progress: Called when a trial begins, and when its record is on disk.
        on_notice: Told in one line what a person should know, such as a damaged file set aside.
        observers: Called with each new record, one at a time; what they raise is told and ends
            nothing.

    Returns:
        The folder.

    Raises:
        UsageError: If the experiment names what does not exist, the folder holds another run, or
            another process runs this one.
        SetupError: If the machine lacks a part.
        RecordError: If a record cannot be written.
        EndpointError: If so many trials in a row ended in infrastructure errors that going on is
            no use.
        KeyboardInterrupt: If the run was interrupted.
    """
    plan = plan_run(experiment, limit=limit, only=only, tasks=tasks)
    for name in _models(experiment, plan.jobs):
        if not parse_name(name).is_local:
            check_hosted(name)
    _check_prices(experiment, plan.jobs)
    with hold_run(folder):
        damaged = set(folder.damaged())
        todo = [
            job
            for job in plan.jobs
            if job.key in again
            or (missing and (not folder.done(job.key) or folder.file(job.key) in damaged))
        ]
        run = _Run(experiment, folder, plan, todo, missing, on_progress, on_notice, observers)
        with interruptible(on_notice) as stop:
            run.carry_out(stop)
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
    missing: bool
    on_progress: Callable[[Progress], None]
    on_notice: Callable[[str], None]
    observers: Sequence[Observer]

    def carry_out(self, stop: Stop) -> None:
        """Open what the trials need, check that the folder is this run's, and run them."""
        experiment, pack = self.experiment, self.plan.pack
        workers = experiment.executor.workers
        with contextlib.ExitStack() as stack:
            slots = min(workers, LOCAL_SLOTS)
            models = {
                name: stack.enter_context(open_lm(name, workers=slots))
                for name in _models(experiment, self.todo)
            }
            data = () if experiment.endpoint else data_files(pack)
            manifest = build_manifest(
                experiment,
                self.plan.tasks,
                data,
                {name: model.fingerprint for name, model in models.items()},
                {"demonstrations": hash_files(demonstration_files(pack))},
            )
            open_run(self.folder, manifest)
            for path in self.folder.set_damaged_aside() if self.missing else ():
                self.on_notice(f"{path}: could not be read and was set aside; it is run again")
            running = {job.key for job in self.todo}
            rest = [job.key for job in self.plan.jobs if job.key not in running]
            done = sum(map(self.folder.done, rest))
            state = StateWriter(self.folder.path, done + len(running), done, workers)
            state.write("running")
            try:
                if self.todo:
                    self._run(stack, models, state, stop)
            except BaseException as error:
                state.write("stopped" if stop.asked else "failed", str(error))
                raise
            state.write("stopped" if stop.asked else "finished")

    def _run(
        self,
        stack: contextlib.ExitStack,
        models: dict[str, ModelHandle],
        state: StateWriter,
        stop: Stop,
    ) -> None:
        experiment, plan, executor = self.experiment, self.plan, self.experiment.executor
        config = stack.enter_context(opened_endpoint(plan.pack, experiment.endpoint, plan.services))
        if executor.kind == "dask":
            events = on_dask(
                self.todo, experiment, config, plan.pack, models, plan.hidden, stop, self.on_notice
            )
        else:
            golds = GoldStore(self.folder.path / "gold", store_hash(plan.pack, experiment.endpoint))
            sandboxed = any(job.arm.agent == "rlm" for job in self.todo)
            spare = min(executor.workers, SPARE_SANDBOXES, len(self.todo)) if sandboxed else 0
            world = stack.enter_context(
                world_at(
                    config,
                    plan.pack,
                    golds,
                    models=models,
                    spare_sandboxes=spare,
                    hidden=plan.hidden,
                )
            )
            events = in_threads(
                self.todo,
                self._work(world, stop),
                workers=min(executor.workers, len(self.todo)),
                stop=stop.event,
            )
        with contextlib.closing(events):
            self._keep(events, state, stop)

    def _work(self, world: World, stop: Stop) -> Callable[[Job, int], TrialRecord | None]:
        retrier = Retrier(self.experiment.retries, stop.event.wait)

        def work(job: Job, worker: int) -> TrialRecord | None:
            trial = Trial(world, self.experiment, job.arm, job.task, job.key, worker)
            return retrier.settle(trial.run)

        return work

    def _keep(self, events: Iterable[Started | Finished], state: StateWriter, stop: Stop) -> None:
        """Store what comes out of the trials, and tell of it.

        Where the run cannot go on, no further trial begins; those in flight are kept before that
        is raised.
        """
        retries = self.experiment.retries
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
            asked = event.job.arm.judge_lm
            if asked and record.verdict is not None and f"lm:{asked}" not in record.judgements:
                unheard[asked] += 1
            if retries.stop_after is not None and errors >= retries.stop_after and not failure:
                stop.event.set()
                failure = EndpointError(
                    f"{errors} trials in a row ended in infrastructure errors ({record.error})",
                    where=str(self.folder.path),
                    mend="mend that, then: reasoningbank rerun RUN --status error --missing",
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


def _check_prices(experiment: Experiment, jobs: Sequence[Job]) -> None:
    for arm in {job.arm.name: job.arm for job in jobs}.values():
        limit = (arm.budget or experiment.budget).dollars
        if limit is not None and asks_model(arm.agent) and price_of(arm.lm) is None:
            raise UsageError(
                f"no price is known for {arm.lm}, so that a budget of dollars cannot be kept",
                where=f"arm {arm.name}",
                mend="limit tokens instead",
            )


def _models(experiment: Experiment, jobs: Sequence[Job]) -> list[str]:
    """Return the names of the models that trials need, sorted."""
    arms = {job.arm.name: job.arm for job in jobs}.values()
    names = {arm.lm for arm in arms if asks_model(arm.agent)}
    return sorted(names | {arm.judge_lm for arm in arms if arm.judge_lm})
