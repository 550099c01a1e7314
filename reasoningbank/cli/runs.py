"""Runs: `run`, `rerun`, `status`, `archive`, `compare`, `report`, and `export` for other tools."""

from __future__ import annotations

import contextlib
import re
import webbrowser
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Literal

from typer import Argument, Exit, Option, Typer

from reasoningbank.agents import AttemptStatus, asks_model
from reasoningbank.analysis import RunSummary, changed_answers, compare_runs, summarise_run
from reasoningbank.cli import output
from reasoningbank.cli import summary as tables
from reasoningbank.cli.options import AsJson, Many, RunPath
from reasoningbank.errors import RecordError, SetupError, UsageError
from reasoningbank.experiment import (
    Experiment,
    Observer,
    RunFolder,
    RunState,
    TrialRecord,
    load_experiment,
    parse_experiment,
    plan_run,
    read_state,
    run_experiment,
)
from reasoningbank.experiment.config import seeds_of
from reasoningbank.experiment.estimate import estimate_run
from reasoningbank.experiment.runner import check_models
from reasoningbank.experiment.state import check_free
from reasoningbank.experiment.storage import write_atomically
from reasoningbank.experiment.tracing import mlflow_tracer
from reasoningbank.findings import counted
from reasoningbank.lm.names import parse_name

export = Typer(help="Write a run for other tools.", no_args_is_help=True)

Only = Annotated[Many, Option(help="Only this arm; repeatable.")]
OfTask = Annotated[Many, Option("--task", help="Only this task; repeatable.")]
MLflow = Annotated[
    str | None,
    Option(help="Trace the trials with MLflow, e.g. sqlite:///mlflow.db.", metavar="URI"),
]
#: Errors of `compare_runs` about the options --arm and --with.
_OF_ARMS = {"no-first-arm", "no-shared-arm", "same-arm", "same-run", "unknown-arm"}


def run(
    experiment: Annotated[Path, Argument(help="An experiment file (.toml).")],
    limit: Annotated[int | None, Option(min=1, help="Only the first N tasks of each arm.")] = None,
    only: Only = None,
    task: OfTask = None,
    changes: Annotated[
        Many,
        Option(
            "--set",
            metavar="KEY=VALUE",
            help="Replace a setting of the file: budget.iterations=3, arms.rlm.lm=NAME, "
            "'arms.*.temperature=0.7', executor.workers=16. Repeatable.",
        ),
    ] = None,
    lm: Annotated[str | None, Option(help="The model of every arm, e.g. openai/gpt-4.1.")] = None,
    out: Annotated[Path | None, Option(help="Folder of the records; default runs/<name>.")] = None,
    dry_run: Annotated[bool, Option("--dry-run", help="Show what would run and cost.")] = False,
    mlflow: MLflow = None,
    as_json: AsJson = False,
) -> None:
    """Run an experiment; the same command resumes it.

    Example: reasoningbank run experiments/uniprot_demo.toml
    """
    if lm is not None:
        parse_name(lm)
    loaded = load_experiment(experiment, changes or ()).with_lm(lm)
    folder = RunFolder(out if out is not None else default_folder(loaded.name, lm))
    chosen: dict[str, Any] = {"limit": limit, "only": only or (), "tasks": task or ()}
    if dry_run:
        plan = plan_run(loaded, **chosen)
        output.notice(*plan.denied)
        try:
            check_models(loaded, plan.jobs)
        except (SetupError, UsageError) as error:
            output.notice(f"a run would be refused: {error}")
        tables.print_estimate(estimate_run(loaded, folder, plan.jobs), as_json=as_json)
        return
    _run(loaded, folder, mlflow, as_json, chosen)


def default_folder(name: str, lm: str | None) -> Path:
    """Return the folder of an experiment's run; one with another model is another run."""
    model = "" if lm is None else f"-{''.join(c if c.isalnum() else '_' for c in lm)}"
    return Path("runs") / f"{name}{model}"


