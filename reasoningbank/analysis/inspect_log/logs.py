"""One arm of a run as an `.eval` file: task, solver, model, settings, metrics, and its samples."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from inspect_ai.log import (
    EvalConfig,
    EvalDataset,
    EvalLog,
    EvalPlan,
    EvalPlanStep,
    EvalSpec,
    EvalStats,
    HeadlineMetric,
    recompute_metrics,
    write_eval_log,
)
from inspect_ai.model import GenerateConfig, ModelUsage

from reasoningbank.analysis.inspect_log import ExportedLog
from reasoningbank.analysis.inspect_log.samples import (
    VERDICT_SCORERS,
    identity,
    moment,
    sample_of,
)
from reasoningbank.errors import RecordError
from reasoningbank.experiment import TrialRecord


def write_arm(
    manifest: Mapping[str, Any],
    arm: Mapping[str, Any],
    tasks: list[str],
    trials: Iterable[TrialRecord],
    epochs: Mapping[int, int],
    folder: Path,
) -> ExportedLog:
    """Write the trials of an arm, which has the given planned tasks, as a log."""
    experiment, name = manifest.get("experiment", {}), str(arm["name"])
    config = GenerateConfig(temperature=arm.get("temperature"), max_tokens=arm.get("max_tokens"))
    run = identity(manifest.get("fingerprint", ""), manifest.get("created", ""))
    # Inspect lists logs by the parts of their names: when, what, which.
    what = f"{experiment.get('name', 'run')}-{name}"
    parts = (str(manifest["created"]), what, identity(run, name))
    file = "_".join("".join(c if c.isalnum() else "-" for c in part) for part in parts)
    path = folder / f"{file}.eval"
    samples = [sample_of(record, epochs[record.key.seed], run, config) for record in trials]
    models: dict[str, ModelUsage] = defaultdict(ModelUsage)
    roles: dict[str, ModelUsage] = defaultdict(ModelUsage)
    for sample in samples:
        for usage, total in ((sample.model_usage, models), (sample.role_usage, roles)):
            for model, used in usage.items():
                total[model] += used
    calls = Counter(model for sample in samples for model in sample.model_usage)
    model = next((model for model, _ in calls.most_common(1)), "none/none")
    times = [str(at) for sample in samples for at in (sample.started_at, sample.completed_at)]
    seeds = len(arm.get("seeds") or experiment.get("seeds") or (0,))
    tasks = tasks or list(dict.fromkeys(str(sample.id) for sample in samples))
    complete = len(samples) >= len(tasks) * seeds
    scorers = dict.fromkeys(name for sample in samples for name in sample.scores or {})
    log = EvalLog(
        status="success" if complete else "cancelled",
        eval=_spec(manifest, arm, run, model, config, scorers, tasks, seeds),
        plan=EvalPlan(steps=[EvalPlanStep(solver=name, params=dict(arm))], config=config),
        stats=EvalStats(
            started_at=min(times),
            completed_at=max(times),
            model_usage=dict(models),
            role_usage=dict(roles),
        ),
        samples=samples,
    )
    try:
        recompute_metrics(log)
        folder.mkdir(parents=True, exist_ok=True)
        write_eval_log(log, path)
    except OSError as error:
        reason = error.strerror or str(error)
        hint = "free space or choose another folder with --out"
        raise RecordError(f"cannot be written ({reason})", where=str(path), hint=hint) from error
    errors = sum(sample.error is not None for sample in samples)
    return ExportedLog(name, path, len(samples), errors, complete)


def _spec(
    manifest: Mapping[str, Any],
    arm: Mapping[str, Any],
    run: str,
    model: str,
    config: GenerateConfig,
    scorers: Iterable[str],
    tasks: list[str],
    seeds: int,
) -> EvalSpec:
    """Return the experiment as the task and the arm as its solver, so that arms are listed side by
    side; the primary metric is the headline.
    """
    experiment = manifest.get("experiment", {})
    name = str(experiment.get("name", "run"))
    primary = str(experiment.get("metric") or "strict")
    metrics = {**VERDICT_SCORERS, **{s: VERDICT_SCORERS.get(s, "accuracy") for s in scorers}}
    # As data: Inspect does not export the classes of these.
    described: Any = [
        {"name": scorer, "metrics": [{"name": f"inspect_ai/{m}"} for m in (metric, "stderr")]}
        for scorer, metric in metrics.items()
    ]
    budget = arm.get("budget") or experiment.get("budget") or {}
    seconds = budget.get("seconds")
    return EvalSpec(
        eval_set_id=run,
        run_id=run,
        eval_id=identity(run, arm["name"], "eval"),
        task_id=identity(run, arm["name"]),
        created=moment(str(manifest["created"]), 0.0).isoformat(),
        task=name,
        task_version=experiment.get("version", 0),
        task_display_name=f"{name} · {arm['name']}",
        task_description=str(experiment.get("title") or "") or None,
        task_args={"arm": arm["name"]},
        # The viewer's list of logs shows tags, and no solver.
        tags=[arm["name"]],
        solver=arm["name"],
        solver_args=dict(arm),
        dataset=EvalDataset(
            name=str(experiment.get("pack", "")), samples=len(tasks), sample_ids=list(tasks)
        ),
        model=model,
        model_generate_config=config,
        config=EvalConfig(
            epochs=seeds,
            epochs_reducer=["mean"],
            fail_on_error=False,
            token_limit=budget.get("tokens"),
            time_limit=int(seconds) if seconds else None,
            cost_limit=budget.get("dollars"),
            turn_limit=budget.get("lm_calls"),
        ),
        packages=dict(manifest.get("versions", {})),
        metadata={
            k: manifest[k] for k in ("fingerprint", "hashes", "primary", "machine") if k in manifest
        },
        scorers=described,
        headline_metric=HeadlineMetric(scorer=primary, metric=metrics[primary]),
    )
