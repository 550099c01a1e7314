"""The columns of every frame: name, type and meaning.

Frames are built from these, Parquet files carry the meanings, and `docs/analysis.md` lists them in
tables that `scripts/generate.py` writes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

__all__ = ["COLUMNS", "Column", "columns_of", "columns_page"]

TEXT, INTEGER, NUMBER, FLAG = "str", "int64", "float64", "bool"
MAYBE_INTEGER, MAYBE_FLAG, TIME = "Int64", "boolean", "datetime64[us, UTC]"


class Column(NamedTuple):
    """One column.

    Attributes:
        name: Its name.
        dtype: pandas type, the same in an empty frame. A missing value is NaN in `str` and
            `float64`, `<NA>` in `Int64` and `boolean`, NaT in times; other types have none.
        meaning: One line.
        long: Whether it holds long text and is present only with ``texts=True``.
    """

    name: str
    dtype: str
    meaning: str
    long: bool = False


_KEYS = (
    Column("run", TEXT, "name of the run: its folder, with enough of the path to be unique"),
    Column("arm", TEXT, "the system under test"),
    Column("task", TEXT, "id of the task"),
    Column("seed", INTEGER, "the repeat; in learning runs the task permutation"),
)

_TRIALS = (
    Column("step", MAYBE_INTEGER, "position in a learning stream, from 0; missing outside streams"),
    Column("group", TEXT, "group of the task: tasks that share a template"),
    Column("complexity", TEXT, "complexity class of the task"),
    Column("form", TEXT, "query form of the gold query"),
    Column("question", TEXT, "the question"),
    Column("agent", TEXT, "agent of the arm, from the manifest"),
    Column("lm", TEXT, "model of the arm, from the manifest"),
    Column("model", TEXT, "model, from its fingerprint"),
    Column("memory", TEXT, "snapshot of the memory bank that the agent could see"),
    Column("items_shown", INTEGER, "different memory items that it was shown"),
    Column("started", TIME, "start"),
    Column("status", TEXT, "how the attempt ended"),
    Column("budget", TEXT, "the budget that ended it, if one did"),
    Column("error", TEXT, "one line, if something went wrong"),
    Column("verdict", TEXT, "status of the verdict; missing after an infrastructure error"),
    Column("codes", TEXT, "codes of the verdict's findings, separated by blanks"),
    Column("reason", TEXT, "the verdict's findings as text"),
    Column("outcome", TEXT, "status and verdict in a word or two"),
    Column("judged", FLAG, "counts in rates: no infrastructure error, no defective gold query"),
    Column("strict", MAYBE_FLAG, "strict match; missing if not judged"),
    Column("lenient", MAYBE_FLAG, "match with extra columns allowed; missing if not judged"),
    Column("precision", NUMBER, "row precision; missing if not judged"),
    Column("recall", NUMBER, "row recall; missing if not judged"),
    Column("f1", NUMBER, "row F1; missing if not judged"),
    Column("n_gold", MAYBE_INTEGER, "rows of the gold result"),
    Column("n_predicted", MAYBE_INTEGER, "rows of the predicted result"),
    Column("sparql", TEXT, "the submitted query"),
    Column("gold", TEXT, "the gold query; missing in records without it"),
    Column("lm_calls", INTEGER, "model calls that the model answered"),
    Column("cached_calls", INTEGER, "model calls answered from a cache of responses"),
    Column("prompt_tokens", INTEGER, "prompt tokens"),
    Column("completion_tokens", INTEGER, "generated tokens"),
    Column("cached_prompt_tokens", INTEGER, "prompt tokens found in the server's prefix cache"),
    Column("tokens", INTEGER, "prompt and generated tokens"),
    Column("tool_calls", INTEGER, "tool calls, including failed ones"),
    Column("tool_errors", INTEGER, "tool calls that failed"),
    Column("turns", INTEGER, "turns of the agent's loop"),
    Column("seconds", NUMBER, "wall time of the attempt"),
    Column("judge_seconds", NUMBER, "duration of judging"),
    Column("dollars", NUMBER, "price; missing if the model has none"),
    Column("attempts", INTEGER, "attempts of which one was chosen; 1 without sampling"),
    Column("tries", INTEGER, "runs of the trial, including infrastructure errors"),
    Column("file", TEXT, "the record, relative to the run's folder"),
    Column("answer", TEXT, "the answer in words", long=True),
)

_EVENTS = (
    Column("event", INTEGER, "position in the trajectory, from 0"),
    Column("kind", TEXT, "kind of the event"),
    Column("turn", INTEGER, "model calls of the agent so far; 0 before the first"),
    Column("parent", MAYBE_INTEGER, "the event that it belongs to"),
    Column("at", NUMBER, "seconds since the start of the trial"),
    Column("seconds", NUMBER, "duration"),
    Column("tool", TEXT, "the tool, for tool calls and results"),
    Column("error", TEXT, "the error, if it is or has one"),
    Column("data", TEXT, "everything the event holds, as JSON", long=True),
)

_TOOL_CALLS = (
    Column("event", INTEGER, "the call's position in the trajectory"),
    Column("order", INTEGER, "the call's position among the trial's calls, from 0"),
    Column("turn", INTEGER, "model calls of the agent so far"),
    Column("tool", TEXT, "the tool"),
    Column("at", NUMBER, "seconds since the start of the trial"),
    Column("seconds", NUMBER, "duration; missing if the trial ended first"),
    Column("ok", FLAG, "whether it returned without an error before the trial ended"),
    Column("error", TEXT, "the error, one line"),
    Column("error_code", TEXT, "the error's code; missing in records without codes"),
    Column("infrastructure", FLAG, "whether the endpoint failed, not the agent"),
    Column("opened", TEXT, "handles among the arguments, separated by blanks"),
    Column("made", TEXT, "handle that it returned"),
    Column("rows", MAYBE_INTEGER, "items behind the returned handle"),
    Column("result_chars", MAYBE_INTEGER, "length of the result as JSON"),
    Column("arguments", TEXT, "its arguments, as JSON", long=True),
    Column("result", TEXT, "its result, as JSON", long=True),
)

_LM_CALLS = (
    Column("event", INTEGER, "the call's position in the trajectory"),
    Column("turn", INTEGER, "model calls of the agent so far, including this one"),
    Column("role", TEXT, "the caller: solver, judge, …"),
    Column("model", TEXT, "name of the model"),
    Column("at", NUMBER, "seconds since the start of the trial"),
    Column("seconds", NUMBER, "duration"),
    Column("prompt_tokens", MAYBE_INTEGER, "prompt tokens, if known"),
    Column("completion_tokens", MAYBE_INTEGER, "generated tokens, if known"),
    Column("cached_prompt_tokens", MAYBE_INTEGER, "prompt tokens found in the prefix cache"),
    Column("dollars", NUMBER, "price; missing if the model has none"),
    Column("from_cache", FLAG, "whether a cache of responses answered"),
    Column("finish_reason", TEXT, "why the model stopped, if known"),
    Column("prompt_s", NUMBER, "seconds to process the prompt, if a local server reports them"),
    Column("generation_s", NUMBER, "seconds to generate, if a local server reports them"),
    Column("error", TEXT, "the error, if the call failed"),
    Column("messages", TEXT, "the messages sent, as JSON", long=True),
    Column("response", TEXT, "the response", long=True),
)

_JUDGEMENTS = (
    Column("judge", TEXT, "the judge, e.g. `lm:local`"),
    Column("success", MAYBE_FLAG, "its verdict; missing if it reached none"),
    Column("strict", MAYBE_FLAG, "the execution judge's strict match; missing if not judged"),
    Column("confidence", NUMBER, "its confidence, 0 to 1"),
    Column("seconds", NUMBER, "duration"),
    Column("tokens", MAYBE_INTEGER, "prompt and generated tokens"),
    Column("dollars", NUMBER, "price; missing if the model has none"),
    Column("reason", TEXT, "its reason", long=True),
)

_RETRIEVALS = (
    Column("event", INTEGER, "the retrieval's position in the trajectory"),
    Column("rank", INTEGER, "rank of the item, from 0"),
    Column("item", TEXT, "id of the memory item"),
    Column("title", TEXT, "its title"),
    Column("src", TEXT, "its source: success, failure, contrast, seed or gold"),
    Column("score", NUMBER, "retrieval score"),
    Column("item_task", TEXT, "task from which the item was learned"),
    Column("item_trial", TEXT, "trial from which the item was learned"),
    Column("tokens", MAYBE_INTEGER, "tokens of all items of this retrieval"),
    Column("query", TEXT, "the search query", long=True),
    Column("text", TEXT, "the item as it was shown", long=True),
)

_FILTERED_OUT = (
    Column("event", INTEGER, "the retrieval, as in `events`"),
    Column("item", TEXT, "id of the memory item"),
    Column("code", TEXT, "code of the reason"),
    Column("reason", TEXT, "why the leakage filter removed it"),
)

_STEPS = (
    Column("step", INTEGER, "position in the stream, from 0"),
    Column("trial", TEXT, "the trial, as its record's path"),
    Column("before", TEXT, "snapshot of the bank before the step"),
    Column("after", TEXT, "snapshot of the bank after the step"),
    Column("bank", MAYBE_INTEGER, "active items after the step; missing without a snapshot"),
    Column("retrieved", INTEGER, "items shown"),
    Column("added", INTEGER, "items stored"),
    Column("merged", INTEGER, "items merged into an existing one"),
    Column("changed", INTEGER, "changes by consolidation"),
    Column("rejected", INTEGER, "distilled items that were not stored"),
    Column("used", TEXT, "judge whose verdict decided what was learned"),
    Column("success", MAYBE_FLAG, "that verdict; missing if it reached none"),
    Column("execution", MAYBE_FLAG, "the execution judge's verdict"),
    Column("tokens", INTEGER, "tokens of distillation"),
    Column("seconds", NUMBER, "seconds of distillation and consolidation"),
)

_REJECTIONS = (
    Column("step", INTEGER, "position in the stream, from 0"),
    Column("src", TEXT, "source that the item would have had"),
    Column("title", TEXT, "its title"),
    Column("code", TEXT, "code of the reason; `uncoded` in records without codes"),
    Column("reason", TEXT, "why it was not stored"),
    Column("text", TEXT, "the item", long=True),
)

_MEMORY_ITEMS = (
    Column("run", TEXT, "name of the run"),
    Column("arm", TEXT, "arm of the trial from which the item was learned"),
    Column("task", TEXT, "task from which the item was learned"),
    Column("seed", MAYBE_INTEGER, "seed of the trial from which the item was learned"),
    Column("snapshot", TEXT, "snapshot of the bank that holds the item"),
    Column("item", TEXT, "id: the hash of its content"),
    Column("title", TEXT, "its title"),
    Column("description", TEXT, "one line"),
    Column("src", TEXT, "its source: success, failure, contrast, seed or gold"),
    Column("tags", TEXT, "tags, separated by blanks"),
    Column("scope", TEXT, "the endpoint or pack that it is about"),
    Column("status", TEXT, "active, superseded or retired"),
    Column("superseded_by", TEXT, "item that replaced it, if any"),
    Column("evidence", INTEGER, "experiences that it is based on"),
    Column("trial", TEXT, "trial from which it was learned"),
    Column("judge", TEXT, "judge whose verdict it is based on"),
    Column("model", TEXT, "model that wrote it"),
    Column("made", TIME, "when it was written, if known"),
    Column("retrieved", INTEGER, "how often it was shown"),
    Column("success", INTEGER, "showings followed by success"),
    Column("failure", INTEGER, "showings followed by failure"),
    Column("helped", INTEGER, "tasks that failed without memory and succeeded with it"),
    Column("hurt", INTEGER, "tasks that succeeded without memory and failed with it"),
    Column("content", TEXT, "the item itself", long=True),
    Column("pattern", TEXT, "its query or code skeleton", long=True),
)

#: Columns by frame, including long ones.
COLUMNS: Mapping[str, tuple[Column, ...]] = {
    "trials": _KEYS + _TRIALS,
    "events": _KEYS + _EVENTS,
    "tool_calls": _KEYS + _TOOL_CALLS,
    "lm_calls": _KEYS + _LM_CALLS,
    "judgements": _KEYS + _JUDGEMENTS,
    "retrievals": _KEYS + _RETRIEVALS,
    "filtered_out": _KEYS + _FILTERED_OUT,
    "steps": _KEYS + _STEPS,
    "rejections": _KEYS + _REJECTIONS,
    "memory_items": _MEMORY_ITEMS,
}

_ONE_ROW = {
    "trials": "trial",
    "events": "event of a trajectory",
    "tool_calls": "tool call, with its result joined",
    "lm_calls": "model call",
    "judgements": "trial and judge other than the execution judge",
    "retrievals": "memory item shown in a trial",
    "filtered_out": "memory item that the leakage filter removed from a trial's retrieval",
    "steps": "step of a learning stream",
    "rejections": "item that was distilled in a stream and not stored",
    "memory_items": "memory item in a snapshot of the bank",
}


def columns_of(frame: str, *, texts: bool = False) -> tuple[Column, ...]:
    """Return the columns of a frame, long texts only with ``texts=True``."""
    return tuple(column for column in COLUMNS[frame] if texts or not column.long)


def columns_page() -> str:
    """Return the columns of all frames as Markdown tables."""
    parts = []
    for frame, columns in COLUMNS.items():
        lines = [f"### `{frame}`: one row per {_ONE_ROW[frame]}", "", "| column | type | meaning |"]
        lines.append("|---|---|---|")
        for column in columns:
            mark = " (with `texts=True`)" if column.long else ""
            lines.append(f"| `{column.name}` | {column.dtype} | {column.meaning}{mark} |")
        parts.append("\n".join(lines))
    return "\n\n".join(parts) + "\n"
