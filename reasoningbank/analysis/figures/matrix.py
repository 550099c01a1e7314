"""Every task by every arm: how often each was right."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from reasoningbank.analysis.figures.cells import Cell, draw_cells
from reasoningbank.analysis.figures.chart import (
    INK,
    MUTED,
    SIZE,
    SMALL,
    WIDTH,
    Chart,
    quiet,
    shorten,
    text_width,
)
from reasoningbank.analysis.figures.selection import (
    METRIC_NAMES,
    Manifest,
    arm_labels,
    held_out,
    labelled,
    metric_of,
    scored,
)
from reasoningbank.analysis.frames import Frames

__all__ = ["matrix"]

#: More tasks than this are shown by group; of more groups the middle is left out.
MOST_ROWS = 100

_LEVELS = {"simple": 0, "moderate": 1, "complex": 2}


def matrix(frames: Frames, manifest: Manifest) -> Chart | None:
    """Draw tasks × arms, each cell the mean of its seeds; None without judged trials.

    Tasks are ordered by how many arms are right, hardest last, within their complexity class.
    Beyond 100 tasks the rows are groups of tasks, the easiest and the hardest of them.
    """
    frames = held_out(frames)
    data = scored(frames, manifest)
    if data.empty:
        return None
    arms, metric = arm_labels(frames, manifest), metric_of(manifest)
    by = "task" if data["task"].nunique() <= MOST_ROWS else "group"
    cells = data.pivot_table(index=by, columns="label", values="value", aggfunc="mean")
    cells = cells.reindex(columns=arms)
    level = data.groupby(by)["complexity"].first() if by == "task" else pd.Series("", cells.index)
    rank = level.map(lambda name: _LEVELS.get(name, len(_LEVELS)))
    order = pd.DataFrame({"rank": rank, "mean": cells.mean(axis=1)}).sort_index()
    order = order.sort_values(["rank", "mean"], ascending=[True, False], kind="stable")
    shown = order.index
    if len(shown) > MOST_ROWS:
        shown = shown[: MOST_ROWS // 2].append(shown[-MOST_ROWS // 2 :])
    trials = labelled(frames.trials, frames)
    lost = set(map(tuple, trials.loc[~trials["judged"], [by, "label"]].to_numpy()))
    levels = {str(name): str(value) for name, value in level.items()}
    counted = metric == "f1" or data.groupby(["label", by]).size().max() > 1
    chart = _drawn(cells.loc[shown], lost, counted, metric, by, levels)
    mean = {arm: cells[arm].mean() for arm in arms}
    means = ", ".join(f"{a} {'none' if np.isnan(m) else f'{m:.2f}'}" for a, m in mean.items())
    rest = (
        f" {len(order) - len(shown)} more in between are not shown."
        if len(order) > len(shown)
        else ""
    )
    chart.description = (
        f"Rows are {len(shown)} {'tasks' if by == 'task' else 'groups of tasks'}, columns arms; "
        f"the fuller a cell, the higher the {METRIC_NAMES[metric]} over its trials. "
        f"Mean of all rows: {means}. A cross marks cells where no trial could be judged; places "
        f"without a cell were not run.{rest}"
    )
    return chart


def _drawn(
    cells: pd.DataFrame,
    lost: set[tuple[str, ...]],
    repeats: bool,
    metric: str,
    by: str,
    levels: Mapping[str, str],
) -> Chart:
    names = [shorten(str(name), 40) for name in cells.index]
    places = _places([levels[str(name)] for name in cells.index])
    arms = [shorten(str(arm), 28) for arm in cells.columns]
    top = text_width(arms, SIZE)
    chart = Chart(f"{'Tasks' if by == 'task' else 'Groups of tasks'} by arm",
                  height=0.2 * places[-1] + 0.65 + top * 0.6)  # fmt: skip
    axes = chart.add_subplot()
    drawn = [
        cell
        for place, name in zip(places, cells.index, strict=True)
        for column, arm in enumerate(cells.columns)
        if (cell := _cell(place, column, cells.loc[name, arm], (name, arm) in lost, repeats))
    ]
    draw_cells(axes, drawn, size=SMALL - 0.5)
    quiet(axes)
    axes.set_xlim(-0.5, len(cells.columns) - 0.5)
    axes.set_ylim(places[-1] + 0.5, -0.5)
    axes.set_yticks(places, names)
    slot = (WIDTH - text_width(names, SMALL) - 0.4) / len(cells.columns)
    turned = top > slot * 0.95
    axes.set_xticks(range(len(cells.columns)), arms,
                    rotation=30 if turned else 0, ha="left" if turned else "center",
                    rotation_mode="anchor")  # fmt: skip
    axes.xaxis.tick_top()
    axes.tick_params(axis="y", labelsize=SMALL)
    axes.tick_params(length=0)
    for level, place in _firsts([levels[str(name)] for name in cells.index], places):
        axes.text(len(cells.columns) - 0.42, place, level, va="center", ha="left", fontsize=SMALL,
                  color=INK, alpha=MUTED, fontstyle="italic")  # fmt: skip
    return chart


def _cell(row: float, column: int, value: float, lost: bool, repeats: bool) -> Cell | None:
    if np.isnan(value):
        return Cell(row, column, 0.0, "×", faint=True) if lost else None
    if not repeats:
        return Cell(row, column, value, "✓" if value else "·", faint=not value)
    said = f"{value:.2f}".rstrip("0").rstrip(".") if 0 < value < 1 else f"{value:.0f}"
    return Cell(row, column, value, said, faint=value == 0)


def _places(levels: list[str]) -> list[float]:
    """Put rows one below the other, with a gap where the complexity class changes."""
    places, at = [], 0.0
    for before, level in zip([levels[0], *levels], levels, strict=False):
        at += 0.5 if level != before else 0.0
        places.append(at)
        at += 1
    return places


def _firsts(levels: list[str], places: list[float]) -> list[tuple[str, float]]:
    pairs = zip(["", *levels], zip(levels, places, strict=True), strict=False)
    return [(level, place) for before, (level, place) in pairs if level and level != before]
