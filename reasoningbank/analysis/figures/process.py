"""Figures of how results came about: learning, the bank, cost, tool use, and judges."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from reasoningbank.analysis.figures.canvas import (
    COLOURS,
    INK,
    MUTED,
    SIZE,
    SMALL,
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
from reasoningbank.analysis.figures.results import Manifest, View
from reasoningbank.analysis.frames import Frames
from reasoningbank.analysis.scores import longest
from reasoningbank.analysis.statistics import learning_curve, median_and_p95
from reasoningbank.analysis.tables import counted
from reasoningbank.judge import Agreement, agreement

_KEYS = ["run", "arm", "task", "seed"]
_DASHES = ("-", "--", "-.", (0, (1, 1.2)), (0, (5, 1, 1, 1, 1, 1)), (0, (8, 2)))
#: Dots of one arm; beyond, an even sample of the sorted values is drawn.
_MOST_DOTS = 150
#: Tools with a row of their own; the rarer ones share one.
_MOST_TOOLS = 9
_START, _END, _OTHER = "start", "end", "other tools"
_JUDGES_ACROSS = 3


def learning(frames: Frames, manifest: Manifest) -> Chart | None:
    """Draw each arm's mean so far by position in the stream; None without streams.

    The line is the mean over task permutations, the band its 95% CI. Permutations that ended
    before the longest one are left out.
    """
    view = View(frames, manifest, streams=True)
    trials = view.trials[view.trials["step"].notna()]
    data = view.judged[view.judged["step"].notna()]
    if data.empty:
        return None
    names = [name for name in view.names if (data["label"] == name).any()]
    chart = Chart("Learning curves", height=3.6)
    axes = chart.add_subplot()
    ends, described = [], []
    for index, name in enumerate(names):
        own = data[data["label"] == name]
        met = Counter(int(seed) for seed in trials.loc[trials["label"] == name, "seed"])
        own = own[own["seed"].isin(longest(met))]
        streams: dict[int, dict[int, float]] = defaultdict(dict)
        for seed, step, value in zip(own["seed"], own["step"], own["value"], strict=True):
            streams[int(seed)][int(step)] = float(value)
        curve = learning_curve(streams)
        _band(axes, index, np.asarray(curve.steps) + 1, curve.mean, curve.low, curve.high)
        ends.append(curve.mean[-1])
        low, high = curve.low[-1], curve.high[-1]
        band = "" if np.isnan(low) else f" ({low:.2f} to {high:.2f})"
        described.append(
            f"{name}: {ends[-1]:.2f}{band} after {len(curve.steps)} tasks, "
            f"{counted(curve.permutations, 'task permutation')}."
        )
    axes.set_ylim(0, 1)
    _finish_stream(axes, int(data["step"].max()) + 1, f"{view.metric_name}\nso far")
    axes.set_yticks([0, 0.25, 0.5, 0.75, 1])
    _label_ends(axes, names, ends, lambda end: f"{end:.2f}")
    chart.description = (
        f"Each line is the {view.metric_name} of all tasks so far, averaged over task "
        f"permutations; the band is the 95% CI over permutations. {' '.join(described)}"
    )
    return chart


def bank(frames: Frames, manifest: Manifest) -> Chart | None:
    """Draw the active items of each learning arm's bank after each task; None without streams.

    The line is the mean over task permutations, the band reaches from the least to the most.
    """
    view = View(frames, manifest, streams=True)
    steps = view.labelled(frames.steps).dropna(subset=["bank"])
    if steps.empty:
        return None
    names = view.in_order(steps["label"])
    chart = Chart("The bank along the stream", height=3.0)
    axes = chart.add_subplot()
    ends, described = [], []
    for index, name in enumerate(names):
        own = steps[steps["label"] == name].astype({"bank": float})
        by_step = own.groupby("step")["bank"].agg(["mean", "min", "max"])
        places = np.asarray(by_step.index, dtype=float) + 1
        _band(axes, index, places, by_step["mean"], by_step["min"], by_step["max"])
        ends.append(float(by_step["mean"].iloc[-1]))
        sums = ", ".join(f"{int(own[c].sum())} {w}" for c, w in (
            ("added", "stored"), ("merged", "merged"), ("rejected", "rejected")))  # fmt: skip
        over = counted(own["seed"].nunique(), "task permutation")
        described.append(f"{name}: {ends[-1]:.0f} items at the end; over {over} {sums}.")
    axes.set_ylim(0, max(1.0, float(steps["bank"].max()) * 1.04))
    _finish_stream(axes, max(2.0, float(steps["step"].max()) + 1), "active items")
    _label_ends(axes, names, ends, lambda end: f"{end:.0f}")
    chart.description = (
        "Each line is the number of active items after so many tasks, averaged over task "
        "permutations; the band reaches from the least to the most. " + " ".join(described)
    )
    return chart


def cost(frames: Frames, manifest: Manifest) -> Chart | None:
    """Draw tokens and seconds of every judged trial by arm, with medians; None without any."""
    view = View(frames, manifest)
    trials = view.judged
    names = [arm for arm in view.names if (trials["label"] == arm).any()]
    if not names:
        return None
    chart = Chart("Tokens and seconds by arm", height=0.5 * len(names) + 0.85)
    panels = chart.subplots(1, 2, sharey=True, squeeze=False)[0]
    described = []
    for axes, column, unit in zip(panels, ("tokens", "seconds"), ("tokens", "s"), strict=True):
        values = {arm: trials.loc[trials["label"] == arm, column].to_numpy(float) for arm in names}
        _cost_panel(axes, values, unit)
        axes.set_xlabel(f"{column} of a trial", fontsize=SIZE, color=INK)
        for arm in names:
            median, p95 = median_and_p95(values[arm].tolist())
            text = f"median {_amount(median)}, 95th percentile {_amount(p95)} {unit}"
            described.append(f"{arm}: {text}")
    rows_of(panels[0], [shorten(arm, 32) for arm in names], 0.55)
    chart.description = (
        "Each dot is a judged trial, on a logarithmic scale; the tall mark is the median, the "
        f"short one the 95th percentile. {'; '.join(described)}."
    )
    return chart


def tools(frames: Frames, manifest: Manifest) -> Chart | None:
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
    common = [str(tool) for tool in calls["tool"].value_counts().index]
    names = common if len(common) <= _MOST_TOOLS else [*common[: _MOST_TOOLS - 1], _OTHER]
    calls = calls.assign(tool=calls["tool"].where(calls["tool"].isin(names), _OTHER))
    height = 0.24 * (len(names) + 1) + 0.5 + text_width(names, SMALL) * 0.6
    chart = Chart("Which tool follows which", height=height * len(arms))
    panels = chart.subplots(len(arms), 1, squeeze=False)[:, 0]
    described = []
    for axes, arm in zip(panels, arms, strict=True):
        own = calls[calls["label"] == arm]
        flows = follow(own)
        n = int((view.trials["label"] == arm).sum())
        title = f"{shorten(arm, 40)}: {len(own)} calls in {counted(n, 'trial')}"
        _tool_panel(axes, own, flows, names, title)
        often = ", ".join(f"{a} then {b} {k}" for (a, b), k in flows.most_common(4))
        failed = int((~own["ok"]).sum())
        described.append(f"{arm}: {len(own)} calls, {failed} failed; most often {often}.")
    chart.description = (
        "For each arm a table of which tool call (row) is followed by which (column); the fuller "
        f"a cell, the larger its share of the row. {' '.join(described)}"
    )
    return chart


def judges(frames: Frames, manifest: Manifest) -> Chart | None:
    """Draw a confusion matrix for each other judge and the plain rule; None without other judges.

    In a learning run the trials are those of the streams, whose verdicts decide what is learned.
    """
    found = _judged(frames)
    names = list(dict.fromkeys(found["judge"]))
    if not names:
        return None
    across = min(_JUDGES_ACROSS, len(names))
    rows = -(-len(names) // across)
    chart = Chart("Judges against the execution judge", height=2.35 * rows, width=2.35 * across)
    panels = chart.subplots(rows, across, squeeze=False).flatten()
    described = []
    for axes, name in zip(panels, names, strict=False):
        own = found[found["judge"] == name]
        agreed = agreement(
            zip(own["strict"].astype(bool), own["success"].astype(bool), strict=True)
        )
        _judge_panel(axes, name, agreed)
        described.append(
            f"{name} on {agreed.n} trials: Cohen's kappa {_defined(agreed.kappa)}, precision "
            f"{_defined(agreed.precision)}, recall {_defined(agreed.recall)}; both right "
            f"{agreed.true_positives}, neither {agreed.true_negatives}, only {name} "
            f"{agreed.false_positives}, only the execution judge {agreed.false_negatives}."
        )
    for axes in panels[len(names) :]:
        axes.set_visible(False)
    chart.description = f"One table per judge, trials by both verdicts. {' '.join(described)}"
    return chart


def follow(calls: pd.DataFrame) -> Counter[tuple[str, str]]:
    """Count which tool follows which within trials, with `start` and `end`."""
    flows: Counter[tuple[str, str]] = Counter()
    ordered = calls.sort_values("order", kind="stable")
    for _, trial in ordered.groupby(_KEYS, sort=False):
        flows.update(pairwise([_START, *map(str, trial["tool"]), _END]))
    return flows


def _band(axes: Axes, index: int, places: object, mean: object, low: object, high: object) -> None:
    colour = COLOURS[index % len(COLOURS)]
    axes.fill_between(places, low, high, color=colour, alpha=0.16, linewidth=0)  # type: ignore[arg-type]
    axes.plot(places, mean, color=colour, linewidth=2, linestyle=_DASHES[index % len(_DASHES)])  # type: ignore[arg-type]


def _finish_stream(axes: Axes, end: float, label: str) -> None:
    quiet(axes, grid="y", spine="bottom")
    axes.set_xlim(1, end)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.tick_params(labelsize=SMALL)
    axes.set_xlabel("tasks so far", fontsize=SIZE, color=INK)
    axes.set_ylabel(label, fontsize=SIZE, color=INK)


def _label_ends(
    axes: Axes, names: Sequence[str], ends: Sequence[float], shown: Callable[[float], str]
) -> None:
    """Write each line's name and value at its end, moved so that no label covers another."""
    top = axes.get_ylim()[1]
    placed = [end / top for end in ends]
    for before, after in pairwise(sorted(range(len(placed)), key=placed.__getitem__)):
        placed[after] = max(placed[after], placed[before] + 0.06)
    over = max(0.0, max(placed, default=0.0) - 1.0)
    for index, (name, height) in enumerate(zip(names, placed, strict=True)):
        text = f"{shorten(name, 26)} {shown(ends[index])}"
        colour = COLOURS[index % len(COLOURS)]
        write(axes, 1.012, height - over, text, ha="left", transform=axes.transAxes, color=colour,
              fontweight="bold")  # fmt: skip


