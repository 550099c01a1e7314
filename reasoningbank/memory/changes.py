"""What was changed in a bank, and how a change is taken back."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

from reasoningbank.errors import UsageError
from reasoningbank.memory.item import Counters, MemoryItem

__all__ = ["Action", "Change", "taken_back"]

#: add: a new item. merge: further evidence for an item. replace: an item was rewritten.
#: supersede, retire, restore: another status. count: what came after it was shown. undo: a change
#: was taken back.
Action = Literal["add", "merge", "replace", "supersede", "retire", "restore", "count", "undo"]


@dataclass(frozen=True)
class Change:
    """One row of a bank's history.

    Attributes:
        number: Position in the history, from 1.
        time: When, ISO 8601 in UTC.
        action: What was done.
        item_id: To which item.
        before: The item before; None where there was none.
        after: The item after; None where there is none any more.
        reason: Why, as the caller said.
        operation: Number of the first change that was made together with this one; what was made
            together is undone together.
    """

    number: int
    time: str
    action: Action
    item_id: str
    before: MemoryItem | None
    after: MemoryItem | None
    reason: str
    operation: int


def taken_back(change: Change, now: MemoryItem | None) -> MemoryItem | None:
    """Return an item as it would be if a change had not been made.

    What later changes did to the item stays: counts that were added are subtracted, evidence that
    was added is taken out, and a field is set back only if nobody has set it since.

    Args:
        change: The change to take back.
        now: The item as it is; None where there is none.

    Raises:
        UsageError: A later change stands in the way.
    """
    if change.before is None or change.after is None:
        # The whole item came or went; counts and evidence since then go with it, and come back.
        if (now is None) != (change.after is None):
            raise _in_the_way(change)
        return change.before
    if now is None:
        raise _in_the_way(change)
    undone: dict[str, Any] = {}
    origins = _without(change, now)
    for name in (f.name for f in fields(MemoryItem) if f.init):
        was, became, current = (getattr(i, name) for i in (change.before, change.after, now))
        if name == "counters":
            undone[name] = _minus(current, became, was)
        elif name in {"provenance", "evidence"}:
            undone[name] = origins[0] if name == "provenance" else origins[1:]
        elif was != became and current != became:
            raise _in_the_way(change)
        else:
            undone[name] = was if was != became else current
    return replace(now, **undone)


def _minus(now: Counters, became: Counters, was: Counters) -> Counters:
    return Counters(
        **{
            f.name: max(0, getattr(now, f.name) - getattr(became, f.name) + getattr(was, f.name))
            for f in fields(Counters)
        }
    )


def _without(change: Change, now: MemoryItem) -> tuple[Any, ...]:
    assert change.before is not None
    assert change.after is not None
    if now.origins == change.after.origins:
        return change.before.origins
    was, became = Counter(change.before.origins), Counter(change.after.origins)
    added, gone = became - was, was - became
    kept = [one for one in now.origins if one not in added]
    kept += [one for one in gone if one not in kept]
    if not kept:
        raise _in_the_way(change)
    return tuple(kept)


def _in_the_way(change: Change) -> UsageError:
    return UsageError(
        f"change {change.number} cannot be undone: item {change.item_id} was changed since",
        hint="undo the later change first (history shows it)",
    )
