"""The columns of every frame: name, type and meaning.

Frames are built from these, Parquet files carry the meanings, and `docs/analysis.md` lists them in
tables that `scripts/generate.py` writes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

TIME = "datetime64[us, UTC]"


class Column(NamedTuple):
    """One column."""

    name: str
    dtype: str
    meaning: str
    long: bool = False


def _columns(text: str) -> Iterator[Column]:
    """Read lines of name, type and meaning; a star marks long texts."""
    for line in text.strip().splitlines():
        name, kind, meaning = line.split(maxsplit=2)
        dtype = TIME if kind == "time" else kind.removesuffix("*")
        yield Column(name, dtype, meaning, kind.endswith("*"))


_KEYS = tuple(
    _columns("""
run str name of the run: its folder, with enough of the path to be unique
arm str the system under test
task str id of the task
seed int64 the repeat; in learning runs the task permutation
""")
)

#: One row of each frame, and its columns besides run, arm, task and seed.
_FRAMES = {
    "trials": ("trial", """
step Int64 position in a learning stream, from 0; missing outside streams
group str group of the task: tasks that stay in one split
template str template that the task is an instance of; may be empty
level str level of generalization: iid, compositional or zero-shot; empty in older records
complexity str complexity class of the task
form str query form of the gold query
question str the question
agent str agent of the arm, from the manifest
lm str model of the arm, from the manifest
model str model, from its fingerprint
memory str snapshot of the memory bank that the agent could see
items_shown int64 different memory items that it was shown
started time start
status str how the attempt ended
budget str the budget that ended it, if one did
error str one line, if something went wrong
verdict str status of the verdict; missing after an infrastructure error
codes str codes of the verdict's findings, separated by blanks
reason str the verdict's findings as text
outcome str status and verdict in a word or two
judged bool counts in rates: no infrastructure error, no defective gold query
strict boolean strict match; missing if not judged
lenient boolean match with extra columns allowed; missing if not judged
precision float64 row precision; missing if not judged
recall float64 row recall; missing if not judged
f1 float64 row F1; missing if not judged
n_gold Int64 rows of the gold result
n_predicted Int64 rows of the predicted result
sparql str the submitted query
gold str the gold query; missing in records without it
lm_calls int64 model calls that the model answered
cached_calls int64 model calls answered from a cache of responses
prompt_tokens int64 prompt tokens
completion_tokens int64 generated tokens
cached_prompt_tokens int64 prompt tokens found in the server's prefix cache
tokens int64 prompt and generated tokens
tool_calls int64 tool calls, including failed ones
tool_errors int64 tool calls that failed
turns int64 turns of the agent's loop
seconds float64 wall time of the attempt
judge_seconds float64 duration of judging
dollars float64 price; missing if the model has none
attempts int64 attempts of which one was chosen; 1 without sampling
tries int64 runs of the trial, including infrastructure errors
file str the record, relative to the run's folder
answer str* the answer in words
"""),
    "events": ("event of a trajectory", """
event int64 position in the trajectory, from 0
kind str kind of the event
turn int64 model calls of the agent so far; 0 before the first
parent Int64 the event that it belongs to
at float64 seconds since the start of the trial
seconds float64 duration
tool str the tool, for tool calls and results
error str the error, if it is or has one
data str* everything the event holds, as JSON
"""),
    "tool_calls": ("tool call, with its result joined", """
event int64 the call's position in the trajectory
order int64 the call's position among the trial's calls, from 0
turn int64 model calls of the agent so far
tool str the tool
at float64 seconds since the start of the trial
seconds float64 duration; missing if the trial ended first
ok bool whether it returned without an error before the trial ended
error str the error, one line
error_code str the error's code; missing in records without codes
infrastructure bool whether the endpoint failed, not the agent
opened str handles among the arguments, separated by blanks
made str handle that it returned
rows Int64 items behind the returned handle
result_chars Int64 length of the result as JSON
arguments str* its arguments, as JSON
result str* its result, as JSON
"""),
    "lm_calls": ("model call", """