def _amount(value: float) -> str:
    """Return a number as on an axis, such as 0.25, 42, 1.5k or 2.5M."""
    for unit, size in (("M", 1e6), ("k", 1e3)):
        if value >= size:
            return f"{value / size:.{0 if value >= 10 * size else 1}f}".removesuffix(".0") + unit
    return f"{value:.0f}" if value >= 10 else f"{value:.2g}"


def _cost_panel(axes: Axes, values: dict[str, npt.NDArray[np.float64]], unit: str) -> None:
    axes.set_xscale("log")
    for row, numbers in enumerate(values.values()):
        shown = np.maximum(np.sort(numbers), 0.01)
        if len(shown) > _MOST_DOTS:
            shown = shown[np.linspace(0, len(shown) - 1, _MOST_DOTS).astype(int)]
        # The golden ratio separates neighbours, the same in every drawing.
        spread = (np.arange(len(shown)) * 0.6180339887498949 % 1.0 - 0.5) * 0.4
        places = row + (spread if len(shown) > 1 else 0.0)
        dots(axes, shown, places, COLOURS[0], 3.4, 0.55 if len(shown) < 60 else 0.4)
        median, p95 = (max(v, 0.01) for v in median_and_p95(numbers.tolist()))
        axes.plot([median] * 2, [row - 0.3, row + 0.3], color=INK, linewidth=1.8)
        axes.plot([p95] * 2, [row - 0.14, row + 0.14], color=INK, linewidth=1.2, alpha=MUTED)
        text = f"{_amount(median)} {unit if row == 0 else ''}".strip()
        write(axes, median, row - 0.33, text, va="bottom")
    quiet(axes, grid="x")
    axes.xaxis.set_major_locator(LogLocator(base=10, subs=(1.0, 3.0), numticks=8))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda v, _: _amount(v)))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.tick_params(axis="x", labelsize=SMALL)


