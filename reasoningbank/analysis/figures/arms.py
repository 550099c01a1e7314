"""Every arm's score with its interval."""

from __future__ import annotations

import numpy as np

from reasoningbank.analysis.averages import average
from reasoningbank.analysis.figures.chart import (
    COLOURS,
    INK,
    MUTED,
    SIZE,
    SMALL,
    Chart,
    quiet,
    shorten,
    text_width,
)
from reasoningbank.analysis.figures.selection import (
    METRIC_NAMES,
    Manifest,
    comparison_of,
    held_out,
    metric_of,
    scores_by_arm,
    unit_of,
)
from reasoningbank.analysis.frames import Frames

__all__ = ["arms"]


def arms(frames: Frames, manifest: Manifest) -> Chart | None:
    """Draw one line an arm: its score and the 95 % interval; None without judged trials.

    The arms of the comparison stated beforehand are in colour where there are others.
    """
    frames = held_out(frames)
    scores, metric = scores_by_arm(frames, manifest), metric_of(manifest)
    scores = {arm: own for arm, own in scores.items() if any(s.fate == "judged" for s in own)}
    if not scores:
        return None
    stated = comparison_of(frames, manifest) or ()
    chart = Chart("Arms with 95 % intervals", height=0.42 * len(scores) + 0.75)
    axes = chart.add_subplot()
    said, notes = [], []
    for row, (name, own) in enumerate(scores.items()):
        found = average(own, metric, unit_of(manifest))
        colour = COLOURS[0] if name in stated or not stated else COLOURS[5]
        axes.plot([found.low, found.high], [row, row], color=colour, linewidth=2.6,
                  solid_capstyle="round", alpha=0.55)  # fmt: skip
        axes.plot([found.rate], [row], marker="o", markersize=7.5, color=colour,
                  markeredgewidth=0, linestyle="")  # fmt: skip
        values = [score.value(metric) for score in own if score.fate == "judged"]
        right = f"{sum(values):.0f} of {len(values)}" if metric != "f1" else f"n = {len(values)}"
        lost = f", {len(own) - len(values)} not judged" if len(own) > len(values) else ""
        value = f"{100 * found.rate:.0f} %" if metric != "f1" else f"{found.rate:.2f}"
        notes.append((value, f"{right}{lost}"))
        reach = f"95 % interval {found.low:.2f} to {found.high:.2f}, {found.method}"
        reach = "no interval" if np.isnan(found.low) else reach
        said.append(f"{name} {found.rate:.2f} ({reach}; {right} trials{lost})")
    quiet(axes, grid="x")
    axes.set_xlim(-0.015, 1.015)
    axes.set_ylim(len(scores) - 0.5, -0.5)
    axes.set_yticks(range(len(scores)), [shorten(name, 32) for name in scores])
    ticks = [0, 0.25, 0.5, 0.75, 1]
    axes.set_xticks(ticks, ["0", "25 %", "50 %", "75 %", "100 %"] if metric != "f1" else
                    [f"{t:g}" for t in ticks], fontsize=SMALL)  # fmt: skip
    axes.set_xlabel(METRIC_NAMES[metric], fontsize=SIZE, color=INK)
    first = text_width([value for value, _ in notes], SIZE) / 4.6
    for row, (value, note) in enumerate(notes):
        axes.text(1.04 + first, row, value, transform=axes.get_yaxis_transform(), va="center",
                  ha="right", fontsize=SIZE, color=INK, fontweight="bold")  # fmt: skip
        axes.text(1.06 + first, row, note, transform=axes.get_yaxis_transform(), va="center",
                  ha="left", fontsize=SMALL, color=INK, alpha=MUTED)  # fmt: skip
    chart.description = f"The {METRIC_NAMES[metric]} of each arm: {'; '.join(said)}."
    return chart
