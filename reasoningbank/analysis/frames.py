"""Runs as pandas frames: `load(runs)` reads the records one at a time, `write_parquet` stores them.

`docs/analysis.md` describes every column. Long texts (messages, results) are read only with
``texts=True``, so that thousands of trials fit in ordinary memory.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa

from reasoningbank.analysis.columns import COLUMNS, TIME, Column, columns_of
from reasoningbank.analysis.memory import MemoryRecords, code_of, filtered_out, shown_items
from reasoningbank.analysis.tables import json_of, text_of
from reasoningbank.errors import RecordError, UsageError
from reasoningbank.experiment import RunFolder, TrialRecord
from reasoningbank.experiment.records import Step
from reasoningbank.trajectory import Event, Trajectory

Runs = str | Path | RunFolder | Iterable[str | Path | RunFolder]
Row = dict[str, Any]

#: Key of a Parquet file's metadata that holds the manifests, by run, as JSON.
MANIFESTS = b"reasoningbank.manifests"

#: Possible outcomes of a trial, best first; the last two are not judged.
OUTCOMES = (
    "right",
    "partly right",
    "wrong rows",
    "wrong form",
    "query timeout",
    "query error",
    "no query",
    "gold defect",
    "infrastructure error",
)

#: Columns of trials that a record and its usage hold under the same name.
_RECORD = ("step", "group", "template", "level", "complexity", "form", "question", "started",
           "status", "sparql", "judge_seconds", "tries")  # fmt: skip
_USAGE = ("lm_calls", "cached_calls", "prompt_tokens", "completion_tokens",
          "cached_prompt_tokens", "tokens", "tool_calls", "seconds", "dollars")  # fmt: skip


class Problem(NamedTuple):
    """A file that could not be read and is in no frame."""

    path: Path
    reason: str


@dataclass(frozen=True)
class Frames:
    """Runs as tables; `reasoningbank.analysis.columns` describes their columns.

    Attributes:
        trials: One row per trial.
        events: One row per event of a trajectory.
        tool_calls: One row per tool call, with its result joined.
        lm_calls: One row per model call.
        judgements: One row per trial and judge other than the execution judge.
        retrievals: One row per memory item shown in a trial.
        filtered_out: One row per memory item that the leakage filter removed.
        steps: One row per step of a learning stream.
        rejections: One row per distilled item that was not stored.
        memory_items: One row per memory item in a snapshot of the bank.
        manifests: Manifest by run.
        problems: Files that could not be read.
    """

    trials: pd.DataFrame
    events: pd.DataFrame
    tool_calls: pd.DataFrame
    lm_calls: pd.DataFrame
    judgements: pd.DataFrame
    retrievals: pd.DataFrame
    filtered_out: pd.DataFrame
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
    tables = {name: _Table(columns_of(name, texts=texts)) for name in COLUMNS}
    manifests: dict[str, Mapping[str, Any]] = {}
    problems: list[Problem] = []
    for run, folder in _named(_folders(runs)).items():
        manifests[run] = {}
        try:
            manifests[run] = folder.manifest or {}
        except RecordError as error:
            problems.append(Problem(folder.path / "manifest.json", str(error)))
        experiment = manifests[run].get("experiment") or {}
        arms = {str(arm.get("name")): arm for arm in experiment.get("arms") or ()}
        for path, record in folder.read_all():
            if isinstance(record, RecordError):
                problems.append(Problem(path, str(record)))
                continue
            file = path.relative_to(folder.path).as_posix()
            try:
                arm = arms.get(record.key.arm, {})
                rows = list(_trial_rows(record, run, file, arm, texts=texts))
            except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
                problems.append(Problem(path, f"{path}: is not a trial ({error!r})"))
                continue
            for frame, row in rows:
                tables[frame].add(row)
        memory = MemoryRecords.read(folder)
        problems += [Problem(path, f"{path}: {reason}") for path, reason in memory.damaged_steps]
        for stream in memory.streams:
            for step in stream.steps:
                bank = memory.banks.get(step.after)
                for frame, row in _step_rows(run, step, bank and sum(bank.active.values())):
                    tables[frame].add(row)
        unread: list[RecordError] = []
        for snapshot, item in folder.memory_items(unread.append):
            try:
                tables["memory_items"].add(_item_row(run, snapshot, item))
            except (AttributeError, TypeError) as error:
                where = folder.path / "memory" / snapshot
                problems.append(Problem(where, f"{where}: holds an invalid item ({error!r})"))
        problems += [Problem(Path(error.where), str(error)) for error in unread]
    built = {name: table.frame() for name, table in tables.items()}
    return Frames(**built, manifests=manifests, problems=tuple(problems))


class _Table:
    """The rows of a frame under construction, by column."""

    def __init__(self, columns: tuple[Column, ...]) -> None:
        self._values: dict[Column, list[Any]] = {column: [] for column in columns}

    def add(self, row: Row) -> None:
        for column, values in self._values.items():
            values.append(row.get(column.name))

    def frame(self) -> pd.DataFrame:
        series = {}
        for column, values in self._values.items():
            series[column.name] = _series(values, column.dtype)
            values.clear()
        return pd.DataFrame(series)


def _series(values: list[Any], dtype: str) -> pd.Series[Any]:
    if dtype == TIME:
        raw = pd.Series(values, dtype="object")
        times = pd.to_datetime(raw, utc=True, errors="coerce", format="ISO8601")
        return times.dt.as_unit("us")
    with suppress(TypeError, ValueError):
        if dtype == "float64":
            return pd.Series(np.array(values, dtype=float))
        return pd.Series(values, dtype=dtype)
    # Models write lone surrogates, which no table can hold, and words instead of numbers: values
    # of the wrong type become missing.
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
        if not ((folder.path / "manifest.json").exists() or folder.trial_names()):
            hint = "give a folder with manifest.json"
            raise UsageError("holds no run", where=str(folder.path), hint=hint)
    return folders


def _named(folders: list[RunFolder]) -> dict[str, RunFolder]:
    """Name each run by as much of the end of its path as is unique."""
    unique = {folder.path.resolve(): folder for folder in folders}
    paths = [path.parts for path in unique]
    for length in range(1, max(map(len, paths), default=1) + 1):
        names = ["/".join(parts[-length:]) for parts in paths]
        if len(set(names)) == len(names):
            break
    return dict(zip(names, unique.values(), strict=True)) if paths else {}


def _trial_rows(
    record: TrialRecord, run: str, file: str, arm: Mapping[str, Any], *, texts: bool
) -> Iterator[tuple[str, Row]]:
    """Yield the rows of a trial, each with its frame's name."""
    key = record.key
    keys: Row = {"run": run, "arm": key.arm, "task": key.task, "seed": key.seed}
    judged = record.verdict is not None and record.verdict.get("status") != "gold_defect"
    calls = list(_tool_calls(record.trajectory, texts=texts))
    failed = sum(not call["ok"] for call in calls)
    yield "trials", keys | _trial(record, arm, judged) | {"tool_errors": failed, "file": file}
    for event, turn in _turns(record.trajectory):
        yield "events", keys | _event(record.trajectory, event, turn, texts=texts)
        if event.kind == "lm_call":
            yield "lm_calls", keys | _lm_call(record.trajectory, event, turn, texts=texts)
        elif event.kind == "memory_retrieved":
            for frame, row in _retrieval_rows(record.trajectory, event):
                yield frame, keys | row
    for call in calls:
        yield "tool_calls", keys | call
    for judge, found in record.judgements.items():
        strict = record.strict if judged else None
        yield "judgements", keys | {"judge": judge, "strict": strict} | _judgement(found)


