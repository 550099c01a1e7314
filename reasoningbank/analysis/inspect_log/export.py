"""Writing a run as logs of Inspect, one an arm."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from reasoningbank.errors import RecordError, UsageError, need_package
from reasoningbank.experiment import RunFolder, TrialRecord

__all__ = ["ExportedLog", "InspectExport", "export_inspect"]


@dataclass(frozen=True)
class ExportedLog:
    """One log that was written.

    Attributes:
        arm: The arm.
        path: The `.eval` file.
        samples: Trials in it.
        errors: Of these, ended by an infrastructure error.
        complete: Whether every planned trial is in it.
    """

    arm: str
    path: Path
    samples: int
    errors: int
    complete: bool


@dataclass(frozen=True)
class InspectExport:
    """What came of an export.

    Attributes:
        folder: Where the logs are.
        logs: The logs, one an arm.
        damaged: Trial files that could not be read and are in no log.
    """

    folder: Path
    logs: tuple[ExportedLog, ...]
    damaged: tuple[Path, ...] = ()


def export_inspect(run: Path, target: Path | None = None) -> InspectExport:
    """Write a run as logs of Inspect, which `inspect view` and its dataframes open.

    An arm becomes a log, a task a sample, a seed an epoch, a verdict three scores (``strict``,
    ``lenient``, ``f1``), every other judge a score more. What an arm did in learning streams is a
    log of its own, ``ARM (stream)``. Trials are read and written one by one, and the same records
    give the same files. A log of an arm that misses trials is `cancelled`.

    Args:
        run: Folder of a run.
        target: Where the logs go; ``inspect`` within the run's folder if not given.

    Raises:
        SetupError: If ``inspect_ai`` is not installed.
        UsageError: If the folder holds no run, or no trial.
        RecordError: If the manifest cannot be read, or a log cannot be written.
    """
    need_package("inspect_ai", "inspect")
    # Only here: the package takes seconds to import.
    from reasoningbank.analysis.inspect_log.arm import write_arm
    from reasoningbank.analysis.inspect_log.spec import epochs_of

    folder = RunFolder(run)
    manifest = folder.manifest
    if manifest is None:
        raise UsageError("holds no run", where=str(run), hint="give a folder with manifest.json")
    epochs = epochs_of(manifest, _seeds(run))
    into = target if target is not None else run / "inspect"
    damaged: list[Path] = []
    streams: dict[str, dict[str, None]] = {}
    logs = tuple(
        write_arm(manifest, arm, trials, epochs, into)
        for arm, trials in groupby(_held_out(folder, damaged, streams), key=_arm)
    )
    if streams:
        # Practice is no part of what an arm scores: it has a log of its own.
        manifest = _with_streams(manifest, streams)
        logs += tuple(
            write_arm(manifest, f"{arm} (stream)", trials, epochs, into)
            for arm, trials in groupby(_in_streams(folder), key=_arm)
        )
    if not logs:
        raise UsageError("holds no trial yet", where=str(run), hint="run the experiment first")
    return InspectExport(into, logs, tuple(damaged))


def _arm(trial: TrialRecord) -> str:
    return trial.key.arm


def _held_out(
    folder: RunFolder, damaged: list[Path], streams: dict[str, dict[str, None]]
) -> Iterator[TrialRecord]:
    """Yield the trials outside of streams; `streams` is told the tasks of those inside, by arm."""
    for trial in _readable(folder, damaged):
        if trial.step is None:
            yield trial
        else:
            streams.setdefault(trial.key.arm, {})[trial.key.task] = None


def _in_streams(folder: RunFolder) -> Iterator[TrialRecord]:
    return (trial for trial in _readable(folder, []) if trial.step is not None)


def _with_streams(
    manifest: Mapping[str, Any], streams: Mapping[str, Iterable[str]]
) -> dict[str, Any]:
    """Return the manifest with each arm's stream as an arm that has the stream's tasks."""
    experiment = dict(manifest.get("experiment") or {})
    arms = list(experiment.get("arms") or ())
    known = {str(arm.get("name")): arm for arm in arms}
    planned = [str(task) for task in manifest.get("stream") or ()]
    arms += [
        {**known.get(name, {}), "name": f"{name} (stream)", "tasks": planned or list(tasks),
         "first": None}
        for name, tasks in streams.items()
    ]  # fmt: skip
    return {**manifest, "experiment": {**experiment, "arms": arms}}


def _readable(folder: RunFolder, damaged: list[Path]) -> Iterator[TrialRecord]:
    for path, found in folder.read_all():
        if isinstance(found, RecordError):
            damaged.append(path)
        else:
            yield found


def _seeds(run: Path) -> set[int]:
    found = (re.search(r"\.(-?\d+)\.json$", name) for name in RunFolder(run).trial_names())
    return {int(match[1]) for match in found if match}
