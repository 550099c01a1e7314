"""What a program yields, as items that can be looked at part by part."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from reasoningbank.algebra import Stream, Table, Value, to_json
from reasoningbank.errors import ToolError
from reasoningbank.sparql.terms import cut
from reasoningbank.tools.bounds import bounded_limit, fit, told

__all__ = ["Outcome", "gather"]

#: Characters of all items that are kept of one result; the others are counted.
MOST_KEPT = 16_000_000
#: Items that one answer shows.
MOST_SHOWN = 50
#: Characters of one item, and of each part of a long text.
MOST_ITEM = 4_000


@dataclass(frozen=True)
class Outcome:
    """The result of a program.

    Attributes:
        items: Its items as JSON: of a list, rows of a table, resources of a graph; parts of what
            is none of these.
        total: How many there are, those included that were not kept.
        chars: Characters of those that are kept.
        whole: The result as JSON; None where not all was kept.
        kind: What the items are.
    """

    items: tuple[Any, ...]
    total: int
    chars: int
    whole: Any
    kind: str

    @property
    def is_whole(self) -> bool:
        """Whether all items were kept."""
        return self.total == len(self.items)

    def part(self, key: str, start: int = 0, limit: int = MOST_SHOWN) -> dict[str, Any]:
        """Return so many items from `start` on, as far as one answer holds them.

        Raises:
            ToolError: There are none from `start` on, or the limit is below 1.

        Examples:
            >>> from rdflib import Literal
            >>> outcome = gather([Literal(letter) for letter in "abc"])
            >>> outcome.part("program_0", 0, 2)["items"]
            ['a', 'b']
            >>> outcome.part("program_0", 1, 1)["note"]
            'the next: algebra_slice("program_0", start=2)'
        """
        limit, lowered = bounded_limit("algebra_slice", limit, MOST_SHOWN)
        if start < 0 or start >= max(1, len(self.items)):
            raise ToolError(
                f"{key} has {len(self.items)} items to be shown, so none from {told(start)}",
                hint="give a smaller start, from 0",
            )
        shown = fit([_short(item) for item in self.items[start : start + limit]])
        following = start + len(shown)
        notes = [lowered] if lowered else []
        if following < len(self.items):
            notes.append(f'the next: algebra_slice("{key}", start={following})')
        if not self.is_whole:
            notes.append(f"only the first {len(self.items)} were kept; put a LIMIT into the query")
        answer = {"kind": self.kind, "total": self.total, "items": shown}
        answer["truncated"] = following < self.total
        return answer | ({"note": "; ".join(notes)} if notes else {})


def gather(value: Value) -> Outcome:
    """Read a result to its end; a program's last loop runs while its results are read.

    Examples:
        >>> from rdflib import Literal
        >>> gather(Stream(iter([Literal("a"), Literal("b")]))).whole
        ['a', 'b']
        >>> gather(Literal("x" * 9_000)).total
        3
    """
    if isinstance(value, Stream):
        items, total, chars = _kept(to_json(item) for item in value.items)
        return Outcome(items, total, chars, list(items), "results")
    if isinstance(value, Table):
        names = list(value.vars)
        items, total, chars = _kept(to_json(row) for row in value.rows)
        whole = {"head": {"vars": names}, "results": {"bindings": list(items)}}
        return Outcome(items, total, chars, whole, "rows")
    data = to_json(value)
    if isinstance(data, list):
        items, total, chars = _kept(data)
        return Outcome(items, total, chars, data, "results")
    if isinstance(data, dict) and isinstance(data.get("@graph"), list):
        items, total, chars = _kept(data["@graph"])
        return Outcome(items, total, chars, data, "resources of a JSON-LD document")
    text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
    pieces = tuple(text[at : at + MOST_ITEM] for at in range(0, len(text), MOST_ITEM)) or ("",)
    return Outcome(pieces, len(pieces), len(text), data, "pieces of a text")


def _kept(items: Iterable[Any]) -> tuple[tuple[Any, ...], int, int]:
    kept: list[Any] = []
    total = chars = 0
    for item in items:
        total += 1
        size = len(json.dumps(item, ensure_ascii=False))
        if len(kept) == total - 1 and chars + size <= MOST_KEPT:
            kept.append(item)
            chars += size
    return tuple(kept), total, chars


def _short(item: Any) -> Any:
    text = json.dumps(item, ensure_ascii=False)
    return item if len(text) <= MOST_ITEM else cut(text, MOST_ITEM)
