"""`reasoningbank compare`: the arms of two runs against each other."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from reasoningbank.cli.output import console, print_json, progress_console
from reasoningbank.cli.summary import print_comparisons
from reasoningbank.experiment import RunFolder

__all__ = ["compare"]


def compare(
    first: Annotated[Path, typer.Argument(help="Folder of a run.")],
    second: Annotated[Path, typer.Argument(help="Folder of the run it is held against.")],
    arm: Annotated[
        str | None, typer.Option(help="An arm of the first run; default each that both have.")
    ] = None,
    against: Annotated[
        str | None, typer.Option("--with", help="The second run's arm; default that of its name.")
    ] = None,
    metric: Annotated[
        Literal["strict", "lenient", "f1"] | None,
        typer.Option(help="What to compare; default the first run's primary metric."),
    ] = None,
    unit: Annotated[
        Literal["task", "group"] | None,
        typer.Option(help="What counts as one observation; default what the first run says."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the comparison as JSON.")] = False,
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
        progress_console.print(f"note: {note}", soft_wrap=True)
    print_comparisons(found.comparisons, f"{found.metric}, by {found.unit}")
    dropped = found.only_first + found.only_second
    shared = f"{found.shared} shared task{'' if found.shared == 1 else 's'}"
    tasks = f"{shared}; {dropped} left out that one run alone has"
    alone = f"; arms without a partner: {', '.join(found.unpaired)}" if found.unpaired else ""
    console.print(tasks + alone, soft_wrap=True)
