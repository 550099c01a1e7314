"""What trials took: tokens and seconds, each trial a dot."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from reasoningbank.analysis.figures.chart import (
    COLOURS,
    INK,
    MUTED,
    SIZE,
    SMALL,
    Chart,
    quiet,
    shorten,
)
from reasoningbank.analysis.figures.selection import Manifest, arm_labels, held_out, labelled
from reasoningbank.analysis.frames import Frames
from reasoningbank.analysis.statistics import median_and_p95

__all__ = ["cost"]

#: Dots of one arm; beyond, an even sample of the sorted values is drawn.
MOST_DOTS = 150


def cost(frames: Frames, manifest: Manifest) -> Chart | None:
    """Draw tokens and seconds of every judged trial by arm, with medians; None without any."""
    frames = held_out(frames)
    trials = labelled(frames.trials, frames)
    trials = trials[trials["judged"]]
    arms = [arm for arm in arm_labels(frames, manifest) if (trials["label"] == arm).any()]
    if not arms:
        return None
    chart = Chart("Tokens and seconds by arm", height=0.5 * len(arms) + 0.85)
    panels = chart.subplots(1, 2, sharey=True, squeeze=False)[0]
    said = []
    for axes, column, unit in zip(panels, ("tokens", "seconds"), ("tokens", "s"), strict=True):
        values = {arm: trials.loc[trials["label"] == arm, column].to_numpy(float) for arm in arms}
        _panel(axes, values, unit)
        axes.set_xlabel(f"{column} of a trial", fontsize=SIZE, color=INK)
        for arm in arms:
            median, p95 = median_and_p95(values[arm].tolist())
            said.append(f"{arm}: median {amount(median)}, 95th percentile {amount(p95)} {unit}")
    panels[0].set_yticks(range(len(arms)), [shorten(arm, 32) for arm in arms])
    panels[0].set_ylim(len(arms) - 0.45, -0.55)
    chart.description = (
        "Each dot is a judged trial, on a logarithmic scale; the tall mark is the median, the "
        f"short one the 95th percentile. {'; '.join(said)}."
    )
    return chart


def amount(value: float) -> str:
    """Return a number as people write it on an axis.

    Examples:
        >>> amount(0.25), amount(42.4), amount(1500), amount(23_400), amount(2_500_000)
        ('0.25', '42', '1.5k', '23k', '2.5M')
    """
    for unit, size in (("M", 1e6), ("k", 1e3)):
        if value >= size:
            return f"{value / size:.{0 if value >= 10 * size else 1}f}".removesuffix(".0") + unit
    return f"{value:.0f}" if value >= 10 else f"{value:.2g}"


def _panel(axes: Axes, values: dict[str, npt.NDArray[np.float64]], unit: str) -> None:
    axes.set_xscale("log")
    for row, numbers in enumerate(values.values()):
        shown = np.maximum(np.sort(numbers), 0.01)
        if len(shown) > MOST_DOTS:
            shown = shown[np.linspace(0, len(shown) - 1, MOST_DOTS).astype(int)]
        axes.plot(shown, row + _spread(len(shown)), linestyle="", marker="o", markersize=3.4,
                  markeredgewidth=0, color=COLOURS[0],
                  alpha=0.55 if len(shown) < 60 else 0.4)  # fmt: skip
        median, p95 = (max(v, 0.01) for v in median_and_p95(numbers.tolist()))
        axes.plot([median] * 2, [row - 0.3, row + 0.3], color=INK, linewidth=1.8)
        axes.plot([p95] * 2, [row - 0.14, row + 0.14], color=INK, linewidth=1.2, alpha=MUTED)
        axes.text(median, row - 0.33, f"{amount(median)} {unit if row == 0 else ''}".strip(),
                  ha="center", va="bottom", fontsize=SMALL, color=INK)  # fmt: skip
    quiet(axes, grid="x")
    axes.xaxis.set_major_locator(LogLocator(base=10, subs=(1.0, 3.0), numticks=8))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda v, _: amount(v)))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.tick_params(axis="x", labelsize=SMALL)


def _spread(n: int) -> npt.NDArray[np.float64]:
    """Return offsets that keep neighbours apart, the same at every drawing."""
    golden = 0.6180339887498949
    offsets = (np.arange(n, dtype=np.float64) * golden % 1.0 - 0.5) * 0.4
    return offsets if n > 1 else np.zeros(n)
