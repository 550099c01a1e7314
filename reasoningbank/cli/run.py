"""`reasoningbank run` and `reasoningbank rerun`."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Annotated

import typer

from reasoningbank.agents import AttemptStatus, asks_model
from reasoningbank.cli.estimate import print_estimate
from reasoningbank.cli.progress import follower, notice, progress_bar
from reasoningbank.cli.status import existing_run, refuse_leaks, report_run
from reasoningbank.experiment import (
    Experiment,
    Observer,
    RunFolder,
    TrialKey,
    load_experiment,
    parse_experiment,
    plan_run,
    run_experiment,
)
from reasoningbank.experiment.estimate import estimate_run
from reasoningbank.experiment.memory_config import seeds_of
from reasoningbank.experiment.state import check_free
from reasoningbank.experiment.storage import write_atomically
from reasoningbank.lm.names import parse_name

__all__ = ["rerun", "run"]

Only = Annotated[list[str] | None, typer.Option(help="Only this arm; may be repeated.")]
TaskOption = Annotated[
    list[str] | None, typer.Option("--task", help="Only this task; may be repeated.")
]
MLflow = Annotated[
    str | None,
    typer.Option(help="Trace the trials with MLflow, e.g. sqlite:///mlflow.db.", metavar="URI"),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")]


def run(
    experiment: Annotated[Path, typer.Argument(help="An experiment file (.toml).")],
    limit: Annotated[
        int | None, typer.Option(min=1, help="Only the first so many tasks of each arm.")
    ] = None,
    only: Only = None,
    task: TaskOption = None,
    changes: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="Replace a setting of the file: budget.iterations=3, arms.rlm.lm=NAME, "
            "'arms.*.temperature=0.7', executor.workers=16. May be repeated.",
        ),
    ] = None,
    lm: Annotated[
        str | None, typer.Option(help="Use this model in every arm, e.g. openai/gpt-4.1-mini.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder of the records; default runs/<name>.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would run and what it would take; no more.")
    ] = False,
    mlflow: MLflow = None,
    as_json: AsJson = False,
) -> None:
    """Run an experiment; the same command goes on where it stopped.

    Example: reasoningbank run experiments/uniprot_demo.toml
    """
    if lm is not None:
        parse_name(lm)
    loaded = load_experiment(experiment, changes or ()).with_lm(lm)
    folder = RunFolder(out if out is not None else Path("runs") / _run_name(loaded.name, lm))
    if dry_run:
        plan = plan_run(loaded, limit=limit, only=only or (), tasks=task or ())
        print_estimate(estimate_run(loaded, folder, plan.jobs), as_json=as_json)
        return
    _run(
        loaded,
        folder,
        limit=limit,
        only=only or (),
        tasks=task or (),
        mlflow=mlflow,
        as_json=as_json,
    )


def rerun(
    folder: Annotated[Path, typer.Argument(help="Folder of a run, e.g. runs/uniprot_demo.")],
    status: Annotated[
        AttemptStatus, typer.Option(help="Trials that ended so.", show_default=True)
    ] = "error",
    only: Only = None,
    task: TaskOption = None,
    missing: Annotated[
        bool, typer.Option("--missing", help="Also run the trials that are not there yet.")
    ] = False,
    mlflow: MLflow = None,
    as_json: AsJson = False,
) -> None:
    """Run trials of a run again, by how they ended; a record is replaced when the new one is there.

    The experiment is the one of the run's manifest. Trials that are missing are run with
    `--missing` only.

    Example: reasoningbank rerun runs/uniprot_demo --status error
    """
    run_folder = existing_run(folder)
    manifest = run_folder.manifest or {}
    experiment = parse_experiment(manifest.get("experiment") or {}, where=str(folder))
    if only or task:
        # An unknown name is refused, and no "nothing to do".
        plan_run(experiment, only=only or (), tasks=task or ())
    again = [trial.key for trial in run_folder.trials(skip_damaged=True) if trial.status == status]
    chosen = [
        key for key in again if (not only or key.arm in only) and (not task or key.task in task)
    ]
    if not chosen:
        notice(f"no trial of {folder} that was asked for ended in {status}")
        if not missing:
            refuse_leaks(report_run(run_folder, as_json))
            return
    _run(
        experiment,
        run_folder,
        only=only or (),
        tasks=task or (),
        again=chosen,
        missing=missing,
        mlflow=mlflow,
        as_json=as_json,
    )


def _run(
    experiment: Experiment,
    folder: RunFolder,
    *,
    limit: int | None = None,
    only: Sequence[str] = (),
    tasks: Sequence[str] = (),
    again: Collection[TrialKey] = (),
    missing: bool = True,
    mlflow: str | None = None,
    as_json: bool = False,
) -> None:
    _warn_of_equal_repeats(experiment)
    with contextlib.ExitStack() as stack:
        observers: list[Observer] = []
        if mlflow:
            from reasoningbank.experiment.tracing import mlflow_tracer

            # The traces of a run that goes on in another process are that one's.
            check_free(folder)
            observers.append(stack.enter_context(mlflow_tracer(mlflow, folder, on_failure=notice)))
        bar = stack.enter_context(progress_bar())
        run_experiment(
            experiment,
            folder,
            limit=limit,
            only=only,
            tasks=tasks,
            again=again,
            missing=missing,
            on_progress=follower(bar),
            on_notice=notice,
            observers=observers,
        )
    summary = report_run(folder, as_json)
    write_atomically(folder.path / "summary.json", summary.to_json())
    refuse_leaks(summary)


def _warn_of_equal_repeats(experiment: Experiment) -> None:
    # With what streams taught in another order, another prompt is asked.
    arms = [a for a in experiment.arms if asks_model(a.agent) and a.memory.source == "none"]
    cold = [a.name for a in arms if a.temperature == 0 and len(seeds_of(experiment, a)) > 1]
    if cold:
        notice(f"at temperature 0 the repeats of {', '.join(cold)} may be all the same")


def _run_name(name: str, lm: str | None) -> str:
    # A run with another model is another run, and gets a folder of its own.
    return name if lm is None else f"{name}-{''.join(c if c.isalnum() else '_' for c in lm)}"
