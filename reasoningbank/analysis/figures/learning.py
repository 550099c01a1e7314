"""Learning curves: the score along the stream of tasks, with bands over orders."""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import pairwise

import numpy as np
from matplotlib.ticker import MaxNLocator

from reasoningbank.analysis.averages import longest
from reasoningbank.analysis.cell_text import counted
from reasoningbank.analysis.figures.chart import (
    INK,
    SIZE,
    SMALL,
    Chart,
    colour_of,
    quiet,
    shorten,
)
from reasoningbank.analysis.figures.selection import (
    METRIC_NAMES,
    Manifest,
    arm_labels,
    labelled,
    metric_of,
    scored,
)
from reasoningbank.analysis.frames import Frames
from reasoningbank.analysis.statistics import LearningCurve, learning_curve

__all__ = ["MARKS", "apart", "learning"]

MARKS = ("-", "--", "-.", (0, (1, 1.2)), (0, (5, 1, 1, 1, 1, 1)), (0, (8, 2)))


def learning(frames: Frames, manifest: Manifest) -> Chart | None:
    """Draw each arm's mean so far against the place in the stream; None without such places.

    The line is the mean over orders (seeds), the band its 95 % interval over orders, which one
    order cannot have. As everywhere, orders that ended before the longest one are left out.
    """
    data = scored(frames, manifest)
    data = data[data["step"].notna()]
    if data.empty:
        return None
    trials = labelled(frames.trials, frames)
    trials = trials[trials["step"].notna()]
    metric = metric_of(manifest)
    names = [name for name in arm_labels(frames, manifest) if (data["label"] == name).any()]
    chart = Chart("Learning curves", height=3.6)
    axes = chart.add_subplot()
    ends, said = [], []
    for index, name in enumerate(names):
        own = data[data["label"] == name]
        met = Counter(int(seed) for seed in trials.loc[trials["label"] == name, "seed"])
        own = own[own["seed"].isin(longest(met))]
        orders: dict[int, dict[int, float]] = defaultdict(dict)
        for seed, step, value in zip(own["seed"], own["step"], own["value"], strict=True):
            orders[int(seed)][int(step)] = float(value)
        curve = learning_curve(orders)
        steps, mean = np.asarray(curve.steps) + 1, np.asarray(curve.mean)
        axes.fill_between(steps, curve.low, curve.high, color=colour_of(index), alpha=0.16,
                          linewidth=0)  # fmt: skip
        axes.plot(steps, mean, color=colour_of(index), linewidth=2, linestyle=MARKS[index % 6])
        ends.append(float(mean[-1]))
        said.append(_told(name, curve))
    end = int(data["step"].max()) + 1
    quiet(axes, grid="y", spine="bottom")
    axes.set_ylim(0, 1)
    axes.set_xlim(1, end)
    axes.set_yticks([0, 0.25, 0.5, 0.75, 1])
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.tick_params(labelsize=SMALL)
    axes.set_xlabel("tasks met", fontsize=SIZE, color=INK)
    axes.set_ylabel(f"{METRIC_NAMES[metric]}\nso far", fontsize=SIZE, color=INK)
    for index, (name, height) in enumerate(zip(names, apart(ends), strict=True)):
        axes.text(1.012, height, f"{shorten(name, 26)} {ends[index]:.2f}", va="center", ha="left",
                  transform=axes.get_yaxis_transform(), fontsize=SMALL,
                  color=colour_of(index), fontweight="bold")  # fmt: skip
    chart.description = (
        f"Each line is the {METRIC_NAMES[metric]} of all tasks met so far, averaged over "
        f"orders of the stream; the band is the 95 % interval over orders. {' '.join(said)}"
    )
    return chart


def _told(name: str, curve: LearningCurve) -> str:
    low, high = curve.low[-1], curve.high[-1]
    band = "" if np.isnan(low) else f" ({low:.2f} to {high:.2f})"
    orders = counted(curve.orders, "order")
    return f"{name}: {curve.mean[-1]:.2f}{band} after {len(curve.steps)} tasks, {orders}."


def apart(heights: list[float], least: float = 0.06) -> list[float]:
    """Move labels so that none covers another, as little as may be."""
    order = sorted(range(len(heights)), key=heights.__getitem__)
    placed = list(heights)
    for before, after in pairwise(order):
        placed[after] = max(placed[after], placed[before] + least)
    over = max(placed, default=0.0) - 1.0
    return [p - max(0.0, over) for p in placed]