def _tool_panel(
    axes: Axes,
    calls: pd.DataFrame,
    flows: Counter[tuple[str, str]],
    names: list[str],
    title: str,
) -> None:
    before, after = [_START, *names], [*names, _END]
    cells = []
    for row, a in enumerate(before):
        total = sum(flows[a, b] for b in after)
        cells += [
            Cell(row, column, flows[a, b] / total if total else 0.0, str(flows[a, b] or ""))
            for column, b in enumerate(after)
        ]
        if a != _START:
            own = calls[calls["tool"] == a]
            failed = int((~own["ok"]).sum())
            note = f"{len(own)}" + (f" · {failed} failed" if failed else "")
            colour, alpha = (COLOURS[1], 1.0) if failed else (INK, MUTED)
            write(axes, len(after) - 0.35, row, note if len(own) else "–", ha="left", color=colour,
                  alpha=alpha)  # fmt: skip
    draw_cells(axes, cells, height=0.9)
    quiet(axes)
    axes.set_xlim(-0.5, len(after) + 1.1)
    rows_of(axes, before)
    axes.tick_params(axis="y", labelsize=SMALL)
    axes.set_title(title, fontsize=SIZE, fontweight="bold", color=INK, loc="left", x=0.0, pad=5)
    axes.set_xticks(range(len(after)), after, rotation=35, ha="right", rotation_mode="anchor")
    axes.tick_params(axis="x", labelsize=SMALL)


