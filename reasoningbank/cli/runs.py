"""Runs: `reasoningbank run`, `rerun`, `status`, `archive` and `compare`."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Literal

import typer

from reasoningbank.agents import AttemptStatus, asks_model
from reasoningbank.analysis import RunSummary, changed_answers, summarise_run
from reasoningbank.cli.estimate import print_estimate
from reasoningbank.cli.options import AsJson, RunPath
from reasoningbank.cli.output import TimeLeft, follow_run, notice, print_json, progress_bar, say
from reasoningbank.cli.summary import print_changes, print_comparisons, print_summary
from reasoningbank.errors import RecordError, UsageError
from reasoningbank.experiment import (
    Experiment,
    Observer,
    RunFolder,
    RunState,
    TrialKey,
    TrialRecord,
    load_experiment,
    parse_experiment,
    plan_run,
    read_state,
    run_experiment,
)
from reasoningbank.experiment.config import seeds_of
from reasoningbank.experiment.estimate import estimate_run
from reasoningbank.experiment.records import streams_of
from reasoningbank.experiment.state import check_free
from reasoningbank.experiment.storage import write_atomically
from reasoningbank.lm.names import parse_name

Only = Annotated[list[str] | None, typer.Option(help="Only this arm; may be repeated.")]
OfTask = Annotated[
    list[str] | None, typer.Option("--task", help="Only this task; may be repeated.")
]
MLflow = Annotated[
    str | None,
    typer.Option(help="Trace the trials with MLflow, e.g. sqlite:///mlflow.db.", metavar="URI"),
]


def run(
    experiment: Annotated[Path, typer.Argument(help="An experiment file (.toml).")],
    limit: Annotated[
        int | None, typer.Option(min=1, help="Only the first N tasks of each arm.")
    ] = None,
    only: Only = None,
    task: OfTask = None,
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
        bool, typer.Option("--dry-run", help="Only show what would run and what it would cost.")
    ] = False,
    mlflow: MLflow = None,
    as_json: AsJson = False,
) -> None:
    """Run an experiment; the same command resumes it.

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
    folder: RunPath,
    status: Annotated[
        AttemptStatus, typer.Option(help="Trials that ended with this status.", show_default=True)
    ] = "error",
    only: Only = None,
    task: OfTask = None,
    missing: Annotated[
        bool, typer.Option("--missing", help="Also run the trials that have no record yet.")
    ] = False,
    mlflow: MLflow = None,
    as_json: AsJson = False,
) -> None:
    """Run trials again, by how they ended; each new record replaces the old one.

    The experiment is the one in the run's manifest.

    Example: reasoningbank rerun runs/uniprot_demo --status error
    """
    run_folder = _existing_run(folder)
    manifest = run_folder.manifest or {}
    experiment = parse_experiment(manifest.get("experiment") or {}, where=str(folder))
    if only or task:
        # Planning refuses unknown names.
        plan_run(experiment, only=only or (), tasks=task or ())
    again = [trial.key for trial in run_folder.trials(skip_damaged=True) if trial.status == status]
    chosen = [
        key for key in again if (not only or key.arm in only) and (not task or key.task in task)
    ]
    if not chosen:
        notice(f"no selected trial of {folder} ended with status {status}")
        if not missing:
            _exit_if_leaked(_report(run_folder, as_json))
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


def status(folder: RunPath, as_json: AsJson = False) -> None:
    """Show what a run has so far, and whether it is running, dead or finished.

    Example: reasoningbank status runs/uniprot_demo
    """
    run_folder = _existing_run(folder)
    state = read_state(run_folder)
    streams = streams_of(run_folder.path, run_folder.manifest or {})
    if as_json:
        summary = _summary(run_folder)
        extra = {
            "state": asdict(state) if state else None,
            "streams": [one._asdict() for one in streams],
        }
        print_json({**summary.to_json(), **extra})
    else:
        summary = _report(run_folder, as_json=False)
        for arm, permutation, taken, total in streams:
            say(f"stream {arm}.{permutation}: {taken} of {total} steps")
        if state is not None:
            say(_state_line(state))
    _exit_if_leaked(summary)


def archive(
    folder: RunPath,
    target: Annotated[Path, typer.Argument(help="Where the compressed copy goes.")],
) -> None:
    """Copy a run with its trials compressed, small enough to commit.

    Example: reasoningbank archive runs/uniprot_baseline experiments/results/uniprot_baseline
    """
    copy = _existing_run(folder).archive(
        target, on_damaged=lambda path: notice(f"{path}: cannot be read and is left out")
    )
    say(str(copy.path))


