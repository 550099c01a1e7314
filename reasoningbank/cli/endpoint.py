"""`reasoningbank endpoint`: serve a pack's endpoint, describe it, or use the agent's tools."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator
from typing import Annotated, Any

from typer import Argument, Option, Typer

from reasoningbank.cli import output
from reasoningbank.cli.options import AsJson, Port
from reasoningbank.corpus import Pack, endpoint_config, load_pack, open_endpoint
from reasoningbank.corpus.registry import read_registry
from reasoningbank.memory.context import sense_card
from reasoningbank.schema import Schema
from reasoningbank.sparql import EndpointConfig, SPARQLClient, discover, is_loopback, prepare
from reasoningbank.sparql.terms import written
from reasoningbank.tools import SPARQLTools

app = Typer(help="Serve a pack's endpoint, or query it by hand.", no_args_is_help=True)

OfPack = Annotated[str | None, Option("--pack", help="A pack's name or folder (uniprot).")]
Address = Annotated[str | None, Option("--url", help="A running endpoint, the pack's or any.")]

#: Classes and graphs that a page shows; --json has all.
SHOWN = 15


@app.command()
def serve(
    pack: Annotated[str, Argument(help="A pack's name or folder.")] = "uniprot",
    port: Port = None,
) -> None:
    """Serve a pack's data on loopback until Ctrl-C.

    Example: reasoningbank endpoint serve uniprot --port 7878
    """
    stop = output.stop_event()
    with open_endpoint(load_pack(pack), port=port) as config:
        output.say(config.query_url)
        for other in config.federated:
            output.notice(f"SERVICE <{other.url}> is served at {other.address}")
        output.serve_until(stop)


@app.command()
def describe(
    pack: OfPack = None,
    url: Address = None,
    card: Annotated[bool, Option("--card", help="Print only the sense card.")] = False,
    as_json: AsJson = False,
) -> None:
    """Describe an endpoint: engine, sizes, graphs, classes, federation, sense card.

    Example: reasoningbank endpoint describe --pack uniprot
    """
    with _opened(pack, url) as (config, loaded):
        found = _description(config, loaded)
        if as_json:
            output.print_json(found)
            return
        if not card:
            _print_description(found, config.namespaces)
        output.say(found["card"]["text"])


@app.command()
def query(
    sparql: Annotated[str, Argument(help="A SPARQL query.")],
    pack: OfPack = None,
    url: Address = None,
    limit: Annotated[int, Option(min=1, help="Rows fetched.")] = 100,
    rows: Annotated[int, Option(min=1, max=20, help="Rows shown.")] = 20,
    as_json: AsJson = False,
) -> None:
    """Run a query and print the first rows.

    Example: reasoningbank endpoint query "SELECT ?t { ?t a up:Taxon } LIMIT 3"
    """
    # Report a syntax error before any data are served.
    prepare(sparql, prefixes=_config(pack, url)[0].namespaces)
    with _tools(pack, url) as tools:
        ref = tools.sparql_query(sparql, limit)
        shown = tools.sparql_peek(ref, rows)
        output.notice(repr(ref), *filter(None, [shown.note]))
        output.print_objects(shown, tools.sparql_stats(ref).get("cols", ()), as_json)


@app.command()
def find(
    text: Annotated[str, Argument(help="A part of a name.")],
    pack: OfPack = None,
    url: Address = None,
    as_json: AsJson = False,
) -> None:
    """Find resources by a part of their name.

    Example: reasoningbank endpoint find kinase
    """
    with _tools(pack, url) as tools:
        _print_found(tools.sparql_find(text), "results", as_json)


@app.command()
def classes(pack: OfPack = None, url: Address = None, as_json: AsJson = False) -> None:
    """List the most frequent classes.

    Example: reasoningbank endpoint classes
    """
    with _tools(pack, url) as tools:
        _print_found(tools.sparql_classes(), "classes", as_json)


@app.command()
def properties(
    class_uri: Annotated[str, Argument(help="A class, e.g. up:Taxon; default all classes.")] = "",
    pack: OfPack = None,
    url: Address = None,
    as_json: AsJson = False,
) -> None:
    """List the most frequent properties, of one class or of all.

    Example: reasoningbank endpoint properties up:Taxon
    """
    with _tools(pack, url) as tools:
        _print_found(tools.sparql_properties(class_uri=class_uri), "properties", as_json)


def _config(pack: str | None, url: str | None) -> tuple[EndpointConfig, Pack | None]:
    """Return a pack's endpoint; or, given only an address, an endpoint without a pack."""
    if pack is None and url is not None:
        return EndpointConfig(url), None
    loaded = load_pack(pack or "uniprot")
    return endpoint_config(loaded, url), loaded


