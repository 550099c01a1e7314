"""A registry as an agent reads it: an endpoint in brief, an endpoint in full."""

from __future__ import annotations

from collections.abc import Sized
from difflib import get_close_matches
from typing import Any

from reasoningbank.corpus.registry import Registry, RegistryEndpoint
from reasoningbank.errors import ToolError
from reasoningbank.sparql import address_key
from reasoningbank.sparql.terms import cut
from reasoningbank.tools.bounds import fit

__all__ = ["endpoint_in_full", "endpoint_named"]

MOST_PREFIXES = 40
MOST_GRAPHS = 20
MOST_SPELLINGS = 10
#: Characters of the lists of one endpoint: prefixes, graphs, spellings of its address.
MOST_PREFIX_CHARS = 1_500
MOST_GRAPH_CHARS = 2_400
MOST_SPELLING_CHARS = 600
MOST_NAME_CHARS = 300
MOST_QUESTION_CHARS = 300


def endpoint_named(registry: Registry, wanted: str) -> RegistryEndpoint:
    """Return an endpoint of a registry by name, or by address in any spelling.

    Raises:
        ToolError: There is none; the error names the nearest, or all.
    """
    if not isinstance(wanted, str) or not wanted.strip():
        raise ToolError("no name of an endpoint was given", hint=_all(registry))
    text = wanted.strip().strip("<>")[:2_000]
    names = {endpoint.name.casefold(): endpoint for endpoint in registry.endpoints}
    found = names.get(text.casefold()) or registry.at(text)
    if found is not None:
        return found
    key = address_key(text)
    if key is None:
        # People leave the scheme out, or write the host alone.
        hosts = {(address_key(e.url) or "").partition("/")[0]: e for e in registry.endpoints}
        bare = registry.at(f"https://{text}") or hosts.get(text.casefold().rstrip("/"))
        if bare is not None:
            return bare
    close = get_close_matches(text.casefold()[:300], names, n=3, cutoff=0.6)
    within = [name for name in names if text.casefold() in name][:3]
    nearest = ", ".join(names[name].name for name in dict.fromkeys((*within, *close)))
    raise ToolError(
        f"{registry.source} names no endpoint {text[:200]!r}",
        hint=f"did you mean {nearest}?" if nearest else _all(registry),
    )


def endpoint_in_full(endpoint: RegistryEndpoint) -> tuple[dict[str, Any], list[str]]:
    """Return what is known of an endpoint, bounded, and notes on what was left out."""
    spellings = fit(endpoint.spellings[:MOST_SPELLINGS], MOST_SPELLING_CHARS, least=0)
    prefixes = fit(endpoint.prefixes[:MOST_PREFIXES], MOST_PREFIX_CHARS, least=0)
    named = [graph.graph for graph in endpoint.graphs[:MOST_GRAPHS]]
    graphs = fit(named, MOST_GRAPH_CHARS, least=0)
    shown = {
        "name": cut(endpoint.name, MOST_NAME_CHARS),
        "url": endpoint.url,
        "authority": cut(endpoint.authority, MOST_NAME_CHARS),
        "spellings": spellings,
        "tasks": {
            "all": endpoint.tasks,
            "as_target": endpoint.as_target,
            "by_service": endpoint.by_service,
            "declared": endpoint.declared,
        },
        "prefixes": dict(prefixes),
        "graphs": graphs,
        "questions": [cut(question, MOST_QUESTION_CHARS) for question in endpoint.questions],
    }
    lists: tuple[tuple[str, Sized, Sized, str], ...] = (
        ("spellings", endpoint.spellings, spellings, "all are the same endpoint"),
        ("prefixes", endpoint.prefixes, prefixes, "less used; a full IRI needs none"),
        ("graphs", endpoint.graphs, graphs, "data_graphs(ref) lists them"),
    )
    notes = [
        f"{len(items) - len(kept)} more {name}: {how}"
        for name, items, kept, how in lists
        if len(items) > len(kept)
    ]
    return shown, notes


def _all(registry: Registry) -> str:
    names = [endpoint.name for endpoint in registry.endpoints]
    rest = f" and {len(names) - 20} more" if len(names) > 20 else ""
    return f"it names {', '.join(names[:20]) or 'none'}{rest}"
