"""Figures of results: arms, the paired comparison, outcomes, tasks by arm; and their data."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from reasoningbank.analysis.comparison import compare_arms
from reasoningbank.analysis.figures.canvas import (
    COLOURS,
    INK,
    MUTED,
    SIZE,
    SMALL,
    WIDTH,
    Cell,
    Chart,
    dots,
    draw_cells,
    quiet,
    rows_of,
    text_width,
    write,
)
from reasoningbank.analysis.frames import Frames
from reasoningbank.analysis.scores import Metric, RunPlan, Score, average
from reasoningbank.analysis.tables import share
from reasoningbank.corpus import LEVELS
from reasoningbank.findings import counted

Manifest = Mapping[str, Any]

#: What a metric's mean is called on an axis.
METRIC_NAMES: Mapping[Metric, str] = {
    "strict": "share of strict matches",
    "lenient": "share of lenient matches",
    "f1": "mean F1 of rows",
}

#: Tasks of the paired figure; beyond, only the largest differences.
_MOST_PAIRED = 40
#: Rows of the matrix: more tasks are shown by group, and of more groups the middle is left out.
_MOST_ROWS = 100
_COMPLEXITIES = {"simple": 0, "moderate": 1, "complex": 2}
_BLUE, _RED, _SLATE = COLOURS[0], COLOURS[1], COLOURS[5]
#: Outcomes, best first: blue is right, more orange is worse, grey is not the agent's fault and
#: not judged.
_FILLS = {
    "right": (_BLUE, 0.85),
    "partly right": (_BLUE, 0.4),
    "wrong rows": (_RED, 0.2),
    "wrong form": (_RED, 0.35),
    "query timeout": (_RED, 0.5),
    "query error": (_RED, 0.65),
    "no query": (_RED, 0.82),
    "gold defect": (_SLATE, 0.35),
    "infrastructure error": (_SLATE, 0.7),
    "bug": (_SLATE, 0.9),
}


class View:
    """The held-out trials of frames, or all, with the arms' labels in the manifest's order.

    An arm of several runs has the run in its label.
    """

    def __init__(self, frames: Frames, manifest: Manifest, *, streams: bool = False) -> None:
        self.plan = RunPlan(manifest)
        self.metric = self.plan.metric
        self.metric_name = METRIC_NAMES[self.metric]
        trials = frames.trials
        trials = trials if streams else trials[trials["step"].isna()]
        runs = trials.groupby("arm")["run"].nunique()
        self._shared = set(runs[runs > 1].index)
        self.trials = self.labelled(trials)
        self._order = list(dict.fromkeys([*self.plan.arms, *self.trials["label"]]))
        self.names = self.in_order(self.trials["label"])
        judged = self.trials[self.trials["judged"]]
        self.judged = judged.assign(value=judged[self.metric].astype(float))
        pair = self.plan.settings.get("comparison") or (self.names if len(self.names) == 2 else ())
        #: The pre-registered comparison, or the two arms of a run of two; else nothing.
        self.pair = tuple(map(str, pair)) if set(pair) <= set(self.names) else ()

    def labelled(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return any frame with the arms' labels as a column `label`."""
        both = frame["arm"] + " (" + frame["run"] + ")"
        return frame.assign(label=frame["arm"].where(~frame["arm"].isin(self._shared), both))

    def in_order(self, labels: Iterable[str]) -> list[str]:
        """Return labels each once, in the manifest's order and then as they occur."""
        there = set(labels)
        return [name for name in self._order if name in there]

    def place(self, label: str) -> int:
        """Return an arm's place, which gives it one colour and one dash in all figures."""
        return self._order.index(label)

    def colour(self, label: str) -> str:
        """Return an arm's colour."""
        return COLOURS[self.place(label) % len(COLOURS)]

    def scores(self, label: str) -> list[Score]:
        """Return the trials of an arm as statistics see them."""
        found = []
        for row in self.trials[self.trials["label"] == label].to_dict("records"):
            judged, defective = bool(row["judged"]), row["verdict"] == "gold_defect"
            values: dict[str, Any] = {
                name: float(row[name]) if judged else 0.0 for name in METRIC_NAMES
            }
            score = Score(
                arm=label,
                task=row["task"],
                seed=int(row["seed"]),
                group=row["template"] or row["group"] or row["task"],
                level=row["level"],
                step=None if pd.isna(row["step"]) else int(row["step"]),
                fate="judged" if judged else "defective" if defective else "error",
                **values,
            )
            found.append(score)
        return found