@contextlib.contextmanager
def _opened(pack: str | None, url: str | None) -> Iterator[tuple[EndpointConfig, Pack | None]]:
    config, loaded = _config(pack, url)
    with open_endpoint(loaded, url) if loaded else contextlib.nullcontext(config) as opened:
        yield opened, loaded


@contextlib.contextmanager
def _tools(pack: str | None, url: str | None) -> Iterator[SPARQLTools]:
    with _opened(pack, url) as (config, loaded):
        schema = loaded.schema if loaded else None
        with contextlib.closing(SPARQLTools(config, schema=schema)) as tools:
            yield tools


def _print_found(found: dict[str, Any], name: str, as_json: bool) -> None:
    if found.get("note") and not as_json:
        output.notice(found["note"])
    output.print_objects(found[name], as_json=as_json, data=found)


# -- descriptions --------------------------------------------------------------------------


def _description(config: EndpointConfig, pack: Pack | None) -> dict[str, Any]:
    """Return what an endpoint says about itself and what a pack's examples say about it."""
    with SPARQLClient(config) as client:
        found = discover(client)
    service, void = found.service, found.void
    vocabulary = Schema.of(config, pack.schema if pack is not None else None)
    card = sense_card(config, found, vocabulary, pack=pack)
    federated = [] if pack is None else read_registry(pack).endpoints
    classes: Counter[str] = Counter()
    for name, n in (item for dataset in void.datasets for item in dataset.classes.items()):
        classes[name] = max(classes[name], n or 0)
    return {
        "name": config.source,
        "url": config.url,
        "authority": config.authority,
        "embedded": is_loopback(config.address) and not is_loopback(config.url),
        "describes_itself": service.offered,
        "languages": list(service.languages),
        "features": list(service.features),
        "result_formats": list(service.result_formats),
        "functions": list(service.functions),
        "entailment": service.entailment,
        "statistics": {
            "from": void.origin,
            "truncated": void.truncated,
            "datasets": [
                {"dataset": d.iri, "title": d.title, "graph": d.graph, "triples": d.triples}
                for d in void.datasets
            ],
            "classes": [{"class": name, "entities": n} for name, n in classes.most_common()],
        },
        "graphs_via": found.graphs_via,
        "graphs": [{"graph": g.name, "triples": g.triples} for g in found.named_graphs],
        "federated": [
            {"name": e.name, "url": e.url, "authority": e.authority, "examples": e.tasks}
            for e in federated
        ],
        "prefixes": dict(config.prefixes),
        "tried": list(found.notes),
        "card": {"text": card.text, "tokens": card.tokens},
    }


def _print_description(found: dict[str, Any], namespaces: dict[str, str]) -> None:
    def short(name: str) -> str:
        return written(name, namespaces).strip("<>")

    def line(label: str, text: str) -> None:
        if text:
            output.say(f"{label:<15} {text}")

    def table(headers: tuple[str, ...], rows: list[tuple[Any, ...]], title: str) -> None:
        if rows:
            output.say(f"\n{title}")
            output.print_table(headers, rows[:SHOWN])
        if len(rows) > SHOWN:
            output.say(f"… and {len(rows) - SHOWN} more: --json shows all")

    def number(count: int | None) -> str:
        return "" if count is None else f"{count:,}"

    statistics = found["statistics"]
    formats = (name.rstrip("/#").replace("#", "/").rpartition("/") for name in
               found["result_formats"])  # fmt: skip
    line(found["name"], found["url"] + (" (embedded)" if found["embedded"] else ""))
    line("authority", found["authority"])
    line("engine", "" if found["describes_itself"] else "does not describe itself")
    for label in ("languages", "features"):
        line(label, ", ".join(short(name) for name in found[label]))
    line("result formats", ", ".join(last for *_, last in formats))
    line("functions", f"{len(found['functions'])} of its own" if found["functions"] else "")
    line("prefixes", " ".join(f"{name}:" for name in found["prefixes"]))
    line("statistics", f"VoID, {statistics['from']}" if statistics["from"] else "none offered")
    for note in found["tried"]:
        line("tried", note)
    graphs = [(number(g["triples"]), g["graph"]) for g in found["graphs"]]
    table(("triples", "graph"), graphs, f"graphs ({found['graphs_via']})")
    parts = [(number(c["entities"]), short(c["class"])) for c in statistics["classes"]]
    table(("entities", "class"), parts, "classes")
    others = [(e["examples"], e["name"], e["url"]) for e in found["federated"]]
    table(("examples", "endpoint", "address"), others, "endpoints that the examples query")
    output.say(f"\nsense card: what an agent reads ({found['card']['tokens']} tokens)")
