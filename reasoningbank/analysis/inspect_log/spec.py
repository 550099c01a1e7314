"""What an arm of a run is in Inspect's terms: task, solver, model, settings, metrics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from inspect_ai.log import (
    EvalConfig,
    EvalDataset,
    EvalLog,
    EvalPlan,
    EvalPlanStep,
    EvalSample,
    EvalSpec,
    EvalStats,
    HeadlineMetric,
    recompute_metrics,
)
from inspect_ai.model import GenerateConfig

from reasoningbank.analysis.inspect_log.scores import VERDICT_SCORERS
from reasoningbank.analysis.inspect_log.text import identity, moment

__all__ = ["arm_of", "epochs_of", "log_of", "planned", "run_id", "sampling", "spec_of", "task_id"]


def run_id(manifest: Mapping[str, Any]) -> str:
    """Return the id of a run: the same whenever it is exported."""
    return identity(manifest.get("fingerprint", ""), manifest.get("created", ""))


def task_id(run: str, arm: str) -> str:
    """Return the id of an arm's log."""
    return identity(run, arm)


def arm_of(manifest: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return the settings of an arm; only its name where the manifest has none."""
    arms = manifest.get("experiment", {}).get("arms", [])
    return next((dict(arm) for arm in arms if arm.get("name") == name), {"name": name})


def sampling(arm: Mapping[str, Any]) -> GenerateConfig:
    """Return how the replies of an arm were sampled."""
    return GenerateConfig(temperature=arm.get("temperature"), max_tokens=arm.get("max_tokens"))


def epochs_of(manifest: Mapping[str, Any], seeds: Iterable[int]) -> dict[int, int]:
    """Return the epoch of each seed, from 1 in the order of the experiment.

    Examples:
        >>> epochs_of({"experiment": {"seeds": [7, 3]}}, [3, 9])
        {7: 1, 3: 2, 9: 3}
    """
    stated = list(manifest.get("experiment", {}).get("seeds") or ())
    every = dict.fromkeys([*stated, *sorted(seeds)])
    return {seed: number for number, seed in enumerate(every, 1)}


def planned(manifest: Mapping[str, Any], arm: Mapping[str, Any]) -> tuple[list[str], int]:
    """Return the tasks that the experiment plans for an arm, and how often it runs each."""
    tasks = list(arm.get("tasks") or manifest.get("tasks") or ())
    seeds = arm.get("seeds") or manifest.get("experiment", {}).get("seeds") or (0,)
    return tasks[: arm.get("first")], len(seeds)


def spec_of(
    manifest: Mapping[str, Any], arm: Mapping[str, Any], model: str, judges: Iterable[str] = ()
) -> EvalSpec:
    """Return task, solver, model and configuration of an arm.

    The experiment is the task, the arm its solver: Inspect then lists the arms of a run side by
    side. The primary metric stated beforehand is the headline.

    Args:
        manifest: The run's.
        arm: Settings of the arm.
        model: Name of the model that answered; empty where none did.
        judges: Names of the judges besides the execution judge.
    """
    experiment = manifest.get("experiment", {})
    name, title = str(experiment.get("name", "run")), str(experiment.get("title") or "")
    tasks, seeds = planned(manifest, arm)
    run = run_id(manifest)
    primary = str(experiment.get("metric") or "strict")
    summed = VERDICT_SCORERS | dict.fromkeys(judges, "accuracy")
    # As data: Inspect does not export the classes that these become.
    scorers: Any = [
        {"name": scorer, "metrics": [{"name": f"inspect_ai/{m}"} for m in (metric, "stderr")]}
        for scorer, metric in summed.items()
    ]
    return EvalSpec(
        eval_set_id=run,
        run_id=run,
        eval_id=identity(run, arm["name"], "eval"),
        task_id=task_id(run, arm["name"]),
        created=moment(str(manifest["created"]), 0.0).isoformat(),
        task=name,
        task_version=experiment.get("version", 0),
        task_display_name=f"{name} · {arm['name']}",
        task_description=title or None,
        task_args={"arm": arm["name"]},
        # The viewer's list of logs shows tags, and no solver.
        tags=[arm["name"]],
        solver=arm["name"],
        solver_args=dict(arm),
        dataset=EvalDataset(
            name=str(experiment.get("pack", "")), samples=len(tasks), sample_ids=tasks
        ),
        model=model or "none/none",
        model_generate_config=sampling(arm),
        config=_config(arm.get("budget") or experiment.get("budget") or {}, seeds),
        packages=dict(manifest.get("versions", {})),
        metadata={
            k: manifest[k] for k in ("fingerprint", "hashes", "primary", "machine") if k in manifest
        },
        scorers=scorers,
        headline_metric=HeadlineMetric(scorer=primary, metric=summed[primary]),
    )


def log_of(
    spec: EvalSpec, scored: Sequence[EvalSample], stats: EvalStats, complete: bool
) -> EvalLog:
    """Return the log of an arm, its metrics computed by Inspect itself.

    Args:
        spec: What was run.
        scored: Every sample, of which only id, epoch, scores and error are looked at.
        stats: When it ran and what it consumed.
        complete: Whether every planned trial is there.
    """
    log = EvalLog(
        status="success" if complete else "cancelled",
        eval=spec,
        plan=EvalPlan(
            steps=[EvalPlanStep(solver=str(spec.solver), params=spec.solver_args or {})],
            config=spec.model_generate_config,
        ),
        stats=stats,
        samples=list(scored),
    )
    recompute_metrics(log)
    return log


def _config(budget: Mapping[str, Any], epochs: int) -> EvalConfig:
    seconds = budget.get("seconds")
    return EvalConfig(
        epochs=epochs,
        epochs_reducer=["mean"],
        fail_on_error=False,
        token_limit=budget.get("tokens"),
        time_limit=int(seconds) if seconds else None,
        cost_limit=budget.get("dollars"),
        turn_limit=budget.get("lm_calls"),
    )
