"""Runs as pandas frames: `load(runs)` reads the records one at a time, `write_parquet` stores them.

`columns.toml` describes every column. Long texts (messages, results) are read only with
``texts=True``, so that thousands of trials fit in ordinary memory.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.resources import files
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa

from reasoningbank.analysis.memory import (
    MemoryRecords,
    Problem,
    code_of,
    filtered_out,
    shown_items,
    stream_levels,
)
from reasoningbank.analysis.scores import RunPlan
from reasoningbank.analysis.tables import json_of, text_of
from reasoningbank.cache import write_bytes_atomically
from reasoningbank.errors import RecordError
from reasoningbank.experiment import RunFolder, TrialRecord
from reasoningbank.experiment.records import Step
from reasoningbank.trajectory import Event, Trajectory

Runs = str | Path | RunFolder | Iterable[str | Path | RunFolder]
Row = dict[str, Any]

#: Key of a Parquet file's metadata that holds the manifests, by run, as JSON.
MANIFESTS = b"reasoningbank.manifests"

_TIME = "datetime64[us, UTC]"


class Column(NamedTuple):
    """A column of a frame; a long one is read only if texts are asked for."""

    name: str
    dtype: str
    meaning: str
    long: bool = False


def _column(name: str, said: str) -> Column:
    kind, _, meaning = said.partition(" ")
    dtype = _TIME if kind == "time" else kind.removesuffix("*")
    return Column(name, dtype, meaning, long=kind.endswith("*"))


#: Type and meaning of the columns by frame, and in `rows` what one row of each frame is.
DESCRIBED: Mapping[str, Mapping[str, str]] = tomllib.loads(
    files("reasoningbank.analysis").joinpath("columns.toml").read_text("utf-8")
)
#: Columns by frame, including long ones.
COLUMNS: Mapping[str, tuple[Column, ...]] = {
    frame: tuple(
        _column(*one)
        for table in ("keys", frame)
        if (table, frame) != ("keys", "memory_items")
        for one in DESCRIBED[table].items()
    )
    for frame in DESCRIBED["rows"]
}


@dataclass(frozen=True)
class Frames:
    """Runs as tables, whose rows and columns `docs/analysis.md` describes."""

    trials: pd.DataFrame  #: One row per trial
    events: pd.DataFrame  #: One row per event of a trajectory
    tool_calls: pd.DataFrame  #: One row per tool call, with its result joined
    lm_calls: pd.DataFrame  #: One row per model call
    judgements: pd.DataFrame  #: One row per trial and judge other than the execution judge
    retrievals: pd.DataFrame  #: One row per memory item shown in a trial
    filtered_out: pd.DataFrame  #: One row per memory item that the leakage filter removed
    steps: pd.DataFrame  #: One row per step of a learning stream
    rejections: pd.DataFrame  #: One row per distilled item that was not stored
    memory_items: pd.DataFrame  #: One row per memory item in a snapshot of the bank
    manifests: Mapping[str, Mapping[str, Any]]  #: Manifest by run
    problems: tuple[Problem, ...] = ()  #: Files that could not be read

    def items(self) -> Iterator[tuple[str, pd.DataFrame]]:
        """Yield each frame with its name."""
        for name in COLUMNS:
            yield name, getattr(self, name)


def columns_of(frame: str, *, texts: bool = False) -> tuple[Column, ...]:
    """Return the columns of a frame, long texts only with ``texts=True``."""
    return tuple(column for column in COLUMNS[frame] if texts or not column.long)


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
    builder = FrameBuilder(texts=texts)
    for run, folder in _named(runs).items():
        builder.open(run, folder)
        for path, found in folder.read_all():
            builder.add(path, found)
        builder.close(MemoryRecords.read(folder))
    return builder.frames()


class FrameBuilder:
    """Makes frames of runs whose trials are being read, one run after the other."""

    def __init__(self, *, texts: bool = False) -> None:
        self._texts = texts
        self._tables: dict[str, dict[Column, list[Any]]] = {
            name: {column: [] for column in columns_of(name, texts=texts)} for name in COLUMNS
        }
        self._manifests: dict[str, Mapping[str, Any]] = {}
        self._problems: list[Problem] = []
        self._known: dict[str, list[str]] = {}

    def open(self, run: str, folder: RunFolder) -> None:
        """Begin with a run."""
        self._run, self._folder, self._manifests[run] = run, folder, {}
        try:
            self._manifests[run] = folder.manifest or {}
        except RecordError as error:
            self._problems.append(Problem(folder.path / "manifest.json", str(error)))
        self._arms = RunPlan(self._manifests[run]).arms

    def add(self, path: Path, found: TrialRecord | RecordError) -> None:
        """Add a trial of the run, or the error of reading it."""
        if isinstance(found, RecordError):
            self._problems.append(Problem(path, str(found)))
            return
        file = path.relative_to(self._folder.path).as_posix()
        arm = self._arms.get(found.key.arm, {})
        try:
            self._add(list(_trial_rows(found, file, arm, texts=self._texts)))
        except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
            self._problems.append(Problem(path, f"{path}: is not a trial ({error!r})"))

    def close(self, memory: MemoryRecords) -> None:
        """End a run with its banks and streams."""
        self._known[self._run] = memory.begun_with()
        self._problems += [Problem(path, f"{path}: {reason}") for path, reason in memory.damaged]
        for stream in memory.streams:
            for step in stream.steps:
                bank = memory.banks.get(step.after)
                self._add(_step_rows(step, sum(bank.active.values()) if bank else None))
        for snapshot, item in self._folder.memory_items(lambda _: None):
            try:
                self._add([("memory_items", _item_row(snapshot, item))])
            except (AttributeError, TypeError) as error:
                where = self._folder.path / "memory" / snapshot
                what = f"{where}: holds an invalid item ({error!r})"
                self._problems.append(Problem(where, what))

    def frames(self) -> Frames:
        """Return the frames of the runs so far."""
        built = {
            name: pd.DataFrame({c.name: _series(values, c.dtype) for c, values in table.items()})
            for name, table in self._tables.items()
        }
        _fill_stream_levels(built["trials"], self._known)
        return Frames(**built, manifests=self._manifests, problems=tuple(self._problems))

    def _add(self, rows: Iterable[tuple[str, Row]]) -> None:
        for frame, row in rows:
            row["run"] = self._run
            for column, values in self._tables[frame].items():
                values.append(row.get(column.name))


def write_parquet(frames: Frames, folder: Path, only: Collection[str] = COLUMNS) -> dict[str, Path]:
    """Write each frame to ``folder/<frame>.parquet``, even if it is empty.

    Every column carries its meaning (field metadata ``description``), every file the manifests.
    Files are written atomically and replace older ones.
    """
    import pyarrow.parquet as pq

    manifests = json.dumps(frames.manifests, ensure_ascii=False).encode()
    written = {name: folder / f"{name}.parquet" for name in only}
    for name, path in written.items():
        table = pa.Table.from_pandas(getattr(frames, name), preserve_index=False)
        meanings = {column.name: column.meaning for column in COLUMNS[name]}
        fields = [
            # Not every reader knows the large strings that pandas makes.
            pa.field(f.name, pa.string() if pa.types.is_large_string(f.type) else f.type)
            .with_metadata({"description": meanings[f.name]})
            for f in table.schema
        ]  # fmt: skip
        metadata = {**(table.schema.metadata or {}), MANIFESTS: manifests}
        sink = pa.BufferOutputStream()
        cast = table.cast(pa.schema(fields, metadata=metadata))
        pq.write_table(cast, sink, compression="zstd")
        hint = "free space or choose another folder with --out"
        write_bytes_atomically(path, sink.getvalue().to_pybytes(), durable=False, hint=hint)
    return written


def _series(values: list[Any], dtype: str) -> pd.Series[Any]:
    if dtype == _TIME:
        raw = pd.Series(values, dtype="object")
        times = pd.to_datetime(raw, utc=True, errors="coerce", format="ISO8601")
        return times.dt.as_unit("us")
    with suppress(TypeError, ValueError):
        return pd.Series(
            np.array(values, dtype=float) if dtype == "float64" else values, dtype=dtype
        )
    # Models write lone surrogates, which no table can hold, and words instead of numbers: values
    # of the wrong type become missing.
    if dtype == "str":
        values = [None if v is None else str(v).encode(errors="replace").decode() for v in values]
        return pd.Series(values, dtype=dtype)
    if dtype == "boolean":
        return pd.Series([v if isinstance(v, bool) else None for v in values], dtype=dtype)
    numbers = pd.to_numeric(pd.Series(values, dtype="object"), errors="coerce").astype("float64")
    whole = numbers.fillna(0) if dtype == "int64" else numbers.round()
    return numbers if dtype == "float64" else pd.Series(whole, dtype=dtype)


def _fill_stream_levels(trials: pd.DataFrame, known: Mapping[str, Sequence[str]]) -> None:
    """Give the tasks of streams their level relative to what the stream held before them."""
    missing = trials[trials["step"].notna() & (trials["level"].fillna("") == "")]
    for run, own in missing.groupby("run"):
        places = list(own[["seed", "step", "task"]].itertuples(index=False, name=None))
        golds = dict(own[["task", "gold"]].dropna().itertuples(index=False, name=None))
        found = stream_levels(places, golds, known[str(run)])
        trials.loc[own.index, "level"] = [found.get((seed, task), "") for seed, _, task in places]


def _named(runs: Runs) -> dict[str, RunFolder]:
    """Name each run by as much of the end of its path as is unique."""
    many = [runs] if isinstance(runs, (str, Path, RunFolder)) else runs
    unique = {}
    for run in many:
        folder = run if isinstance(run, RunFolder) else RunFolder(Path(run))
        if not ((folder.path / "manifest.json").exists() or folder.trial_names()):
            folder.require_manifest()
        unique[folder.path.resolve()] = folder
    endings = (["/".join(path.parts[-n:]) for path in unique] for n in count(1))
    names = next(names for names in endings if len(set(names)) == len(unique))
    return dict(zip(names, unique.values(), strict=True))


def _trial_rows(
    record: TrialRecord, file: str, arm: Mapping[str, Any], *, texts: bool
) -> Iterator[tuple[str, Row]]:
    """Yield the rows of a trial, each with its frame's name."""
    key, trajectory = record.key, record.trajectory
    keys: Row = {"arm": key.arm, "task": key.task, "seed": key.seed}
    calls = list(_tool_calls(trajectory, texts=texts))
    failed = sum(not call["ok"] for call in calls)
    yield "trials", keys | _trial(record, arm) | {"tool_errors": failed, "file": file}
    for event, turn in _turns(trajectory):
        place = keys | {"event": event.index, "turn": turn}
        yield "events", place | _event(trajectory, event, texts=texts)
        if event.kind == "lm_call":
            yield "lm_calls", _lm_call(trajectory, event, texts=texts) | place
        elif event.kind == "memory_retrieved":
            data = trajectory.resolve(event.data)
            for rank, item in enumerate(data.get("items") or ()):
                yield "retrievals", _retrieved(data, rank, item) | place
            for item in filtered_out(data):
                row = {**item, "item": str(item.get("id", "")), "code": code_of(item)}
                yield "filtered_out", row | place
    for call in calls:
        yield "tool_calls", keys | call
    for judge, found in record.judgements.items():
        strict = record.strict if record.judged else None
        yield "judgements", _judgement(found) | keys | {"judge": judge, "strict": strict}


