"""The comparison stated beforehand, task by task."""

from __future__ import annotations

import math

import pandas as pd
from matplotlib.axes import Axes

from reasoningbank.analysis.averages import values_by_task
from reasoningbank.analysis.comparison import Comparison, compare_arms
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
from reasoningbank.analysis.planned import planned_trials
from reasoningbank.analysis.scores import Metric, Score

__all__ = ["paired"]

#: More tasks than this on one side are cut, the largest differences kept.
MOST_ROWS = 40


def paired(frames: Frames, manifest: Manifest) -> Chart | None:
    """Draw the difference of two arms on each task, and its mean with the interval.

    Only tasks that tell the arms apart have a line; the others are counted. None where no
    comparison is stated (and there are not exactly two arms), or no task is in both arms.
    """
    frames = held_out(frames)
    pair = comparison_of(frames, manifest)
    if pair is None:
        return None
    scores, metric = scores_by_arm(frames, manifest), metric_of(manifest)
    first, second = (scores[name] for name in pair)
    planned = planned_trials(manifest)
    found = compare_arms(
        first,
        second,
        metric=metric,
        unit=unit_of(manifest),
        planned=(planned.get(pair[0], 0), planned.get(pair[1], 0)),
    )
    if found is None:
        return None
    differences = _differences(first, second, metric)
    apart = differences[differences["difference"] != 0].sort_index()
    apart = apart.sort_values("difference", ascending=False, kind="stable")
    left_out = max(0, len(apart) - MOST_ROWS)
    if left_out:
        keep = apart["difference"].abs().nlargest(MOST_ROWS).index
        apart = apart[apart.index.isin(keep)]
    chart = Chart(f"{pair[0]} against {pair[1]}, by task", height=0.2 * len(apart) + 1.75)
    axes = chart.add_subplot()
    _lines(axes, apart, found)
    alike = differences[differences["difference"] == 0]
    note = _alike(alike) + (f"\n{left_out} smaller differences are not shown" if left_out else "")
    axes.set_xlabel(f"difference in {METRIC_NAMES[metric]}\n{note}", fontsize=SMALL)
    axes.text(0.0, 1.0, f"← {shorten(pair[1], 26)} better", transform=axes.transAxes, ha="left",
              va="bottom", fontsize=SIZE, color=COLOURS[1])  # fmt: skip
    axes.text(1.0, 1.0, f"{shorten(pair[0], 26)} better →", transform=axes.transAxes, ha="right",
              va="bottom", fontsize=SIZE, color=COLOURS[0])  # fmt: skip
    chart.description = (
        f"{found.sentence()}. {found.first_better} tasks are better with {pair[0]}, "
        f"{found.second_better} with {pair[1]}; {_alike(alike)}. ({found.method}.)"
    )
    return chart


def _differences(first: list[Score], second: list[Score], metric: Metric) -> pd.DataFrame:
    """Return the means of both arms and their difference, by task that both have judged."""
    means = {
        name: {task: sum(runs) / len(runs) for task, runs in values_by_task(arm, metric).items()}
        for name, arm in (("first", first), ("second", second))
    }
    table = pd.DataFrame(means).dropna()
    return table.assign(difference=(table["first"] - table["second"]).round(9))


def _lines(axes: Axes, apart: pd.DataFrame, found: Comparison) -> None:
    axes.axvline(0, color=INK, linewidth=1, alpha=0.5)
    said = f"{found.difference:+.2f}"
    if not math.isnan(found.low):
        axes.axvspan(found.low, found.high, color=COLOURS[5], alpha=0.16, linewidth=0)
        axes.plot([found.low, found.high], [0, 0], color=INK, linewidth=2.6,
                  solid_capstyle="round")  # fmt: skip
        said += f"  [{found.low:+.2f}, {found.high:+.2f}]"
    said += "" if found.resolved else f"  {found.verdict}"
    axes.plot([found.difference], [0], marker="D", markersize=7, color=INK, linestyle="")
    names = [f"mean of {found.tasks} tasks"]
    for row, (task, line) in enumerate(apart.iterrows(), 1):
        value = float(line["difference"])
        colour = COLOURS[0] if value > 0 else COLOURS[1]
        axes.plot([0, value], [row + 0.3, row + 0.3], color=colour, linewidth=2, alpha=0.6)
        axes.plot([value], [row + 0.3], marker="o", markersize=5.5, color=colour,
                  markeredgewidth=0, linestyle="")  # fmt: skip
        names.append(shorten(str(task), 38))
    quiet(axes, grid="x")
    axes.set_yticks([0, *(r + 0.3 for r in range(1, len(names)))], names)
    axes.tick_params(axis="both", labelsize=SMALL)
    axes.get_yticklabels()[0].set_fontweight("bold")
    axes.set_ylim(len(names) - 0.1, -0.7)
    axes.set_xlim(-1.04, 1.04)
    axes.set_xticks([-1, -0.5, 0, 0.5, 1], ["−1", "−0.5", "0", "+0.5", "+1"])
    axes.xaxis.label.set_alpha(MUTED)
    axes.text(min(max(found.difference, -0.6), 0.6), -0.28, said.replace("-", "−"), ha="center",
              va="bottom", fontsize=SMALL, color=INK)  # fmt: skip


def _alike(alike: pd.DataFrame) -> str:
    none, full = int((alike["first"] == 0).sum()), int((alike["first"] == 1).sum())
    rest = len(alike) - none - full
    parts = [f"{full} both right", f"{none} neither"] + ([f"{rest} partly"] if rest else [])
    return f"{len(alike)} tasks alike ({', '.join(parts)})" if len(alike) else "no task alike"