def arms(frames: Frames, manifest: Manifest, width: float = WIDTH) -> Chart | None:
    """Draw one line per arm: its score and the 95% CI; None without judged trials."""
    view = View(frames, manifest)
    rows = [(name, name, view.scores(name)) for name in view.names]
    return _intervals(Chart("Arms with 95% CI", 1, width), "of each arm", rows, view)


def levels(frames: Frames, manifest: Manifest, width: float = WIDTH) -> Chart | None:
    """Draw one line per level of generalization and arm; None for tasks without levels."""
    view = View(frames, manifest)
    arms = {name: view.scores(name) for name in view.names}
    rows = [
        (f"{level} · {arm}", arm, [score for score in scores if score.level == level])
        for level in LEVELS
        for arm, scores in arms.items()
    ]
    chart = Chart("Levels of generalization, with 95% CI", 1, width)
    return _intervals(chart, "by level of generalization and arm", rows, view)


def _intervals(
    chart: Chart, by: str, rows: Sequence[tuple[str, str, Sequence[Score]]], view: View
) -> Chart | None:
    """Draw a line per label and arm with its score and CI; None without judged trials.

    The arms of the pre-registered comparison have bold labels.
    """
    rows = [row for row in rows if any(score.fate == "judged" for score in row[2])]
    if not rows:
        return None
    metric = view.metric
    chart.set_figheight(0.42 * len(rows) + 0.75)
    axes = chart.add_subplot()
    described = []
    for row, (name, arm, own) in enumerate(rows):
        found = average(own, metric, view.plan.unit)
        axes.plot([found.low, found.high], [row, row], color=view.colour(arm), linewidth=2.6,
                  solid_capstyle="round", alpha=0.55)  # fmt: skip
        dots(axes, [found.rate], [row], view.colour(arm), 7.5)
        values = [score.value(metric) for score in own if score.fate == "judged"]
        right = f"{sum(values):.0f} of {len(values)}" if metric != "f1" else f"n = {len(values)}"
        lost = f", {len(own) - len(values)} not judged" if len(own) > len(values) else ""
        value = share(found.rate) if metric != "f1" else f"{found.rate:.2f}"
        notes: list[tuple[int, str, dict[str, Any]]] = [
            (38, value, {"ha": "right", "fontsize": SIZE, "fontweight": "bold"})
        ]
        if not chart.is_narrow:
            notes.append((44, f"{right}{lost}", {"alpha": MUTED, "fontsize": SMALL}))
        for points, text, style in notes:
            axes.annotate(text, (1, row), (points, 0), xycoords=axes.get_yaxis_transform(),
                          textcoords="offset points", va="center", color=INK, **style)  # fmt: skip
        interval = f"95% CI {found.low:.2f} to {found.high:.2f}, {found.method}"
        interval = "no interval" if np.isnan(found.low) else interval
        described.append(f"{name} {found.rate:.2f} ({interval}; {right} trials{lost})")
    quiet(axes, grid="x")
    rows_of(axes, [chart.short(name, 32) for name, _, _ in rows])
    for label, (_, arm, _) in zip(axes.get_yticklabels(), rows, strict=True):
        label.set(fontsize=SIZE, fontweight="bold" if arm in view.pair else "normal")
    axes.set_xlim(-0.015, 1.015)
    ticks = [0, 0.25, 0.5, 0.75, 1]
    axes.set_xticks(ticks, [f"{t:g}" if metric == "f1" else f"{t:.0%}" for t in ticks])
    axes.set_xlabel(view.metric_name)
    chart.description = f"The {view.metric_name} {by}: {'; '.join(described)}."
    return chart


