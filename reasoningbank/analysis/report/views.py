"""What the page's templates show of a run: the summary with its headline, and the figures."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from jinja2 import Environment, PackageLoader

from reasoningbank.analysis import tables
from reasoningbank.analysis.comparison import ArmComparison
from reasoningbank.analysis.summary import RunSummary
from reasoningbank.analysis.tables import capital, counted, ends, number, share

if TYPE_CHECKING:
    from reasoningbank.analysis.frames import Frames

_METRIC_NAMES = {"strict": "strict match", "lenient": "lenient match", "f1": "row F1"}
#: What HTML cannot hold, even escaped: controls, lone surrogates, non-characters.
_UNFIT = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


class Damaged(NamedTuple):
    """A file of the run that cannot be read, and why; the page leaves it out."""

    path: Path
    reason: str


class DrawnFigure(NamedTuple):
    """A figure as inline SVG, for wide and for narrow screens."""

    name: str
    title: str
    drawing: str
    narrow: str
    caption: str


def environment() -> Environment:
    """Return the page's templates, which escape every value that they show."""
    made = Environment(
        loader=PackageLoader("reasoningbank.analysis.report", "page"),
        autoescape=True,
        finalize=_plain,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "capital": capital,
        "counted": counted,
        "ends": ends,
        "number": number,
        "numeric": tables.numeric,
        "pairs": _pairs,
        "share": share,
        "signed": _signed,
        "slug": lambda title: re.sub(r"\W+", "-", str(title)).strip("-").lower(),
        "typeset": _typeset,
    }
    made.tests["finite"] = math.isfinite
    return made


def overview(
    title: str,
    manifest: Mapping[str, Any],
    summary: RunSummary,
    damaged: Sequence[Damaged],
    trials: int,
    whole: int | None = None,
) -> dict[str, Any]:
    """Return what `summary.html` shows."""
    experiment: Mapping[str, Any] = manifest.get("experiment") or {}
    when = str(manifest.get("created", ""))[:16].replace("T", " ")
    about = [
        experiment.get("name"),
        f"pack {experiment['pack']}" if experiment.get("pack") else None,
        f"{trials:,} trials" if trials != 1 else "1 trial",
        f"{whole:,} of them whole in this page" if whole not in (None, trials) else None,
        f"started {when} UTC" if when else None,
    ]
    columns = ["arm", "score", "95% CI", "right", "row F1", "ran", "ended", "seconds", "tokens"]
    if any(arm.dollars is not None for arm in summary.arms):
        columns.append("dollars")
    arms = tables.arm_table(summary, columns)
    named = [str(arm.get("name")) for arm in experiment.get("arms") or ()]
    order = dict.fromkeys([*named, *(arm.arm for arm in summary.arms)])
    return {
        "title": title,
        "about": " · ".join(str(fact) for fact in about if fact),
        "summary": summary,
        "experiment": experiment,
        "metric": _METRIC_NAMES.get(summary.metric, summary.metric),
        "score": number if summary.metric == "f1" else share,
        "most": scale(summary.registered),
        "arms": arms._replace(headers=tuple(_METRIC_NAMES.get(h, h) for h in arms.headers)),
        # As the figures colour them.
        "colours": {arm: place % 6 + 1 for place, arm in enumerate(order)},
        "methods": "; ".join(sorted({arm.mean.method for arm in summary.arms} - {""})),
        "sections": [made for made in tables.tables_of(summary).values() if made.rows],
        "damaged": damaged,
        "manifest": manifest,
        "whole_manifest": json.dumps(manifest, indent=1, ensure_ascii=False, default=str),
    }


def drawn_figures(frames: Frames) -> list[DrawnFigure]:
    """Return every figure that the records can fill."""
    # matplotlib takes a second to import.
    from reasoningbank.analysis.figures import FIGURES, NARROW, svg

    manifest = next(iter(frames.manifests.values()), {})
    found = []
    for name, entry in FIGURES.items():
        if (chart := entry.draw(frames, manifest)) is not None:
            narrow = entry.draw(frames, manifest, NARROW) or chart
            wide, small = (
                _UNFIT.sub("\ufffd", svg(one, prefix=f"figure-{name}{suffix}"))
                for one, suffix in ((chart, ""), (narrow, "-narrow"))
            )
            found.append(DrawnFigure(name, entry.title, wide, small, chart.description))
    return found


def scale(pairs: Sequence[ArmComparison]) -> float:
    """Return the largest difference on the headline's axis."""
    shown = [n for one in pairs for n in (one.low, one.high, one.difference, one.detectable or 0.0)]
    most = max(abs(value) for value in (*shown, 0.15) if math.isfinite(value))
    return min(1.0, math.ceil(most * 10 + 0.5) / 10)


def _pairs(data: object) -> str:
    if not isinstance(data, Mapping):
        return str(data or "")
    kept = {k: v for k, v in data.items() if v not in (None, [], {}, "")}
    return " · ".join(
        f"{k} {json.dumps(v, ensure_ascii=False) if isinstance(v, (list, dict)) else v}"
        for k, v in kept.items()
    )


def _plain(value: object) -> object:
    """Return a value as text that HTML can hold; U+FFFD replaces what it cannot."""
    return value if hasattr(value, "__html__") else _UNFIT.sub("\ufffd", str(value))


def _typeset(cell: str) -> str:
    """Return a cell for HTML: an en dash for nothing, a minus sign before a number."""
    if cell == "-":
        return "–"
    return f"−{cell[1:]}" if cell[:1] == "-" and cell[1:2].isdigit() else cell


def _signed(value: float) -> str:
    return _typeset(number(value, sign="+"))
