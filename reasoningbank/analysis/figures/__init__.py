"""Figures: each a function from frames and manifest to a matplotlib figure, without global state.

`FIGURES` lists them in reading order. The manifest gives the order of the arms, and with it their
colours, the metric, the unit and the pre-registered comparison. Each returns a `Chart`, whose
`description` says in sentences what it shows, or None if there is nothing to draw; ``width`` is
`WIDTH` or, for phones, `NARROW` inches. `svg` turns it into inline SVG.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from reasoningbank.analysis.figures.canvas import NARROW, WIDTH, Chart, svg
from reasoningbank.analysis.figures.process import (
    bank,
    cost,
    judges,
    learning,
    learning_levels,
    tools,
)
from reasoningbank.analysis.figures.results import arms, levels, matrix, outcomes, paired

__all__ = [
    "FIGURES", "NARROW", "WIDTH", "Chart", "FigureEntry", "arms", "bank", "cost", "judges",
    "learning", "learning_levels", "levels", "matrix", "outcomes", "paired", "svg", "tools",
]  # fmt: skip


class FigureEntry(NamedTuple):
    """A figure: its heading, and the function that draws it or returns None."""

    title: str
    draw: Callable[..., Chart | None]


#: Every figure by name.
FIGURES: Mapping[str, FigureEntry] = {
    "paired": FigureEntry("The comparison, task by task", paired),
    "arms": FigureEntry("Arms with 95% CI", arms),
    "levels": FigureEntry("Levels of generalization, with 95% CI", levels),
    "outcomes": FigureEntry("Outcomes of the trials", outcomes),
    "learning": FigureEntry("Learning curves", learning),
    "learning_levels": FigureEntry("Learning curves by level", learning_levels),
    "bank": FigureEntry("The bank along the stream", bank),
    "matrix": FigureEntry("Every task by every arm", matrix),
    "cost": FigureEntry("Tokens and seconds", cost),
    "tools": FigureEntry("Which tool follows which", tools),
    "judges": FigureEntry("Judges without the gold query against the execution judge", judges),
}
