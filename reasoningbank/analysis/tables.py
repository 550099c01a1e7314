"""Tables of text, rendered as tab-separated text, Markdown and HTML; and the text of their cells.

Commands, the HTML report and the generated pages of the documentation show the same `TextTable`.
"""

from __future__ import annotations

import html
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, NamedTuple

Cells = tuple[str, ...]

#: What HTML cannot hold, even escaped: controls, lone surrogates, non-characters.
_UNFIT = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
#: Elements without content or end tag.
_VOID = frozenset({"br", "hr", "img", "input", "link", "meta"})


class TextTable(NamedTuple):
    """A table of text; a dash marks what was not measured."""

    title: str
    headers: Cells
    rows: Sequence[Cells]


class Html(str):
    """Text that is HTML already."""

    __slots__ = ()


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
    return f"{_capital(table.title)}:\n\n{markdown(table)}"


def html_section(made: TextTable, *notes: str, left: int = 1, wide: bool = False) -> list[Html]:
    """Return a table as HTML under its title, with notes below it; nothing without rows."""
    if not made.rows:
        return []
    rows = ([typeset(cell) for cell in row] for row in made.rows)
    return [
        element("h2", _capital(made.title)),
        html_table(made.headers, rows, left=left, wide=wide),
        *(element("p", note, class_="quiet") for note in notes),
    ]


def html_table(
    head: Sequence[object], rows: Iterable[Sequence[object]], *, left: int = 1, wide: bool = False
) -> Html:
    """Return a table that scrolls by itself; columns after the first `left` are numbers."""

    def row(cells: Sequence[object], name: str) -> Html:
        return element(
            "tr",
            joined(
                element(
                    "th" if name == "th" or not at else "td",
                    cell,
                    class_="number" if at >= left else None,
                    scope="col" if name == "th" else ("row" if not at else None),
                )
                for at, cell in enumerate(cells)
            ),
        )

    table = element(
        "table",
        element("thead", row(head, "th")),
        element("tbody", joined(row(cells, "td") for cells in rows)),
        class_="summary-table wide" if wide else "summary-table",
    )
    return element("div", table, class_="scroll", tabindex="0")


def element(name: str, *children: object, **attributes: object) -> Html:
    """Return an HTML element; everything that is not `Html` is escaped."""
    given = "".join(
        f" {key.rstrip('_').replace('_', '-')}" + ("" if value is True else f'="{escaped(value)}"')
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    if name in _VOID:
        return Html(f"<{name}{given}>")
    return Html(f"<{name}{given}>{joined(c for c in children if c is not None)}</{name}>")


def joined(parts: Iterable[object]) -> Html:
    """Return parts one after another; those that are not `Html` are escaped."""
    return Html("".join(escaped(part) for part in parts))


def escaped(value: object) -> str:
    """Return a value for use in HTML, between tags or in a quoted attribute."""
    return value if isinstance(value, Html) else html.escape(plain(value), quote=True)


def plain(value: object) -> str:
    """Return a value as text that HTML can hold; U+FFFD replaces what it cannot."""
    return _UNFIT.sub("\ufffd", str(value))


def typeset(cell: str) -> str:
    """Return a cell for HTML: an en dash for nothing, a minus sign before a number."""
    if cell == "-":
        return "–"
    return f"−{cell[1:]}" if cell[:1] == "-" and cell[1:2].isdigit() else cell


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


def _capital(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"