def _trial(record: TrialRecord, arm: Mapping[str, Any], judged: bool) -> Row:
    verdict, usage = record.verdict or {}, record.usage
    scores = verdict if judged else {}
    status = str(verdict.get("status", "judged"))
    if record.verdict is None:
        outcome = "infrastructure error"
    elif status != "judged":
        outcome = status.replace("_", " ")
    elif record.strict:
        outcome = "right"
    else:
        outcome = "partly right" if record.f1 > 0 else "wrong rows"
    return {
        **{name: getattr(record, name) for name in _RECORD},
        **{name: getattr(usage, name) for name in _USAGE},
        **{name: verdict.get(name) for name in ("n_gold", "n_predicted")},
        **{name: scores.get(name) for name in ("precision", "recall", "f1")},
        **{name: getattr(record, name) or None for name in ("memory", "budget", "error", "gold")},
        **{name: arm.get(name) for name in ("agent", "lm")},
        "model": record.model.get("model"),
        "items_shown": len(shown_items(record)),
        "verdict": verdict.get("status"),
        "codes": " ".join(str(one["code"]) for one in verdict.get("findings") or ()) or None,
        "reason": verdict.get("reason") or None,
        "outcome": outcome,
        "judged": judged,
        "strict": bool(scores.get("strict")) if judged else None,
        "lenient": bool(scores.get("lenient")) if judged else None,
        "turns": usage.iterations,
        "attempts": 1 + len(record.rollouts),
        "answer": record.answer or None,
    }