def _trial(record: TrialRecord, arm: Mapping[str, Any]) -> Row:
    verdict, usage, judged = record.verdict or {}, record.usage, record.judged
    status = str(verdict.get("status", "judged"))
    if record.verdict is None:
        outcome = "bug" if record.status == "bug" else "infrastructure error"
    elif status != "judged":
        outcome = status.replace("_", " ")
    elif record.strict:
        outcome = "right"
    else:
        outcome = "partly right" if record.f1 > 0 else "wrong rows"
    return {
        **verdict,
        **vars(record),
        **vars(usage),
        **{name: verdict.get(name) if judged else None for name in ("precision", "recall", "f1")},
        **{name: bool(verdict.get(name)) if judged else None for name in ("strict", "lenient")},
        **{name: getattr(record, name) or None
           for name in ("memory", "budget", "error", "gold", "answer")},
        **{name: arm.get(name) for name in ("agent", "lm")},
        "model": record.model.get("model"),
        "items_shown": len(shown_items(record)),
        "verdict": verdict.get("status"),
        "codes": " ".join(str(one["code"]) for one in verdict.get("findings") or ()) or None,
        "reason": verdict.get("reason") or None,
        "outcome": outcome,
        "judged": judged,
        "tokens": usage.tokens,
        "turns": usage.iterations,
        "attempts": 1 + len(record.rollouts),
    }  # fmt: skip