def rerun(
    folder: RunPath,
    status: Annotated[AttemptStatus, Option(help="Trials that ended with this status.")] = "error",
    only: Only = None,
    task: OfTask = None,
    missing: Annotated[bool, Option("--missing", help="Also trials without a record.")] = False,
    mlflow: MLflow = None,
    as_json: AsJson = False,
) -> None:
    """Run trials again, by how they ended; each new record replaces the old one.

    The experiment is the one in the run's manifest.

    Example: reasoningbank rerun runs/uniprot_demo --status error
    """
    run_folder = RunFolder(folder)
    manifest = run_folder.require_manifest()
    experiment = parse_experiment(manifest.get("experiment") or {}, where=str(folder))
    chosen: dict[str, Any] = {"only": only or (), "tasks": task or ()}
    if only or task:
        # Planning refuses unknown names.
        plan_run(experiment, **chosen)
    again = [
        trial.key
        for trial in run_folder.trials(skip_damaged=True)
        if trial.status == status
        and (not only or trial.key.arm in only)
        and (not task or trial.key.task in task)
    ]
    if not again:
        output.notice(f"no selected trial of {folder} ended with status {status}")
        if not missing:
            _exit_if_leaked(_report(run_folder, as_json))
            return
    _run(experiment, run_folder, mlflow, as_json, chosen, again=again, missing=missing)


def status(folder: RunPath, as_json: AsJson = False) -> None:
    """Show what a run has so far, and whether it is running, dead or finished.

    Example: reasoningbank status runs/uniprot_demo
    """
    run_folder = RunFolder(folder)
    manifest = run_folder.require_manifest()
    state = read_state(run_folder)
    streams = _streams(run_folder, manifest)
    extra = {"state": asdict(state) if state else None, "streams": streams}
    summary = _report(run_folder, as_json, extra)
    if not as_json:
        for one in streams:
            output.say("stream {arm}.{order}: {taken} of {total} steps".format_map(one))
        if state is not None:
            output.say(_state_line(state))
    _exit_if_leaked(summary)


def archive(
    folder: RunPath,
    target: Annotated[Path, Argument(help="Where the compressed copy goes.")],
) -> None:
    """Copy a run with its trials compressed, small enough to commit.

    Example: reasoningbank archive runs/uniprot_baseline experiments/results/uniprot_baseline
    """
    run_folder = RunFolder(folder)
    run_folder.require_manifest()
    output.say(str(run_folder.archive(target, on_damaged=_leave_out).path))


