"""Reading the tables: tab-separated lines, with a clear word on what is wrong where."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

__all__ = ["TABLES", "Line", "TableError", "read_lines"]

TABLES = Path(__file__).resolve().parent


class TableError(ValueError):
    """A table cannot be read; the message names file, line and what is wrong."""


@dataclass(frozen=True)
class Line:
    """One line of a table.

    Args:
        where: File and line, for messages.
        cells: What stands between the tabs, trimmed.
    """

    where: str
    cells: tuple[str, ...]

    def cell(self, position: int) -> str:
        """The text of a cell; `''` where the line ends before it."""
        return self.cells[position] if position < len(self.cells) else ""

    def wrong(self, what: str) -> TableError:
        """What to raise about this line."""
        return TableError(f"{self.where}: {what}")


def read_lines(path: Path, least: int, most: int) -> Iterator[Line]:
    """Yields the lines of a table, without comments and empty lines.

    Args:
        path: The table.
        least: How many cells a line has at least.
        most: How many at most.

    Raises:
        TableError: A line has fewer or more cells, or an empty first one.
    """
    for position, text in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if not text.strip() or text.startswith("#"):
            continue
        line = Line(f"{path.name}:{position}", tuple(cell.strip() for cell in text.split("\t")))
        if not least <= len(line.cells) <= most or not line.cells[0]:
            raise line.wrong(f"{least} to {most} cells are expected, not {text!r}")
        yield line
