"""How far other judges agree with the execution judge."""

from __future__ import annotations

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
)
from reasoningbank.analysis.figures.selection import Manifest
from reasoningbank.analysis.frames import Frames
from reasoningbank.judge.agreement import Agreement, agreement

__all__ = ["judges"]

_MOST_ACROSS = 3


def judges(frames: Frames, manifest: Manifest) -> Chart | None:
    """Draw a confusion matrix for each other judge; None where there is no other judge.

    The plain rule that a query which ran and has rows is right stands beside them. In a learning
    run the trials are those of the streams, where it matters what a judge says.
    """
    said = _said(frames)
    names = list(dict.fromkeys(said["judge"]))
    if not names:
        return None
    across = min(_MOST_ACROSS, len(names))
    rows = -(-len(names) // across)
    chart = Chart("Judges against the execution judge", height=2.35 * rows,
                  width=2.35 * across)  # fmt: skip
    panels = chart.subplots(rows, across, squeeze=False).flatten()
    told = []
    for axes, name in zip(panels, names, strict=False):
        own = said[said["judge"] == name]
        found = agreement(zip(own["strict"].astype(bool), own["success"].astype(bool), strict=True))
        _panel(axes, name, found)
        told.append(
            f"{name} on {found.n} trials: Cohen's kappa {_number(found.kappa)}, precision "
            f"{_number(found.precision)}, recall {_number(found.recall)}; both say right "
            f"{found.true_positives}, neither {found.true_negatives}, only {name} "
            f"{found.false_positives}, only the execution judge {found.false_negatives}."
        )
    for axes in panels[len(names) :]:
        axes.set_visible(False)
    chart.description = f"One table a judge, trials by what each says. {' '.join(told)}"
    return chart


def _said(frames: Frames) -> pd.DataFrame:
    """Return what judges and the rule say, a row each, of the trials in question."""
    trials = frames.trials[frames.trials["judged"]]
    if trials["step"].notna().any():
        trials = trials[trials["step"].notna()]
    keys = ["run", "arm", "task", "seed"]
    others = frames.judgements[frames.judgements["judge"] != "rule"]
    others = others.dropna(subset=["success", "strict"]).merge(trials[keys], on=keys)
    if others.empty:
        return others
    ran = trials["verdict"].isin(("judged", "wrong_form")) & (trials["n_predicted"].fillna(0) > 0)
    rule = trials[[*keys, "strict"]].assign(judge="rule", success=ran.astype("boolean"))
    return pd.concat([others, rule], ignore_index=True)


def _panel(axes: Axes, name: str, found: Agreement) -> None:
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
    axes.set_xlabel(f"{shorten(name, 24)} says", fontsize=SMALL)
    axes.set_ylabel("execution judge", fontsize=SMALL, alpha=MUTED)
    axes.set_title(f"κ = {_number(found.kappa)} · n = {found.n}", fontsize=SIZE,
                   fontweight="bold", color=INK, loc="left")  # fmt: skip


def _number(value: float | None) -> str:
    return "not defined" if value is None else f"{value:.2f}"
