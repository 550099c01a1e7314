"""`reasoningbank lm`: the local model's weights and server."""

from __future__ import annotations

import os
from typing import Annotated

import typer
from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from reasoningbank.cli.output import console, print_json, print_table, progress_console
from reasoningbank.cli.serving import serve_until, stopping
from reasoningbank.errors import UsageError
from reasoningbank.lm import Progress, list_weights, open_lm, parse_name
from reasoningbank.lm import pull as pull_weights
from reasoningbank.lm.models import SERVER_VARIABLE

__all__ = ["app"]

app = typer.Typer(help="Bring, list and serve local models.", no_args_is_help=True)


@app.command()
def pull(
    name: Annotated[str, typer.Argument(help="local or local-small.")] = "local",
) -> None:
    """Bring a model's weights into the cache, once; a broken download goes on where it was.

    Example: reasoningbank lm pull local
    """
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), DownloadColumn(),
               TimeRemainingColumn())  # fmt: skip
    with Bar(*columns, console=progress_console, disable=not progress_console.is_terminal) as bar:
        row = bar.add_task("looking", total=None)
        step = ""

        def follow(now: Progress) -> None:
            nonlocal step
            if now.note:
                progress_console.print(now.note, soft_wrap=True)
                return
            if now.step != step:
                step = now.step
                if not progress_console.is_terminal:
                    progress_console.print(f"{step} …")
            bar.update(row, description=now.step, completed=now.done, total=now.total or None)

        path = pull_weights(name, progress=follow)
    console.print(str(path), soft_wrap=True)


@app.command("list")
def list_models(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List the models that can be brought, and what the cache holds.

    Example: reasoningbank lm list
    """
    found = [
        {
            "name": stored.weights.name,
            "model": stored.weights.title,
            "licence": stored.weights.license,
            "megabytes": round(stored.weights.size / 1e6),
            "state": stored.state,
            "path": str(stored.path),
        }
        for stored in list_weights()
    ]
    if as_json:
        print_json(found)
    else:
        print_table(tuple(found[0]), [tuple(row.values()) for row in found])


@app.command()
def serve(
    name: Annotated[str, typer.Argument(help="local, local-small or local:/path.gguf.")] = "local",
) -> None:
    """Serve a local model on loopback, OpenAI-compatible, until Ctrl-C.

    The server is a new one, also where REASONINGBANK_LM_SERVER names another.

    Example: reasoningbank lm serve local
    """
    if not parse_name(name).is_local:
        raise UsageError("is not a local model", where=name, hint="serve local or local:/path.gguf")
    stop = stopping()
    with open_lm(name, own=True) as model:
        console.print(model.api_base, soft_wrap=True)
        if elsewhere := os.environ.get(SERVER_VARIABLE):
            said = f"{SERVER_VARIABLE} names another: {elsewhere}"
            progress_console.print(said, soft_wrap=True)
        serve_until(stop)
