"""Figures of results: arms, the paired comparison, outcomes, tasks by arm; and their data."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from reasoningbank.analysis.comparison import ArmComparison, compare_arms
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
    shorten,
    text_width,
    write,
)
from reasoningbank.analysis.frames import OUTCOMES, Frames
from reasoningbank.analysis.scores import (
    Metric,
    RunPlan,
    Score,
    average,
    mean,
    metric_of,
    unit_of,
    values_by_task,
)
from reasoningbank.analysis.tables import counted, share
from reasoningbank.corpus import LEVELS

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
_LEVELS = {"simple": 0, "moderate": 1, "complex": 2}
_BLUE, _RED, _SLATE = COLOURS[0], COLOURS[1], COLOURS[5]
#: Blue is right, more orange is worse, grey is not the agent's fault.
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
        self.manifest = manifest
        self.metric = metric_of(manifest)
        self.metric_name = METRIC_NAMES[self.metric]
        trials = frames.trials
        trials = trials if streams else trials[trials["step"].isna()]
        runs = trials.groupby("arm")["run"].nunique()
        self._shared = set(runs[runs > 1].index)
        self.trials = self.labelled(trials)
        self.names = self.in_order(self.trials["label"])
        judged = self.trials[self.trials["judged"]]
        self.judged = judged.assign(value=judged[self.metric].astype(float))

    def labelled(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return any frame with the arms' labels as a column `label`."""
        both = frame["arm"] + " (" + frame["run"] + ")"
        return frame.assign(label=frame["arm"].where(~frame["arm"].isin(self._shared), both))

    def in_order(self, labels: Iterable[str]) -> list[str]:
        """Return labels each once, in the manifest's order and then as they occur."""
        there = dict.fromkeys(labels)
        experiment = self.manifest.get("experiment") or {}
        named = [str(arm.get("name")) for arm in experiment.get("arms") or ()]
        return [name for name in named if name in there] + [n for n in there if n not in named]

    @property
    def pair(self) -> tuple[str, ...]:
        """The pre-registered comparison, or the two arms of a run of two; else nothing."""
        pair = (self.manifest.get("experiment") or {}).get("comparison")
        if pair is None and len(self.names) == 2:
            pair = self.names
        return tuple(map(str, pair)) if pair and set(pair) <= set(self.names) else ()

    def scores(self) -> dict[str, list[Score]]:
        """Return the trials as statistics see them, by label."""
        found: dict[str, list[Score]] = {name: [] for name in self.names}
        for row in self.trials.to_dict("records"):
            judged, defective = bool(row["judged"]), row["verdict"] == "gold_defect"
            values: dict[str, Any] = {
                name: float(row[name]) if judged else 0.0 for name in METRIC_NAMES
            }
            score = Score(
                arm=row["label"],
                task=row["task"],
                seed=int(row["seed"]),
                group=row["template"] or row["group"] or row["task"],
                level=row["level"],
                step=None if pd.isna(row["step"]) else int(row["step"]),
                fate="judged" if judged else "defective" if defective else "error",
                **values,
            )
            found[score.arm].append(score)
        return found


def arms(frames: Frames, manifest: Manifest) -> Chart | None:
    """Draw one line per arm: its score and the 95% CI; None without judged trials.

    The arms of the pre-registered comparison are coloured if there are others.
    """
    view = View(frames, manifest)
    rows = [(name, name, own) for name, own in view.scores().items()]
    return _intervals("Arms with 95% CI", "of each arm", rows, view)


def levels(frames: Frames, manifest: Manifest) -> Chart | None:
    """Draw one line per level of generalization and arm; None for tasks without levels."""
    view = View(frames, manifest)
    rows = [
        (f"{level} · {arm}", arm, [score for score in scores if score.level == level])
        for level in LEVELS
        for arm, scores in view.scores().items()
    ]
    title = "Levels of generalization, with 95% CI"
    return _intervals(title, "by level of generalization and arm", rows, view)


