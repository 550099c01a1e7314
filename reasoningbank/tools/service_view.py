"""What an endpoint says of itself as an agent reads it: sizes, features, what was tried."""

from __future__ import annotations

from typing import Any

from pyoxigraph import NamedNode

from reasoningbank.sparql import Discovery, VoidDescription

__all__ = ["description_in_brief", "features"]

MOST_NOTE_CHARS = 300


def description_in_brief(found: Discovery, triples: int) -> dict[str, Any]:
    """Return how much an endpoint tells of itself, and what was tried where something is missing.

    Args:
        found: What it told.
        triples: Number of triples of its description.
    """
    service, void = found.service, found.void
    stats: dict[str, Any] = {
        "source": service.source,
        "url": service.endpoint,
        "described": service.offered,
        "triples": triples,
        "features": len(features(found)),
        "graphs": len(found.named_graphs),
        "statistics": void.origin or "none",
    }
    if void.offered:
        stats["data"] = _sizes(void)
    if found.notes:
        stats["tried"] = [note[:MOST_NOTE_CHARS] for note in found.notes]
    stats["truncated"] = void.truncated
    if void.truncated:
        stats["note"] = "the statistics are longer than what was read: ask with sparql_query"
    return stats


def features(found: Discovery) -> list[tuple[str, NamedNode]]:
    """Return what an endpoint supports: the kind of a feature, and its name."""
    service = found.service
    kinds = (
        ("language", service.languages),
        ("feature", service.features),
        ("result format", service.result_formats),
        ("entailment", (service.entailment,) if service.entailment else ()),
        ("function", service.functions),
    )
    return [(kind, NamedNode(name)) for kind, names in kinds for name in names]


def _sizes(void: VoidDescription) -> dict[str, int]:
    """Return how much data the statistics tell of; what is untold is left out."""
    whole = [d.triples for d in void.datasets if d.triples is not None and not d.graph]
    parts = [d.triples for d in void.datasets if d.triples is not None and d.graph]
    triples = max(whole, default=0) or sum(parts)
    classes = {part.class_ for d in void.datasets for part in d.classes}
    properties = {part.property for d in void.datasets for part in d.properties}
    properties |= {p.property for d in void.datasets for part in d.classes for p in part.properties}
    sizes = {"triples": triples, "classes": len(classes), "properties": len(properties)}
    return {name: size for name, size in sizes.items() if size}
