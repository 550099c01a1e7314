"""The columns of every frame: name, type and meaning, in one place.

Frames are built by these, Parquet files carry the meanings, and `docs/analysis.md` holds them
as tables that `scripts/generate_sections.py` writes.
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
            `float64`, `<NA>` in `Int64` and `boolean`, NaT in times; the others hold none.
        meaning: One line.
        long: Whether it holds long text and is there only with ``texts=True``.
    """

    name: str
    dtype: str
    meaning: str
    long: bool = False


_KEYS = (
    Column("run", TEXT, "name of the run: its folder, with as much of the path as tells it apart"),
    Column("arm", TEXT, "the system under test"),
    Column("task", TEXT, "id of the task"),
    Column("seed", INTEGER, "the repeat; the order of the stream in learning runs"),
)

_TRIALS = (
    Column(
        "step",
        MAYBE_INTEGER,
        "place in a learning stream, from 0; missing outside of streams, where arms are compared",
    ),
    Column("group", TEXT, "group of the task: tasks that share a template"),
    Column("complexity", TEXT, "complexity class of the task"),
    Column("form", TEXT, "query form of the gold"),
    Column("question", TEXT, "the question"),
    Column("agent", TEXT, "agent of the arm, as the manifest says"),
    Column("lm", TEXT, "model of the arm, as the manifest names it"),
    Column("model", TEXT, "model as its fingerprint names it"),
    Column("memory", TEXT, "snapshot of the memory bank that the agent could see"),
    Column("items_shown", INTEGER, "different memory items that it was shown"),
    Column("started", TIME, "start"),
    Column("status", TEXT, "how the attempt ended"),
    Column("error", TEXT, "one line, where something went wrong"),
    Column("verdict", TEXT, "status of the verdict; missing where the infrastructure failed"),
    Column("reason", TEXT, "why the verdict is what it is"),
    Column("outcome", TEXT, "status and verdict in a word or two"),
    Column("judged", FLAG, "counts in rates: neither an infrastructure error nor a defective gold"),
    Column("strict", MAYBE_FLAG, "strict match; missing where not judged"),
    Column("lenient", MAYBE_FLAG, "match with extra columns allowed; missing where not judged"),
    Column("precision", NUMBER, "precision of rows; missing where not judged"),
    Column("recall", NUMBER, "recall of rows; missing where not judged"),
    Column("f1", NUMBER, "F1 of rows; missing where not judged"),
    Column("n_gold", MAYBE_INTEGER, "rows of the gold result"),
    Column("n_predicted", MAYBE_INTEGER, "rows of the predicted result"),
    Column("sparql", TEXT, "the submitted query"),
    Column("gold", TEXT, "the gold query; missing in records that do not hold it"),
    Column("lm_calls", INTEGER, "model calls that the model answered"),
    Column("cached_calls", INTEGER, "model calls answered from a cache of responses"),
    Column("prompt_tokens", INTEGER, "tokens sent"),
    Column("completion_tokens", INTEGER, "tokens generated"),
    Column("cached_prompt_tokens", INTEGER, "of the tokens sent, those in the server's cache"),
    Column("tokens", INTEGER, "tokens sent and generated"),
    Column("tool_calls", INTEGER, "tool calls, failed ones included"),
    Column("tool_errors", INTEGER, "tool calls that failed"),
    Column("turns", INTEGER, "turns of the agent's loop"),
    Column("seconds", NUMBER, "wall time of the attempt"),
    Column("judge_seconds", NUMBER, "time that judging took"),
    Column("dollars", NUMBER, "price by the price table; missing where there is none"),
    Column("attempts", INTEGER, "attempts of which one was chosen; 1 where none was sampled"),
    Column("tries", INTEGER, "runs of the trial until it ended so"),
    Column("file", TEXT, "the record, relative to the run's folder"),
    Column("answer", TEXT, "the answer in words", long=True),
)

_EVENTS = (
    Column("event", INTEGER, "position in the trajectory, from 0"),
    Column("kind", TEXT, "what happened"),
    Column("turn", INTEGER, "model calls of the agent so far; 0 before the first"),
    Column("parent", MAYBE_INTEGER, "event that this one belongs to"),
    Column("at", NUMBER, "seconds since the trial began"),
    Column("seconds", NUMBER, "how long it took"),
    Column("tool", TEXT, "the tool, of tool calls and results"),
    Column("error", TEXT, "the error, where it is or has one"),
    Column("data", TEXT, "everything the event holds, as JSON", long=True),
)

