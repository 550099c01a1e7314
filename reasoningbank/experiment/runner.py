"""Run an experiment: open what trials share once, run what is not on disk, record each trial."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

from reasoningbank.agents import asks_model
from reasoningbank.errors import RecordError, UsageError, need_package
from reasoningbank.experiment.config import Experiment
from reasoningbank.experiment.context import open_context
from reasoningbank.experiment.executors import (
    Observer,
    Progress,
    RecordWriter,
    Retrier,
    run_chains,
)
from reasoningbank.experiment.manifest import build_manifest, open_run, replacements
from reasoningbank.experiment.plan import Job, Plan, is_done, plan_run, sandboxed
from reasoningbank.experiment.records import RunFolder, TrialKey, TrialRecord
from reasoningbank.experiment.settings import LearnedMemory
from reasoningbank.experiment.state import StateWriter, hold_run, interruptible
from reasoningbank.findings import counted
from reasoningbank.imports import is_import_path
from reasoningbank.lm import ModelHandle, open_lm, price_of, takes_temperature
from reasoningbank.lm.names import check_model

logger = logging.getLogger(__name__)

#: Slots of a local model's server: more would divide two cores and a context's memory.
LOCAL_SLOTS = 4


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
    """Run every trial of the experiment that is not on disk yet, and return the folder.

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

    Raises:
        UsageError: If the experiment names something unknown, the folder holds another run or a
            run of other prompts, or another process runs this one.
        SetupError: If the machine lacks a part.
        RecordError: If a record cannot be written.
        EndpointError: If too many consecutive trials ended in infrastructure errors.
        KeyboardInterrupt: If the run was interrupted.
    """
    plan = plan_run(experiment, limit=limit, only=only, tasks=tasks)
    check_models(experiment, plan.jobs)
    for finding in plan.denied:
        on_notice(str(finding))
    workers = experiment.executor.workers
    with hold_run(folder):
        there = set(folder.trial_names())
        damaged = set(folder.damaged())
        again = _repeatable(folder, plan, again, there, on_notice)

        def missed(job: Job) -> bool:
            return missing and (job.key.path in damaged or not is_done(folder, job, there))

        todo = [job for job in plan.jobs if job.key in again or missed(job)]
        observers = (*observers, replacements(folder, again))
        with interruptible(on_notice) as stop, contextlib.ExitStack() as stack:
            models = {}
            for name in _models(todo):
                opened = stack.enter_context(open_lm(name, workers=min(workers, LOCAL_SLOTS)))
                rate = experiment.executor.limits.get(name)
                models[name] = opened if rate is None else replace(opened, limit=rate)
            fingerprints = {name: model.fingerprint for name, model in models.items()}
            manifest = build_manifest(experiment, plan, fingerprints)
            open_run(folder, manifest, on_notice, resumes=bool(todo))
            asked = {job.key.path for job in todo}
            for name in sorted(damaged) if missing else ():
                path, so = folder.set_aside(name), "; it is run again" * (name in asked)
                on_notice(f"{path}: could not be read and was set aside{so}")
                there.discard(name)
            running = {job.key for job in todo if job.key in again or job.key.path not in there}
            done = sum(one.key.path in there for one in plan.jobs if one.key not in running)
            state = StateWriter(folder.path, done + len(running), done, workers)
            state.write()
            writer = RecordWriter(
                folder, experiment.retries, state, stop, on_progress, on_notice, observers
            )
            try:
                if todo:
                    _run_trials(stack, experiment, plan, todo, models, writer, again, missing)
            except BaseException as error:
                state.write(status="stopped" if stop.asked else "failed", error=str(error))
                raise
            state.write(status="stopped" if stop.asked else "finished")
        if stop.asked:
            raise KeyboardInterrupt
    return folder


def _run_trials(
    stack: contextlib.ExitStack,
    experiment: Experiment,
    plan: Plan,
    todo: Sequence[Job],
    models: Mapping[str, ModelHandle],
    writer: RecordWriter,
    again: Collection[TrialKey],
    missing: bool,
) -> None:
    """Open the endpoint and run the trials in waves: those that depend on others come later."""
    executor, cluster, run = experiment.executor, None, writer.folder.path
    pooled = executor.kind == "threads" and sandboxed(job.arm for job in todo)
    context = stack.enter_context(
        open_context(
            plan.pack,
            run,
            endpoint=experiment.endpoint,
            services=plan.services,
            models=models,
            spare_sandboxes=min(executor.workers, executor.warm_sandboxes, len(todo)) * pooled,
            hidden=plan.hidden,
            hidden_by_task=plan.hidden_by_task,
        )
    )
    if executor.kind == "dask":
        need_package("distributed", "scale")
        from reasoningbank.experiment.cluster import open_cluster

        opened = open_cluster(experiment, context.endpoint, plan, models, run, writer.on_notice)
        cluster = stack.enter_context(opened)
    # Imports memory, which takes a while.
    from reasoningbank.experiment.session import LearningSession

    session = LearningSession(experiment, plan, writer, context, todo, again, missing)
    stack.callback(session.close)
    retrier = Retrier(experiment.retries, writer.stop.event.wait)

    def work(job: Job, worker: int) -> TrialRecord | None:
        if cluster is not None:
            return cluster.run(job, session.given(job))
        return retrier.run(session.trial(job, worker))

    workers = cluster.slots if cluster is not None else lambda: executor.workers
    for chains in session.waves():
        run_chains(chains, work, writer, workers=workers, stop=writer.stop.event)
    writer.finish()
    session.finish()


def _repeatable(
    folder: RunFolder,
    plan: Plan,
    again: Collection[TrialKey],
    there: Collection[str],
    on_notice: Callable[[str], None],
) -> frozenset[TrialKey]:
    """Return what can be run again: not trials from which a stream has learned."""
    kept = set()
    for job in plan.jobs:
        if job.key in again and job.teaches and is_done(folder, job, there):
            with contextlib.suppress(RecordError):
                if not folder.read(job.key).failed:
                    kept.add(job.key)
    if kept:
        on_notice(f"{counted(len(kept), 'trial')} not run again: a stream has learned from them")
    return frozenset(again) - kept


def check_models(experiment: Experiment, jobs: Sequence[Job]) -> None:
    """Raise what makes a run impossible with its models; nothing is opened."""
    for name in _models(jobs):
        check_model(name)
    for arm in {job.arm.name: job.arm for job in jobs}.values():
        if arm.compile and arm.compile.optimizer == "MIPROv2":
            need_package("optuna", "optimize")
        warm = {arm.temperature, arm.sampling.temperature if arm.sampling else None}
        if asks_model(arm.agent) and not takes_temperature(arm.lm) and warm - {0.0, 1.0, None}:
            what, hint = f"{arm.lm} takes no temperature but 1", "set temperature to 1, or leave it"
            raise UsageError(what, where=f"arm {arm.name}", hint=hint, code="no-temperature")
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
        names |= {arm.judge_lm, arm.compile.reflection_lm if arm.compile else ""}
        if job.teaches and isinstance(arm.memory, LearnedMemory):
            names |= {arm.memory.distiller}
    return sorted(name for name in names - {"", "rules"} if not is_import_path(name))
