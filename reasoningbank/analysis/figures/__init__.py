"""Figures: each a function from frames to a matplotlib figure, drawn without global state.

`FIGURES` names them in the order in which a reader wants them. Each entry is a title and a
function that takes the frames and a manifest (which says the order of the arms, the metric, the
unit and the comparison stated beforehand) and returns a `Chart`, or None where the records hold
nothing to draw. `Chart.description` says in sentences what is to be seen; `svg` makes inline SVG
of a figure that follows the page's colours and font (see `reasoningbank.analysis.figures.svg`).
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from reasoningbank.analysis.figures.arms import arms
from reasoningbank.analysis.figures.bank import bank
from reasoningbank.analysis.figures.chart import Chart
from reasoningbank.analysis.figures.cost import cost
from reasoningbank.analysis.figures.judges import judges
from reasoningbank.analysis.figures.learning import learning
from reasoningbank.analysis.figures.matrix import matrix
from reasoningbank.analysis.figures.outcomes import outcomes
from reasoningbank.analysis.figures.paired import paired
from reasoningbank.analysis.figures.selection import Manifest
from reasoningbank.analysis.figures.svg import svg
from reasoningbank.analysis.figures.tools import tools
from reasoningbank.analysis.frames import Frames

__all__ = [
    "FIGURES",
    "Chart",
    "FigureEntry",
    "arms",
    "bank",
    "cost",
    "judges",
    "learning",
    "matrix",
    "outcomes",
    "paired",
    "svg",
    "tools",
]


class FigureEntry(NamedTuple):
    """A figure of the registry.

    Attributes:
        title: A heading for it.
        draw: Frames and manifest to the figure, or None where there is nothing to draw.
    """

    title: str
    draw: Callable[[Frames, Manifest], Chart | None]


#: Every figure by name.
FIGURES: Mapping[str, FigureEntry] = {
    "paired": FigureEntry("The comparison, task by task", paired),
    "arms": FigureEntry("Arms with 95 % intervals", arms),
    "outcomes": FigureEntry("What became of the trials", outcomes),
    "learning": FigureEntry("Learning curves", learning),
    "bank": FigureEntry("The bank along the stream", bank),
    "matrix": FigureEntry("Every task by every arm", matrix),
    "cost": FigureEntry("Tokens and seconds", cost),
    "tools": FigureEntry("Which tool follows which", tools),
    "judges": FigureEntry("Judges without the gold against the execution judge", judges),
}
