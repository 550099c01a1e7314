"""Running an experiment: open the world once, run what is not yet on disk, record each trial."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from reasoningbank.agents import make_agent
from reasoningbank.corpus import Task, corpus_prefixes, load_pack, load_shacl_tasks
from reasoningbank.experiment.config import Arm, Experiment
from reasoningbank.experiment.manifest import build_manifest, hash_files, open_run
from reasoningbank.experiment.plan import hidden_tasks, plan_trials, select_tasks
from reasoningbank.experiment.records import RunFolder, TrialKey, TrialRecord
from reasoningbank.experiment.trial import run_trial
from reasoningbank.experiment.world import World, data_files, demonstration_files, open_world
from reasoningbank.lm import open_lm

__all__ = ["Progress", "run_experiment"]


@dataclass(frozen=True)
class Progress:
    """Where a run stands, told before and after each trial.

    Attributes:
        total: Trials of this invocation, those on disk included.
        done: Trials on disk.
        fresh: Trials run by this invocation.
        key: The trial about to run, or just finished.
        record: The trial just finished; None before it runs.
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
    on_progress: Callable[[Progress], None] = lambda _: None,
) -> RunFolder:
    """Run every trial of the experiment that is not on disk yet.

    Args:
        experiment: What to run.
        folder: Where records go; a folder with records of the same run is continued.
        limit: Only the first so many tasks of each arm.
        on_progress: Called before and after each trial.

    Returns:
        The folder.

    Raises:
        UsageError: If the experiment names what does not exist, or the folder holds another run.
        SetupError: If the machine lacks a part.
        RecordError: If a record cannot be written.
    """
    pack = load_pack(experiment.pack)
    corpus = load_shacl_tasks(experiment.pack)
    tasks = select_tasks(corpus, experiment.tasks)
    hidden = hidden_tasks(corpus, tasks)
    if not pack.prefixes:
        # A bare folder of examples: what they declare is all that is known of namespaces.
        shown = (task.expected_sparql for task in corpus if task.id not in hidden)
        pack = replace(pack, prefixes=corpus_prefixes(shown))
    planned = plan_trials(experiment, tasks, limit)
    agents = {arm.name: make_agent(arm.agent) for arm in experiment.arms}
    names = sorted({arm.lm for arm in experiment.arms if agents[arm.name].uses_lm})
    todo = [(arm, task, key) for arm, task, key in planned if not folder.done(key)]
    data = () if experiment.endpoint else data_files(pack)
    with contextlib.ExitStack() as stack:
        models = {name: stack.enter_context(open_lm(name)) for name in names} if todo else {}
        fingerprints = {name: model.fingerprint for name, model in models.items()}
        if not todo:
            # A finished run opens no model; its records still must be those of this experiment.
            fingerprints = ((folder.manifest or {}).get("hashes") or {}).get("models") or {}
        manifest = build_manifest(
            experiment,
            tasks,
            data,
            fingerprints,
            {"demonstrations": hash_files(demonstration_files(pack))},
        )
        open_run(folder, manifest)
        if todo:
            spare = 1 if any(arm.agent == "rlm" for arm, _, _ in todo) else 0
            world = stack.enter_context(
                open_world(
                    pack,
                    folder.path,
                    endpoint=experiment.endpoint,
                    models=models,
                    spare_sandboxes=spare,
                    hidden=hidden,
                    services=[url for task in corpus for url in task.federates_with],
                )
            )
            _run(world, experiment, folder, planned, todo, on_progress)
    return folder


def _run(
    world: World,
    experiment: Experiment,
    folder: RunFolder,
    planned: list[tuple[Arm, Task, TrialKey]],
    todo: list[tuple[Arm, Task, TrialKey]],
    on_progress: Callable[[Progress], None],
) -> None:
    began = time.monotonic()
    before = len(planned) - len(todo)
    for fresh, (arm, task, key) in enumerate(todo):

        def tell(record: TrialRecord | None, fresh: int, key: TrialKey = key) -> None:
            elapsed = time.monotonic() - began
            done = before + fresh
            on_progress(Progress(len(planned), done, fresh, key, record, elapsed))

        tell(None, fresh)
        record = run_trial(world, experiment, arm, task, key)
        folder.write(record)
        tell(record, fresh + 1)
