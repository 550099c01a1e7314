"""`reasoningbank report` and `reasoningbank export`: a run as a page, or for other tools."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from reasoningbank.cli.options import AsJson, RunPath
from reasoningbank.cli.output import notice, print_json, print_table, say
from reasoningbank.experiment import RunFolder

app = typer.Typer(help="Write a run for other tools.", no_args_is_help=True)


def report(
    run: RunPath,
    out: Annotated[
        Path | None,
        typer.Option(help="The file to write; default report.html in the run's folder."),
    ] = None,
    open_it: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
) -> None:
    """Write one self-contained HTML page of a run: summary, figures, every trial.

    Example: reasoningbank report runs/uniprot_demo --open
    """
    from reasoningbank.analysis.report import write_report

    done = write_report(RunFolder(run), out if out is not None else run / "report.html")
    _name_damaged(done.damaged)
    notice(f"{done.size / 1e6:.1f} MB, {done.trials} trial{'' if done.trials == 1 else 's'}")
    say(str(done.path))
    if open_it and not webbrowser.open(done.path.resolve().as_uri()):
        notice("no browser found; open the file yourself")


@app.command("inspect")
def export_to_inspect(
    run: RunPath,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder of the logs; default inspect/ in the run's folder."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write one log an arm that `inspect view` and the dataframes of inspect_ai open.

    Example: reasoningbank export inspect runs/uniprot_demo
    """
    from reasoningbank.analysis.inspect_log import export_inspect

    export = export_inspect(run, out)
    _name_damaged(export.damaged)
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
    notice(f"inspect view --log-dir {export.folder}")


@app.command("parquet")
def export_to_parquet(
    runs: Annotated[list[Path], typer.Argument(help="Folders of runs.", metavar="RUN...")],
    out: Annotated[
        Path | None,
        typer.Option(help="Folder of the files; default parquet in the first run's folder."),
    ] = None,
    texts: Annotated[
        bool, typer.Option("--texts", help="Include messages, responses, arguments, results.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Write runs as Parquet files: trials, events, tool calls, model calls and more.

    Example: reasoningbank export parquet runs/uniprot_demo --out tables
    """
    # pandas takes half a second to import; other commands should not wait for it.
    from reasoningbank.analysis.frames import load, write_parquet

    frames = load(runs, texts=texts)
    written = write_parquet(frames, out if out is not None else runs[0] / "parquet")
    sizes = {name: len(frame) for name, frame in frames.items()}
    for problem in frames.problems:
        notice(f"left out: {problem.reason}")
    rows = [(name, sizes[name], str(path)) for name, path in written.items()]
    headers = ("frame", "rows", "file")
    if as_json:
        files = [dict(zip(headers, row, strict=True)) for row in rows]
        print_json({"files": files, "problems": [problem.reason for problem in frames.problems]})
    else:
        print_table(headers, rows)


@app.callback()
def _export() -> None:
    """Write a run for other tools."""


def _name_damaged(paths: tuple[Path, ...] | list[Path]) -> None:
    for path in paths:
        notice(f"{path} cannot be read and is left out")
