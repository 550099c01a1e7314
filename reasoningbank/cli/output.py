"""How commands speak: tables for people, JSON for programs, progress on standard error."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from reasoningbank.analysis.tables import Table as TextTable

__all__ = ["console", "print_json", "print_table", "progress_console", "seconds", "show"]

_BREAKS = re.compile(r"[\t\r\n]+")

#: Results. Plain when piped. Brackets are no markup in them and :names: no pictures: most of what
#: is shown was written by others.
console = Console(highlight=False, soft_wrap=False, markup=False, emoji=False)
#: Everything else.
progress_console = Console(stderr=True, highlight=False, markup=False, emoji=False)


def print_json(data: Any) -> None:
    """Write JSON to standard output."""
    print(json.dumps(data, ensure_ascii=False, indent=2, default=str, allow_nan=True))


def print_table(headers: Sequence[str], rows: Sequence[Sequence[Any]], title: str = "") -> None:
    """Write a table to standard output; a line a row and tabs between cells when piped."""
    if not console.is_terminal:
        for row in (headers, *rows):
            print("\t".join(_BREAKS.sub(" ", str(cell)) for cell in row))
        return
    table = Table(title=title or None, title_justify="left")
    for header in headers:
        table.add_column(header)
    for row in rows:
        table.add_row(*(str(cell) for cell in row))
    console.print(table)


def show(table: TextTable) -> None:
    """Write a table to standard output, if it has rows."""
    if table.rows:
        print_table(table.headers, table.rows, table.title)


def seconds(value: float) -> str:
    """Return a duration for people.

    Examples:
        >>> seconds(0.25), seconds(75), seconds(float("nan"))
        ('0.2 s', '1 min 15 s', '-')
    """
    if math.isnan(value):
        return "-"
    if value < 60:
        return f"{value:.1f} s"
    return f"{int(value) // 60} min {int(value) % 60} s"