def _turns(trajectory: Trajectory) -> Iterator[tuple[Event, int]]:
    # Judges and distillers call models too; only the agent's calls are turns.
    turn = 0
    for event in trajectory.events:
        if event.kind == "lm_call" and event.data.get("role", "solver") == "solver":
            turn += 1
        yield event, turn


def _event(trajectory: Trajectory, event: Event, *, texts: bool) -> Row:
    tool = event.data.get("tool")
    if event.kind == "tool_result" and event.parent is not None:
        tool = trajectory.events[event.parent].data.get("tool")
    return {
        **vars(event),
        "tool": tool,
        "error": text_of(trajectory.resolve(event.data.get("error"))),
        "data": json_of(trajectory.resolve(event.data)) if texts else None,
    }


def _lm_call(trajectory: Trajectory, event: Event, *, texts: bool) -> Row:
    data = event.data
    return {
        **data,
        "at": event.at,
        "seconds": event.seconds,
        "from_cache": bool(data.get("from_cache")),
        "finish_reason": data.get("finish_reason") or None,
        "error": text_of(trajectory.resolve(data.get("error"))),
        "messages": json_of(trajectory.resolve(data.get("messages"))) if texts else None,
        "response": text_of(trajectory.resolve(data.get("response"))) if texts else None,
    }


