"""`reasoningbank endpoint`: give a person what the agent has."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import typer

from reasoningbank.cli.description import describe_endpoint, print_card, print_description
from reasoningbank.cli.output import console, print_json, print_table, progress_console
from reasoningbank.cli.serving import serve_until, stopping
from reasoningbank.corpus import Pack, endpoint_config, load_pack, open_endpoint
from reasoningbank.sparql import EndpointConfig, prepare
from reasoningbank.tools import SPARQLTools

__all__ = ["app"]

app = typer.Typer(help="Serve a pack's endpoint, or ask it by hand.", no_args_is_help=True)

PackName = Annotated[
    str | None, typer.Option("--pack", help="A pack's name or folder; uniprot by default.")
]
Address = Annotated[
    str | None, typer.Option("--url", help="A running endpoint: the pack's, or any alone.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command()
def serve(
    pack: Annotated[str, typer.Argument(help="A pack's name or folder.")] = "uniprot",
    port: Annotated[int | None, typer.Option(min=1, max=65535, help="Port; free if none.")] = None,
) -> None:
    """Serve a pack's data on loopback until Ctrl-C.

    Example: reasoningbank endpoint serve uniprot --port 7878
    """
    stop = stopping()
    with open_endpoint(load_pack(pack), port=port) as config:
        console.print(config.query_url, soft_wrap=True)
        for other in config.federated:
            line = f"SERVICE <{other.url}> is answered at {other.address}"
            progress_console.print(line, soft_wrap=True)
        serve_until(stop)


@app.command()
def describe(
    pack: PackName = None,
    url: Address = None,
    card: Annotated[
        bool, typer.Option("--card", help="Print the sense card alone, as an agent reads it.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Tell what an endpoint says of itself: engine, sizes, graphs, classes, federation, sense card.

    Example: reasoningbank endpoint describe --pack uniprot
    """
    with _opened(pack, url) as (config, loaded):
        told = describe_endpoint(config, loaded)
        if card and not as_json:
            print_card(told)
        else:
            _describe(config, told, as_json)


@app.command()
def query(
    sparql: Annotated[str, typer.Argument(help="A SPARQL query.")],
    pack: PackName = None,
    url: Address = None,
    limit: Annotated[int, typer.Option(min=1, help="Rows fetched.")] = 100,
    rows: Annotated[int, typer.Option(min=1, max=20, help="Rows shown.")] = 20,
    as_json: AsJson = False,
) -> None:
    """Run a query and print the first rows.

    Example: reasoningbank endpoint query "SELECT ?t { ?t a up:Taxon } LIMIT 3"
    """
    # A query that cannot be parsed is told before any data are served.
    prepare(sparql, prefixes=_config(pack, url)[0].namespaces)
    with _tools(pack, url) as tools:
        ref = tools.sparql_query(sparql, limit)
        shown = tools.sparql_peek(ref, rows)
        progress_console.print(repr(ref), soft_wrap=True)
        if shown.note:
            progress_console.print(shown.note, soft_wrap=True)
        if as_json:
            print_json(list(shown))
        else:
            _print_items(tools.sparql_stats(ref).get("cols", ()), shown)


@app.command()
def find(
    text: Annotated[str, typer.Argument(help="A part of a name.")],
    pack: PackName = None,
    url: Address = None,
    as_json: AsJson = False,
) -> None:
    """Find resources by a part of their name.

    Example: reasoningbank endpoint find kinase
    """
    with _tools(pack, url) as tools:
        _listing(tools.sparql_find(text), "results", as_json)


@app.command()
def classes(pack: PackName = None, url: Address = None, as_json: AsJson = False) -> None:
    """List the most frequent classes.

    Example: reasoningbank endpoint classes
    """
    with _tools(pack, url) as tools:
        _listing(tools.sparql_classes(), "classes", as_json)


@app.command()
def properties(
    class_uri: Annotated[str, typer.Argument(help="A class, e.g. up:Taxon; all if none.")] = "",
    pack: PackName = None,
    url: Address = None,
    as_json: AsJson = False,
) -> None:
    """List the most frequent properties, of one class or of all.

    Example: reasoningbank endpoint properties up:Taxon
    """
    with _tools(pack, url) as tools:
        _listing(tools.sparql_properties(class_uri=class_uri), "properties", as_json)


def _config(pack: str | None, url: str | None) -> tuple[EndpointConfig, Pack | None]:
    """Return the endpoint that is meant: a pack's, or, by its address alone, one of no pack."""
    if pack is None and url is not None:
        return EndpointConfig(url), None
    loaded = load_pack(pack or "uniprot")
    return endpoint_config(loaded, url), loaded


@contextlib.contextmanager
def _opened(pack: str | None, url: str | None) -> Iterator[tuple[EndpointConfig, Pack | None]]:
    config, loaded = _config(pack, url)
    if loaded is None:
        yield config, None
        return
    with open_endpoint(loaded, url) as opened:
        yield opened, loaded


@contextlib.contextmanager
def _tools(pack: str | None, url: str | None) -> Iterator[SPARQLTools]:
    with _opened(pack, url) as (config, loaded):
        schema = loaded.schema if loaded else None
        with contextlib.closing(SPARQLTools(config, schema=schema)) as tools:
            yield tools


def _describe(config: EndpointConfig, told: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(told)
    else:
        print_description(told, config.namespaces)


def _listing(found: dict[str, Any], name: str, as_json: bool) -> None:
    if as_json:
        print_json(found)
        return
    if found.get("note"):
        progress_console.print(found["note"], soft_wrap=True)
    items = found[name]
    _print_items(list(dict.fromkeys(key for item in items for key in item)), items)


def _print_items(columns: Sequence[str], items: Sequence[dict[str, Any]]) -> None:
    columns = columns or list(dict.fromkeys(key for item in items for key in item))
    rows = [["" if item.get(c) is None else item[c] for c in columns] for item in items]
    print_table(columns, rows)