def paired(frames: Frames, manifest: Manifest, width: float = WIDTH) -> Chart | None:
    """Draw the difference of two arms on each task, and its mean with the 95% CI.

    Tasks without a difference are counted, not drawn. None without a pre-registered comparison
    (unless there are exactly two arms), or if no task is judged in both arms.
    """
    view = View(frames, manifest)
    if not view.pair:
        return None
    one, other = view.pair
    arms = [view.scores(name) for name in view.pair]
    planned = (view.plan.trials(one), view.plan.trials(other))
    found = compare_arms(*arms, metric=view.metric, unit=view.plan.unit, planned=planned)
    if found is None:
        return None
    means = view.judged.groupby(["task", "label"])["value"].mean().unstack()[[one, other]].dropna()
    delta = (means[one] - means[other]).round(9)
    differ = delta[delta != 0].sort_values(ascending=False, kind="stable")
    shown = differ[differ.index.isin(differ.abs().nlargest(_MOST_PAIRED).index)]
    equal = means.loc[delta == 0, one]
    none, full = int((equal == 0).sum()), int((equal == 1).sum())
    rest = f", {len(equal) - none - full} partly" if len(equal) > none + full else ""
    note = f"{counted(len(equal), 'task')} equal ({full} both right, {none} neither{rest})"
    note = note if len(equal) else "no task equal"
    chart = Chart(f"{one} against {other}, by task", 0.2 * len(shown) + 1.75, width)
    axes = chart.add_subplot()
    axes.axvline(0, color=INK, linewidth=1, alpha=0.5)
    text = f"{found.difference:+.2f}"
    if not math.isnan(found.low):
        axes.axvspan(found.low, found.high, color=_SLATE, alpha=0.16, linewidth=0)
        axes.plot([found.low, found.high], [0, 0], color=INK, linewidth=2.6,
                  solid_capstyle="round")  # fmt: skip
        text += f"  [{found.low:+.2f}, {found.high:+.2f}]"
    text += "" if found.resolved else f"  {found.verdict}"
    axes.plot([found.difference], [0], marker="D", markersize=7, color=INK)
    rows = np.arange(1, len(shown) + 1) + 0.3
    for row, value in zip(rows, shown, strict=True):
        colour = view.colour(one if value > 0 else other)
        axes.plot([0, value], [row, row], color=colour, linewidth=2, alpha=0.6)
        dots(axes, [value], [row], colour, 5.5)
    quiet(axes, grid="x")
    names = [f"mean of {counted(found.tasks, 'task')}", *(chart.short(t, 38) for t in shown.index)]
    axes.set_yticks([0, *rows], names)
    axes.get_yticklabels()[0].set_fontweight("bold")
    axes.set_ylim(len(names) - 0.1, -0.7)
    axes.set_xlim(-1.04, 1.04)
    axes.set_xticks([-1, -0.5, 0, 0.5, 1], ["−1", "−0.5", "0", "+0.5", "+1"])
    most = 0.6 if width == WIDTH else 0.25
    place = min(max(found.difference, -most), most)
    write(axes, place, -0.28, text.replace("-", "−"), va="bottom")
    hidden = len(differ) - len(shown)
    more = f"\n{hidden} smaller differences are not shown" if hidden else ""
    axes.set_xlabel(f"difference in {view.metric_name}\n{note}{more}", fontsize=SMALL, alpha=MUTED)
    for x, said, ha, arm in (
        (0.0, f"← {chart.short(other, 26)} better", "left", other),
        (1.0, f"{chart.short(one, 26)} better →", "right", one),
    ):
        write(axes, x, 1.0, said, ha=ha, va="bottom", transform=axes.transAxes,
              fontsize=SMALL if chart.is_narrow else SIZE, color=view.colour(arm))  # fmt: skip
    chart.description = (
        f"{found.sentence()}. {found.first_better} tasks are better with {one}, "
        f"{found.second_better} with {other}; {note}. ({found.method}.)"
    )
    return chart


