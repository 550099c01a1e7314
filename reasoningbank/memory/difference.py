"""What two banks, or two snapshots of one, differ in."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import astuple, dataclass, replace
from typing import Any

from reasoningbank.memory.item import MemoryItem

__all__ = ["Difference", "ItemDifference", "difference", "fields_changed"]


@dataclass(frozen=True)
class ItemDifference:
    """An item that both have, and what of it is not the same.

    Attributes:
        before: The item in the first.
        after: The item in the second.
    """

    before: MemoryItem
    after: MemoryItem

    @property
    def fields(self) -> dict[str, tuple[Any, Any]]:
        """What differs, before and after, by name; see `fields_changed`."""
        return fields_changed(self.before, self.after)


@dataclass(frozen=True)
class Difference:
    """What two banks differ in, by the ids of items.

    Attributes:
        added: Items that only the second has.
        removed: Items that only the first has.
        changed: Items that both have, with another status, other counts, evidence or tags.
    """

    added: tuple[MemoryItem, ...]
    removed: tuple[MemoryItem, ...]
    changed: tuple[ItemDifference, ...]


def difference(before: Iterable[MemoryItem], after: Iterable[MemoryItem]) -> Difference:
    """Compare the items of two banks.

    What an item says is part of its id, so an item that says something else is another item. An
    experience is known by all but its time: of two banks that learned the same at different times
    no item is changed.

    Examples:
        >>> from reasoningbank.memory.item import Counters
        >>> one = MemoryItem("Names", "", "Ask.", "seed")
        >>> two = MemoryItem("Names", "", "Ask.", "seed", counters=Counters(retrieved=1))
        >>> found = difference([one], [two])
        >>> found.added, [change.fields for change in found.changed]
        ((), [{'retrieved': (0, 1)}])
    """
    first = {item.id: item for item in before}
    second = {item.id: item for item in after}
    return Difference(
        added=tuple(second[one] for one in sorted(second.keys() - first.keys())),
        removed=tuple(first[one] for one in sorted(first.keys() - second.keys())),
        changed=tuple(
            ItemDifference(first[one], second[one])
            for one in sorted(first.keys() & second.keys())
            if fields_changed(first[one], second[one])
        ),
    )


def fields_changed(before: MemoryItem, after: MemoryItem) -> dict[str, tuple[Any, Any]]:
    """Return what two states of an item differ in: each count by its own name, evidence by how
    many experiences there are, the rest as it is in JSON.
    """
    first, second = _flat(before), _flat(after)
    changed = {name: (first[name], second[name]) for name in first if first[name] != second[name]}
    for name in changed.keys() & {"origins"}:
        changed["evidence"] = (len(before.origins), len(after.origins))
        del changed[name]
    return changed


def _flat(item: MemoryItem) -> dict[str, Any]:
    data = {"query": "", **item.to_json()}
    for name in ("id", "provenance", "evidence"):
        del data[name]
    counters = data.pop("counters")
    return {**data, **counters, "origins": _experiences(item)}


def _experiences(item: MemoryItem) -> list[tuple[str, ...]]:
    # Sorted, since evidence is kept in the order of its times.
    return sorted(astuple(replace(origin, time="")) for origin in item.origins)