def _turns(trajectory: Trajectory) -> Iterator[tuple[Event, int]]:
    # Judges and distillers call models too; only the agent's calls are turns.
    turn = 0
    for event in trajectory.events:
        if event.kind == "lm_call" and event.data.get("role", "solver") == "solver":
            turn += 1
        yield event, turn


def _event(trajectory: Trajectory, event: Event, turn: int, *, texts: bool) -> Row:
    data = event.data
    tool = data.get("tool")
    if event.kind == "tool_result" and event.parent is not None:
        tool = trajectory.events[event.parent].data.get("tool")
    row: Row = {name: getattr(event, name) for name in ("kind", "parent", "at", "seconds")}
    error = text_of(trajectory.resolve(data.get("error")))
    row |= {"event": event.index, "turn": turn, "tool": tool, "error": error}
    if texts:
        row["data"] = json_of(trajectory.resolve(data))
    return row


def _lm_call(trajectory: Trajectory, event: Event, turn: int, *, texts: bool) -> Row:
    data = event.data
    plain = ("role", "model", "prompt_tokens", "completion_tokens", "cached_prompt_tokens",
             "dollars", "prompt_s", "generation_s")  # fmt: skip
    row: Row = {name: data.get(name) for name in plain}
    row |= {
        "event": event.index,
        "turn": turn,
        "at": event.at,
        "seconds": event.seconds,
        "from_cache": bool(data.get("from_cache")),
        "finish_reason": data.get("finish_reason") or None,
        "error": text_of(trajectory.resolve(data.get("error"))),
    }
    if texts:
        row["messages"] = json_of(trajectory.resolve(data.get("messages")))
        row["response"] = text_of(trajectory.resolve(data.get("response")))
    return row


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
        row: Row = {
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
        }
        if texts:
            row |= {"arguments": json_of(arguments), "result": text}
        if ref:
            made.append(str(ref["key"]))
        yield row


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
    tokens = (usage.get("prompt_tokens"), usage.get("completion_tokens"))
    success = found.get("success")
    return {
        "success": success if isinstance(success, bool) else None,
        "confidence": found.get("confidence"),
        "seconds": found.get("seconds"),
        "tokens": sum(n or 0 for n in tokens) if any(n is not None for n in tokens) else None,
        "dollars": usage.get("dollars"),
        "reason": found.get("reason"),
    }