def _intervals(
    title: str, by: str, rows: Sequence[tuple[str, str, Sequence[Score]]], view: View
) -> Chart | None:
    """Draw a line per label and arm with its score and CI; None without judged trials."""
    rows = [row for row in rows if any(score.fate == "judged" for score in row[2])]
    if not rows:
        return None
    metric = view.metric
    chart = Chart(title, height=0.42 * len(rows) + 0.75)
    axes = chart.add_subplot()
    described, notes = [], []
    for row, (name, arm, own) in enumerate(rows):
        found = average(own, metric, unit_of(view.manifest))
        colour = _BLUE if arm in view.pair or not view.pair else _SLATE
        axes.plot([found.low, found.high], [row, row], color=colour, linewidth=2.6,
                  solid_capstyle="round", alpha=0.55)  # fmt: skip
        dots(axes, [found.rate], [row], colour, 7.5)
        values = [score.value(metric) for score in own if score.fate == "judged"]
        right = f"{sum(values):.0f} of {len(values)}" if metric != "f1" else f"n = {len(values)}"
        lost = f", {len(own) - len(values)} not judged" if len(own) > len(values) else ""
        value = share(found.rate) if metric != "f1" else f"{found.rate:.2f}"
        notes.append((value, f"{right}{lost}"))
        interval = f"95% CI {found.low:.2f} to {found.high:.2f}, {found.method}"
        interval = "no interval" if np.isnan(found.low) else interval
        described.append(f"{name} {found.rate:.2f} ({interval}; {right} trials{lost})")
    quiet(axes, grid="x")
    rows_of(axes, [shorten(name, 32) for name, _, _ in rows])
    axes.set_xlim(-0.015, 1.015)
    ticks = [0, 0.25, 0.5, 0.75, 1]
    labels = [f"{t:g}" if metric == "f1" else f"{t:.0%}" for t in ticks]
    axes.set_xticks(ticks, labels, fontsize=SMALL)
    axes.set_xlabel(view.metric_name, fontsize=SIZE, color=INK)
    first = text_width([value for value, _ in notes], SIZE) / 4.6
    right_of = axes.get_yaxis_transform()
    for row, (value, note) in enumerate(notes):
        write(axes, 1.04 + first, row, value, ha="right", transform=right_of, fontsize=SIZE,
              fontweight="bold")  # fmt: skip
        write(axes, 1.06 + first, row, note, ha="left", transform=right_of, alpha=MUTED)
    chart.description = f"The {view.metric_name} {by}: {'; '.join(described)}."
    return chart


def paired(frames: Frames, manifest: Manifest) -> Chart | None:
    """Draw the difference of two arms on each task, and its mean with the 95% CI.

    Tasks without a difference are counted, not drawn. None without a pre-registered comparison
    (unless there are exactly two arms), or if no task is judged in both arms.
    """
    view = View(frames, manifest)
    if not view.pair:
        return None
    (one, other), scores, plan = view.pair, view.scores(), RunPlan(manifest)
    first, second = scores[one], scores[other]
    planned = (plan.trials(one), plan.trials(other))
    unit = unit_of(manifest)
    found = compare_arms(first, second, metric=view.metric, unit=unit, planned=planned)
    if found is None:
        return None
    means = {
        name: {task: mean(runs) for task, runs in values_by_task(arm, view.metric).items()}
        for name, arm in (("first", first), ("second", second))
    }
    table = pd.DataFrame(means).dropna()
    table = table.assign(difference=(table["first"] - table["second"]).round(9))
    differ = table[table["difference"] != 0].sort_index()
    differ = differ.sort_values("difference", ascending=False, kind="stable")
    left_out = max(0, len(differ) - _MOST_PAIRED)
    if left_out:
        keep = differ["difference"].abs().nlargest(_MOST_PAIRED).index
        differ = differ[differ.index.isin(keep)]
    equal = table[table["difference"] == 0]["first"]
    none, full = int((equal == 0).sum()), int((equal == 1).sum())
    rest = f", {len(equal) - none - full} partly" if len(equal) > none + full else ""
    note = f"{len(equal)} tasks equal ({full} both right, {none} neither{rest})"
    note = note if len(equal) else "no task equal"
    chart = Chart(f"{one} against {other}, by task", height=0.2 * len(differ) + 1.75)
    axes = chart.add_subplot()
    _difference_lines(axes, differ, found)
    more = f"\n{left_out} smaller differences are not shown" if left_out else ""
    axes.set_xlabel(f"difference in {view.metric_name}\n{note}{more}", fontsize=SMALL)
    for place, text, ha, colour in (
        (0.0, f"← {shorten(other, 26)} better", "left", _RED),
        (1.0, f"{shorten(one, 26)} better →", "right", _BLUE),
    ):
        write(axes, place, 1.0, text, ha=ha, va="bottom", transform=axes.transAxes, fontsize=SIZE,
              color=colour)  # fmt: skip
    chart.description = (
        f"{found.sentence()}. {found.first_better} tasks are better with {one}, "
        f"{found.second_better} with {other}; {note}. ({found.method}.)"
    )
    return chart


