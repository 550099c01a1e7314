"""`reasoningbank run` and `reasoningbank status`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from reasoningbank.analysis import RunSummary, summarise
from reasoningbank.cli.output import console, print_json, print_table, progress_console, seconds
from reasoningbank.errors import UsageError
from reasoningbank.experiment import Progress as Standing
from reasoningbank.experiment import RunFolder, load_experiment, run_experiment
from reasoningbank.experiment.records import write_atomically

__all__ = ["archive", "run", "status"]

HEADERS = (
    "arm", "n", "strict", "95 % interval", "row F1", "ran",
    "submitted", "fallback", "exhausted", "refused", "error",
    "s median", "s p95", "tokens median", "tokens p95",
)  # fmt: skip


def run(
    experiment: Annotated[Path, typer.Argument(help="An experiment file (.toml).")],
    limit: Annotated[
        int | None, typer.Option(min=1, help="Only the first so many tasks of each arm.")
    ] = None,
    lm: Annotated[
        str | None, typer.Option(help="Use this model in every arm, e.g. openai/gpt-4.1-mini.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder of the records; default runs/<name>.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
) -> None:
    """Run an experiment; the same command goes on where it stopped.

    Example: reasoningbank run experiments/uniprot_demo.toml
    """
    loaded = load_experiment(experiment).with_lm(lm)
    folder = RunFolder(out if out is not None else Path("runs") / _run_name(loaded.name, lm))
    with _progress() as bar:
        follow = _follower(bar)
        run_experiment(loaded, folder, limit=limit, on_progress=follow)
    summary = _report(folder, as_json)
    write_atomically(folder.path / "summary.json", summary.to_json())


def status(
    folder: Annotated[Path, typer.Argument(help="Folder of a run, e.g. runs/uniprot_demo.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
) -> None:
    """Show what a run has so far, whether it is running or dead.

    Example: reasoningbank status runs/uniprot_demo
    """
    run_folder = RunFolder(folder)
    if run_folder.manifest is None:
        raise UsageError("holds no run", where=str(folder), mend="give a folder with manifest.json")
    _report(run_folder, as_json)


def archive(
    folder: Annotated[Path, typer.Argument(help="Folder of a run.")],
    target: Annotated[Path, typer.Argument(help="Where the compressed copy goes.")],
) -> None:
    """Copy a run with its trials compressed, small enough to be committed.

    Example: reasoningbank archive runs/uniprot_baseline experiments/results/uniprot_baseline
    """
    run_folder = RunFolder(folder)
    if run_folder.manifest is None:
        raise UsageError("holds no run", where=str(folder), mend="give a folder with manifest.json")
    console.print(str(run_folder.archive(target).path), soft_wrap=True)


def _run_name(name: str, lm: str | None) -> str:
    # A run with another model is another run, and gets a folder of its own.
    return name if lm is None else f"{name}-{''.join(c if c.isalnum() else '_' for c in lm)}"


def _progress() -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=20),
        MofNCompleteColumn(),
        TextColumn("{task.fields[standing]}"),
        console=progress_console,
        disable=not progress_console.is_terminal,
        transient=False,
    )


def _follower(bar: Progress) -> Callable[[Standing], None]:
    row = bar.add_task("starting", total=None, standing="")
    scores: list[bool] = []

    def follow(now: Standing) -> None:
        if now.record is not None:
            scores.append(now.record.strict)
        left = now.total - now.done
        rate = f"{sum(scores)}/{len(scores)} strict" if scores else ""
        eta = f"about {seconds(now.seconds / now.fresh * left)} left" if now.fresh else ""
        standing = " · ".join(part for part in (rate, f"{seconds(now.seconds)}", eta) if part)
        label = f"{now.key.arm} · {now.key.task}"
        bar.update(row, description=label, total=now.total, completed=now.done, standing=standing)
        if not progress_console.is_terminal and now.record is not None:
            verdict = "strict" if now.record.strict else now.record.status
            progress_console.print(f"[{now.done}/{now.total}] {label}: {verdict} · {standing}",
                                   soft_wrap=True, markup=False)  # fmt: skip

    return follow


def _report(folder: RunFolder, as_json: bool) -> RunSummary:
    manifest = folder.manifest or {}
    experiment = manifest.get("experiment", {})
    arms = [arm["name"] for arm in experiment.get("arms", [])]
    pair = experiment.get("comparison")
    summary = summarise(folder.trials(), arms, tuple(pair) if pair else None)
    if as_json:
        print_json(summary.to_json())
    else:
        print_summary(summary, str(experiment.get("title") or experiment.get("name", "")))
        console.print(f"records: {folder.path}", soft_wrap=True)
    return summary


def print_summary(summary: RunSummary, title: str) -> None:
    """Print one line an arm and the comparison stated beforehand."""
    rows = []
    for arm in summary.arms:
        counts = [arm.statuses.get(name, 0) for name in HEADERS[6:11]]
        low, high = f"{arm.rate.low:.2f}", f"{arm.rate.high:.2f}"
        rows.append(
            [
                arm.arm,
                arm.judged,
                f"{arm.strict} ({arm.rate.rate:.0%})" if arm.judged else "-",
                f"{low} to {high}",
                f"{arm.f1:.2f}",
                arm.executed,
                *counts,
                *(f"{value:.1f}" for value in arm.seconds),
                *(f"{value:.0f}" for value in arm.tokens),
            ]
        )
    print_table(HEADERS, rows, title)
    if summary.comparison and summary.paired:
        first, second = summary.comparison
        paired = summary.paired
        word = "" if paired.p < 0.05 else ": unresolved"
        console.print(
            f"{first} against {second}, {paired.n} tasks that both have: only {first} right "
            f"{paired.only_first}, only {second} right {paired.only_second}, difference "
            f"{paired.difference:+.2f}, mid-p {paired.p:.3f}{word}",
            soft_wrap=True,
        )
