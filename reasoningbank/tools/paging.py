"""A part of a list as tools return it: bounded, attributed, and naming the call for the rest."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from reasoningbank.errors import ToolError
from reasoningbank.tools.bounds import CAPS, bounded_limit, fit, told

__all__ = ["page"]


def page(
    tool: str,
    key: str,
    name: str,
    items: Sequence[Any],
    show: Callable[[Any], dict[str, Any]],
    *,
    limit: int,
    start: int,
    source: str,
    empty: str = "",
    parameter: str = "limit",
    extra: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return some of the items behind a handle.

    Args:
        tool: The tool that was called; its cap holds.
        key: The handle's key.
        name: What the items are called in the return.
        items: All items.
        show: Makes an item what an agent reads.
        limit: Items wanted.
        start: Number of items to leave out first.
        source: Whom they come from.
        empty: What to say where there are no items at all.
        parameter: What the tool calls its limit.
        extra: Further entries of the return.

    Raises:
        ToolError: `limit` or `start` is out of bounds.

    Examples:
        >>> page("endpoints_list", "registry_0", "numbers", range(30), lambda n: {"n": n},
        ...      limit=2, start=0, source="demo")["note"]
        '28 more: endpoints_list("registry_0", limit=50, start=2)'
    """
    limit, lowered = bounded_limit(tool, limit)
    if isinstance(start, bool) or not isinstance(start, int) or start < 0:
        raise ToolError(f"the start of {tool} is {told(start)}", hint="give a whole number from 0")
    if start and start >= len(items):
        raise ToolError(
            f"{key} has {len(items)} {name}, so none from {told(start)}",
            hint="give a smaller start",
        )
    kept = fit([show(item) for item in items[start : start + limit]])
    left = len(items) - start - len(kept)
    notes = [lowered] if lowered else []
    if left:
        most = CAPS[tool].most
        following = start + len(kept)
        notes.append(f'{left} more: {tool}("{key}", {parameter}={most}, start={following})')
    if not items and empty:
        notes.append(empty)
    listing = {
        "source": source,
        **(extra or {}),
        "total": len(items),
        "count": len(kept),
        name: kept,
        "truncated": left > 0,
    }
    return listing | ({"note": "; ".join(notes)} if notes else {})