def compare(
    first: Annotated[Path, typer.Argument(help="Folder of a run.")],
    second: Annotated[Path, typer.Argument(help="Folder of the run to compare it with.")],
    arm: Annotated[
        str | None, typer.Option(help="An arm of the first run; default every shared arm.")
    ] = None,
    against: Annotated[
        str | None, typer.Option("--with", help="The second run's arm; default the same name.")
    ] = None,
    metric: Annotated[
        Literal["strict", "lenient", "f1"] | None,
        typer.Option(help="What to compare; default the first run's primary metric."),
    ] = None,
    unit: Annotated[
        Literal["task", "group"] | None,
        typer.Option(help="What counts as one observation; default as in the first run."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compare the arms of two runs on the tasks that both have.

    Give one folder twice, with --arm and --with, to compare two arms of a run.

    Example: reasoningbank compare runs/uniprot_baseline runs/uniprot_tools --arm rlm
    """
    from reasoningbank.analysis import compare_runs

    found = compare_runs(
        RunFolder(first), RunFolder(second), arm=arm, against=against, metric=metric, unit=unit
    )
    if as_json:
        print_json(found.to_json())
        return
    for note in found.notes:
        notice(f"note: {note}")
    print_comparisons(found.comparisons, f"{found.metric}, by {found.unit}")
    dropped = found.only_first + found.only_second
    shared = f"{found.shared} shared task{'' if found.shared == 1 else 's'}"
    unpaired = f"; arms without a partner: {', '.join(found.unpaired)}" if found.unpaired else ""
    say(f"{shared}; {dropped} in only one of the runs left out{unpaired}")


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
    _warn_about_identical_repeats(experiment)
    with contextlib.ExitStack() as stack:
        observers: list[Observer] = []
        if mlflow:
            from reasoningbank.experiment.tracing import mlflow_tracer

            # A run that another process continues is traced by that process.
            check_free(folder)
            observers.append(stack.enter_context(mlflow_tracer(mlflow, folder, on_failure=notice)))
        bar = stack.enter_context(progress_bar())
        plan = plan_run(experiment, limit=limit, only=only, tasks=tasks)
        estimate = estimate_run(experiment, folder, plan.jobs)
        arms = [arm for arm in estimate.arms if arm.agent != "judge"]
        left = TimeLeft(
            {arm.arm: arm.todo for arm in arms},
            {arm.arm: arm.amounts["seconds"] for arm in arms if not arm.is_bound},
        )
        run_experiment(
            experiment,
            folder,
            limit=limit,
            only=only,
            tasks=tasks,
            again=again,
            missing=missing,
            on_progress=follow_run(bar, left),
            on_notice=notice,
            observers=observers,
        )
    summary = _report(folder, as_json)
    write_atomically(folder.path / "summary.json", summary.to_json())
    if summary.comparison is not None and experiment.mode == "learn" and not as_json:
        first, second = summary.comparison.first, summary.comparison.second
        records = folder.trials(skip_damaged=True)
        print_changes(summary, changed_answers(records, first, second))
    _exit_if_leaked(summary)


def _warn_about_identical_repeats(experiment: Experiment) -> None:
    # With memory, another task permutation gives another prompt.
    arms = [a for a in experiment.arms if asks_model(a.agent) and a.memory.source == "none"]
    cold = [a.name for a in arms if a.temperature == 0 and len(seeds_of(experiment, a)) > 1]
    if cold:
        notice(f"at temperature 0 the repeats of {', '.join(cold)} may be identical")


def _run_name(name: str, lm: str | None) -> str:
    # A run with another model is another run and gets its own folder.
    return name if lm is None else f"{name}-{''.join(c if c.isalnum() else '_' for c in lm)}"


def _existing_run(folder: Path) -> RunFolder:
    run_folder = RunFolder(folder)
    if run_folder.manifest is None:
        raise UsageError("holds no run", where=str(folder), hint="give a folder with manifest.json")
    return run_folder


def _report(folder: RunFolder, as_json: bool) -> RunSummary:
    """Print the summary of a run, and return it."""
    summary = _summary(folder)
    if as_json:
        print_json(summary.to_json())
        return summary
    experiment = (folder.manifest or {}).get("experiment", {})
    print_summary(summary, str(experiment.get("title") or experiment.get("name", "")))
    say(f"records: {folder.path}")
    return summary


def _exit_if_leaked(summary: RunSummary) -> None:
    """Exit with status 1 unless the records prove that nothing leaked."""
    if not summary.leakage.proven:
        raise typer.Exit(1)


def _summary(folder: RunFolder) -> RunSummary:
    return summarise_run(folder, _readable(folder))


def _readable(folder: RunFolder) -> Iterator[TrialRecord]:
    """Yield the trials that can be read, and name the files of the others."""
    for path, found in folder.read_all():
        if isinstance(found, RecordError):
            notice(f"{path}: cannot be read and is left out; run the experiment again to redo it")
        else:
            yield found


def _state_line(state: RunState) -> str:
    part = f"{state.done} of {state.total} trials"
    if state.status == "running":
        keys = ", ".join(f"{key.arm} · {key.task} · {key.seed}" for key in state.in_flight)
        where = f"process {state.pid} on {state.host}"
        return f"running since {state.began} ({where}): {part}; in flight: {keys or 'none'}"
    if state.status == "dead":
        lost = len(state.in_flight)
        return (
            f"dead: last updated at {state.updated}, with {part} on disk and {lost} in flight; "
            "the same command resumes it"
        )
    if state.status == "finished":
        return f"finished at {state.updated}: {part}"
    reason = f" ({state.error})" if state.error else ""
    return f"{state.status} at {state.updated}: {part}{reason}; the same command resumes it"