_TOOL_CALLS = (
    Column("event", INTEGER, "the call's position in the trajectory"),
    Column("order", INTEGER, "the call's place among the trial's calls, from 0"),
    Column("turn", INTEGER, "model calls of the agent so far"),
    Column("tool", TEXT, "the tool"),
    Column("at", NUMBER, "seconds since the trial began"),
    Column("seconds", NUMBER, "how long it took; missing where the trial ended first"),
    Column("ok", FLAG, "whether it returned without an error before the trial ended"),
    Column("error", TEXT, "the error's one line"),
    Column("error_form", TEXT, "the error without positions, names and values, for counting"),
    Column("infrastructure", FLAG, "whether the endpoint failed, not the agent"),
    Column("opened", TEXT, "handles that the call was given, separated by blanks"),
    Column("made", TEXT, "handle that it returned"),
    Column("rows", MAYBE_INTEGER, "items behind the handle that it returned"),
    Column("result_chars", MAYBE_INTEGER, "length of what it returned, as JSON"),
    Column("arguments", TEXT, "its arguments, as JSON", long=True),
    Column("result", TEXT, "what it returned, as JSON", long=True),
)

_LM_CALLS = (
    Column("event", INTEGER, "the call's position in the trajectory"),
    Column("turn", INTEGER, "model calls of the agent so far, this one included"),
    Column("role", TEXT, "who called: solver, judge, …"),
    Column("model", TEXT, "name of the model"),
    Column("at", NUMBER, "seconds since the trial began"),
    Column("seconds", NUMBER, "how long it took"),
    Column("prompt_tokens", MAYBE_INTEGER, "tokens sent; missing where not told"),
    Column("completion_tokens", MAYBE_INTEGER, "tokens generated; missing where not told"),
    Column("cached_prompt_tokens", MAYBE_INTEGER, "of the tokens sent, those in the cache"),
    Column("dollars", NUMBER, "price; missing where there is none"),
    Column("from_cache", FLAG, "whether a cache of responses answered"),
    Column("finish_reason", TEXT, "why the model stopped; missing where not told"),
    Column("prompt_s", NUMBER, "seconds of reading the prompt, where a local server tells"),
    Column("generation_s", NUMBER, "seconds of generating, where a local server tells"),
    Column("error", TEXT, "the error, where the call failed"),
    Column("messages", TEXT, "what was sent, as JSON", long=True),
    Column("response", TEXT, "what came back", long=True),
)

_JUDGEMENTS = (
    Column("judge", TEXT, "the judge, e.g. `lm:local`"),
    Column("success", MAYBE_FLAG, "what it says; missing where it could not say"),
    Column("strict", MAYBE_FLAG, "what the execution judge says; missing where not judged"),
    Column("confidence", NUMBER, "how sure it is, 0 to 1"),
    Column("seconds", NUMBER, "how long it took"),
    Column("tokens", MAYBE_INTEGER, "tokens sent and generated"),
    Column("dollars", NUMBER, "price; missing where there is none"),
    Column("reason", TEXT, "its reason", long=True),
)

_RETRIEVALS = (
    Column("event", INTEGER, "the retrieval's position in the trajectory"),
    Column("rank", INTEGER, "place of the item, from 0"),
    Column("item", TEXT, "id of the memory item"),
    Column("title", TEXT, "its title"),
    Column("src", TEXT, "where it comes from: success, failure, contrast, seed or gold"),
    Column("score", NUMBER, "score of the retrieval"),
    Column("item_task", TEXT, "task that the item was learned from"),
    Column("item_trial", TEXT, "trial that the item was learned from"),
    Column("tokens", MAYBE_INTEGER, "tokens of all items of this retrieval"),
    Column("query", TEXT, "what was searched for", long=True),
    Column("text", TEXT, "the item as it was shown", long=True),
)

_WITHHELD = (
    Column("event", INTEGER, "the retrieval, as in `events`"),
    Column("item", TEXT, "id of the memory item"),
    Column("reason", TEXT, "why the guard kept it back"),
)

_STEPS = (
    Column("step", INTEGER, "place in the stream, from 0"),
    Column("trial", TEXT, "the trial, as its record's path"),
    Column("before", TEXT, "snapshot of the bank before"),
    Column("after", TEXT, "snapshot of the bank after"),
    Column("bank", MAYBE_INTEGER, "items that can be retrieved after it; missing without snapshot"),
    Column("retrieved", INTEGER, "items that were shown"),
    Column("added", INTEGER, "items that were stored"),
    Column("merged", INTEGER, "items that were merged into one that was there"),
    Column("changed", INTEGER, "changes that consolidation made"),
    Column("rejected", INTEGER, "items that were distilled and not stored"),
    Column("used", TEXT, "judge whose word decided what was learned"),
    Column("success", MAYBE_FLAG, "what that judge said; missing where it did not decide"),
    Column("execution", MAYBE_FLAG, "what the execution judge said"),
    Column("tokens", INTEGER, "tokens that distilling took"),
    Column("seconds", NUMBER, "seconds that distilling and consolidating took"),
)

