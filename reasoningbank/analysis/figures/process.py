"""Figures of how results came about: learning, the bank, cost, tool use, and judges."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from reasoningbank.analysis.figures.canvas import (
    COLOURS,
    INK,
    MUTED,
    NARROW,
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
from reasoningbank.analysis.figures.results import Manifest, View
from reasoningbank.analysis.frames import Frames
from reasoningbank.analysis.scores import curve_of, whole_streams
from reasoningbank.analysis.statistics import median_and_p95
from reasoningbank.corpus import LEVELS
from reasoningbank.findings import counted
from reasoningbank.judge import RAN, agreement

_KEYS = ["run", "arm", "task", "seed"]
_DASHES = ("-", "--", "-.", (0, (1, 1.2)), (0, (5, 1, 1, 1, 1, 1)), (0, (8, 2)))
#: Dots of one arm; beyond, an even sample of the sorted values is drawn.
_MOST_DOTS = 150
#: Tools with a row of their own; the rarer ones share one.
_MOST_TOOLS = 9
_START, _END, _OTHER = "start", "end", "other tools"


def learning(frames: Frames, manifest: Manifest, width: float = WIDTH) -> Chart | None:
    """Draw each arm's mean so far by position in the stream; None without streams.

    The line is the mean over task permutations, the band its 95% CI. Permutations that ended
    before the longest one are left out.
    """
    return _learning(Chart("Learning curves", 3.6, width), frames, manifest, ("",))


def learning_levels(frames: Frames, manifest: Manifest, width: float = WIDTH) -> Chart | None:
    """Draw `learning` for each level of generalization; None if the stream has fewer than two.

    A task's level is relative to what its stream held before it.
    """
    steps = frames.trials.dropna(subset=["step"])
    found = [level for level in LEVELS if (steps["level"] == level).any()]
    if len(found) < 2:
        return None
    chart = Chart("Learning curves by level", 2.6 * len(found), width)
    return _learning(chart, frames, manifest, found)


def _learning(
    chart: Chart, frames: Frames, manifest: Manifest, levels: Sequence[str]
) -> Chart | None:
    """Draw a panel per level; an empty level stands for all tasks."""
    view = View(frames, manifest, streams=True)
    judged = view.judged[view.judged["step"].notna()]
    if judged.empty:
        return None
    described = []
    panels = chart.subplots(len(levels), 1, squeeze=False, sharex=True)[:, 0]
    steps = {name: (t for t in view.scores(name) if t.step is not None) for name in view.names}
    streams = {name: whole_streams(trials) for name, trials in steps.items()}
    for axes, level in zip(panels, levels, strict=True):
        lines = []
        for name in view.names:
            own = [t for t in streams[name] if level in ("", t.level)]
            curve = curve_of(own, view.metric)
            if not curve.mean:
                continue
            mean, low, high = curve.mean[-1], curve.low[-1], curve.high[-1]
            _band(axes, view.place(name), curve.steps, curve.mean, curve.low, curve.high)
            lines.append((name, mean, f"{mean:.2f}"))
            band = "" if np.isnan(low) else f" ({low:.2f} to {high:.2f})"
            said = f"{level}, {name}" if level else name
            met = {t.task for t in own if t.fate == "judged"}
            tasks = counted(len(met), f"{level} task".strip())
            described.append(
                f"{said}: {mean:.2f}{band} after {tasks}, "
                f"{counted(curve.permutations, 'task permutation')}."
            )
        axes.set_ylim(0, 1)
        label = f"{view.metric_name}\nso far" if len(levels) == 1 else f"{level}\nso far"
        _finish_stream(axes, view, chart, int(judged["step"].max()) + 1, label, lines)
        axes.set_yticks([0, 0.25, 0.5, 0.75, 1])
    what = "of all tasks so far" if len(levels) == 1 else "of the tasks of one level so far"
    chart.description = (
        f"Each line is the {view.metric_name} {what}, averaged over task "
        f"permutations; the band is the 95% CI over permutations. {' '.join(described)}"
    )
    return chart


def bank(frames: Frames, manifest: Manifest, width: float = WIDTH) -> Chart | None:
    """Draw the active items of each learning arm's bank after each task; None without streams.

    The line is the mean over task permutations, the band reaches from the least to the most.
    """
    view = View(frames, manifest, streams=True)
    steps = view.labelled(frames.steps).dropna(subset=["bank"]).astype({"bank": float})
    if steps.empty:
        return None
    chart = Chart("The bank along the stream", 3.0, width)
    axes = chart.add_subplot()
    lines, described = [], []
    for name in view.in_order(steps["label"]):
        own = steps[steps["label"] == name]
        by_step = own.groupby("step")["bank"].agg(["mean", "min", "max"])
        _band(axes, view.place(name), by_step.index, *by_step.to_numpy().T)
        end = float(by_step["mean"].iloc[-1])
        lines.append((name, end, f"{end:.0f}"))
        sums = ", ".join(f"{int(own[c].sum())} {w}" for c, w in (
            ("added", "stored"), ("merged", "merged"), ("rejected", "rejected")))  # fmt: skip
        over = counted(own["seed"].nunique(), "task permutation")
        described.append(f"{name}: {end:.0f} items at the end; over {over} {sums}.")
    axes.set_ylim(0, max(1.0, steps["bank"].max() * 1.04))
    end = max(2, int(steps["step"].max()) + 1)
    _finish_stream(axes, view, chart, end, "active items", lines)
    chart.description = (
        "Each line is the number of active items after so many tasks, averaged over task "
        "permutations; the band reaches from the least to the most. " + " ".join(described)
    )
    return chart


def cost(frames: Frames, manifest: Manifest, width: float = WIDTH) -> Chart | None:
    """Draw tokens and seconds of every judged trial by arm, with medians; None without any."""
    view = View(frames, manifest)
    trials = view.judged
    names = [arm for arm in view.names if (trials["label"] == arm).any()]
    if not names:
        return None
    stacked = width <= NARROW
    height = 0.5 * len(names) + 0.85
    chart = Chart("Tokens and seconds by arm", height * (2 if stacked else 1), width)
    panels = chart.subplots(*((2, 1) if stacked else (1, 2)), sharey=True).flatten()
    described = []
    for axes, column, unit in zip(panels, ("tokens", "seconds"), ("tokens", "s"), strict=True):
        values = {arm: trials.loc[trials["label"] == arm, column].to_numpy(float) for arm in names}
        _cost_panel(axes, values, unit, view)
        axes.set_xlabel(f"{column} of a trial")
        for arm in names:
            median, p95 = median_and_p95(values[arm].tolist())
            text = f"median {_amount(median)}, 95th percentile {_amount(p95)} {unit}"
            described.append(f"{arm}: {text}")
        rows_of(axes, [chart.short(arm, 32) for arm in names], 0.55)
        axes.tick_params(axis="y", labelsize=SIZE)
    chart.description = (
        "Each dot is a judged trial, on a logarithmic scale; the tall mark is the median, the "
        f"short one the 95th percentile. {'; '.join(described)}."
    )
    return chart


def tools(frames: Frames, manifest: Manifest, width: float = WIDTH) -> Chart | None:
    """Draw how often each tool follows each other tool, by arm; None without tool calls.

    A row is the earlier call, a column the next one; the note at the right is the number of the
    row's calls and how many failed.
    """
    view = View(frames, manifest)
    held_out = view.trials[_KEYS].drop_duplicates()
    calls = view.labelled(frames.tool_calls.merge(held_out, on=_KEYS))
    arms = [arm for arm in view.names if (calls["label"] == arm).any()]
    if not arms:
        return None
    names = [str(tool) for tool in calls["tool"].value_counts().index]
    if len(names) > _MOST_TOOLS:
        names = [*names[: _MOST_TOOLS - 1], _OTHER]
    calls = calls.assign(tool=calls["tool"].where(calls["tool"].isin(names), _OTHER))
    height = 0.24 * (len(names) + 1) + 0.5 + text_width(names, SMALL) * 0.6
    chart = Chart("Which tool follows which", height * len(arms), width)
    described = []
    before, after = [_START, *names], [*names, _END]
    for axes, arm in zip(chart.subplots(len(arms), 1, squeeze=False)[:, 0], arms, strict=True):
        own = calls[calls["label"] == arm]
        flows = follow(own)
        cells = []
        for row, a in enumerate(before):
            total = max(1, sum(flows[a, b] for b in after))
            cells += [
                Cell(row, column, flows[a, b] / total, str(flows[a, b] or ""), view.colour(arm))
                for column, b in enumerate(after)
            ]
        draw_cells(axes, cells)
        for row, tool in enumerate(names, 1):
            made = own[own["tool"] == tool]
            failed = int((~made["ok"]).sum())
            note = f"{len(made) or '–'}" + (f" · {failed} failed" if failed else "")
            write(axes, len(after) - 0.35, row, note, ha="left",
                  color=COLOURS[1] if failed else INK)  # fmt: skip
        quiet(axes)
        axes.set_xlim(-0.5, len(after) + 1.1)
        rows_of(axes, [chart.short(name, 40) for name in before])
        trials = counted(int((view.trials["label"] == arm).sum()), "trial")
        sent = counted(len(own), "call")
        axes.set_title(f"{chart.short(arm, 40)}: {sent} in {trials}", fontsize=SIZE,
                       fontweight="bold", color=INK, loc="left", x=0.0, pad=5)  # fmt: skip
        axes.set_xticks(range(len(after)), [chart.short(name, 40) for name in after], rotation=35,
                        ha="right", rotation_mode="anchor")  # fmt: skip
        often = ", ".join(f"{a} then {b} {k}" for (a, b), k in flows.most_common(4))
        failed = int((~own["ok"]).sum())
        described.append(f"{arm}: {sent}, {failed} failed; most often {often}.")
    chart.description = (
        "For each arm a table of which tool call (row) is followed by which (column); the fuller "
        f"a cell, the larger its share of the row. {' '.join(described)}"
    )
    return chart


def judges(frames: Frames, manifest: Manifest, width: float = WIDTH) -> Chart | None:
    """Draw a confusion matrix for each other judge and the plain rule; None without other judges.

    In a learning run the trials are those of the streams, whose verdicts decide what is learned.
    """
    found = _judged(frames)
    names = list(dict.fromkeys(found["judge"]))
    if not names:
        return None
    across = min(2 if width <= NARROW else 3, len(names))
    rows = -(-len(names) // across)
    chart = Chart("Judges against the execution judge", 2.35 * rows,
                  min(width, 2.35 * across))  # fmt: skip
    panels = chart.subplots(rows, across, squeeze=False).flatten()
    described = []
    for axes in panels[len(names) :]:
        axes.set_visible(False)
    for axes, name in zip(panels, names, strict=False):
        own = found[found["judge"] == name].astype({"strict": bool, "success": bool})
        agreed = agreement(zip(own["strict"], own["success"], strict=True))
        right = agreed.true_positives, agreed.false_negatives
        counts = right, (agreed.false_positives, agreed.true_negatives)
        draw_cells(axes, [
            Cell(row, column, n / agreed.n, str(n), COLOURS[row != column])
            for row, line in enumerate(counts) for column, n in enumerate(line)
        ], size=SIZE + 1)  # fmt: skip
        quiet(axes)
        axes.set(xlim=(-0.5, 1.5), ylim=(1.5, -0.5))
        axes.set_xticks([0, 1], ["right", "wrong"])
        axes.set_yticks([0, 1], ["right", "wrong"], rotation=90, va="center")
        axes.set_xlabel(chart.short(name, 24), fontsize=SMALL)
        axes.set_ylabel("execution judge", fontsize=SMALL, alpha=MUTED)
        kappa = _defined(agreed.kappa)
        axes.set_title(f"κ = {kappa} · n = {agreed.n}", fontsize=SIZE, fontweight="bold",
                       color=INK, loc="left")  # fmt: skip
        described.append(
            f"{name} on {agreed.n} trials: Cohen's kappa {kappa}, precision "
            f"{_defined(agreed.precision)}, recall {_defined(agreed.recall)}; both right "
            f"{agreed.true_positives}, neither {agreed.true_negatives}, only {name} "
            f"{agreed.false_positives}, only the execution judge {agreed.false_negatives}."
        )
    chart.description = f"One table per judge, trials by both verdicts. {' '.join(described)}"
    return chart


def follow(calls: pd.DataFrame) -> Counter[tuple[str, str]]:
    """Count which tool follows which within trials, with `start` and `end`."""
    flows: Counter[tuple[str, str]] = Counter()
    ordered = calls.sort_values("order", kind="stable")
    for _, trial in ordered.groupby(_KEYS, sort=False):
        flows.update(pairwise([_START, *map(str, trial["tool"]), _END]))
    return flows


def _band(axes: Axes, place: int, steps: Any, mean: Any, low: Any, high: Any) -> None:
    colour, x = COLOURS[place % len(COLOURS)], np.asarray(steps, dtype=float) + 1
    axes.fill_between(x, low, high, color=colour, alpha=0.16, linewidth=0)
    dash = _DASHES[(place + place // len(COLOURS)) % len(_DASHES)]
    axes.plot(x, mean, color=colour, linewidth=2, linestyle=dash)


def _finish_stream(
    axes: Axes, view: View, chart: Chart, end: int, label: str, lines: Sequence[tuple[Any, ...]]
) -> None:
    """Label the axes, and each line with name and value at its end so that none covers another."""
    quiet(axes, grid="y", spine="bottom")
    axes.set_xlim(1, end)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_ylabel(label)
    # Only the lowest of several panels has the label.
    if axes.get_subplotspec().is_last_row():  # type: ignore[union-attr]
        axes.set_xlabel("tasks so far")
    top, least = axes.get_ylim()[1], 0.14 / (chart.get_figheight() / len(chart.axes) - 0.7)
    placed, below = [], -least
    for name, value, text in sorted(lines, key=lambda line: line[1]):
        below = max(value / top, below + least)
        placed.append((name, text, below))
    over = max(0.0, below - 1.0)
    for name, text, height in placed:
        write(axes, 1.012, height - over, f"{chart.short(name, 26)} {text}", ha="left",
              transform=axes.transAxes, color=view.colour(name), fontweight="bold")  # fmt: skip


def _amount(value: float) -> str:
    """Return a number as on an axis, such as 0.25, 42, 1.5k or 2.5M."""
    for unit, size in (("M", 1e6), ("k", 1e3)):
        if value >= size:
            return f"{value / size:.{0 if value >= 10 * size else 1}f}".removesuffix(".0") + unit
    return f"{value:.0f}" if value >= 10 else f"{value:.2g}"


def _cost_panel(
    axes: Axes, values: dict[str, npt.NDArray[np.float64]], unit: str, view: View
) -> None:
    for row, (arm, numbers) in enumerate(values.items()):
        shown = np.sort(numbers)
        if len(shown) > _MOST_DOTS:
            shown = shown[np.linspace(0, len(shown) - 1, _MOST_DOTS).astype(int)]
        # The golden ratio separates neighbours, the same in every drawing.
        spread = (np.arange(len(shown)) * 0.6180339887498949 % 1.0 - 0.5) * 0.4
        places = row + (spread if len(shown) > 1 else 0.0)
        dots(axes, shown, places, view.colour(arm), 3.4, 0.55 if len(shown) < 60 else 0.4)
        median, p95 = median_and_p95(numbers.tolist())
        axes.plot([median] * 2, [row - 0.3, row + 0.3], color=INK, linewidth=1.8)
        axes.plot([p95] * 2, [row - 0.14, row + 0.14], color=INK, linewidth=1.2, alpha=MUTED)
        text = f"{_amount(median)} {unit if row == 0 else ''}".strip()
        write(axes, median, row - 0.33, text, va="bottom")
    every = np.concatenate(list(values.values()))
    positive = every[every > 0]
    low, high = (positive.min(), positive.max()) if len(positive) else (1.0, 1.0)
    # A logarithm has no place for 0: from the first power of ten down the scale is linear.
    first, last = int(np.floor(np.log10(low))), int(np.ceil(np.log10(high)))
    zero = len(positive) < len(every)
    axes.set_xscale("symlog", linthresh=10.0**first, linscale=0.6 if zero else 0.01)
    axes.set_xlim(-0.3 * 10.0**first if zero else low / 1.6, high * 1.6)
    decades = range(first, last + 1, 1 + (last - first) // 5)
    ticks = [s * 10.0**d for d in decades for s in ((1, 3) if last - first < 3 else (1,))]
    ticks = [0.0] * zero + [t for t in ticks if zero or t >= low / 1.6 if t <= high * 1.6]
    axes.set_xticks(ticks, [_amount(t) for t in ticks])
    axes.minorticks_off()
    quiet(axes, grid="x")


def _judged(frames: Frames) -> pd.DataFrame:
    """Return the verdicts of other judges and the rule, one row each."""
    trials = frames.trials[frames.trials["judged"]]
    if trials["step"].notna().any():
        trials = trials[trials["step"].notna()]
    others = frames.judgements[frames.judgements["judge"] != "rule"]
    others = others.dropna(subset=["success", "strict"]).merge(trials[_KEYS], on=_KEYS)
    if others.empty:
        return others
    ran = trials["verdict"].isin(RAN) & (trials["n_predicted"].fillna(0) > 0)
    rule = trials[[*_KEYS, "strict"]].assign(judge="rule", success=ran.astype("boolean"))
    return pd.concat([others, rule], ignore_index=True)


def _defined(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.2f}"
