"""Items that cannot both be right, settled by what they rest on.

Two things contradict an item. One says of the same pattern that it works, the other that it fails.
Or a failure has shown that a name does not exist, or is never used, and an item advises its use.
Words alone are never held against each other.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from reasoningbank.memory.consolidation.evidence import by_evidence, evidence_of
from reasoningbank.memory.item import ABSENT, MemoryItem, Scope
from reasoningbank.sparql.shape import names_in, pattern_key, pattern_names

__all__ = ["Superseding", "beats", "contradictions", "opposed", "turn"]

#: What warns of its pattern; every other item has a pattern that works.
_AGAINST = "failure"

Prefixes = Mapping[str, str] | None


class Superseding(NamedTuple):
    """An item, the one that takes its place, and why."""

    loser: MemoryItem
    winner: MemoryItem
    reason: str


def names_used(item: MemoryItem, prefixes: Prefixes = None) -> frozenset[str]:
    """Return the names that an item is about: those of its pattern, or else of its text."""
    if item.pattern.strip():
        return pattern_names(item.pattern, prefixes)
    return names_in("\n".join((item.title, item.description, item.content)), prefixes)


def contradictions(items: Sequence[MemoryItem], prefixes: Prefixes = None) -> list[Superseding]:
    """Find the items that others contradict with more evidence.

    Items are heard in the order of their evidence, at equal evidence those that show what is not
    there before those that use it. So whatever beats an item was heard before it, and one that has
    lost speaks against no other.

    Args:
        items: Active items.
        prefixes: Prefixes that patterns use without declaring them.
    """
    patterns: dict[str, list[MemoryItem]] = defaultdict(list)
    users: dict[str, list[MemoryItem]] = defaultdict(list)
    deniers: dict[str, list[MemoryItem]] = defaultdict(list)
    for item in items:
        patterns[pattern_key(item.pattern, prefixes)].append(item)
        for name in _used(item, prefixes):
            users[name].append(item)
        for name in _absent(item, prefixes):
            deniers[name].append(item)
    patterns.pop("", None)
    lost: dict[str, Superseding] = {}
    turns = {item.id: turn(item, prefixes) for item in items}
    for item in sorted(items, key=lambda one: turns[one.id]):
        if item.id in lost:
            continue
        rivals = [
            *patterns.get(pattern_key(item.pattern, prefixes), ()),
            *(rival for name in _absent(item, prefixes) for rival in users[name]),
            *(rival for name in _used(item, prefixes) for rival in deniers[name]),
        ]
        for rival in sorted(
            {one.id: one for one in rivals}.values(), key=lambda one: turns[one.id]
        ):
            reason = beats(item, rival, prefixes)
            if reason and rival.id not in lost:
                lost[rival.id] = Superseding(rival, item, reason)
    return list(lost.values())


def beats(one: MemoryItem, other: MemoryItem, prefixes: Prefixes = None) -> str:
    """Return why one item takes the place of another that it contradicts; empty if it does not.

    The one with more evidence does. Where it is equal, what is not there was looked for in the
    data, and that it should be used is an opinion; of two that both show and use names, the one
    that is first by evidence, age and id. Otherwise both stay.

    Items never beat each other in a ring, so that consolidation comes to an end.
    """
    reason = opposed(one, other, prefixes)
    mine, others = evidence_of(one), evidence_of(other)
    if not reason or mine < others:
        return ""
    if mine > others:
        return reason
    shown = _absent(one, prefixes).keys() & _used(other, prefixes)
    return reason if shown and turn(one, prefixes) < turn(other, prefixes) else ""


def opposed(one: MemoryItem, other: MemoryItem, prefixes: Prefixes = None) -> str:
    """Return why two items cannot both be right; empty if they can.

    Examples:
        >>> works = MemoryItem("a", "", "b", "success", pattern="SELECT ?x { ?x up:mass ?m }")
        >>> fails = MemoryItem("c", "", "d", "failure", pattern="SELECT ?p { ?p up:mass ?v }")
        >>> opposed(works, fails)
        'one holds that a pattern works, the other that it fails'
        >>> opposed(works, MemoryItem("e", "", "f", "failure", tags=("absent:up:mass",)))
        'up:mass was shown not to be there'
    """
    if not _share(one.scope, other.scope):
        return ""
    for first, second in ((one, other), (other, one)):
        if first.src == _AGAINST:
            continue
        if second.src == _AGAINST:
            pattern = pattern_key(first.pattern, prefixes)
            if pattern and pattern == pattern_key(second.pattern, prefixes):
                return "one holds that a pattern works, the other that it fails"
        absent = _absent(second, prefixes)
        for name in sorted(_used(first, prefixes) & absent.keys()):
            return f"{absent[name]} was shown not to be there"
    return ""


def turn(item: MemoryItem, prefixes: Prefixes) -> tuple[int, int, int, int, bool, str, str]:
    """Return a sort key: by evidence; where it is equal, what only shows first, what uses last."""
    certain, tasks, helped, turns, time, item_id = by_evidence(item)
    kind = 2 if not _absent(item, prefixes) else 1 if _used(item, prefixes) else 0
    return certain, tasks, helped, kind, turns, time, item_id


def _used(item: MemoryItem, prefixes: Prefixes) -> frozenset[str]:
    """Return the names that an item advises to use: those of a pattern that works.

    What is named in words or tags may be warned of.
    """
    works = item.src != _AGAINST and bool(item.pattern.strip())
    return names_used(item, prefixes) if works else frozenset()


def _absent(item: MemoryItem, prefixes: Prefixes) -> dict[str, str]:
    """Return the names that an item shows not to be there, as `names_used` has them."""
    written = [tag.removeprefix(ABSENT) for tag in item.tags if tag.startswith(ABSENT)]
    return {name: text for text in written for name in names_in(text, prefixes)}


def _share(one: Scope, other: Scope) -> bool:
    """Tell whether two scopes have a place in common; what is empty does not restrict."""
    pairs = ((one.pack, other.pack), (one.endpoint, other.endpoint))
    return all(not a or not b or a == b for a, b in pairs)
