"""Tables of the page's static parts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from reasoningbank.analysis.report.markup import Html, element, joined

__all__ = ["table"]


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
