"""Runs as logs of Inspect AI, so that `inspect view` and its dataframes open them.

The package ``inspect_ai`` is imported only when a run is exported.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from reasoningbank.analysis.scores import RunPlan
from reasoningbank.errors import RecordError, UsageError, need_package
from reasoningbank.experiment import RunFolder, TrialRecord

__all__ = ["ExportedLog", "InspectExport", "export_inspect"]


@dataclass(frozen=True)
class ExportedLog:
    """One written log."""

    arm: str
    path: Path  #: The `.eval` file
    samples: int  #: Trials in it
    errors: int  #: Trials in it that an infrastructure error ended
    complete: bool  #: Whether it has every planned trial


@dataclass(frozen=True)
class InspectExport:
    """The result of an export."""

    folder: Path  #: Folder of the logs
    logs: tuple[ExportedLog, ...]  #: The logs, one per arm
    damaged: tuple[Path, ...] = ()  #: Trial files that could not be read and are in no log


def export_inspect(run: Path, target: Path | None = None) -> InspectExport:
    """Write a run as logs of Inspect, which `inspect view` and its dataframes open.

    An arm becomes a log, a task a sample, a seed an epoch, a verdict three scores (``strict``,
    ``lenient``, ``f1``), every other judge another score. An arm's learning streams are a separate
    log, ``ARM (stream)``. The log of an arm with missing trials is `cancelled`.
    """
    need_package("inspect_ai", "inspect")
    # The package takes seconds to import.
    from reasoningbank.analysis.inspect_log.logs import write_arm

    folder = RunFolder(run)
    manifest = folder.require_manifest()
    plan = RunPlan(manifest)
    seeds = sorted({int(name.split(".")[-2]) for name in folder.trial_names()})
    every = dict.fromkeys([*(plan.settings.get("seeds") or ()), *seeds])
    epochs = {seed: number for number, seed in enumerate(every, 1)}
    into = target if target is not None else run / "inspect"
    damaged: dict[Path, None] = {}

    def trials(*, stream: bool) -> Iterator[TrialRecord]:
        for path, found in folder.read_all():
            if isinstance(found, RecordError):
                damaged[path] = None
            elif (found.step is not None) == stream:
                yield found

    logs = []
    for stream in (False, True):
        for name, own in groupby(trials(stream=stream), key=lambda trial: trial.key.arm):
            arm = plan.arms.get(name, {"name": name})
            tasks = list(arm.get("tasks") or manifest.get("tasks") or ())[: arm.get("first")]
            if stream:
                tasks = list(manifest.get("stream") or ())
                arm = {**arm, "name": f"{name} (stream)", "tasks": tasks, "first": None}
            logs.append(write_arm(manifest, arm, tasks, own, epochs, into))
    if not logs:
        raise UsageError("holds no trial yet", where=str(run), hint="run the experiment first")
    return InspectExport(into, tuple(logs), tuple(damaged))
