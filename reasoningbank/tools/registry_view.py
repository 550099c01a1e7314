"""A registry as an agent reads it: an endpoint in brief, an endpoint in full."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any

from reasoningbank.corpus.federation import Registry, RegistryEndpoint
from reasoningbank.corpus.targets import target_key
from reasoningbank.errors import ToolError

__all__ = ["endpoint_in_full", "endpoint_named"]

MOST_PREFIXES = 40
MOST_GRAPHS = 20
MOST_SPELLINGS = 10
MOST_QUESTION_CHARS = 300


def endpoint_named(registry: Registry, wanted: str) -> RegistryEndpoint:
    """Return an endpoint of a registry by name, or by address in any spelling.

    Raises:
        ToolError: There is none; the error names the nearest, or all.
    """
    if not isinstance(wanted, str) or not wanted.strip():
        raise ToolError("no name of an endpoint was given", mend=_all(registry))
    text = wanted.strip().strip("<>")[:2_000]
    names = {endpoint.name.casefold(): endpoint for endpoint in registry.endpoints}
    found = names.get(text.casefold()) or registry.at(text)
    if found is not None:
        return found
    key = target_key(text)
    if key is None:
        # People leave the scheme out, or write the host alone.
        hosts = {(target_key(e.url) or "").partition("/")[0]: e for e in registry.endpoints}
        bare = registry.at(f"https://{text}") or hosts.get(text.casefold().rstrip("/"))
        if bare is not None:
            return bare
    close = get_close_matches(text.casefold()[:300], names, n=3, cutoff=0.6)
    within = [name for name in names if text.casefold() in name][:3]
    nearest = ", ".join(names[name].name for name in dict.fromkeys((*within, *close)))
    raise ToolError(
        f"{registry.source} names no endpoint {text[:200]!r}",
        mend=f"did you mean {nearest}?" if nearest else _all(registry),
    )


def endpoint_in_full(endpoint: RegistryEndpoint) -> tuple[dict[str, Any], list[str]]:
    """Return what is known of an endpoint, bounded, and notes on what was left out."""
    shown = {
        "name": endpoint.name,
        "url": endpoint.url,
        "authority": endpoint.authority,
        "spellings": list(endpoint.spellings[:MOST_SPELLINGS]),
        "tasks": {
            "all": endpoint.tasks,
            "as_target": endpoint.as_target,
            "by_service": endpoint.by_service,
            "declared": endpoint.declared,
        },
        "prefixes": dict(endpoint.prefixes[:MOST_PREFIXES]),
        "graphs": [g.graph for g in endpoint.graphs[:MOST_GRAPHS]],
        "questions": [_cut(question) for question in endpoint.questions],
    }
    bounds = (
        ("spellings", endpoint.spellings, MOST_SPELLINGS, ""),
        ("prefixes", endpoint.prefixes, MOST_PREFIXES, ""),
        ("graphs", endpoint.graphs, MOST_GRAPHS, ": data_graphs(ref) lists them"),
    )
    notes = [
        f"{len(items) - most} more {name}{how}"
        for name, items, most, how in bounds
        if len(items) > most
    ]
    return shown, notes


def _all(registry: Registry) -> str:
    names = [endpoint.name for endpoint in registry.endpoints]
    rest = f" and {len(names) - 20} more" if len(names) > 20 else ""
    return f"it names {', '.join(names[:20]) or 'none'}{rest}"


def _cut(text: str) -> str:
    if len(text) <= MOST_QUESTION_CHARS:
        return text
    return f"{text[:MOST_QUESTION_CHARS]}… ({len(text)} characters)"
