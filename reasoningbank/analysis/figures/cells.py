"""Tables of coloured cells, drawn as few things, since thousands of them are usual."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.collections import PatchCollection
from matplotlib.colors import to_rgba
from matplotlib.patches import Rectangle

from reasoningbank.analysis.figures.chart import COLOURS, FAINT, INK, SMALL

__all__ = ["Cell", "draw_cells"]


class Cell(NamedTuple):
    """One cell.

    Attributes:
        row: Place from the top.
        column: Place from the left.
        share: How full it is, from 0 (empty) to 1.
        text: What stands in it.
        colour: Its colour.
        faint: Whether the text is set back.
    """

    row: float
    column: float
    share: float
    text: str = ""
    colour: str = COLOURS[0]
    faint: bool = False


def draw_cells(
    axes: Axes,
    cells: Iterable[Cell],
    *,
    height: float = 0.86,
    width: float = 0.95,
    size: float = SMALL,
    framed: bool = True,
) -> None:
    """Draw cells: the fuller, the more colour; text in ink is readable on all of them."""
    boxes, fills, edges = [], [], []
    for cell in cells:
        corner = cell.column - width / 2, cell.row - height / 2
        boxes.append(Rectangle(corner, width, height))
        share = 0.1 + 0.68 * cell.share if cell.share > 0 else 0.0
        fills.append(to_rgba(cell.colour, share))
        edges.append(to_rgba(INK, FAINT if framed else 0.0))
        if cell.text:
            drawn = axes.text(cell.column, cell.row, cell.text, ha="center", fontsize=size,
                              va="center_baseline", color=INK,
                              alpha=0.6 if cell.faint else None)  # fmt: skip
            # Inside its cell it needs no room of its own; asking each would take seconds.
            drawn.set_in_layout(False)
    axes.add_collection(PatchCollection(boxes, facecolors=fills, edgecolors=edges, linewidths=0.5))
