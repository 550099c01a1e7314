"""`reasoningbank report`: a run as one HTML page."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from reasoningbank.cli.output import console, progress_console
from reasoningbank.experiment import RunFolder

__all__ = ["report"]


def report(
    run: Annotated[Path, typer.Argument(help="Folder of a run, e.g. runs/uniprot_demo.")],
    out: Annotated[
        Path | None,
        typer.Option(help="The file to write; default report.html in the run's folder."),
    ] = None,
    open_it: Annotated[bool, typer.Option("--open", help="Show the page in a browser.")] = False,
) -> None:
    """Write one self-contained HTML page of a run: summary, figures, every trial.

    Example: reasoningbank report runs/uniprot_demo --open
    """
    from reasoningbank.analysis.report import write_report

    done = write_report(RunFolder(run), out if out is not None else run / "report.html")
    for path in done.damaged:
        said = f"{path} cannot be read and is left out"
        progress_console.print(said, soft_wrap=True)
    trials = "trial" if done.trials == 1 else "trials"
    size = f"{done.size / 1e6:.1f} MB, {done.trials} {trials}"
    progress_console.print(size, soft_wrap=True)
    console.print(str(done.path), soft_wrap=True)
    if open_it and not webbrowser.open(done.path.resolve().as_uri()):
        progress_console.print("no browser here; open the file yourself")