_REJECTIONS = (
    Column("step", INTEGER, "place in the stream, from 0"),
    Column("src", TEXT, "what kind of item it would have been"),
    Column("title", TEXT, "its title"),
    Column("reason", TEXT, "why it was not stored"),
    Column("reason_form", TEXT, "the reason without names and values, to be counted"),
    Column("text", TEXT, "the item", long=True),
)

_MEMORY_ITEMS = (
    Column("run", TEXT, "name of the run"),
    Column("arm", TEXT, "arm of the trial that the item was learned from"),
    Column("task", TEXT, "task that the item was learned from"),
    Column("seed", MAYBE_INTEGER, "seed of the trial that the item was learned from"),
    Column("snapshot", TEXT, "snapshot of the bank that holds the item"),
    Column("item", TEXT, "id: the hash of its content"),
    Column("title", TEXT, "its title"),
    Column("description", TEXT, "one line"),
    Column("src", TEXT, "where it comes from: success, failure, contrast, seed or gold"),
    Column("tags", TEXT, "tags, separated by blanks"),
    Column("scope", TEXT, "endpoint or pack that it is about"),
    Column("status", TEXT, "active, superseded or retired"),
    Column("superseded_by", TEXT, "item that took its place, where one did"),
    Column("evidence", INTEGER, "experiences that it rests on"),
    Column("trial", TEXT, "trial that it was learned from"),
    Column("judge", TEXT, "judge whose verdict it rests on"),
    Column("model", TEXT, "model that wrote it"),
    Column("made", TIME, "when it was written; missing where not told"),
    Column("retrieved", INTEGER, "how often it was shown"),
    Column("success", INTEGER, "of these, followed by success"),
    Column("failure", INTEGER, "of these, followed by failure"),
    Column("helped", INTEGER, "tasks that failed without memory and succeeded with it"),
    Column("hurt", INTEGER, "tasks that succeeded without memory and failed with it"),
    Column("content", TEXT, "the item itself", long=True),
    Column("pattern", TEXT, "its query or code skeleton", long=True),
)

#: Columns by frame, long ones included.
COLUMNS: Mapping[str, tuple[Column, ...]] = {
    "trials": _KEYS + _TRIALS,
    "events": _KEYS + _EVENTS,
    "tool_calls": _KEYS + _TOOL_CALLS,
    "lm_calls": _KEYS + _LM_CALLS,
    "judgements": _KEYS + _JUDGEMENTS,
    "retrievals": _KEYS + _RETRIEVALS,
    "withheld": _KEYS + _WITHHELD,
    "steps": _KEYS + _STEPS,
    "rejections": _KEYS + _REJECTIONS,
    "memory_items": _MEMORY_ITEMS,
}

_ONE_ROW = {
    "trials": "a trial",
    "events": "an event of a trajectory",
    "tool_calls": "a tool call, with its result joined",
    "lm_calls": "a model call",
    "judgements": "a trial and a judge other than the execution judge",
    "retrievals": "a memory item shown in a trial",
    "withheld": "a memory item that the leakage guard kept from a trial",
    "steps": "a step of a learning stream",
    "rejections": "an item that was distilled in a stream and not stored",
    "memory_items": "a memory item in a snapshot of the bank",
}


def columns_of(frame: str, *, texts: bool = False) -> tuple[Column, ...]:
    """Return the columns of a frame, long texts only where asked for.

    Examples:
        >>> [c.name for c in columns_of("events")][:5]
        ['run', 'arm', 'task', 'seed', 'event']
        >>> len(columns_of("events", texts=True)) - len(columns_of("events"))
        1
    """
    return tuple(column for column in COLUMNS[frame] if texts or not column.long)


def columns_page() -> str:
    """Return the tables of all frames, as Markdown."""
    parts = []
    for frame, columns in COLUMNS.items():
        lines = [f"### `{frame}`: one row {_ONE_ROW[frame]}", "", "| column | type | meaning |"]
        lines.append("|---|---|---|")
        for column in columns:
            mark = " (with `texts=True`)" if column.long else ""
            lines.append(f"| `{column.name}` | {column.dtype} | {column.meaning}{mark} |")
        parts.append("\n".join(lines))
    return "\n\n".join(parts) + "\n"
