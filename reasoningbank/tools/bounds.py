"""What every tool return obeys: caps on rows, caps on characters, and saying so."""

from __future__ import annotations

import json
import reprlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeVar

from reasoningbank.errors import ToolError

__all__ = ["CAPS", "Cap", "bounded_limit", "fit", "told"]

#: Characters one return may have, rows included.
MAX_CHARS = 6_000
#: Characters of what an agent gave, where an error line or a note repeats it.
TOLD_CHARS = 60

T = TypeVar("T")


@dataclass(frozen=True)
class Cap:
    """How many items a tool returns by default and at most."""

    default: int
    most: int


#: Hard caps of the tools; the seed's, and DESIGN's where the seed names none.
CAPS = {
    "sparql_classes": Cap(50, 100),
    "sparql_properties": Cap(50, 100),
    "sparql_find": Cap(20, 50),
    "sparql_peek": Cap(5, 20),
    "sparql_slice": Cap(50, 50),
    "sparql_describe": Cap(20, 50),
    "sparql_sample": Cap(10, 50),
    "endpoints_list": Cap(10, 50),
    "data_graphs": Cap(20, 50),
    "service_desc_graphs": Cap(20, 50),
    "service_desc_features": Cap(50, 50),
    "service_desc_sample": Cap(10, 20),
    "memory_search": Cap(5, 20),
}


def bounded_limit(tool: str, limit: int, most: int | None = None) -> tuple[int, str]:
    """Return the limit a call gets and, where it was lowered, a note that says so.

    Raises:
        ToolError: If the limit is not a positive whole number.

    Examples:
        >>> bounded_limit("sparql_peek", 5)
        (5, '')
        >>> bounded_limit("sparql_peek", 500)
        (20, 'limit lowered from 500 to 20, the most sparql_peek gives')
    """
    if isinstance(limit, bool) or not isinstance(limit, int):
        raise ToolError(
            f"the limit of {tool} is {told(limit)}, not a whole number", hint="give a number from 1"
        )
    if limit < 1:
        raise ToolError(f"the limit of {tool} is {told(limit)}", hint="give a number from 1")
    most = CAPS[tool].most if most is None else most
    if limit > most:
        return most, f"limit lowered from {told(limit)} to {most}, the most {tool} gives"
    return limit, ""


def fit(items: Iterable[T], max_chars: int = MAX_CHARS, *, least: int = 1) -> list[T]:
    """Return as many of the leading items as fit in `max_chars` of JSON, at least `least`.

    Examples:
        >>> fit([{"a": "x" * 10}, {"a": "y" * 10}], max_chars=25)
        [{'a': 'xxxxxxxxxx'}]
    """
    used = 0
    kept: list[T] = []
    for item in items:
        used += len(json.dumps(item, ensure_ascii=False, default=str))
        if len(kept) >= least and used > max_chars:
            break
        kept.append(item)
    return kept


def told(value: object) -> str:
    """Return what an agent gave as an error line or a note repeats it: at most 60 characters.

    Examples:
        >>> told("ten"), told(7), told(10**5_000)
        ("'ten'", '7', 'a number of too many digits')
        >>> told("a" * 100_000)
        "'aaaaaaaaaaaa...aaaaaaaaaaaaa'"
    """
    try:
        return reprlib.repr(value)[:TOLD_CHARS]
    except ValueError:
        # Python writes no number of more than 4,300 digits.
        return "a number of too many digits"
