"""Tables of the page's static parts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from reasoningbank.analysis.report.markup import Html, element, joined
from reasoningbank.analysis.tables import Table

__all__ = ["section", "table"]


def section(made: Table, *notes: str, left: int = 1, wide: bool = False) -> list[Html]:
    """Return a table of text under its title, with notes below it; nothing where it has no row.

    Args:
        made: The table, as the commands print it.
        notes: What is to be known to read it, a sentence each.
        left: Number of columns at its beginning that are no numbers.
        wide: Whether it may be wider than the text.
    """
    if not made.rows:
        return []
    return [
        element("h2", f"{made.title[0].upper()}{made.title[1:]}"),
        table(made.headers, ([_typeset(cell) for cell in row] for row in made.rows), left=left,
              wide=wide),
        *(element("p", note, class_="quiet") for note in notes),
    ]  # fmt: skip


def _typeset(cell: str) -> str:
    """Return a cell with a dash for nothing, and a real minus sign before a number."""
    if cell == "-":
        return "–"
    return f"−{cell[1:]}" if cell[:1] == "-" and cell[1:2].isdigit() else cell


def table(
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

    return element(
        "div",
        element(
            "table",
            element("thead", row(head, "th")),
            element("tbody", joined(row(cells, "td") for cells in rows)),
            class_="summary-table wide" if wide else "summary-table",
        ),
        class_="scroll",
        tabindex="0",
    )
