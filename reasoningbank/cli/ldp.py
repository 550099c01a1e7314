"""`reasoningbank ldp`: a small Linked Data server on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from reasoningbank.cli.output import console, progress_console
from reasoningbank.cli.serving import serve_until, stopping
from reasoningbank.ldp import LDPServer

__all__ = ["app"]

app = typer.Typer(help="Serve documents that are read and written.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    """Serve documents that are read and written over HTTP, and SPARQL over all of them."""


@app.command()
def serve(
    base: Annotated[
        str | None,
        typer.Option(help="What documents' addresses begin with; where it listens by default."),
    ] = None,
    port: Annotated[int | None, typer.Option(min=1, max=65535, help="Port; free if none.")] = None,
    folder: Annotated[
        Path | None, typer.Option(help="Keep each document as a Turtle file in this folder.")
    ] = None,
    store: Annotated[
        Path | None, typer.Option(help="Keep them in an Oxigraph store in this folder instead.")
    ] = None,
) -> None:
    """Serve documents on loopback until Ctrl-C; without a folder they end with the server.

    SPARQL is answered at the base + sparql.

    Example: reasoningbank ldp serve --port 4443 --folder data
    """
    stop = stopping()
    with LDPServer(base, port=port, folder=folder, store=store) as server:
        console.print(server.base, soft_wrap=True)
        if server.base != server.address:
            line = f"{server.base} is answered at {server.address}"
            progress_console.print(line, soft_wrap=True)
        serve_until(stop)
