"""What a run's manifest says of its arms: what they are to do, what they are held against."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reasoningbank.errors import UsageError
from reasoningbank.experiment.config import (
    Experiment,
    bank_arm,
    control_of,
    parse_experiment,
    seeds_of,
)

__all__ = ["bank_roots", "controls", "planned_streams", "planned_tasks", "planned_trials"]


def planned_trials(manifest: Mapping[str, Any] | None) -> dict[str, int]:
    """Return how many held-out trials each arm is to have; empty where nothing says so."""
    return {name: len(tasks) * seeds for name, (tasks, seeds) in planned_tasks(manifest).items()}


def planned_tasks(manifest: Mapping[str, Any] | None) -> dict[str, tuple[tuple[str, ...], int]]:
    """Return each arm's held-out tasks, and with how many seeds; empty where nothing says so."""
    experiment = _experiment(manifest)
    tasks = tuple(map(str, (manifest or {}).get("tasks") or ()))
    if experiment is None or not tasks:
        return {}
    return {
        arm.name: ((arm.tasks or tasks)[: arm.first], len(seeds_of(experiment, arm)))
        for arm in experiment.arms
    }


def planned_streams(manifest: Mapping[str, Any] | None) -> dict[str, int]:
    """Return how many trials each arm is to have in streams; empty where nothing says so."""
    experiment = _experiment(manifest)
    length = len((manifest or {}).get("stream") or ())
    if experiment is None or not length:
        return {}
    return {
        arm.name: length * len(seeds_of(experiment, arm))
        for arm in experiment.arms
        if arm.learns or arm.stream
    }


def controls(manifest: Mapping[str, Any] | None) -> dict[str, str] | None:
    """Return, for each arm that has one, the arm that is alike in all but memory.

    None where the manifest does not say what the arms are.
    """
    experiment = _experiment(manifest)
    if experiment is None:
        return None
    found = ((arm, control_of(experiment, arm)) for arm in experiment.arms)
    return {arm.name: control.name for arm, control in found if control is not None}


def bank_roots(manifest: Mapping[str, Any] | None) -> dict[str, str]:
    """Return, for each arm, the one whose bank it has; empty where nothing says so."""
    experiment = _experiment(manifest)
    if experiment is None:
        return {}
    return {arm.name: bank_arm(experiment, arm).name for arm in experiment.arms}


def _experiment(manifest: Mapping[str, Any] | None) -> Experiment | None:
    try:
        return parse_experiment((manifest or {}).get("experiment") or {})
    except UsageError:
        # A manifest of an earlier version, or none.
        return None
