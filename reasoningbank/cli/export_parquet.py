"""`reasoningbank export parquet`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from reasoningbank.cli.output import print_json, print_table, progress_console

__all__ = ["parquet"]


def parquet(
    runs: Annotated[list[Path], typer.Argument(help="Folders of runs.", metavar="RUN...")],
    out: Annotated[
        Path | None, typer.Option(help="Folder of the files; default parquet in the first run's.")
    ] = None,
    texts: Annotated[
        bool, typer.Option("--texts", help="Include messages, responses, arguments, results.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the list as JSON.")] = False,
) -> None:
    """Write runs as Parquet files: trials, events, tool calls, model calls and more.

    Example: reasoningbank export parquet runs/uniprot_demo --out tables
    """
    # pandas takes half a second to import, which no other command should wait for.
    from reasoningbank.analysis.frames import load, write_parquet

    frames = load(runs, texts=texts)
    written = write_parquet(frames, out if out is not None else runs[0] / "parquet")
    sizes = {name: len(frame) for name, frame in frames.items()}
    for problem in frames.problems:
        progress_console.print(f"left out: {problem.reason}", soft_wrap=True)
    if as_json:
        print_json(
            {
                "files": [
                    {"frame": name, "rows": sizes[name], "file": str(path)}
                    for name, path in written.items()
                ],
                "problems": [problem.reason for problem in frames.problems],
            }
        )
    else:
        rows = [[name, sizes[name], path] for name, path in written.items()]
        print_table(("frame", "rows", "file"), rows)
