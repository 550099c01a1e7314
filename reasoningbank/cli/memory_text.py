"""How `reasoningbank memory` writes items, changes and differences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from reasoningbank.experiment.records import Step
from reasoningbank.memory import Change, MemoryItem, Provenance
from reasoningbank.memory.snapshot import Difference, fields_changed

__all__ = [
    "change_json",
    "change_row",
    "difference_json",
    "difference_rows",
    "item_lines",
    "item_row",
    "step_rows",
    "undo_json",
    "undo_line",
]

#: Longer values are told by their length in a table.
_MOST_CHARS = 40

Row = tuple[Any, ...]

#: Length of an item's id.
ID_CHARS = 16


def item_row(item: MemoryItem) -> Row:
    """Return an item as a row: id, source, status, tasks, shown, helped, hurt, title."""
    tasks = {(origin.corpus, origin.task) for origin in item.origins if origin.task}
    counts = item.counters
    shown = (counts.retrieved, counts.helped, counts.hurt)
    return (item.id, item.src, item.status, len(tasks), *shown, _line(item.title))


def item_lines(item: MemoryItem) -> Iterator[str]:
    """Yield an item as a person reads it."""
    place = " · ".join(part for part in (item.scope.pack, item.scope.endpoint) if part)
    status = f"superseded by {item.superseded_by}" if item.superseded_by else item.status
    yield " · ".join(part for part in (item.id, item.src, status, place) if part)
    yield item.title
    for head, text in (
        ("when", item.description),
        ("question", item.question),
        ("query", item.query),
        ("content", item.content),
        ("pattern", item.pattern),
        ("tags", ", ".join(item.tags)),
    ):
        if text:
            yield f"\n{head}:\n{text}"
    for number, turn in enumerate(item.turns, 1):
        yield f"\nturn {number}: {turn.reasoning}\n{turn.code}"
        if turn.output:
            yield f"prints: {turn.output}"
    counts = item.counters
    yield (
        f"\nshown in {counts.retrieved} trials: {counts.success} right, {counts.failure} wrong; "
        f"beside the same task without memory it helped {counts.helped} and hurt {counts.hurt}"
    )
    yield "rests on:"
    yield from (f"  {_origin(origin)}" for origin in item.origins)


def change_row(change: Change) -> Row:
    """Return a change as a row: number, time, action, item, title, reason."""
    item = change.after or change.before
    title = _line(item.title) if item else ""
    action = _told(change.action, change.item_id, change.reason)
    return change.number, change.time, action, change.item_id, title, _line(change.reason)


def change_json(change: Change) -> dict[str, Any]:
    """Return a change as JSON: what it did, and what of the item was different before."""
    item = change.after or change.before
    both = change.before is not None and change.after is not None
    return {
        "number": change.number,
        "operation": change.operation,
        "time": change.time,
        "action": change.action,
        "item": change.item_id,
        "title": item.title if item else "",
        "reason": change.reason,
        "changed": fields_changed(change.before, change.after)  # type: ignore[arg-type]
        if both
        else {},
    }


def undo_line(undone: Sequence[Change], changes: Sequence[Change]) -> str:
    """Return what was taken back in one line.

    Args:
        undone: The changes that were taken back, which were made together.
        changes: Those that took them back.
    """
    first, last = undone[0].number, undone[-1].number
    which = f"changes {first}-{last}" if last > first else f"change {first}"
    reason = f" ({_line(undone[0].reason)})" if undone[0].reason.strip() else ""
    ids = list(dict.fromkeys(one.item_id for one in changes))
    return f"undo of {which}{reason}: {ids[0] if len(ids) == 1 else f'{len(ids)} items'}"


def undo_json(undone: Sequence[Change], changes: Sequence[Change]) -> dict[str, Any]:
    """Return the same as JSON, with every change that was made by it."""
    return {
        "undone": [one.number for one in undone],
        "reason": undone[0].reason,
        "changes": [change_json(one) for one in changes],
    }


def step_rows(step: Step) -> Iterator[Row]:
    """Yield what a step of a stream changed: step, task, action, item, reason."""
    for action, items in (("add", step.added), ("merge", step.merged)):
        yield from (
            (step.step, step.task, action, item, f"learned from {step.trial}") for item in items
        )
    for change in step.changes:
        action, item, reason = (str(change.get(name, "")) for name in ("action", "item", "reason"))
        yield step.step, step.task, _told(action, item, reason), item, reason


def difference_rows(found: Difference) -> Iterator[Row]:
    """Yield a difference as rows: change, id, title, what."""
    for kind, items in (("added", found.added), ("removed", found.removed)):
        yield from ((kind, item.id, _line(item.title), item.src) for item in items)
    for change in found.changed:
        what = ", ".join(
            f"{name} {_short(before)} → {_short(after)}"
            for name, (before, after) in change.fields.items()
        )
        yield "changed", change.after.id, _line(change.after.title), what


def difference_json(found: Difference) -> dict[str, Any]:
    """Return a difference as JSON."""
    return {
        "added": [item.to_json() for item in found.added],
        "removed": [item.to_json() for item in found.removed],
        "changed": [
            {"id": one.after.id, "title": one.after.title, "fields": dict(one.fields)}
            for one in found.changed
        ],
    }


def _origin(origin: Provenance) -> str:
    said: Mapping[str, str] = {
        "trial": origin.trial,
        "task": f"{origin.corpus}/{origin.task}" if origin.task else "",
        "group": origin.group,
        "judge": origin.judge,
        "model": origin.model,
        "author": origin.author,
        "time": origin.time,
    }
    told = ", ".join(f"{name} {text}" for name, text in said.items() if text)
    return told or "nothing that is told"


def _told(action: str, item_id: str, reason: str) -> str:
    """Return how an action is told: a merge by its name, which a bank records by its parts."""
    # What an item says is its id, so one that took another's place only gained evidence by it.
    if action == "replace":
        return "merge"
    merged = f"{item_id} is a duplicate of "
    if action == "supersede" and merged in reason:
        return f"merged into {reason.partition(merged)[2][:ID_CHARS]}"
    return action


def _line(text: str) -> str:
    return " ".join(text.split())


def _short(value: Any) -> str:
    text = _line(str(value))
    return text if len(text) <= _MOST_CHARS else f"{text[: _MOST_CHARS - 1]}…"