def outcomes(frames: Frames, manifest: Manifest) -> Chart | None:
    """Draw one bar per arm, divided by the outcome of its trials; None without trials."""
    view = View(frames, manifest)
    names, met = view.names, Counter(view.trials["outcome"])
    if not names:
        return None
    counts = Counter(zip(view.trials["label"], view.trials["outcome"], strict=True))
    kinds = [k for k in OUTCOMES if k in met] + sorted(set(met) - set(OUTCOMES))
    chart = Chart("Outcomes by arm", height=0.34 * len(names) + 0.5 + 0.22 * -(-len(kinds) // 4))
    axes = chart.add_subplot()
    for row, arm in enumerate(names):
        left, whole = 0.0, sum(counts[arm, kind] for kind in kinds)
        for kind in kinds:
            n = counts[arm, kind]
            part = n / whole
            fill, alpha = _FILLS.get(kind, (_SLATE, 1.0))
            axes.barh(row, part, left=left, height=0.68, color=fill, alpha=alpha, linewidth=0)
            if part * 5.4 > text_width([str(n)], SMALL) + 0.06:
                write(axes, left + part / 2, row, str(n))
            left += part
    for kind in kinds:
        fill, alpha = _FILLS.get(kind, (_SLATE, 1.0))
        axes.barh(0, 0, color=fill, alpha=alpha, label=kind)
    quiet(axes)
    rows_of(axes, [shorten(arm, 32) for arm in names])
    axes.set_xlim(0, 1)
    axes.set_xticks([])
    # Row by row, in the order of the segments.
    across = min(4, len(kinds))
    handles, labels = axes.get_legend_handles_labels()
    by_row = [place for first in range(across) for place in range(first, len(kinds), across)]
    legend = chart.legend([handles[p] for p in by_row], [labels[p] for p in by_row],
                          loc="outside upper left", ncols=across, frameon=False,
                          fontsize=SMALL, handlelength=1.0, handleheight=1.0,
                          columnspacing=1.4)  # fmt: skip
    for text in legend.get_texts():
        text.set_color(INK)
        text.set_alpha(MUTED + 0.2)
    axes.tick_params(axis="y", labelsize=SIZE)
    described = ", ".join(f"{met[kind]} {kind}" for kind in kinds)
    chart.description = (
        "One bar per arm, divided by outcome; the numbers are trials. "
        f"Of {met.total()} trials in all: {described}."
    )
    return chart


def matrix(frames: Frames, manifest: Manifest) -> Chart | None:
    """Draw tasks × arms, each cell the mean of its seeds; None without judged trials.

    Tasks are ordered by complexity class, then by mean, hardest last. Beyond 100 tasks the rows
    are groups of tasks, the easiest and the hardest of them.
    """
    view = View(frames, manifest)
    data, names = view.judged, view.names
    if data.empty:
        return None
    by = "task" if data["task"].nunique() <= _MOST_ROWS else "group"
    cells = data.pivot_table(index=by, columns="label", values="value", aggfunc="mean")
    cells = cells.reindex(columns=names)
    level = data.groupby(by)["complexity"].first() if by == "task" else pd.Series("", cells.index)
    rank = level.map(lambda name: _LEVELS.get(name, len(_LEVELS)))
    order = pd.DataFrame({"rank": rank, "mean": cells.mean(axis=1)}).sort_index()
    order = order.sort_values(["rank", "mean"], ascending=[True, False], kind="stable")
    shown = order.index
    if len(shown) > _MOST_ROWS:
        shown = shown[: _MOST_ROWS // 2].append(shown[-_MOST_ROWS // 2 :])
    lost = set(map(tuple, view.trials.loc[~view.trials["judged"], [by, "label"]].to_numpy()))
    repeats = view.metric == "f1" or data.groupby(["label", by]).size().max() > 1
    kind = "tasks" if by == "task" else "groups of tasks"
    chart = _drawn_matrix(cells.loc[shown], lost, repeats, kind, [str(level[n]) for n in shown])
    mean = {arm: cells[arm].mean() for arm in names}
    means = ", ".join(f"{a} {'none' if np.isnan(m) else f'{m:.2f}'}" for a, m in mean.items())
    hidden = len(order) - len(shown)
    rest = f" {hidden} more in between are not shown." if hidden else ""
    chart.description = (
        f"Rows are {len(shown)} {kind}, columns arms; "
        f"the fuller a cell, the higher the {view.metric_name} over its trials. "
        f"Mean of all rows: {means}. A cross marks cells in which no trial could be judged; cells "
        f"that were not run are empty.{rest}"
    )
    return chart


def _difference_lines(axes: Axes, differ: pd.DataFrame, found: ArmComparison) -> None:
    axes.axvline(0, color=INK, linewidth=1, alpha=0.5)
    label = f"{found.difference:+.2f}"
    if not math.isnan(found.low):
        axes.axvspan(found.low, found.high, color=_SLATE, alpha=0.16, linewidth=0)
        axes.plot([found.low, found.high], [0, 0], color=INK, linewidth=2.6,
                  solid_capstyle="round")  # fmt: skip
        label += f"  [{found.low:+.2f}, {found.high:+.2f}]"
    label += "" if found.resolved else f"  {found.verdict}"
    axes.plot([found.difference], [0], marker="D", markersize=7, color=INK, linestyle="")
    names = [f"mean of {counted(found.tasks, 'task')}"]
    for row, (task, line) in enumerate(differ.iterrows(), 1):
        value = float(line["difference"])
        colour = _BLUE if value > 0 else _RED
        axes.plot([0, value], [row + 0.3, row + 0.3], color=colour, linewidth=2, alpha=0.6)
        dots(axes, [value], [row + 0.3], colour, 5.5)
        names.append(shorten(str(task), 38))
    quiet(axes, grid="x")
    axes.set_yticks([0, *(r + 0.3 for r in range(1, len(names)))], names)
    axes.tick_params(axis="both", labelsize=SMALL)
    axes.get_yticklabels()[0].set_fontweight("bold")
    axes.set_ylim(len(names) - 0.1, -0.7)
    axes.set_xlim(-1.04, 1.04)
    axes.set_xticks([-1, -0.5, 0, 0.5, 1], ["−1", "−0.5", "0", "+0.5", "+1"])
    axes.xaxis.label.set_alpha(MUTED)
    place = min(max(found.difference, -0.6), 0.6)
    write(axes, place, -0.28, label.replace("-", "−"), va="bottom")


def _drawn_matrix(
    table: pd.DataFrame, lost: set[tuple[str, ...]], repeats: bool, kind: str, levels: list[str]
) -> Chart:
    names = [shorten(str(name), 40) for name in table.index]
    columns = [shorten(str(arm), 28) for arm in table.columns]
    # Rows with a gap where the complexity class changes.
    changes = [level != before for before, level in zip([levels[0], *levels], levels, strict=False)]
    places = [at + 0.5 * sum(changes[: at + 1]) for at in range(len(levels))]
    top = text_width(columns, SIZE)
    title = f"{kind[0].upper()}{kind[1:]} by arm"
    chart = Chart(title, height=0.2 * places[-1] + 0.65 + top * 0.6)
    axes = chart.add_subplot()
    cells = []
    for place, name in zip(places, table.index, strict=True):
        for column, arm in enumerate(table.columns):
            value = float(table.loc[name, arm])
            if not np.isnan(value):
                text = f"{value:.2f}".rstrip("0").rstrip(".") if 0 < value < 1 else f"{value:.0f}"
                text = text if repeats else "✓" if value else "·"
                cells.append(Cell(place, column, value, text, faint=value == 0))
            elif (name, arm) in lost:
                cells.append(Cell(place, column, 0.0, "×", faint=True))
    draw_cells(axes, cells, size=SMALL - 0.5)
    quiet(axes)
    axes.set_xlim(-0.5, len(columns) - 0.5)
    axes.set_ylim(places[-1] + 0.5, -0.5)
    axes.set_yticks(places, names)
    turned = top > (WIDTH - text_width(names, SMALL) - 0.4) / len(columns) * 0.95
    axes.set_xticks(range(len(columns)), columns, rotation=30 if turned else 0,
                    ha="left" if turned else "center", rotation_mode="anchor")  # fmt: skip
    axes.xaxis.tick_top()
    axes.tick_params(axis="y", labelsize=SMALL)
    axes.tick_params(length=0)
    for before, level, place in zip(["", *levels], levels, places, strict=False):
        if level and level != before:
            write(axes, len(columns) - 0.42, place, level, ha="left", alpha=MUTED,
                  fontstyle="italic")  # fmt: skip
    return chart