def outcomes(frames: Frames, manifest: Manifest, width: float = WIDTH) -> Chart | None:
    """Draw one bar per arm, divided by the outcome of its trials; None without trials."""
    view = View(frames, manifest)
    if not view.names:
        return None
    counts = pd.crosstab(view.trials["label"], view.trials["outcome"]).loc[view.names]
    kinds = [*(kind for kind in _FILLS if kind in counts), *(k for k in counts if k not in _FILLS)]
    across = min(2 if width < WIDTH else 4, len(kinds))
    height = 0.34 * len(counts) + 0.5 + 0.22 * -(-len(kinds) // across)
    chart = Chart("Outcomes by arm", height, width)
    axes = chart.add_subplot()
    parts = counts[kinds].div(counts.sum(axis=1), axis=0)
    left = np.zeros(len(counts))
    for kind in kinds:
        fill, alpha = _FILLS.get(str(kind), (_SLATE, 1.0))
        axes.barh(range(len(counts)), parts[kind], left=left, height=0.68, color=fill, alpha=alpha,
                  linewidth=0, label=kind)  # fmt: skip
        for row, (n, part) in enumerate(zip(counts[kind], parts[kind], strict=True)):
            if part * (width - 1.8) > text_width([str(n)], SMALL) + 0.06:
                write(axes, left[row] + part / 2, row, str(n))
        left += parts[kind].to_numpy()
    quiet(axes, size=SIZE)
    rows_of(axes, [chart.short(arm, 32) for arm in counts.index])
    axes.set(xlim=(0, 1), xticks=[])
    # Row by row, in the order of the segments.
    handles, labels = axes.get_legend_handles_labels()
    order = [place for first in range(across) for place in range(first, len(kinds), across)]
    chart.legend([handles[p] for p in order], [labels[p] for p in order], ncols=across,
                 loc="outside upper left", frameon=False, fontsize=SMALL, labelcolor=INK,
                 handlelength=1.0, handleheight=1.0, columnspacing=1.4)  # fmt: skip
    described = ", ".join(f"{counts[kind].sum()} {kind}" for kind in kinds)
    chart.description = (
        "One bar per arm, divided by outcome; the numbers are trials. "
        f"Of {len(view.trials)} trials in all: {described}."
    )
    return chart


def matrix(frames: Frames, manifest: Manifest, width: float = WIDTH) -> Chart | None:
    """Draw tasks × arms, each cell the mean of its seeds; None without judged trials.

    Tasks are ordered by complexity class, then by mean, hardest last. Beyond 100 tasks the rows
    are groups of tasks, the easiest and the hardest of them.
    """
    view = View(frames, manifest)
    data, names = view.judged, view.names
    if data.empty:
        return None
    by = "task" if data["task"].nunique() <= _MOST_ROWS else "group"
    table = data.pivot_table(index=by, columns="label", values="value").reindex(columns=names)
    level = data.groupby(by)["complexity"].first() if by == "task" else pd.Series("", table.index)
    rank = level.map(lambda name: _COMPLEXITIES.get(name, len(_COMPLEXITIES)))
    order = pd.DataFrame({"rank": rank, "mean": table.mean(axis=1)}).sort_index()
    order = order.sort_values(["rank", "mean"], ascending=[True, False], kind="stable")
    half = _MOST_ROWS // 2
    index = list(order.index)
    shown = index if len(index) <= _MOST_ROWS else index[:half] + index[-half:]
    lost = set(map(tuple, view.trials.loc[~view.trials["judged"], [by, "label"]].to_numpy()))
    repeats = view.metric == "f1" or data.groupby(["label", by]).size().max() > 1
    kind = "tasks" if by == "task" else "groups of tasks"
    chart = Chart(f"{kind[0].upper()}{kind[1:]} by arm", 1, width)
    rows = [chart.short(name, 40) for name in shown]
    columns = [chart.short(arm, 28) for arm in names]
    # Rows with a gap where the complexity class changes.
    classes = level[shown]
    places = np.arange(len(shown)) + 0.5 * (classes != classes.shift(fill_value=classes.iloc[0])
                                            ).cumsum().to_numpy()  # fmt: skip
    top = text_width(columns, SIZE)
    room = (width - text_width(rows, SMALL) - 0.4) / len(columns)
    angle = 0 if top < room * 0.95 else 30 if room > 0.25 else 90
    chart.set_figheight(0.2 * places[-1] + 0.65 + top * (1.0 if angle == 90 else 0.6))
    axes = chart.add_subplot()
    cells = []
    for place, name in zip(places, shown, strict=True):
        for column, arm in enumerate(names):
            value = float(table.loc[name, arm])
            if not np.isnan(value):
                text = f"{value:.2f}".rstrip("0").rstrip(".") if 0 < value < 1 else f"{value:.0f}"
                text = text if repeats else "✓" if value else "·"
                text = text if text_width([text], SMALL) < room else ""
                cells.append(Cell(place, column, value, text, view.colour(arm)))
            elif (name, arm) in lost:
                cells.append(Cell(place, column, 0.0, "×"))
    draw_cells(axes, cells, size=SMALL - 0.5)
    quiet(axes)
    axes.set_xlim(-0.5, len(columns) - 0.5)
    axes.set_ylim(places[-1] + 0.5, -0.5)
    axes.set_yticks(places, rows)
    axes.xaxis.tick_top()
    axes.set_xticks(range(len(columns)), columns, rotation=angle, fontsize=SIZE,
                    ha="left" if angle else "center", va="center" if angle == 90 else "baseline",
                    rotation_mode="anchor")  # fmt: skip
    axes.tick_params(length=0)
    for name, place in zip(classes, places, strict=True):
        if name and place == places[(classes == name).to_numpy()][0]:
            write(axes, len(columns) - 0.42, place, name, ha="left", alpha=MUTED,
                  fontstyle="italic")  # fmt: skip
    averages = {arm: table[arm].mean() for arm in names}
    means = ", ".join(f"{a} {'none' if np.isnan(m) else f'{m:.2f}'}" for a, m in averages.items())
    hidden = len(order) - len(shown)
    rest = f" {hidden} more in between are not shown." if hidden else ""
    chart.description = (
        f"Rows are {len(shown)} {kind}, columns arms; "
        f"the fuller a cell, the higher the {view.metric_name} over its trials. "
        f"Mean of all rows: {means}. A cross marks cells in which no trial could be judged; cells "
        f"that were not run are empty.{rest}"
    )
    return chart