event int64 the call's position in the trajectory
turn int64 model calls of the agent so far, including this one
role str the caller: solver, judge, …
model str name of the model
at float64 seconds since the start of the trial
seconds float64 duration
prompt_tokens Int64 prompt tokens, if known
completion_tokens Int64 generated tokens, if known
cached_prompt_tokens Int64 prompt tokens found in the prefix cache
dollars float64 price; missing if the model has none
from_cache bool whether a cache of responses answered
finish_reason str why the model stopped, if known
prompt_s float64 seconds to process the prompt, if a local server reports them
generation_s float64 seconds to generate, if a local server reports them
error str the error, if the call failed
messages str* the messages sent, as JSON
response str* the response
"""),
    "judgements": ("trial and judge other than the execution judge", """
judge str the judge, e.g. `lm:local`
success boolean its verdict; missing if it reached none
strict boolean the execution judge's strict match; missing if not judged
confidence float64 its confidence, 0 to 1
seconds float64 duration
tokens Int64 prompt and generated tokens
dollars float64 price; missing if the model has none
reason str* its reason
"""),
    "retrievals": ("memory item shown in a trial", """
event int64 the retrieval's position in the trajectory
rank int64 rank of the item, from 0
item str id of the memory item
title str its title
src str its source: success, failure, contrast, seed or gold
score float64 retrieval score
item_task str task from which the item was learned
item_trial str trial from which the item was learned
tokens Int64 tokens of all items of this retrieval
query str* the search query
text str* the item as it was shown
"""),
    "filtered_out": ("memory item that the leakage filter removed from a trial's retrieval", """
event int64 the retrieval, as in `events`
item str id of the memory item
code str code of the reason
reason str why the leakage filter removed it
"""),
    "steps": ("step of a learning stream", """
step int64 position in the stream, from 0
trial str the trial, as its record's path
before str snapshot of the bank before the step
after str snapshot of the bank after the step
bank Int64 active items after the step; missing without a snapshot
retrieved int64 items shown
added int64 items stored
merged int64 items merged into an existing one
changed int64 changes by consolidation
rejected int64 distilled items that were not stored
used str judge whose verdict decided what was learned
success boolean that verdict; missing if it reached none
execution boolean the execution judge's verdict
tokens int64 tokens of distillation
seconds float64 seconds of distillation and consolidation
"""),
    "rejections": ("item that was distilled in a stream and not stored", """
step int64 position in the stream, from 0
src str source that the item would have had
title str its title
code str code of the reason; `uncoded` in records without codes
reason str why it was not stored
text str* the item
"""),
    "memory_items": ("memory item in a snapshot of the bank", """
run str name of the run
arm str arm of the trial from which the item was learned
task str task from which the item was learned
seed Int64 seed of the trial from which the item was learned
snapshot str snapshot of the bank that holds the item
item str id: the hash of its content
title str its title
description str one line
src str its source: success, failure, contrast, seed or gold
tags str tags, separated by blanks
scope str the endpoint or pack that it is about
status str active, superseded or retired
superseded_by str item that replaced it, if any
evidence int64 experiences that it is based on
trial str trial from which it was learned
judge str judge whose verdict it is based on
model str model that wrote it
made time when it was written, if known
retrieved int64 how often it was shown
success int64 showings followed by success
failure int64 showings followed by failure
helped int64 tasks that failed without memory and succeeded with it
hurt int64 tasks that succeeded without memory and failed with it
content str* the item itself
pattern str* its query or code skeleton
"""),
}  # fmt: skip

#: Columns by frame, including long ones.
COLUMNS: Mapping[str, tuple[Column, ...]] = {
    name: (() if name == "memory_items" else _KEYS) + tuple(_columns(text))
    for name, (_, text) in _FRAMES.items()
}


def columns_of(frame: str, *, texts: bool = False) -> tuple[Column, ...]:
    """Return the columns of a frame, long texts only with ``texts=True``."""
    return tuple(column for column in COLUMNS[frame] if texts or not column.long)


def columns_page() -> str:
    """Return the columns of all frames as Markdown tables."""
    parts = []
    for frame, columns in COLUMNS.items():
        lines = [f"### `{frame}`: one row per {_FRAMES[frame][0]}", ""]
        lines += ["| column | type | meaning |", "|---|---|---|"]
        for column in columns:
            mark = " (with `texts=True`)" if column.long else ""
            lines.append(f"| `{column.name}` | {column.dtype} | {column.meaning}{mark} |")
        parts.append("\n".join(lines))
    return "\n\n".join(parts) + "\n"
