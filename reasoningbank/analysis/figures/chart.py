"""What all figures share: a canvas without global state, ink, colours, and quiet axes.

Colours are the theme's to change. In SVG, `INK` becomes ``currentColor`` and the data colours
become ``var(--figure-1, #…)`` to ``var(--figure-6, #…)``, so a page that is dark, or has colours
of its own, restyles a figure without drawing it again. The colours themselves keep a contrast of
3:1 on white and on near-black, and the first two are told apart by every kind of colour vision;
figures label things directly and never rest on colour alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import text_to_path

__all__ = [
    "COLOURS",
    "FAINT",
    "INK",
    "MUTED",
    "SIZE",
    "SMALL",
    "WIDTH",
    "Chart",
    "colour_of",
    "quiet",
    "shorten",
    "text_width",
]

#: Text and lines. No other thing has this colour; it stands for the page's own text colour.
INK = "#1f2329"
#: Opacity of ink for secondary text, and for guides.
MUTED, FAINT = 0.7, 0.22
#: Data, in order of use: blue, vermilion, green, purple, ochre, slate.
COLOURS = ("#1f7fc4", "#d55e00", "#0a9a72", "#b064a6", "#a17c0c", "#6f7d92")
#: Inches of every figure's width; points of text.
WIDTH, SIZE, SMALL = 7.2, 9.5, 8.0


class Chart(Figure):
    """A matplotlib figure that says what it shows.

    Args:
        title: A few words; the SVG's ``<title>``.
        height: Inches.
        width: Inches.

    Attributes:
        title: A few words.
        description: What is to be seen, in sentences, for those who cannot see it and as a
            caption; set by the function that draws.
    """

    def __init__(self, title: str, height: float, width: float = WIDTH) -> None:
        super().__init__(figsize=(width, height), layout="constrained", facecolor="white")
        self.title = title
        self.description = ""
        # Pixels make letters wider than vectors do; what fits there fits everywhere.
        FigureCanvasAgg(self)
        layout: Any = self.get_layout_engine()
        # A browser's letters may be wider than matplotlib's; what they need is left at the sides.
        layout.set(w_pad=0.12, h_pad=0.05, wspace=0.05, hspace=0.06)

    def settle(self) -> None:
        """Lay the figure out once and for all, so that every drawing of it is the same."""
        if self.get_layout_engine() is not None:
            self.draw_without_rendering()
            self.set_layout_engine("none")


def colour_of(index: int) -> str:
    """Return a data colour; they come round again after the last."""
    return COLOURS[index % len(COLOURS)]


def quiet(axes: Axes, *, grid: str | None = None, spine: str | None = None) -> None:
    """Take away what says nothing: frames, ticks; keep a faint grid and one line where asked.

    Args:
        axes: The axes.
        grid: `x` or `y`: the axis whose values have guides.
        spine: `left` or `bottom`: the one line that is kept.
    """
    for name, line in axes.spines.items():
        line.set_visible(name == spine)
        line.set_color(INK)
        line.set_alpha(0.5)
    axes.tick_params(length=0, labelsize=SIZE, colors=INK, which="both")
    axes.set_facecolor("none")
    axes.set_axisbelow(True)
    if grid == "x":
        axes.xaxis.grid(True, color=INK, alpha=FAINT, linewidth=0.6)
    elif grid == "y":
        axes.yaxis.grid(True, color=INK, alpha=FAINT, linewidth=0.6)
    for axis in (axes.xaxis, axes.yaxis):
        axis.label.set_color(INK)
        axis.label.set_fontsize(SIZE)


def text_width(texts: Sequence[str], size: float = SIZE) -> float:
    """Return the width in inches of the widest of several texts; 0 for none."""
    font = FontProperties(size=size)
    measure = text_to_path.get_text_width_height_descent
    return float(max((measure(text, font, ismath=False)[0] for text in texts), default=0.0)) / 72


def shorten(text: str, most: int) -> str:
    """Cut a text in its middle, where names differ least.

    Examples:
        >>> shorten("068_diseases_of_transcription_factors", 24)
        '068_diseases…ion_factors'
        >>> shorten("short", 24)
        'short'
    """
    if len(text) <= most:
        return text
    head = most // 2
    return f"{text[:head]}…{text[len(text) - (most - head - 1) :]}"
