"""A table of text, which commands print and pages show."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

__all__ = ["Cells", "Table", "ends", "markdown", "number", "pair", "titled"]

Cells = tuple[str, ...]


class Table(NamedTuple):
    """A table of text; what was not measured is a dash.

    Attributes:
        title: What it shows.
        headers: Names of its columns.
        rows: Its rows.
    """

    title: str
    headers: Cells
    rows: Sequence[Cells]


def markdown(table: Table) -> str:
    """Return a table as Markdown, numbers to the right.

    Examples:
        >>> print(markdown(Table("", ("arm", "n"), [("a|b", "12")])))
        | arm | n |
        | --- | ---: |
        | a\\|b | 12 |
    """
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


def titled(table: Table) -> str:
    """Return a table as Markdown, under its title.

    Examples:
        >>> print(titled(Table("by arm", ("arm",), [("a",)])))
        By arm:
        <BLANKLINE>
        | arm |
        | --- |
        | a |
    """
    return f"{table.title[0].upper()}{table.title[1:]}:\n\n{markdown(table)}"


def number(value: float | None, places: int = 2) -> str:
    """Return a number, or a dash where there is none.

    Examples:
        >>> number(1.25, 1), number(None, 1), number(float("nan"), 0)
        ('1.2', '-', '-')
    """
    return "-" if value is None or math.isnan(value) else f"{value:.{places}f}"


def pair(found: tuple[float, float], places: int) -> str:
    """Return a median with its 95th percentile in brackets.

    Examples:
        >>> pair((1.0, 2.5), 1)
        '1.0 (2.5)'
    """
    median, p95 = found
    return "-" if math.isnan(median) else f"{median:.{places}f} ({p95:.{places}f})"


def ends(low: float, high: float, sign: str = "") -> str:
    """Return an interval.

    Examples:
        >>> ends(0.1, 0.25), ends(-0.1, 0.2, "+")
        ('0.10 to 0.25', '-0.10 to +0.20')
    """
    return "-" if math.isnan(low) else f"{low:{sign}.2f} to {high:{sign}.2f}"
