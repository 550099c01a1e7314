"""What discovery knows of an endpoint, as data for programs and as a page for people."""

from __future__ import annotations

from collections import Counter
from typing import Any

from pyoxigraph import NamedNode

from reasoningbank.cli.output import console, print_table
from reasoningbank.corpus import Pack
from reasoningbank.corpus.federation import read_registry
from reasoningbank.memory.layers import sense_card
from reasoningbank.schema import Schema
from reasoningbank.sparql import (
    Discovery,
    EndpointConfig,
    SPARQLClient,
    VoidDescription,
    compact,
    discover,
    is_loopback,
)

__all__ = ["describe_endpoint", "print_card", "print_description"]

#: Classes and graphs that a page shows; the data holds all.
SHOWN = 15


def describe_endpoint(config: EndpointConfig, pack: Pack | None) -> dict[str, Any]:
    """Return what an endpoint says of itself and what a pack's examples say of it.

    Raises:
        EndpointError: The endpoint cannot be reached.
    """
    with SPARQLClient(config) as client:
        found = discover(client)
    return {
        "name": config.source,
        "url": config.url,
        "authority": config.authority,
        "embedded": is_loopback(config.address) and not is_loopback(config.url),
        **_engine(found),
        "statistics": _statistics(found.void),
        "graphs_via": found.graphs_via,
        "graphs": [{"graph": g.name, "triples": g.triples} for g in found.named_graphs],
        "federated": [] if pack is None else _federated(pack),
        "prefixes": dict(config.prefixes),
        "tried": list(found.notes),
        "card": _card(config, found, pack),
    }


def _card(config: EndpointConfig, found: Discovery, pack: Pack | None) -> dict[str, Any]:
    vocabulary = Schema.of(config, pack.schema if pack is not None else None)
    layer = sense_card(config, found, vocabulary, pack=pack)
    return {"text": layer.text, "tokens": layer.tokens}


def _engine(found: Discovery) -> dict[str, Any]:
    service = found.service
    return {
        "describes_itself": service.offered,
        "languages": list(service.languages),
        "features": list(service.features),
        "result_formats": list(service.result_formats),
        "functions": list(service.functions),
        "entailment": service.entailment,
    }


def _statistics(void: VoidDescription) -> dict[str, Any]:
    classes: Counter[str] = Counter()
    for dataset in void.datasets:
        for part in dataset.classes:
            classes[part.class_] = max(classes[part.class_], part.entities or 0)
    return {
        "from": void.origin,
        "truncated": void.truncated,
        "datasets": [
            {"dataset": d.iri, "title": d.title, "graph": d.graph, "triples": d.triples}
            for d in void.datasets
        ],
        "classes": [{"class": name, "entities": n} for name, n in classes.most_common()],
    }


def _federated(pack: Pack) -> list[dict[str, Any]]:
    registry = read_registry(pack)
    return [
        {"name": e.name, "url": e.url, "authority": e.authority, "examples": e.tasks}
        for e in registry.endpoints
    ]


def print_description(told: dict[str, Any], namespaces: dict[str, str]) -> None:
    """Print a description for a person, names shortened."""

    def short(name: str) -> str:
        return str(compact(NamedNode(name), namespaces)).strip("<>")

    def line(label: str, text: str) -> None:
        if text:
            console.print(f"{label:<15} {text}", soft_wrap=True)

    line(told["name"], told["url"] + (" (embedded)" if told["embedded"] else ""))
    line("authority", told["authority"])
    line("engine", "" if told["describes_itself"] else "does not describe itself")
    for label in ("languages", "features"):
        line(label, ", ".join(short(name) for name in told[label]))
    line("result formats", ", ".join(_last(name) for name in told["result_formats"]))
    line("functions", f"{len(told['functions'])} of its own" if told["functions"] else "")
    line("prefixes", " ".join(f"{name}:" for name in told["prefixes"]))
    statistics = told["statistics"]
    line("statistics", f"VoID, {statistics['from']}" if statistics["from"] else "none offered")
    for note in told["tried"]:
        line("tried", note)
    graphs = [(_number(g["triples"]), g["graph"]) for g in told["graphs"]]
    _table(("triples", "graph"), graphs, f"graphs ({told['graphs_via']})")
    classes = [(_number(c["entities"]), short(c["class"])) for c in statistics["classes"]]
    _table(("entities", "class"), classes, "classes")
    others = [(e["examples"], e["name"], e["url"]) for e in told["federated"]]
    _table(("examples", "endpoint", "address"), others, "endpoints that the examples reach")
    console.print(f"\nsense card: what an agent is told ({told['card']['tokens']} tokens)")
    print_card(told)


def print_card(told: dict[str, Any]) -> None:
    """Print the sense card alone, as an agent reads it."""
    console.print(told["card"]["text"], soft_wrap=True, highlight=False)


def _table(headers: tuple[str, ...], rows: list[tuple[Any, ...]], title: str) -> None:
    if not rows:
        return
    console.print(f"\n{title}")
    print_table(headers, rows[:SHOWN])
    if len(rows) > SHOWN:
        console.print(f"… and {len(rows) - SHOWN} more: --json shows all")


def _last(name: str) -> str:
    return name.rstrip("/#").rpartition("#")[2].rpartition("/")[2]


def _number(count: int | None) -> str:
    return "" if count is None else f"{count:,}"
