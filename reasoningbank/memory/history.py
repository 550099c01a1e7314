"""The history of a bank: what was changed, and how a change is undone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Literal

from reasoningbank.errors import UsageError
from reasoningbank.memory.item import MemoryItem

if TYPE_CHECKING:
    from reasoningbank.memory.store import Store


#: add: a new item. merge: further evidence for an item. replace: an item was rewritten.
#: supersede, retire, restore: a new status. count: outcomes of trials. undo: a change was undone.
Action = Literal["add", "merge", "replace", "supersede", "retire", "restore", "count", "undo"]


@dataclass(frozen=True)
class Change:
    """One row of a bank's history."""

    number: int  #: Position in the history, from 1
    time: str  #: ISO 8601 time in UTC
    action: Action
    item_id: str
    before: MemoryItem | None  #: The item before; None if it did not exist
    after: MemoryItem | None  #: The item after; None if it no longer exists
    reason: str  #: Why, in the caller's words
    operation: int  #: Number of the first change of the operation; its changes are undone together
    #: The part of the program that decided on the change, e.g. ``consolidation``; empty for a
    #: caller's own change.
    made_by: str = ""
    undoes: int = 0  #: The operation that an undo takes back; 0 for any other change


def undo(store: Store, number: int | None) -> Change:
    """Undo a change; see `MemoryBank.undo`."""
    with store.writing():
        rows = store.changes(
            "changes.operation = (SELECT operation FROM changes WHERE number = "
            "coalesce(?, (SELECT max(number) FROM changes)))",
            number,
        )
        if not rows:
            none = "nothing was changed yet" if number is None else f"there is no change {number}"
            hint = "the history shows the changes and their numbers"
            raise UsageError(none, hint=hint, code="no-change")
        first = rows[0].number
        _check_in_effect(store, first)
        with store.changing(f"undo of change {first}", undoes=first) as operation:
            for change in reversed(rows):
                now = store.item(change.item_id)
                operation.change("undo", now, _reverted(change, now))
            _check_successors(store, rows)
        if not operation.first:
            # Later changes already did what the undo would do.
            what = f"change {first} is undone already"
            raise UsageError(what, code="undone-already", change=first)
        return store.changes("number = ?", operation.first)[0]


def _reverted(change: Change, now: MemoryItem | None) -> MemoryItem | None:
    """Return an item as it would be without a change, with the effects of later changes."""
    before, after = change.before, change.after
    if before is None or after is None:
        # The whole item was added or removed; later counts and evidence go with it.
        if (now is None) != (after is None):
            raise _later(change)
        return before
    if now is None:
        raise _later(change)
    origins = before.origins
    if now.origins != after.origins:
        was_from, became_from = Counter(before.origins), Counter(after.origins)
        added, gone = became_from - was_from, was_from - became_from
        kept = [one for one in now.origins if one not in added]
        origins = (*kept, *(one for one in gone if one not in kept))
    if not origins:
        raise _later(change)
    undone: dict[str, Any] = {
        "counters": (now.counters + before.counters) - after.counters,
        "provenance": origins[0],
        "evidence": origins[1:],
    }
    for name in {f.name for f in fields(MemoryItem)} - undone.keys():
        was, became, current = (getattr(item, name) for item in (before, after, now))
        if was != became:
            if current != became:
                raise _later(change)
            undone[name] = was
    return replace(now, **undone)


def _later(change: Change, why: str = "") -> UsageError:
    why = why or f"item {change.item_id} was changed since"
    return UsageError(
        f"change {change.number} cannot be undone: {why}",
        hint="undo the later change first (history shows it)",
        code="later-change",
        change=change.number,
        item=change.item_id,
    )


def _check_in_effect(store: Store, number: int) -> None:
    """Refuse to undo an operation twice, since counts would be subtracted twice."""
    # Undoing an undo puts its operation into effect again, and so on: each undo of a chain does or
    # reverts the root operation, and the balance says whether that is in effect.
    undos = store.changes("action = 'undo' AND changes.operation = number")
    undone = {one.number: one.undoes for one in undos if 0 < one.undoes < one.number}
    root, forward = _root(undone, number)
    chain = {one: way for one in undone for first, way in [_root(undone, one)] if first == root}
    in_effect = 1 + sum(1 if way else -1 for way in chain.values()) > 0
    if forward != in_effect:
        last = max(one for one, way in chain.items() if way == in_effect)
        raise UsageError(
            f"change {number} cannot be undone again: change {last} undid it",
            hint=f"undo change {last} to reinstate it",
            code="undone-already",
            change=number,
            by=last,
        )


def _root(undone: dict[int, int], number: int) -> tuple[int, bool]:
    """Return the operation at the root of a chain of undos, and whether `number` does it."""
    forward = True
    while number in undone:
        number, forward = undone[number], not forward
    return number, forward


def _check_successors(store: Store, rows: Iterable[Change]) -> None:
    """Refuse to remove an item that others were superseded by."""
    gone = {one.item_id: one for one in rows if store.item(one.item_id) is None}
    if not gone:
        return
    query = "SELECT id, json_extract(item, '$.superseded_by') AS heir FROM items WHERE heir != ''"
    for item_id, heir in store.rows(query):
        if heir in gone:
            change = replace(gone[heir], item_id=item_id)
            raise _later(change, f"item {item_id} was superseded by {heir}")