def compare(
    first: Annotated[Path, Argument(help="Folder of a run.")],
    second: Annotated[Path, Argument(help="Folder of the run to compare it with.")],
    arm: Annotated[str | None, Option(help="An arm of the first; default all shared.")] = None,
    against: Annotated[
        str | None, Option("--with", help="The second run's arm; default the same name.")
    ] = None,
    metric: Annotated[
        Literal["strict", "lenient", "f1"] | None,
        Option(help="What to compare; default the first run's primary metric."),
    ] = None,
    unit: Annotated[
        Literal["task", "group"] | None,
        Option(help="What counts as one observation; default as in the first run."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compare the arms of two runs on the tasks that both have.

    Give one folder twice, with --arm and --with, to compare two arms of a run.

    Example: reasoningbank compare runs/uniprot_baseline runs/uniprot_tools --arm rlm
    """
    try:
        found = compare_runs(
            RunFolder(first), RunFolder(second), arm=arm, against=against, metric=metric, unit=unit
        )
    except UsageError as error:
        if error.code in _OF_ARMS:
            error.at("--arm, --with")
        raise
    if as_json:
        output.print_json(found.to_json())
        return
    output.notice(*(f"note: {note}" for note in found.notes))
    tables.print_comparisons(found.comparisons, f"{found.metric}, by {found.unit}")
    dropped = found.only_first + found.only_second
    shared = counted(found.shared, "shared task")
    unpaired = f"; arms without a partner: {', '.join(found.unpaired)}" if found.unpaired else ""
    output.say(f"{shared}; {dropped} in only one of the runs left out{unpaired}")


def report(
    run: RunPath,
    out: Annotated[Path | None, Option(help="Default: report.html in the run's folder.")] = None,
    open_it: Annotated[bool, Option("--open", help="Open the page in a browser.")] = False,
    most: Annotated[int, Option(min=1, help="Whole trials in it; of more, an even part.")] = 5000,
) -> None:
    """Write one self-contained HTML page of a run: summary, figures, every trial.

    Example: reasoningbank report runs/uniprot_demo --open
    """
    from reasoningbank.analysis.report import write_report

    done = write_report(RunFolder(run), out if out is not None else run / "report.html", most=most)
    _leave_out(*done.damaged)
    output.notice(f"{done.size / 1e6:.1f} MB, {counted(done.trials, 'trial')}")
    if left := done.trials - done.whole:
        output.notice(f"{left} of them only in the list, matrix and figures; --most N shows more")
    output.say(str(done.path))
    if open_it and not webbrowser.open(done.path.resolve().as_uri()):
        output.notice("no browser found; open the file yourself")


@export.command("inspect")
def export_to_inspect(
    run: RunPath,
    out: Annotated[Path | None, Option(help="Default: inspect/ in the run's folder.")] = None,
    as_json: AsJson = False,
) -> None:
    """Write one log an arm that `inspect view` and the dataframes of inspect_ai open.

    Example: reasoningbank export inspect runs/uniprot_demo
    """
    from reasoningbank.analysis.inspect_log import export_inspect

    done = export_inspect(run, out)
    _leave_out(*done.damaged)
    data = [
        {"arm": log.arm, "trials": log.samples, "errors": log.errors, "complete": log.complete}
        | {"log": str(log.path)}
        for log in done.logs
    ]
    output.print_objects(data, ("arm", "trials", "errors", "log"), as_json)
    if not as_json:
        output.notice(f"inspect view --log-dir {done.folder}")


@export.command("parquet")
def export_to_parquet(
    runs: Annotated[list[Path], Argument(help="Folders of runs.", metavar="RUN...")],
    out: Annotated[Path | None, Option(help="Default: parquet in the first run's folder.")] = None,
    texts: Annotated[bool, Option("--texts", help="Include messages and results.")] = False,
    as_json: AsJson = False,
) -> None:
    """Write runs as Parquet files: trials, events, tool calls, model calls and more.

    Example: reasoningbank export parquet runs/uniprot_demo --out tables
    """
    # pandas takes half a second to import; other commands should not wait for it.
    from reasoningbank.analysis.frames import load, write_parquet

    frames = load(runs, texts=texts)
    written = write_parquet(frames, out if out is not None else runs[0] / "parquet")
    problems = [problem.reason for problem in frames.problems]
    output.notice(*(f"left out: {problem}" for problem in problems))
    sizes = {name: len(frame) for name, frame in frames.items()}
    files = [{"frame": n, "rows": sizes[n], "file": path} for n, path in written.items()]
    output.print_objects(files, (), as_json, {"files": files, "problems": problems})


@export.command("hf")
def export_to_hf(
    out: Annotated[Path, Option(help="Folder of the dataset.", show_default=False)],
    runs: Annotated[list[Path] | None, Argument(help="Run folders.", metavar="[RUN]...")] = None,
    pack: Annotated[Many, Option(help="A pack; repeatable.")] = None,
    as_json: AsJson = False,
) -> None:
    """Write tasks of packs and trials of runs as a folder for `datasets.load_dataset`, with a card.

    Example: reasoningbank export hf runs/uniprot_demo --pack uniprot --out dataset
    """
    from reasoningbank.analysis.hf_dataset import export_dataset

    written = export_dataset(out, pack or (), runs or ())
    output.print_rows(("config", "split", "rows", "file"), written, as_json)


def _streams(folder: RunFolder, manifest: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the progress of each stream of a run, including streams that have not begun."""
    experiment = parse_experiment(manifest["experiment"], where=str(folder.path))
    total = len(manifest.get("stream") or ())
    return [
        {
            "arm": arm.name,
            "order": order,
            "taken": len(folder.names(rf"learning/{re.escape(arm.name)}\.{order}/\d+\.json")),
            "total": total,
        }
        for arm in experiment.arms
        if arm.learns
        for order in seeds_of(experiment, arm)
    ]


def _leave_out(*paths: Path) -> None:
    output.notice(*(f"{path}: cannot be read and is left out" for path in paths))


def _run(
    experiment: Experiment,
    folder: RunFolder,
    mlflow: str | None,
    as_json: bool,
    chosen: Mapping[str, Any],
    **repeated: Any,
) -> None:
    # With memory, and compiled, another task permutation gives another prompt.
    plain = [a for a in experiment.arms if a.memory.source == "none" and not a.compile]
    arms = [a for a in plain if asks_model(a.agent)]
    cold = [a.name for a in arms if a.temperature == 0 and len(seeds_of(experiment, a)) > 1]
    if cold:
        output.notice(f"at temperature 0 the repeats of {', '.join(cold)} may be identical")
    with contextlib.ExitStack() as stack:
        observers: list[Observer] = []
        if mlflow:
            # A run that another process continues is traced by that process.
            check_free(folder)
            tracer = mlflow_tracer(mlflow, folder, on_failure=output.notice)
            observers.append(stack.enter_context(tracer))
        estimate = estimate_run(experiment, folder, plan_run(experiment, **chosen).jobs)
        estimated = [one for one in estimate.arms if one.agent != "judge"]
        left = output.TimeLeft(
            {one.arm: one.todo for one in estimated},
            {one.arm: one.amounts["seconds"] for one in estimated if not one.is_bound},
        )
        follow = stack.enter_context(output.follow_run(left))
        says: dict[str, Any] = {"on_progress": follow, "on_notice": output.notice}
        run_experiment(experiment, folder, observers=observers, **says, **chosen, **repeated)
    summary = _report(folder, as_json, whole=False)
    write_atomically(folder.path / "summary.json", summary.to_json())
    if summary.comparison is not None and experiment.mode == "learn" and not as_json:
        first, second = summary.comparison.first, summary.comparison.second
        records = folder.trials(skip_damaged=True)
        tables.print_changes(summary, changed_answers(records, first, second))
    _exit_if_leaked(summary)


def _report(
    folder: RunFolder,
    as_json: bool,
    extra: Mapping[str, Any] | None = None,
    *,
    whole: bool = True,
) -> RunSummary:
    """Print the summary of a run, whole or its result alone, as JSON with `extra`; return it."""

    def readable() -> Iterator[TrialRecord]:
        for path, found in folder.read_all():
            if isinstance(found, RecordError):
                hint = "run the experiment again to redo it"
                output.notice(f"{path}: cannot be read and is left out; {hint}")
            else:
                yield found

    summary = summarise_run(folder, readable())
    if as_json:
        output.print_json({**summary.to_json(), **(extra or {})})
        return summary
    experiment = (folder.manifest or {}).get("experiment", {})
    title = str(experiment.get("title") or experiment.get("name", ""))
    (tables.print_summary if whole else tables.print_result)(summary, title)
    output.say(f"records: {folder.path}")
    if not whole:
        output.say(f"all tables: reasoningbank status {folder.path}")
    return summary


def _exit_if_leaked(summary: RunSummary) -> None:
    """Exit with status 1 unless the records prove that nothing leaked."""
    if not summary.leakage.proven:
        raise Exit(1)


def _state_line(state: RunState) -> str:
    part = f"{state.done} of {state.total} trials"
    if state.status == "running":
        keys = ", ".join(map(output.trial_name, state.in_flight))
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