def _retrieval_rows(trajectory: Trajectory, event: Event) -> Iterator[tuple[str, Row]]:
    data = trajectory.resolve(event.data)
    for rank, item in enumerate(data.get("items") or ()):
        row = {name: item.get(name) for name in ("title", "src", "score", "text")}
        row |= {name: data.get(name) for name in ("tokens", "query")}
        row |= {
            "event": event.index,
            "rank": rank,
            "item": str(item.get("id", "")),
            "item_task": item.get("task"),
            "item_trial": text_of(item.get("trial")),
        }
        yield "retrievals", row
    for item in filtered_out(data):
        row = {"item": str(item.get("id", "")), "code": code_of(item)}
        yield "filtered_out", {"event": event.index, "reason": item.get("reason"), **row}


def _step_rows(run: str, step: Step, bank: int | None) -> Iterator[tuple[str, Row]]:
    keys: Row = {"run": run, "arm": step.arm, "task": step.task, "seed": step.order}
    same = ("step", "trial", "before", "after", "used", "success", "seconds")
    sizes = ("retrieved", "added", "merged", "rejected")
    row: Row = {name: getattr(step, name) for name in same}
    row |= {name: len(getattr(step, name)) for name in sizes}
    row |= {
        "bank": bank,
        "changed": len(step.changes),
        "execution": step.judges.get("execution"),
        "tokens": step.usage.tokens,
    }
    yield "steps", keys | row
    for one in step.rejected:
        row = {name: one.get(name) for name in ("title", "reason", "text")}
        row |= {"step": step.step, "src": one.get("kind"), "code": code_of(one)}
        yield "rejections", keys | row


def _item_row(run: str, snapshot: str, item: Mapping[str, Any]) -> Row:
    origin = item.get("provenance") or {}
    counters = item.get("counters") or {}
    trial = re.fullmatch(r"(?:trials/)?([^/]+)/(.+)\.(-?\d+)(?:\.json)?", str(origin.get("trial")))
    arm, task, seed = trial.groups() if trial else (None, None, None)
    same = ("title", "description", "src", "content", "pattern")
    numbers = ("retrieved", "success", "failure", "helped", "hurt")
    return {
        **{name: item.get(name) for name in same},
        **{name: counters.get(name) or 0 for name in numbers},
        "run": run,
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
        "judge": origin.get("judge"),
        "model": origin.get("model"),
        "made": origin.get("time"),
    }


def write_parquet(frames: Frames, folder: Path) -> dict[str, Path]:
    """Write each frame to ``folder/<frame>.parquet``, even if it is empty.

    Every column carries its meaning (field metadata ``description``), every file the manifests.
    Files are written atomically and replace older ones.

    Args:
        frames: What `load` returned.
        folder: Folder of the files; created if missing.

    Returns:
        The files by frame.

    Raises:
        RecordError: If a file cannot be written.
    """
    manifests = json.dumps(frames.manifests, ensure_ascii=False).encode()
    written = {}
    for name, frame in frames.items():
        written[name] = folder / f"{name}.parquet"
        _write(_arrow_table(name, frame, manifests), written[name])
    return written


def _arrow_table(name: str, frame: pd.DataFrame, manifests: bytes) -> pa.Table:
    table = pa.Table.from_pandas(frame, preserve_index=False)
    meanings = {column.name: column.meaning for column in COLUMNS[name]}
    fields = [
        # Not every reader knows the large strings that pandas makes.
        pa.field(f.name, pa.string() if pa.types.is_large_string(f.type) else f.type)
        .with_metadata({"description": meanings[f.name]})
        for f in table.schema
    ]  # fmt: skip
    metadata = {**(table.schema.metadata or {}), MANIFESTS: manifests}
    return table.cast(pa.schema(fields, metadata=metadata))


def _write(table: pa.Table, path: Path) -> None:
    import pyarrow.parquet as pq

    temporary = path.with_name(f".{path.name}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("wb") as file:
            pq.write_table(table, file, compression="zstd")
        temporary.replace(path)
    except OSError as error:
        reason = error.strerror or str(error)
        hint = "free space or choose another folder with --out"
        raise RecordError(f"cannot be written ({reason})", where=str(path), hint=hint) from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
