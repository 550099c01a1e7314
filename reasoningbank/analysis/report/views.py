"""What the page's templates show of a run: the summary with its headline, and the figures."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from jinja2 import Environment, PackageLoader

from reasoningbank.analysis import tables as text_tables
from reasoningbank.analysis.comparison import ArmComparison
from reasoningbank.analysis.summary import RunSummary
from reasoningbank.analysis.tables import capital, counted, ends, number, share
from reasoningbank.experiment import RunFolder

_METRIC_NAMES = {"strict": "strict match", "lenient": "lenient match", "f1": "row F1"}
#: What HTML cannot hold, even escaped: controls, lone surrogates, non-characters.
_UNFIT = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


class Damaged(NamedTuple):
    """A file of the run that cannot be read, and why; the page leaves it out."""

    path: Path
    reason: str


class DrawnFigure(NamedTuple):
    """A figure as inline SVG."""

    name: str
    title: str
    drawing: str
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
        "pairs": _pairs,
        "share": share,
        "signed": _signed,
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
) -> dict[str, Any]:
    """Return what `summary.html` shows."""
    experiment: Mapping[str, Any] = manifest.get("experiment") or {}
    when = str(manifest.get("created", ""))[:16].replace("T", " ")
    about = [
        experiment.get("name"),
        f"pack {experiment['pack']}" if experiment.get("pack") else None,
        f"{trials:,} trials" if trials != 1 else "1 trial",
        f"started {when} UTC" if when else None,
    ]
    columns = ["arm", "score", "95% CI", "right", "row F1", "ran", "ended", "seconds", "tokens"]
    if any(arm.dollars is not None for arm in summary.arms):
        columns.append("dollars")
    arms = text_tables.arm_table(summary, columns)
    return {
        "title": title,
        "about": " · ".join(str(fact) for fact in about if fact),
        "summary": summary,
        "experiment": experiment,
        "metric": _METRIC_NAMES.get(summary.metric, summary.metric),
        "score": number if summary.metric == "f1" else share,
        "most": _scale(summary.comparison) if summary.comparison else None,
        "arms": arms._replace(headers=tuple(_METRIC_NAMES.get(h, h) for h in arms.headers)),
        "methods": "; ".join(sorted({arm.mean.method for arm in summary.arms} - {""})),
        "tables": text_tables,
        "damaged": damaged,
        "manifest": manifest,
        "whole_manifest": json.dumps(manifest, indent=1, ensure_ascii=False, default=str),
    }


def drawn_figures(folder: RunFolder) -> list[DrawnFigure]:
    """Return every figure that the records can fill."""
    # matplotlib and pandas take a second to import.
    from reasoningbank.analysis.figures import FIGURES, svg
    from reasoningbank.analysis.frames import load

    frames = load(folder)
    manifest = next(iter(frames.manifests.values()), {})
    charts = {name: entry.draw(frames, manifest) for name, entry in FIGURES.items()}
    return [
        DrawnFigure(
            name,
            FIGURES[name].title,
            _UNFIT.sub("\ufffd", svg(chart, prefix=f"figure-{name}")),
            chart.description,
        )
        for name, chart in charts.items()
        if chart is not None
    ]


def _scale(found: ArmComparison) -> float:
    """Return the largest difference on the headline's axis."""
    shown = (found.low, found.high, found.difference, found.detectable or 0.0, 0.15)
    most = max(abs(value) for value in shown if math.isfinite(value))
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
