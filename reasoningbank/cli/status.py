"""`reasoningbank status` and `reasoningbank archive`: runs on disk."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from reasoningbank.analysis import RunSummary, summarise_run
from reasoningbank.cli.output import console, print_json
from reasoningbank.cli.progress import notice
from reasoningbank.cli.summary import print_summary
from reasoningbank.errors import RecordError, UsageError
from reasoningbank.experiment import RunFolder, RunState, TrialRecord, read_state
from reasoningbank.experiment.records import StreamProgress, streams_of

__all__ = ["archive", "existing_run", "refuse_leaks", "report_run", "status"]


def status(
    folder: Annotated[Path, typer.Argument(help="Folder of a run, e.g. runs/uniprot_demo.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
) -> None:
    """Show what a run has so far, and whether it is running, dead or finished.

    Example: reasoningbank status runs/uniprot_demo
    """
    run_folder = existing_run(folder)
    state = read_state(run_folder)
    if as_json:
        summary = _summary(run_folder)
        streams = [one._asdict() for one in _streams(run_folder)]
        told = {"state": asdict(state) if state else None, "streams": streams}
        print_json({**summary.to_json(), **told})
    else:
        summary = report_run(run_folder, as_json=False)
        for arm, order, taken, total in _streams(run_folder):
            console.print(f"stream {arm}.{order}: {taken} of {total} steps", soft_wrap=True)
        if state is not None:
            console.print(_said(state), soft_wrap=True)
    refuse_leaks(summary)


def archive(
    folder: Annotated[Path, typer.Argument(help="Folder of a run.")],
    target: Annotated[Path, typer.Argument(help="Where the compressed copy goes.")],
) -> None:
    """Copy a run with its trials compressed, small enough to be committed.

    Example: reasoningbank archive runs/uniprot_baseline experiments/results/uniprot_baseline
    """
    copy = existing_run(folder).archive(
        target, on_damaged=lambda path: notice(f"{path}: cannot be read and is left out")
    )
    console.print(str(copy.path), soft_wrap=True)


def existing_run(folder: Path) -> RunFolder:
    """Return the folder of a run.

    Raises:
        UsageError: If there is no run.
    """
    run_folder = RunFolder(folder)
    if run_folder.manifest is None:
        raise UsageError("holds no run", where=str(folder), hint="give a folder with manifest.json")
    return run_folder


def report_run(folder: RunFolder, as_json: bool) -> RunSummary:
    """Print the summary of a run, and return it."""
    summary = _summary(folder)
    if as_json:
        print_json(summary.to_json())
        return summary
    experiment = (folder.manifest or {}).get("experiment", {})
    print_summary(summary, str(experiment.get("title") or experiment.get("name", "")))
    console.print(f"records: {folder.path}", soft_wrap=True)
    return summary


def refuse_leaks(summary: RunSummary) -> None:
    """End the command with exit status 1 unless it is proven that nothing leaked; that was told."""
    if not summary.leakage.proven:
        raise typer.Exit(1)


def _streams(folder: RunFolder) -> list[StreamProgress]:
    return streams_of(folder.path, folder.manifest or {})


def _summary(folder: RunFolder) -> RunSummary:
    return summarise_run(folder, _readable(folder))


def _readable(folder: RunFolder) -> Iterator[TrialRecord]:
    """Yield the trials that can be read, and tell of the others."""
    for path, found in folder.read_all():
        if isinstance(found, RecordError):
            left_out = "cannot be read and is left out; the run's command runs its trial again"
            notice(f"{path}: {left_out}")
        else:
            yield found


def _said(state: RunState) -> str:
    part = f"{state.done} of {state.total} trials"
    if state.status == "running":
        keys = ", ".join(f"{key.arm} · {key.task} · {key.seed}" for key in state.in_flight)
        where = f"process {state.pid} on {state.host}"
        return f"running since {state.began} ({where}): {part}; in flight: {keys or 'none'}"
    if state.status == "dead":
        lost = len(state.in_flight)
        return (
            f"dead: last heard of at {state.updated}, with {part} on disk and {lost} in flight; "
            "the same command goes on"
        )
    if state.status == "finished":
        return f"finished at {state.updated}: {part}"
    reason = f" ({state.error})" if state.error else ""
    return f"{state.status} at {state.updated}: {part}{reason}; the same command goes on"
