"""`reasoningbank endpoint`: give a person what the agent has."""

from __future__ import annotations

import signal
import threading
from typing import Annotated

import typer

from reasoningbank.cli.output import console, print_json, progress_console
from reasoningbank.corpus import load_pack, open_endpoint
from reasoningbank.tools import SPARQLTools

__all__ = ["app"]

app = typer.Typer(help="Serve a pack's endpoint, or ask it by hand.", no_args_is_help=True)

PackName = Annotated[str, typer.Option("--pack", help="A pack's name or folder.")]
Address = Annotated[
    str | None, typer.Option("--url", help="A running endpoint instead of the embedded one.")
]


@app.command()
def serve(
    pack: Annotated[str, typer.Argument(help="A pack's name or folder.")] = "uniprot",
    port: Annotated[int | None, typer.Option(min=1, max=65535, help="Port; free if none.")] = None,
) -> None:
    """Serve a pack's data on loopback until Ctrl-C.

    Example: reasoningbank endpoint serve uniprot --port 7878
    """
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    with open_endpoint(load_pack(pack), port=port) as config:
        console.print(config.query_url, soft_wrap=True)
        progress_console.print("serving; Ctrl-C ends it")
        stop.wait()


@app.command()
def query(
    sparql: Annotated[str, typer.Argument(help="A SPARQL query.")],
    pack: PackName = "uniprot",
    url: Address = None,
    limit: Annotated[int, typer.Option(min=1, help="Rows fetched.")] = 100,
    rows: Annotated[int, typer.Option(min=1, max=20, help="Rows shown.")] = 20,
) -> None:
    """Run a query and print the first rows as JSON.

    Example: reasoningbank endpoint query "SELECT ?t { ?t a up:Taxon } LIMIT 3"
    """
    with open_endpoint(load_pack(pack), url) as config:
        tools = SPARQLTools(config)
        ref = tools.sparql_query(sparql, limit)
        shown = tools.sparql_peek(ref, rows)
        progress_console.print(repr(ref), markup=False)
        if shown.note:
            progress_console.print(shown.note, markup=False)
        print_json(list(shown))


@app.command()
def find(
    text: Annotated[str, typer.Argument(help="A part of a name.")],
    pack: PackName = "uniprot",
    url: Address = None,
) -> None:
    """Find resources by a part of their name.

    Example: reasoningbank endpoint find kinase
    """
    with open_endpoint(load_pack(pack), url) as config:
        print_json(SPARQLTools(config).sparql_find(text))


@app.command()
def classes(pack: PackName = "uniprot", url: Address = None) -> None:
    """List the most frequent classes.

    Example: reasoningbank endpoint classes
    """
    with open_endpoint(load_pack(pack), url) as config:
        print_json(SPARQLTools(config).sparql_classes())
