"""Tables of text, rendered as tab-separated text, Markdown and HTML; the text of their cells.

Commands, the HTML report and the generated pages of the documentation show the same `TextTable`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, NamedTuple

Cells = tuple[str, ...]


class TextTable(NamedTuple):
    """A table of text; a dash marks what was not measured."""

    title: str
    headers: Cells
    rows: Sequence[Cells]


def markdown(table: TextTable) -> str:
    """Return a table as Markdown, numbers aligned right."""
    numeric = [
        all(row[column].lstrip("+-")[:1].isdigit() or row[column] == "-" for row in table.rows)
        for column in range(len(table.headers))
    ]
    lines = [
        table.headers,
        tuple("---:" if right else "---" for right in numeric),
        *(tuple(cell.replace("|", "\\|") for cell in row) for row in table.rows),
    ]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def titled(table: TextTable) -> str:
    """Return a table as Markdown under its title."""
    return f"{capital(table.title)}:\n\n{markdown(table)}"


def number(value: float | None, places: int = 2, sign: str = "") -> str:
    """Return a number, or a dash for none."""
    return "-" if value is None or math.isnan(value) else f"{value:{sign}.{places}f}"


def share(value: float) -> str:
    """Return a share in per cent, or a dash for none."""
    return "-" if math.isnan(value) else f"{value:.0%}"


def pair(found: tuple[float, float], places: int) -> str:
    """Return a median with its 95th percentile in brackets."""
    median, p95 = found
    return "-" if math.isnan(median) else f"{median:.{places}f} ({p95:.{places}f})"


def ends(low: float | None, high: float | None, sign: str = "") -> str:
    """Return an interval."""
    if low is None or high is None or math.isnan(low):
        return "-"
    return f"{low:{sign}.2f} to {high:{sign}.2f}"


def counted(n: int, noun: str) -> str:
    """Return a number with its noun, in the plural unless it is 1."""
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def counts(found: Mapping[str, int], most: int = 20) -> str:
    """Return how often each word occurs, the most frequent first."""
    ranked = sorted(found.items(), key=lambda one: (-one[1], one[0]))
    more = len(ranked) - most
    rest = f", and {more} other reasons" if more > 0 else ""
    return ", ".join(f"{n} {name}" for name, n in ranked[:most]) + rest


def jsonable(value: Any) -> Any:
    """Return values, dataclasses and their parts as JSON-able data; undefined numbers are None."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if hasattr(value, "to_json"):
        return jsonable(value.to_json())
    if is_dataclass(value):
        return {field.name: jsonable(getattr(value, field.name)) for field in fields(value)}
    if hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, Mapping):
        return {str(key): jsonable(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [jsonable(inner) for inner in value]
    return value


def text_of(value: Any) -> str | None:
    """Return a value as the text of a cell; None if it is empty."""
    if value is None or isinstance(value, str):
        return value or None
    return json_of(value)


def json_of(value: Any) -> str:
    """Return a value as JSON."""
    return json.dumps(value, ensure_ascii=False)


def capital(text: str) -> str:
    """Return a text with a capital at its beginning."""
    return f"{text[:1].upper()}{text[1:]}"
