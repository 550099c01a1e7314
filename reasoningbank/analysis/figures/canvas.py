"""What all figures share: the canvas, colours, axes, coloured cells, and inline SVG.

In SVG, `INK` becomes ``currentColor`` and the data colours ``var(--figure-1, #…)`` to
``var(--figure-6, #…)``, so a page can restyle a figure. The colours have a contrast of 3:1 on
white and on near-black, and the first two differ for every kind of colour vision; figures label
things directly and never rely on colour alone.
"""

from __future__ import annotations

import hashlib
import html
import io
import re
import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import PatchCollection
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.patches import Rectangle
from matplotlib.textpath import text_to_path

#: Text and lines; nothing else has this colour.
INK = "#1f2329"
#: Opacity of ink for secondary text, and for guides.
MUTED, FAINT = 0.7, 0.22
#: Data, in order of use: blue, vermilion, green, purple, ochre, slate.
COLOURS = ("#1f7fc4", "#d55e00", "#0a9a72", "#b064a6", "#a17c0c", "#6f7d92")
#: Inches of a figure's width, for a desktop and for a phone; points of text.
WIDTH, NARROW, SIZE, SMALL = 7.2, 4.0, 9.5, 8.0

# The SVG writer reads global settings, which are changed for one drawing at a time.
_DRAWING = threading.Lock()


class Chart(Figure):
    """A matplotlib figure with a title and a description.

    Attributes:
        title: A few words.
        description: What it shows, in sentences, for screen readers and as a caption.
        is_narrow: Whether it is made for a phone.
    """

    def __init__(self, title: str, height: float, width: float = WIDTH) -> None:
        super().__init__(figsize=(width, height), layout="constrained", facecolor="white")
        self.title = title
        self.description = ""
        self.is_narrow = width <= NARROW
        # Rasterised letters are wider than vector ones; what fits there fits everywhere.
        FigureCanvasAgg(self)
        layout: Any = self.get_layout_engine()
        # Leaves room for a browser's letters, which may be wider than matplotlib's.
        layout.set(w_pad=0.12, h_pad=0.05, wspace=0.05, hspace=0.06)

    def settle(self) -> None:
        """Fix the layout, so that every drawing of the figure is the same."""
        if self.get_layout_engine() is not None:
            self.draw_without_rendering()
            self.set_layout_engine("none")

    def short(self, text: object, most: int) -> str:
        """Cut a text in its middle, where names differ least; to half as much if narrow."""
        name, most = str(text), most // 2 if self.is_narrow else most
        head = most // 2
        return name if len(name) <= most else f"{name[:head]}…{name[len(name) - most + head + 1 :]}"


class Cell(NamedTuple):
    """A coloured cell; `share`, from 0 to 1, is its fill."""

    row: float
    column: float
    share: float
    text: str = ""
    colour: str = COLOURS[0]


def draw_cells(axes: Axes, cells: Sequence[Cell], size: float = SMALL) -> None:
    """Draw cells as one collection; text in ink is readable on every fill."""
    axes.add_collection(
        PatchCollection(
            [Rectangle((c.column - 0.475, c.row - 0.44), 0.95, 0.88) for c in cells],
            facecolors=[to_rgba(c.colour, 0.1 + 0.68 * c.share if c.share else 0) for c in cells],
            edgecolors=to_rgba(INK, FAINT),
            linewidths=0.5,
        )
    )
    for cell in cells:
        drawn = write(axes, cell.column, cell.row, cell.text, va="center_baseline", fontsize=size,
                      alpha=1 if cell.share else 0.6)  # fmt: skip
        # It lies inside its cell; laying out each one would take seconds.
        drawn.set_in_layout(False)


def quiet(axes: Axes, *, grid: str = "", spine: str = "", size: float = SMALL) -> None:
    """Remove frames and ticks; keep a faint grid on one axis and one spine if asked for."""
    axes.spines[:].set_visible(False)
    if spine:
        axes.spines[spine].set(visible=True, color=INK, alpha=0.5)
    if grid:
        axes.grid(True, axis=grid, color=INK, alpha=FAINT, linewidth=0.6)  # type: ignore[arg-type]
    axes.tick_params(length=0, labelsize=size, colors=INK, which="both")
    axes.set(facecolor="none", axisbelow=True)
    for axis in (axes.xaxis, axes.yaxis):
        axis.label.set(color=INK, fontsize=SIZE)


