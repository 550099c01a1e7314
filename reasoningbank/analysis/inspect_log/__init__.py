"""Runs as logs of Inspect AI, so that `inspect view` and its dataframes open them.

The package ``inspect_ai`` is imported only when a run is exported.
"""

from __future__ import annotations

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
    """One written log.

    Attributes:
        arm: The arm.
        path: The `.eval` file.
        samples: Trials in it.
        errors: Trials in it that an infrastructure error ended.
        complete: Whether it has every planned trial.
    """

    arm: str
    path: Path
    samples: int
    errors: int
    complete: bool


@dataclass(frozen=True)
class InspectExport:
    """The result of an export.

    Attributes:
        folder: Folder of the logs.
        logs: The logs, one per arm.
        damaged: Trial files that could not be read and are in no log.
    """

    folder: Path
    logs: tuple[ExportedLog, ...]
    damaged: tuple[Path, ...] = ()


def export_inspect(run: Path, target: Path | None = None) -> InspectExport:
    """Write a run as logs of Inspect, which `inspect view` and its dataframes open.

    An arm becomes a log, a task a sample, a seed an epoch, a verdict three scores (``strict``,
    ``lenient``, ``f1``), every other judge another score. An arm's learning streams are a separate
    log, ``ARM (stream)``. Trials are read and written one by one, and the same records give the
    same files. The log of an arm with missing trials is `cancelled`.

    Args:
        run: Folder of a run.
        target: Folder of the logs; ``inspect`` within the run's folder if not given.

    Raises:
        SetupError: If ``inspect_ai`` is not installed.
        UsageError: If the folder holds no run, or no trial.
        RecordError: If the manifest cannot be read, or a log cannot be written.
    """
    need_package("inspect_ai", "inspect")
    # The package takes seconds to import.
    from reasoningbank.analysis.inspect_log.logs import epochs_of, write_arm

    folder = RunFolder(run)
    manifest = folder.manifest
    if manifest is None:
        raise UsageError("holds no run", where=str(run), hint="give a folder with manifest.json")
    epochs = epochs_of(manifest, {int(name.split(".")[-2]) for name in folder.trial_names()})
    into = target if target is not None else run / "inspect"
    damaged: list[Path] = []
    streams: dict[str, dict[str, None]] = {}

    def held_out() -> Iterator[TrialRecord]:
        for trial in _readable(folder, damaged):
            if trial.step is None:
                yield trial
            else:
                streams.setdefault(trial.key.arm, {})[trial.key.task] = None

    logs = tuple(
        write_arm(manifest, arm, trials, epochs, into)
        for arm, trials in groupby(held_out(), key=lambda trial: trial.key.arm)
    )
    if streams:
        manifest = _with_streams(manifest, streams)
        practice = (trial for trial in _readable(folder, []) if trial.step is not None)
        logs += tuple(
            write_arm(manifest, f"{arm} (stream)", trials, epochs, into)
            for arm, trials in groupby(practice, key=lambda trial: trial.key.arm)
        )
    if not logs:
        raise UsageError("holds no trial yet", where=str(run), hint="run the experiment first")
    return InspectExport(into, logs, tuple(damaged))


def _with_streams(
    manifest: Mapping[str, Any], streams: Mapping[str, Iterable[str]]
) -> dict[str, Any]:
    """Return the manifest with each arm's stream as another arm that has the stream's tasks."""
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