def _tool_calls(trajectory: Trajectory, *, texts: bool) -> Iterator[Row]:
    results = {e.parent: e for e in trajectory.of("tool_result") if e.parent is not None}
    made: list[str] = []
    calls = ((event, turn) for event, turn in _turns(trajectory) if event.kind == "tool_call")
    for order, (event, turn) in enumerate(calls):
        arguments = trajectory.resolve(event.data.get("arguments"))
        end = results.get(event.index)
        data = trajectory.resolve(end.data) if end is not None else {}
        error, result, ref = text_of(data.get("error")), data.get("result"), data.get("ref") or {}
        text = None if result is None else json_of(result)
        yield {
            "event": event.index,
            "order": order,
            "turn": turn,
            "tool": str(event.data.get("tool", "")),
            "at": event.at,
            "seconds": end.seconds if end is not None else None,
            "ok": end is not None and error is None,
            "error": error,
            "error_code": data.get("code"),
            "infrastructure": bool(data.get("infrastructure")),
            "opened": " ".join(dict.fromkeys(_opened(arguments, made))) or None,
            "made": ref.get("key"),
            "rows": ref.get("rows"),
            "result_chars": None if text is None else len(text),
            "arguments": json_of(arguments) if texts else None,
            "result": text if texts else None,
            "note": text_of(data.get("note")) if texts else None,
        }
        if ref:
            made.append(str(ref["key"]))


def _opened(value: Any, made: list[str]) -> Iterator[str]:
    """Yield the handles among arguments, given as such or by their key."""
    if isinstance(value, str):
        if value in made:
            yield value
    elif isinstance(value, (Mapping, list, tuple)):
        for part in value.values() if isinstance(value, Mapping) else value:
            yield from _opened(part, made)


def _judgement(found: Mapping[str, Any]) -> Row:
    usage = found.get("usage") or {}
    tokens = [usage.get(name) for name in ("prompt_tokens", "completion_tokens")]
    success = found.get("success")
    return {
        **found,
        "success": success if isinstance(success, bool) else None,
        "tokens": sum(n or 0 for n in tokens) if tokens != [None, None] else None,
        "dollars": usage.get("dollars"),
    }


def _retrieved(data: Mapping[str, Any], rank: int, item: Mapping[str, Any]) -> Row:
    return {
        **item,
        **{name: data.get(name) for name in ("tokens", "query")},
        "rank": rank,
        "item": str(item.get("id", "")),
        "item_task": item.get("task"),
        "item_trial": text_of(item.get("trial")),
    }


def _step_rows(step: Step, bank: int | None) -> Iterator[tuple[str, Row]]:
    keys: Row = {"arm": step.arm, "task": step.task, "seed": step.order, "step": step.step}
    sizes = ("retrieved", "added", "merged", "rejected")
    facts = {
        **vars(step),
        **{name: len(getattr(step, name)) for name in sizes},
        "bank": bank,
        "changed": len(step.changes),
        "execution": step.judges.get("execution"),
        "tokens": step.usage.tokens,
    }
    yield "steps", facts | keys
    for one in step.rejected:
        yield "rejections", {**one, "src": one.get("kind"), "code": code_of(one), **keys}


def _item_row(snapshot: str, item: Mapping[str, Any]) -> Row:
    origin = item.get("provenance") or {}
    counters = item.get("counters") or {}
    trial = re.fullmatch(r"(?:trials/)?([^/]+)/(.+)\.(-?\d+)(?:\.json)?", str(origin.get("trial")))
    arm, task, seed = trial.groups() if trial else (None, None, None)
    numbers = ("retrieved", "success", "failure", "helped", "hurt")
    return {
        **item,
        **{name: counters.get(name) or 0 for name in numbers},
        **{name: origin.get(name) for name in ("judge", "model")},
        "arm": arm,
        "task": origin.get("task") or task,
        "seed": None if seed is None else int(seed),
        "snapshot": snapshot,
        "item": str(item.get("id", "")),
        "tags": " ".join(map(str, item.get("tags") or ())),
        "scope": text_of(item.get("scope")),
        "status": item.get("status") or "active",
        "superseded_by": item.get("superseded_by") or None,
        "evidence": 1 + len(item.get("evidence") or ()),
        "trial": text_of(origin.get("trial")),
        "made": origin.get("time"),
    }
