"""Memory as rows of the frames: items, what was shown and withheld, steps of streams."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from reasoningbank.analysis.cell_text import error_form, text_of
from reasoningbank.experiment import TrialRecord
from reasoningbank.experiment.records import Step
from reasoningbank.trajectory import Event

__all__ = ["item_row", "retrieval_rows", "shown_items", "step_rows"]

Row = dict[str, Any]

_COUNTERS = ("retrieved", "success", "failure", "helped", "hurt")


def item_row(run: str, snapshot: str, item: Mapping[str, Any]) -> Row:
    """Return a memory item of a snapshot as a row."""
    origin = item.get("provenance") or {}
    counters = item.get("counters") or {}
    arm, task, seed = _trial_key(origin.get("trial"))
    return {
        "run": run,
        "arm": arm,
        "task": origin.get("task") or task,
        "seed": seed,
        "snapshot": snapshot,
        "item": str(item.get("id", "")),
        "title": item.get("title"),
        "description": item.get("description"),
        "src": item.get("src"),
        "tags": " ".join(map(str, item.get("tags") or ())),
        "scope": text_of(item.get("scope")),
        "status": item.get("status") or "active",
        "superseded_by": item.get("superseded_by") or None,
        "evidence": 1 + len(item.get("evidence") or ()),
        "trial": text_of(origin.get("trial")),
        "judge": origin.get("judge"),
        "model": origin.get("model"),
        "made": origin.get("time"),
        **{name: counters.get(name) or 0 for name in _COUNTERS},
        "content": item.get("content"),
        "pattern": item.get("pattern"),
    }


def step_rows(run: str, step: Step, bank: int | None) -> Iterator[tuple[str, Row]]:
    """Yield the rows that a step of a stream puts into the frames, each with the frame's name.

    Args:
        run: Name of its run.
        step: The step.
        bank: Items that could be retrieved after it; None where that is not known.
    """
    keys: Row = {"run": run, "arm": step.arm, "task": step.task, "seed": step.order}
    said = ("step", "trial", "before", "after", "used", "success", "seconds")
    counted = ("retrieved", "added", "merged", "rejected")
    row: Row = {name: getattr(step, name) for name in said}
    row |= {name: len(getattr(step, name)) for name in counted}
    row |= {
        "bank": bank,
        "changed": len(step.changes),
        "execution": step.judges.get("execution"),
        "tokens": step.usage.tokens,
    }
    yield "steps", keys | row
    for one in step.rejected:
        reason = str(one.get("reason") or "")
        yield (
            "rejections",
            keys
            | {
                "step": step.step,
                "src": one.get("kind"),
                "title": one.get("title"),
                "reason": reason,
                "reason_form": error_form(reason),
                "text": one.get("text"),
            },
        )


def shown_items(record: TrialRecord) -> frozenset[str]:
    """Return the memory items that a trial was shown."""
    return frozenset(
        str(item.get("id", ""))
        for event in record.trajectory.of("memory_retrieved")
        for item in record.trajectory.resolve(event.data).get("items") or ()
    )


def retrieval_rows(record: TrialRecord, event: Event) -> Iterator[tuple[str, Row]]:
    """Yield the rows that a retrieval puts into the frames, each with the frame's name."""
    data = record.trajectory.resolve(event.data)
    for rank, item in enumerate(data.get("items") or ()):
        yield (
            "retrievals",
            {
                "event": event.index,
                "rank": rank,
                "item": str(item.get("id", "")),
                "title": item.get("title"),
                "src": item.get("src"),
                "score": item.get("score"),
                "item_task": item.get("task"),
                "item_trial": text_of(item.get("trial")),
                "tokens": data.get("tokens"),
                "query": data.get("query"),
                "text": item.get("text"),
            },
        )
    for item in data.get("withheld") or ():
        row = {"item": str(item.get("id", "")), "reason": item.get("reason")}
        yield "withheld", {"event": event.index, **row}


def _trial_key(trial: Any) -> tuple[str | None, str | None, int | None]:
    """Read `arm/task.seed`, the form of a trial's path; whatever else there is says nothing."""
    found = re.fullmatch(r"(?:trials/)?([^/]+)/(.+)\.(-?\d+)(?:\.json)?", str(trial or ""))
    return (found[1], found[2], int(found[3])) if found else (None, None, None)
