"""How the memory bank grows along the stream of tasks."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.ticker import MaxNLocator

from reasoningbank.analysis.figures.chart import (
    INK,
    SIZE,
    SMALL,
    Chart,
    colour_of,
    quiet,
    shorten,
)
from reasoningbank.analysis.figures.learning import MARKS, apart
from reasoningbank.analysis.figures.selection import Manifest, labelled, stated_order
from reasoningbank.analysis.frames import Frames

__all__ = ["bank"]


def bank(frames: Frames, manifest: Manifest) -> Chart | None:
    """Draw the items of each learning arm's bank after each task; None without streams.

    The line is the mean over orders, the band reaches from the least to the most.
    """
    steps = labelled(frames.steps, frames).dropna(subset=["bank"])
    if steps.empty:
        return None
    names = stated_order(steps["label"], manifest)
    chart = Chart("The bank along the stream", height=3.0)
    axes = chart.add_subplot()
    most = float(steps["bank"].max())
    ends, said = [], []
    for index, name in enumerate(names):
        own = steps[steps["label"] == name].astype({"bank": float})
        by_step = own.groupby("step")["bank"].agg(["mean", "min", "max"])
        places = np.asarray(by_step.index, dtype=float) + 1
        axes.fill_between(places, by_step["min"], by_step["max"], color=colour_of(index),
                          alpha=0.16, linewidth=0)  # fmt: skip
        axes.plot(places, by_step["mean"], color=colour_of(index), linewidth=2,
                  linestyle=MARKS[index % len(MARKS)])  # fmt: skip
        ends.append(float(by_step["mean"].iloc[-1]))
        said.append(_told(name, own, ends[-1]))
    quiet(axes, grid="y", spine="bottom")
    axes.set_ylim(0, max(1.0, most * 1.04))
    axes.set_xlim(1, max(2.0, float(steps["step"].max()) + 1))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.tick_params(labelsize=SMALL)
    axes.set_xlabel("tasks met", fontsize=SIZE, color=INK)
    axes.set_ylabel("items that can\nbe retrieved", fontsize=SIZE, color=INK)
    top = axes.get_ylim()[1]
    places_of_labels = apart([end / top for end in ends])
    for index, (name, height) in enumerate(zip(names, places_of_labels, strict=True)):
        axes.text(1.012, height, f"{shorten(name, 26)} {ends[index]:.0f}", va="center", ha="left",
                  transform=axes.transAxes, fontsize=SMALL, color=colour_of(index),
                  fontweight="bold")  # fmt: skip
    chart.description = (
        "Each line is the number of items that can be retrieved after so many tasks, averaged over "
        f"orders of the stream; the band reaches from the least to the most. {' '.join(said)}"
    )
    return chart


def _told(name: str, own: pd.DataFrame, end: float) -> str:
    sums = {column: int(own[column].sum()) for column in ("added", "merged", "rejected")}
    orders = own["seed"].nunique()
    return (
        f"{name}: {end:.0f} items at the end; over {orders} {'order' if orders == 1 else 'orders'} "
        f"{sums['added']} stored, {sums['merged']} merged, {sums['rejected']} rejected."
    )
