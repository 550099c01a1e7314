"""What became of the trials of each arm: right, wrong, or no result at all."""

from __future__ import annotations

from collections import Counter

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
from reasoningbank.analysis.rows import OUTCOMES

__all__ = ["outcomes"]

_BLUE, _RED, _SLATE = COLOURS[0], COLOURS[1], COLOURS[5]
#: Blue is right; the further from it, the more orange; grey is not the agent's.
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
}


def outcomes(frames: Frames, manifest: Manifest) -> Chart | None:
    """Draw one bar an arm, cut by what became of its trials; None without trials."""
    frames = held_out(frames)
    arms = arm_labels(frames, manifest)
    if not arms:
        return None
    trials = labelled(frames.trials, frames)
    counts = Counter(zip(trials["label"], trials["outcome"], strict=True))
    met = Counter(trials["outcome"])
    kinds = [k for k in OUTCOMES if k in met] + sorted(set(met) - set(OUTCOMES))
    rows = -(-len(kinds) // 4)
    chart = Chart("Outcomes by arm", height=0.34 * len(arms) + 0.5 + 0.22 * rows)
    axes = chart.add_subplot()
    for row, arm in enumerate(arms):
        left, whole = 0.0, sum(counts[arm, kind] for kind in kinds)
        for kind in kinds:
            n = counts[arm, kind]
            share = n / whole
            fill, alpha = _FILLS.get(kind, (_SLATE, 1.0))
            axes.barh(row, share, left=left, height=0.68, color=fill, alpha=alpha, linewidth=0)
            if share * 5.4 > text_width([str(n)], SMALL) + 0.06:
                axes.text(left + share / 2, row, str(n), ha="center", va="center",
                          fontsize=SMALL, color=INK)  # fmt: skip
            left += share
    for kind in kinds:
        fill, alpha = _FILLS.get(kind, (_SLATE, 1.0))
        axes.barh(0, 0, color=fill, alpha=alpha, label=kind)
    quiet(axes)
    axes.set_yticks(range(len(arms)), [shorten(arm, 32) for arm in arms])
    axes.set_ylim(len(arms) - 0.5, -0.5)
    axes.set_xlim(0, 1)
    axes.set_xticks([])
    # A legend in the order of the segments reads as their label.
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
    said = ", ".join(f"{met[kind]} {kind}" for kind in kinds)
    chart.description = (
        f"One bar an arm, as long as all of its trials, cut by outcome; the numbers are trials. "
        f"Of {met.total()} trials in all: {said}."
    )
    return chart