def _judged(frames: Frames) -> pd.DataFrame:
    """Return the verdicts of other judges and the rule, one row each."""
    trials = frames.trials[frames.trials["judged"]]
    if trials["step"].notna().any():
        trials = trials[trials["step"].notna()]
    others = frames.judgements[frames.judgements["judge"] != "rule"]
    others = others.dropna(subset=["success", "strict"]).merge(trials[_KEYS], on=_KEYS)
    if others.empty:
        return others
    ran = trials["verdict"].isin(("judged", "wrong_form")) & (trials["n_predicted"].fillna(0) > 0)
    rule = trials[[*_KEYS, "strict"]].assign(judge="rule", success=ran.astype("boolean"))
    return pd.concat([others, rule], ignore_index=True)


def _judge_panel(axes: Axes, name: str, found: Agreement) -> None:
    counts = (
        (found.true_positives, found.false_negatives),
        (found.false_positives, found.true_negatives),
    )
    cells = [
        Cell(row, column, n / found.n, str(n), COLOURS[0] if row == column else COLOURS[1])
        for row, pair in enumerate(counts)
        for column, n in enumerate(pair)
    ]
    draw_cells(axes, cells, height=0.96, width=0.96, size=SIZE + 1)
    quiet(axes)
    axes.set_xlim(-0.5, 1.5)
    axes.set_ylim(1.5, -0.5)
    axes.set_xticks([0, 1], ["right", "wrong"])
    axes.set_yticks([0, 1], ["right", "wrong"], rotation=90, va="center")
    axes.tick_params(labelsize=SMALL)
    axes.set_xlabel(shorten(name, 24), fontsize=SMALL)
    axes.set_ylabel("execution judge", fontsize=SMALL, alpha=MUTED)
    axes.set_title(f"κ = {_defined(found.kappa)} · n = {found.n}", fontsize=SIZE,
                   fontweight="bold", color=INK, loc="left")  # fmt: skip


def _defined(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.2f}"