def write(axes: Axes, x: float, y: float, text: str, **settings: Any) -> Any:
    """Write small text in ink, centred on a place unless the settings say otherwise."""
    usual = {"ha": "center", "va": "center", "fontsize": SMALL, "color": INK}
    return axes.text(x, y, text, **{**usual, **settings})


def dots(axes: Axes, x: Any, y: Any, colour: str, size: float, alpha: float = 1.0) -> None:
    """Draw dots."""
    axes.plot(x, y, "o", markersize=size, markeredgewidth=0, color=colour, alpha=alpha)


def rows_of(axes: Axes, labels: Sequence[str], margin: float = 0.5) -> None:
    """Make the vertical axis one row per label, from top to bottom."""
    axes.set_yticks(range(len(labels)), labels)
    axes.set_ylim(len(labels) - 1 + margin, -margin)


def text_width(texts: Sequence[str], size: float = SIZE) -> float:
    """Return the width in inches of the widest of several texts; 0 for none."""
    font = FontProperties(size=size)
    measure = text_to_path.get_text_width_height_descent
    return float(max((measure(text, font, ismath=False)[0] for text in texts), default=0.0)) / 72


def svg(figure: Figure, *, prefix: str | None = None) -> str:
    """Return a figure as an ``<svg>`` element for an HTML page.

    Text stays text in the page's font and colour, ids are unique, and screen readers find title
    and description. A page may set ``color``, ``--figure-1`` … ``--figure-6`` (the data colours)
    and style the class ``rb-figure``. The figure takes the available width, up to its natural one.

    Args:
        figure: A `Chart`, or any other figure of matplotlib.
        prefix: Start of every id; by default a hash of the drawing. The same figure twice on one
            page needs two prefixes.
    """
    with _DRAWING, mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "reasoningbank"}):
        buffer = io.StringIO()
        if isinstance(figure, Chart):
            figure.settle()
        figure.savefig(buffer, format="svg", facecolor="none", metadata={"Date": None})
    drawn = buffer.getvalue()
    title = figure.title if isinstance(figure, Chart) else str(figure.get_label())
    description = figure.description if isinstance(figure, Chart) else ""
    digest = hashlib.sha256(f"{title}{description}{drawn}".encode()).hexdigest()
    mark = prefix if prefix is not None else f"f{digest[:10]}"
    # Style sheets inside inline SVG would apply to the whole page.
    drawn = re.sub(r"(?s)<metadata>.*?</metadata>|<style.*?</style>|<!--.*?-->", "", drawn)
    head, _, body = drawn[drawn.index("<svg") :].partition(">")
    changes: list[tuple[str, str | Callable[[re.Match[str]], str]]] = [
        (r'\bid="([^"]*)"', rf'id="{mark}-\1"'),
        (r'(?:xlink:)?href="#([^"]*)"', rf'href="#{mark}-\1"'),
        (r"url\(#([^)]*)\)", rf"url(#{mark}-\1)"),
        (r"font:\s*(?:italic\s+)?(?:(bold|\d{3})\s+)?([\d.]+px)[^;\"]*", _longhand),
        (r"font-family:[^;\"]*", "font-family: inherit"),
        (r"\s*\n\s*", " "),
        (INK, "currentColor"),
        *((c, f"var(--figure-{n}, {c})") for n, c in enumerate(COLOURS, 1)),
    ]
    for pattern, replacement in changes:
        body = re.sub(pattern, replacement, body)
    box = head.partition('viewBox="')[2].partition('"')[0]
    # A point of the drawing is a point of the page: 4/3 pixels.
    width = round(float(box.split()[2]) * 4 / 3)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="rb-figure" role="img" viewBox="{box}" '
        f'aria-labelledby="{mark}-title" aria-describedby="{mark}-desc" stroke-linejoin="round" '
        f'stroke-linecap="butt" style="width: 100%; max-width: {width}px; height: auto; '
        f'overflow: visible"><title id="{mark}-title">{html.escape(title)}</title>'
        f'<desc id="{mark}-desc">{html.escape(description)}</desc>{body.strip()}'
    )


def _longhand(found: re.Match[str]) -> str:
    weight = f"font-weight: {found[1]}; " if found[1] else ""
    return f"{weight}font-size: {found[2]}; font-family: inherit"
