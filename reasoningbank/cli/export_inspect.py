"""`reasoningbank export inspect`: a run as logs of Inspect AI."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from reasoningbank.cli.output import print_json, print_table, progress_console

__all__ = ["inspect"]


def inspect(
    run: Annotated[Path, typer.Argument(help="Folder of a run, e.g. runs/uniprot_demo.")],
    out: Annotated[
        Path | None,
        typer.Option(help="Folder of the logs; default inspect/ in the run's folder."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print what was written.")] = False,
) -> None:
    """Write logs that `inspect view` and the dataframes of inspect_ai open, one an arm.

    Example: reasoningbank export inspect runs/uniprot_demo
    """
    from reasoningbank.analysis.inspect_log import export_inspect

    export = export_inspect(run, out)
    for path in export.damaged:
        said = f"{path} cannot be read and is left out"
        progress_console.print(said, soft_wrap=True)
    rows = [
        {
            "arm": log.arm,
            "trials": log.samples,
            "errors": log.errors,
            "complete": log.complete,
            "log": str(log.path),
        }
        for log in export.logs
    ]
    if as_json:
        print_json(rows)
        return
    headers = ("arm", "trials", "errors", "log")
    print_table(headers, [[row[name] for name in headers] for row in rows])
    hint = f"inspect view --log-dir {export.folder}"
    progress_console.print(hint, soft_wrap=True)
