"""Which tool follows which, from the first call to the submitted query."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pandas as pd
from matplotlib.axes import Axes

from reasoningbank.analysis.figures.cells import Cell, draw_cells
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
from reasoningbank.analysis.figures.selection import Manifest, arm_labels, held_out, labelled
from reasoningbank.analysis.frames import Frames

__all__ = ["tools"]

#: Tools with a line of their own; the rarer ones share one.
MOST_TOOLS = 9
START, END, OTHER = "start", "end", "other tools"


def tools(frames: Frames, manifest: Manifest) -> Chart | None:
    """Draw, for each arm with tool calls, how often each tool follows each; None without any.

    A row is what came before, a column what came next; the first column says how often a tool
    was called, and how many of these calls failed.
    """
    frames = held_out(frames)
    calls = labelled(frames.tool_calls, frames)
    trials = labelled(frames.trials, frames)
    arms = [arm for arm in arm_labels(frames, manifest) if (calls["label"] == arm).any()]
    if not arms:
        return None
    common = [str(tool) for tool in calls["tool"].value_counts().index]
    names = common if len(common) <= MOST_TOOLS else [*common[: MOST_TOOLS - 1], OTHER]
    calls = calls.assign(tool=calls["tool"].where(calls["tool"].isin(names), OTHER))
    side = text_width(names, SMALL)
    # The names of the columns stand slanted under every table.
    height = 0.24 * (len(names) + 1) + 0.5 + side * 0.6
    chart = Chart("Which tool follows which", height=height * len(arms))
    panels = chart.subplots(len(arms), 1, squeeze=False)[:, 0]
    said = []
    for axes, arm in zip(panels, arms, strict=True):
        own = calls[calls["label"] == arm]
        flows = follow(own)
        n = int((trials["label"] == arm).sum())
        _panel(axes, own, flows, names, f"{shorten(arm, 40)}: {len(own)} calls in {n} trials")
        often = ", ".join(f"{a} then {b} {k}" for (a, b), k in flows.most_common(4))
        failed = int((~own["ok"]).sum())
        said.append(f"{arm}: {len(own)} calls, {failed} failed; most often {often}.")
    chart.description = (
        "For each arm a table of which tool call (row) is followed by which (column); the fuller "
        f"a cell, the larger its share of the row. {' '.join(said)}"
    )
    return chart


def follow(calls: pd.DataFrame) -> Counter[tuple[str, str]]:
    """Count which tool follows which within trials, with `start` and `end`.

    Args:
        calls: Tool calls with `run`, `arm`, `task`, `seed`, `order` and `tool`.

    Examples:
        >>> rows = [("r", "a", "t", 0, 0, "peek"), ("r", "a", "t", 0, 1, "query")]
        >>> columns = ["run", "arm", "task", "seed", "order", "tool"]
        >>> sorted(follow(pd.DataFrame(rows, columns=columns)))
        [('peek', 'query'), ('query', 'end'), ('start', 'peek')]
    """
    flows: Counter[tuple[str, str]] = Counter()
    ordered = calls.sort_values("order", kind="stable")
    for _, trial in ordered.groupby(["run", "arm", "task", "seed"], sort=False):
        path = [START, *map(str, trial["tool"]), END]
        flows.update(pairwise(path))
    return flows


def _panel(
    axes: Axes,
    calls: pd.DataFrame,
    flows: Counter[tuple[str, str]],
    names: list[str],
    title: str,
) -> None:
    before, after = [START, *names], [*names, END]
    cells = []
    for row, a in enumerate(before):
        total = sum(flows[a, b] for b in after)
        cells += [
            Cell(row, column, flows[a, b] / total if total else 0.0, str(flows[a, b] or ""))
            for column, b in enumerate(after)
        ]
        if a != START:
            own = calls[calls["tool"] == a]
            failed = int((~own["ok"]).sum())
            note = f"{len(own)}" + (f" · {failed} failed" if failed else "")
            axes.text(len(after) - 0.35, row, note if len(own) else "–", ha="left", va="center",
                      fontsize=SMALL, color=COLOURS[1] if failed else INK,
                      alpha=1.0 if failed else MUTED)  # fmt: skip
    draw_cells(axes, cells, height=0.9)
    quiet(axes)
    axes.set_xlim(-0.5, len(after) + 1.1)
    axes.set_ylim(len(before) - 0.5, -0.5)
    axes.set_yticks(range(len(before)), before)
    axes.tick_params(axis="y", labelsize=SMALL)
    axes.set_title(title, fontsize=SIZE, fontweight="bold", color=INK, loc="left", x=0.0, pad=5)
    axes.set_xticks(range(len(after)), after, rotation=35, ha="right", rotation_mode="anchor")
    axes.tick_params(axis="x", labelsize=SMALL)
