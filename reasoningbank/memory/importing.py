"""Taking items of another bank into one, so that doing it twice is doing it once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields, replace
from typing import NamedTuple

from reasoningbank.memory.bank import MemoryBank
from reasoningbank.memory.item import Counters, MemoryItem

__all__ = ["Imported", "import_items"]


class Imported(NamedTuple):
    """Ids of what was new, of what gained evidence or counts, and of what was there as it is."""

    added: tuple[str, ...]
    merged: tuple[str, ...]
    same: tuple[str, ...]


def import_items(bank: MemoryBank, items: Iterable[MemoryItem], *, reason: str) -> Imported:
    """Put items into a bank, all or none, as one change that can be undone.

    Of an item that the bank has, only evidence that it lacks is taken over. Where both rest on a
    common experience, one of them is a later state of the other, and the larger counts hold;
    otherwise the counts are of different trials, and are added. Status and tags stay the bank's.
    What several import at once is taken in once.

    Args:
        bank: The bank.
        items: What to take in.
        reason: Why, for the history.

    Examples:
        >>> bank = MemoryBank()
        >>> item = MemoryItem("Names", "", "Ask.", "seed", counters=Counters(retrieved=2))
        >>> [len(part) for part in import_items(bank, [item], reason="test")]
        [1, 0, 0]
        >>> [len(part) for part in import_items(bank, [item], reason="again")]
        [0, 0, 1]
    """
    given = list(items)
    added, merged, same, changed = [], [], [], []
    with bank.holding():
        held = {item.id: item for item in bank.items(status=None)}
        for item in given:
            mine = held.get(item.id)
            further = item if mine is None else _further(mine, item)
            if mine is None:
                added.append(item.id)
            elif further is not None:
                merged.append(item.id)
            else:
                same.append(item.id)
            if further is not None:
                changed.append(further)
        bank.add(changed, reason=reason)
    return Imported(tuple(added), tuple(merged), tuple(same))


def _further(mine: MemoryItem, other: MemoryItem) -> MemoryItem | None:
    """Return what another state of an item adds to it, for the bank to add; None for nothing."""
    common = set(mine.origins) & set(other.origins)
    counters = _more(mine.counters, other.counters) if common else other.counters
    if set(other.origins) <= set(mine.origins) and counters == Counters():
        return None
    return replace(other, tags=mine.tags, counters=counters)


def _more(mine: Counters, other: Counters) -> Counters:
    return Counters(
        **{f.name: max(0, getattr(other, f.name) - getattr(mine, f.name)) for f in fields(Counters)}
    )
