"""What a figure draws: judged trials with one number each, and arms in their stated order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import pandas as pd

from reasoningbank.analysis.frames import Frames
from reasoningbank.analysis.scores import METRICS, Metric, Score, Unit

__all__ = [
    "METRIC_NAMES",
    "Manifest",
    "arm_labels",
    "comparison_of",
    "held_out",
    "labelled",
    "metric_of",
    "scored",
    "scores_by_arm",
    "stated_order",
    "unit_of",
]

Manifest = Mapping[str, Any]

#: What a metric's mean is called on an axis.
METRIC_NAMES: Mapping[Metric, str] = {
    "strict": "share of strict matches",
    "lenient": "share of lenient matches",
    "f1": "mean F1 of rows",
}


def metric_of(manifest: Manifest) -> Metric:
    """Return the primary metric of the experiment; `strict` where it names none."""
    stated = _experiment(manifest).get("metric")
    return next((metric for metric in METRICS if metric == stated), "strict")


def unit_of(manifest: Manifest) -> Unit:
    """Return what counts as one observation; `task` where the experiment does not say."""
    return "group" if _experiment(manifest).get("unit") == "group" else "task"


def comparison_of(frames: Frames, manifest: Manifest) -> tuple[str, str] | None:
    """Return the labels of the two arms to be compared first, where there are such."""
    pair = _experiment(manifest).get("comparison")
    labels = arm_labels(frames, manifest)
    if pair is None and len(labels) == 2:
        pair = tuple(labels)
    if pair is None or len(pair) != 2 or not set(pair) <= set(labels):
        return None
    return str(pair[0]), str(pair[1])


def arm_labels(frames: Frames, manifest: Manifest) -> list[str]:
    """Return the arms that have trials, in the manifest's order and then as they are met.

    In frames of several runs, an arm whose name occurs in more than one is `arm (run)`.
    """
    return stated_order(_labels(frames.trials), manifest)


def stated_order(labels: Iterable[str], manifest: Manifest) -> list[str]:
    """Return labels each once, in the manifest's order and then as they are met."""
    there = list(dict.fromkeys(labels))
    stated = [str(arm.get("name")) for arm in _experiment(manifest).get("arms") or ()]
    return [name for name in stated if name in there] + [n for n in there if n not in stated]


def held_out(frames: Frames) -> Frames:
    """Return the frames without the trials of learning streams, which are practice.

    Whatever holds arms against one another draws these.
    """
    trials = frames.trials
    if trials["step"].isna().all():
        return frames
    trials = trials[trials["step"].isna()]
    keys = ["run", "arm", "task", "seed"]
    calls = frames.tool_calls.merge(trials[keys].drop_duplicates(), on=keys)
    return replace(frames, trials=trials.reset_index(drop=True), tool_calls=calls)


def scored(frames: Frames, manifest: Manifest) -> pd.DataFrame:
    """Return the judged trials: `label`, `task`, `seed`, `step`, `group`, `value`."""
    trials = frames.trials.assign(label=_labels(frames.trials))
    trials = trials[trials["judged"]]
    value = trials[metric_of(manifest)].astype(float)
    columns = ["label", "task", "seed", "step", "group", "complexity"]
    return trials[columns].assign(value=value).reset_index(drop=True)


def scores_by_arm(frames: Frames, manifest: Manifest) -> dict[str, list[Score]]:
    """Return all trials as statistics take them, by arm: the numbers of every other table."""
    found: dict[str, list[Score]] = {arm: [] for arm in arm_labels(frames, manifest)}
    trials = labelled(frames.trials, frames)
    for row in trials.to_dict("records"):
        found[row["label"]].append(_score(row))
    return found


def labelled(frame: pd.DataFrame, frames: Frames) -> pd.DataFrame:
    """Return any frame with the arms' labels as a column `label`."""
    return frame.assign(label=_labels(frame, frames.trials))


def _labels(frame: pd.DataFrame, trials: pd.DataFrame | None = None) -> pd.Series[str]:
    trials = frame if trials is None else trials
    runs = trials.groupby("arm")["run"].nunique()
    shared = set(runs[runs > 1].index)
    both = frame["arm"] + " (" + frame["run"] + ")"
    return frame["arm"].where(~frame["arm"].isin(shared), both)


def _score(row: Mapping[Any, Any]) -> Score:
    judged = bool(row["judged"])
    defective = row["verdict"] == "gold_defect"
    return Score(
        arm=row["label"],
        task=row["task"],
        seed=int(row["seed"]),
        group=row["group"] or row["task"],
        step=None if pd.isna(row["step"]) else int(row["step"]),
        memory=row["memory"] if isinstance(row["memory"], str) else "",
        fate="judged" if judged else "defective" if defective else "error",
        strict=float(row["strict"]) if judged else 0.0,
        lenient=float(row["lenient"]) if judged else 0.0,
        f1=float(row["f1"]) if judged else 0.0,
        executed=row["verdict"] in {"judged", "wrong_form"},
        status=row["status"],
        seconds=float(row["seconds"]),
        tokens=int(row["tokens"]),
        dollars=None if pd.isna(row["dollars"]) else float(row["dollars"]),
        lm_calls=int(row["lm_calls"]),
        cached_calls=int(row["cached_calls"]),
        tries=int(row["tries"]),
    )


def _experiment(manifest: Manifest) -> Mapping[str, Any]:
    return manifest.get("experiment") or {}
