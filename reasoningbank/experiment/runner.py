"""Running an experiment: open the world once, run what is not yet on disk, record each trial."""

from __future__ import annotations

import contextlib
import hashlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from reasoningbank.agents import Demonstration, load_demonstrations, make_agent
from reasoningbank.agents.sandbox import SandboxPool
from reasoningbank.corpus import Pack, Task, load_pack, load_shacl_tasks, open_endpoint
from reasoningbank.experiment.config import Arm, Experiment
from reasoningbank.experiment.manifest import build_manifest, hash_files, open_run
from reasoningbank.experiment.plan import plan_trials, select_tasks
from reasoningbank.experiment.records import RunFolder, TrialKey, TrialRecord
from reasoningbank.experiment.trial import World, run_trial
from reasoningbank.judge import ExecutionJudge, GoldStore
from reasoningbank.lm import ModelHandle, open_lm
from reasoningbank.sparql import EndpointConfig, SPARQLClient

__all__ = ["Progress", "open_world", "run_experiment"]


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
    tasks = select_tasks(load_shacl_tasks(experiment.pack), experiment.tasks)
    planned = plan_trials(experiment, tasks, limit)
    agents = {arm.name: make_agent(arm.agent) for arm in experiment.arms}
    names = sorted({arm.lm for arm in experiment.arms if agents[arm.name].uses_lm})
    todo = [(arm, task, key) for arm, task, key in planned if not folder.done(key)]
    data = () if experiment.endpoint else pack.data
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
            {"demonstrations": hash_files(_demonstration_files(pack))},
        )
        open_run(folder, manifest)
        if todo:
            spare = 1 if any(arm.agent == "rlm" for arm, _, _ in todo) else 0
            world = stack.enter_context(
                open_world(pack, folder.path, experiment.endpoint, models, spare)
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


@contextlib.contextmanager
def open_world(
    pack: Pack,
    run_path: Path,
    endpoint: str | None,
    models: dict[str, ModelHandle],
    spare_sandboxes: int,
) -> Iterator[World]:
    """Open what trials share: endpoint, judge with its gold results, sandboxes.

    Args:
        pack: The domain pack.
        run_path: Folder of the run; gold results are frozen below it.
        endpoint: A running endpoint to use instead of the embedded one.
        models: Open models by name.
        spare_sandboxes: Sandboxes to keep warm.
    """
    with contextlib.ExitStack() as stack:
        config: EndpointConfig = stack.enter_context(open_endpoint(pack, endpoint))
        client = stack.enter_context(SPARQLClient(config))
        store_hash = hash_files(pack.data) if endpoint is None else _hash_text(endpoint)
        golds = GoldStore(run_path / "gold", store_hash)
        sandboxes = SandboxPool(spare=spare_sandboxes)
        stack.enter_context(sandboxes)
        yield World(
            endpoint=config,
            client=client,
            judge=ExecutionJudge(client, golds),
            models=models,
            sandboxes=sandboxes,
            demonstrations=pack_demonstrations(pack),
        )


def pack_demonstrations(pack: Pack) -> tuple[Demonstration, ...]:
    """Return the worked turns of a pack; a pack need not have any."""
    return tuple(
        demonstration
        for path in _demonstration_files(pack)
        for demonstration in load_demonstrations(path)
    )


def _demonstration_files(pack: Pack) -> list[Path]:
    path = pack.root / "hints" / "demonstrations.json"
    return [path] if path.exists() else []


def _hash_text(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
