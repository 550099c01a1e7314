"""Runs as pandas frames: `load(runs)` reads the records, one trial at a time.

`docs/analysis.md` describes every column. Long texts (messages, results) stay on disk unless
``texts=True`` asks for them, so that thousands of trials fit into ordinary memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from reasoningbank.analysis.columns import COLUMNS, TIME, Column, columns_of
from reasoningbank.analysis.memory_records import MemoryRecords
from reasoningbank.analysis.memory_rows import item_row, step_rows
from reasoningbank.analysis.rows import Row, trial_rows
from reasoningbank.errors import RecordError, UsageError
from reasoningbank.experiment import RunFolder

__all__ = ["Frames", "Problem", "Runs", "load"]

Runs = str | Path | RunFolder | Iterable[str | Path | RunFolder]


class Problem(NamedTuple):
    """A file that could not be read and is in no frame."""

    path: Path
    reason: str


@dataclass(frozen=True)
class Frames:
    """What runs hold, as tables; `reasoningbank.analysis.columns` says what is in them.

    Attributes:
        trials: One row a trial.
        events: One row an event of a trajectory.
        tool_calls: One row a tool call, with its result joined.
        lm_calls: One row a model call.
        judgements: One row a trial and a judge other than the execution judge.
        retrievals: One row a memory item shown in a trial.
        withheld: One row a memory item that the leakage guard kept from a trial.
        steps: One row a step of a learning stream.
        rejections: One row an item that was distilled and not stored.
        memory_items: One row a memory item in a snapshot of the bank.
        manifests: Manifest by run.
        problems: Files that could not be read.
    """

    trials: pd.DataFrame
    events: pd.DataFrame
    tool_calls: pd.DataFrame
    lm_calls: pd.DataFrame
    judgements: pd.DataFrame
    retrievals: pd.DataFrame
    withheld: pd.DataFrame
    steps: pd.DataFrame
    rejections: pd.DataFrame
    memory_items: pd.DataFrame
    manifests: Mapping[str, Mapping[str, Any]]
    problems: tuple[Problem, ...] = ()

    def items(self) -> Iterator[tuple[str, pd.DataFrame]]:
        """Yield each frame with its name."""
        for name in COLUMNS:
            yield name, getattr(self, name)


def load(runs: Runs, *, texts: bool = False) -> Frames:
    """Read runs into frames.

    Args:
        runs: The folder of a run, or several.
        texts: Whether to include long texts: messages, responses, arguments, results.

    Returns:
        The frames. A file that cannot be read is left out and listed in `Frames.problems`.

    Raises:
        UsageError: If a folder holds no run.

    Examples:
        >>> frames = load([])
        >>> len(frames.trials), str(frames.trials["strict"].dtype)
        (0, 'boolean')
    """
    folders = _folders(runs)
    tables = {name: _Table(columns_of(name, texts=texts)) for name in COLUMNS}
    manifests: dict[str, Mapping[str, Any]] = {}
    problems: list[Problem] = []
    for run, folder in _named(folders).items():
        manifests[run] = manifest = _manifest(folder, problems)
        arms = {str(arm.get("name")): arm for arm in _arms(manifest)}
        for path, record in folder.read_all():
            if isinstance(record, RecordError):
                problems.append(Problem(path, str(record)))
                continue
            file = path.relative_to(folder.path).as_posix()
            arm = arms.get(record.key.arm, {})
            try:
                rows = list(trial_rows(record, run, file, arm, texts=texts))
            except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
                problems.append(Problem(path, f"{path}: is no trial ({error!r})"))
                continue
            for frame, row in rows:
                tables[frame].add(row)
        memory = MemoryRecords.read(folder)
        problems += [Problem(path, f"{path}: {reason}") for path, reason in memory.damaged_steps]
        for stream in memory.streams:
            for step in stream.steps:
                bank = memory.banks.get(step.after)
                for frame, row in step_rows(run, step, bank and sum(bank.active.values())):
                    tables[frame].add(row)
        unread: list[RecordError] = []
        for snapshot, item in folder.memory_items(unread.append):
            try:
                tables["memory_items"].add(item_row(run, snapshot, item))
            except (AttributeError, TypeError) as error:
                where = folder.path / "memory" / snapshot
                problems.append(Problem(where, f"{where}: holds what is no item ({error!r})"))
        problems += [Problem(Path(error.where), str(error)) for error in unread]
    built = {name: table.frame() for name, table in tables.items()}
    return Frames(**built, manifests=manifests, problems=tuple(problems))


class _Table:
    """Rows on their way into a frame, held by column."""

    def __init__(self, columns: tuple[Column, ...]) -> None:
        self._columns = columns
        self._values: list[list[Any]] = [[] for _ in columns]

    def add(self, row: Row) -> None:
        for column, values in zip(self._columns, self._values, strict=True):
            values.append(row.get(column.name))

    def frame(self) -> pd.DataFrame:
        series = {}
        for column, values in zip(self._columns, self._values, strict=True):
            series[column.name] = _series(values, column.dtype)
            values.clear()
        return pd.DataFrame(series)


def _series(values: list[Any], dtype: str) -> pd.Series[Any]:
    if dtype == TIME:
        raw = pd.Series(values, dtype="object")
        times = pd.to_datetime(raw, utc=True, errors="coerce", format="ISO8601")
        return times.dt.as_unit("us")
    try:
        if dtype == "float64":
            return pd.Series(np.array(values, dtype=float))
        return pd.Series(values, dtype=dtype)
    except (TypeError, ValueError):
        return _mended(values, dtype)


def _mended(values: list[Any], dtype: str) -> pd.Series[Any]:
    """Make a column of values that are not all what they should be; the others are missing.

    Models write lone surrogates, which no table can hold, and words where numbers are wanted.
    """
    if dtype == "str":
        texts = [None if value is None else str(value) for value in values]
        kept = [t if t is None else t.encode(errors="replace").decode() for t in texts]
        return pd.Series(kept, dtype=dtype)
    if dtype == "boolean":
        return pd.Series([v if isinstance(v, bool) else None for v in values], dtype=dtype)
    numbers = pd.to_numeric(pd.Series(values, dtype="object"), errors="coerce").astype("float64")
    if dtype == "float64":
        return numbers
    return pd.Series(numbers.fillna(0) if dtype == "int64" else numbers.round(), dtype=dtype)


def _folders(runs: Runs) -> list[RunFolder]:
    many = [runs] if isinstance(runs, (str, Path, RunFolder)) else list(runs)
    folders = [run if isinstance(run, RunFolder) else RunFolder(Path(run)) for run in many]
    for folder in folders:
        if not (folder.path / "manifest.json").exists() and not folder.trial_names():
            hint = "give a folder with manifest.json"
            raise UsageError("holds no run", where=str(folder.path), hint=hint)
    return folders


def _named(folders: list[RunFolder]) -> dict[str, RunFolder]:
    """Name each run by as much of its path's end as tells it apart from the others."""
    unique = {folder.path.resolve(): folder for folder in folders}
    paths = [path.parts for path in unique]
    for length in range(1, max(map(len, paths), default=1) + 1):
        names = ["/".join(parts[-length:]) for parts in paths]
        if len(set(names)) == len(names):
            break
    return dict(zip(names, unique.values(), strict=True)) if paths else {}


def _manifest(folder: RunFolder, problems: list[Problem]) -> Mapping[str, Any]:
    try:
        return folder.manifest or {}
    except RecordError as error:
        problems.append(Problem(folder.path / "manifest.json", str(error)))
        return {}


def _arms(manifest: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    return (manifest.get("experiment") or {}).get("arms") or ()
