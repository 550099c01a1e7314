"""Running an experiment: open the world once, run what is not yet on disk, record each trial."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Generator, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from reasoningbank.agents import asks_model
from reasoningbank.errors import RecordError, UsageError
from reasoningbank.experiment.config import Experiment
from reasoningbank.experiment.distributed import on_dask
from reasoningbank.experiment.executors import Finished, Job, Started, in_chains
from reasoningbank.experiment.interrupts import Stop, interruptible
from reasoningbank.experiment.keeping import Keeper, Observer, Progress
from reasoningbank.experiment.manifest import (
    build_manifest,
    hash_files,
    memory_hashes,
    open_run,
    replacements,
)
from reasoningbank.experiment.plan import Plan, plan_run, step_is_taken
from reasoningbank.experiment.records import RunFolder, TrialKey, TrialRecord
from reasoningbank.experiment.retrying import Retrier
from reasoningbank.experiment.state import StateWriter, hold_run
from reasoningbank.experiment.trial import Trial
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

if TYPE_CHECKING:
    from reasoningbank.experiment.learning import LearningSession

__all__ = ["Observer", "Progress", "run_experiment"]

#: Slots of a local model's server: more would share two cores and a context's memory.
LOCAL_SLOTS = 4
#: Sandboxes kept warm, at about 150 MB each.
SPARE_SANDBOXES = 8


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
        again = _again(folder, plan, again, on_notice)
        todo = [
            job
            for job in plan.jobs
            if job.key in again
            or (missing and (not _is_done(folder, job) or folder.file(job.key) in damaged))
        ]
        observers = (*observers, replacements(folder, again))
        keeper = Keeper(folder, experiment.retries, on_progress, on_notice, observers)
        run = _Run(experiment, folder, plan, todo, damaged, again, missing, on_notice, keeper)
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
    damaged: Collection[Path]
    again: Collection[TrialKey]
    missing: bool
    on_notice: Callable[[str], None]
    keeper: Keeper

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
                memory_hashes(experiment, pack, self.plan.stream),
                self.plan.stream if experiment.mode == "learn" else (),
            )
            open_run(self.folder, manifest, self.on_notice, goes_on=bool(self.todo))
            for path in self.folder.set_damaged_aside(self.damaged) if self.missing else ():
                self.on_notice(f"{path}: could not be read and was set aside; it is run again")
            running = {job.key for job in self.todo if self._will_run(job)}
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
            with contextlib.closing(events):
                self.keeper.keep(events, state, stop)
            return
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
        session = self._session(stack, world, stop)
        with contextlib.closing(self._in_waves(world, session, stop)) as waves:
            self.keeper.keep(waves, state, stop)
        if session is not None:
            session.finish()

    def _session(
        self, stack: contextlib.ExitStack, world: World, stop: Stop
    ) -> LearningSession | None:
        """Return what knows of memory; None where no arm has use for it."""
        if self.experiment.mode != "learn" and not self.experiment.remembers:
            return None
        # Runs without memory need not wait for what it imports.
        from reasoningbank.experiment.learning import LearningSession

        session = LearningSession(
            self.experiment,
            self.plan,
            self.folder,
            world,
            self.todo,
            again=self.again,
            missing=self.missing,
            stop=stop,
            on_notice=self.on_notice,
        )
        stack.callback(session.close)
        return session

    def _in_waves(
        self, world: World, session: LearningSession | None, stop: Stop
    ) -> Generator[Started | Finished]:
        """Run the trials, those that rest on others after these."""
        retrier = Retrier(self.experiment.retries, stop.event.wait)

        def work(job: Job, worker: int) -> TrialRecord | None:
            if session is not None:
                return retrier.settle(session.trial(job, worker).run)
            trial = Trial(world, self.experiment, job.arm, job.task, job.key, worker)
            return retrier.settle(trial.run)

        waves: Iterable[Sequence[Iterable[Job]]] = [[[job] for job in self.todo]]
        for chains in session.waves() if session is not None else waves:
            workers = min(self.experiment.executor.workers, len(chains))
            yield from in_chains(chains, work, workers=workers, stop=stop.event)

    def _will_run(self, job: Job) -> bool:
        """Tell whether a trial is run, or only the step taken that it is waited for with."""
        return job.key in self.again or not self.folder.done(job.key)


def _is_done(folder: RunFolder, job: Job) -> bool:
    """Tell whether a trial is on disk, and what is learned from it as well."""
    return folder.done(job.key) and (not job.teaches or step_is_taken(folder.path, job))


def _again(
    folder: RunFolder,
    plan: Plan,
    again: Collection[TrialKey],
    on_notice: Callable[[str], None],
) -> frozenset[TrialKey]:
    """Return what can be run again: not what a stream went on from."""
    chosen, kept = set(again), 0
    for job in plan.jobs:
        if job.key in chosen and job.teaches and step_is_taken(folder.path, job):
            with contextlib.suppress(RecordError):
                if folder.read(job.key).status != "error":
                    chosen.discard(job.key)
                    kept += 1
    if kept:
        on_notice(f"{kept} trials are left as they are: a stream went on from what they taught")
    return frozenset(chosen)


def _check_prices(experiment: Experiment, jobs: Sequence[Job]) -> None:
    for arm in {job.arm.name: job.arm for job in jobs}.values():
        limit = (arm.budget or experiment.budget).dollars
        if limit is not None and asks_model(arm.agent) and price_of(arm.lm) is None:
            raise UsageError(
                f"no price is known for {arm.lm}, so that a budget of dollars cannot be kept",
                where=f"arm {arm.name}",
                hint="limit tokens instead",
            )


def _models(experiment: Experiment, jobs: Sequence[Job]) -> list[str]:
    """Return the names of the models that trials need, sorted."""
    arms = {job.arm.name: job.arm for job in jobs}.values()
    names = {arm.lm for arm in arms if asks_model(arm.agent)}
    names |= {arm.judge_lm for arm in arms if arm.judge_lm}
    teaching = {job.arm.name: job.arm for job in jobs if job.teaches}.values()
    return sorted(names | {a.memory.distiller for a in teaching if a.memory.distiller != "rules"})
