"""Items that cannot both be right, settled by their evidence; and items that do harm.

Two things contradict an item: another item says that the same pattern fails while it says that
the pattern works; or a failure has shown that a name does not exist, or is never used, and the
item advises its use. Prose alone never contradicts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from reasoningbank.memory.item import ABSENT, Counters, MemoryItem
from reasoningbank.sparql.shape import names_in, pattern_key, pattern_names

#: The source that warns of its pattern; every other source has a pattern that works.
_AGAINST = "failure"
#: Sources whose tasks count as certain: a gold query or a person, not a model's opinion.
_CERTAIN_SOURCES = frozenset({"gold", "seed"})

#: Changed tasks from which an item may be retired, and the largest one-sided mid-p.
HARM_TASKS, HARM_LEVEL = 6, 0.01

Prefixes = Mapping[str, str] | None


def evidence_of(item: MemoryItem) -> tuple[int, int, int]:
    """Return certain tasks, all tasks, and tasks helped minus hurt; compared in this order."""
    # Tasks, not attempts: ten rollouts of one task are one experience.
    tasks: dict[tuple[str, str], bool] = {}
    for origin in item.origins:
        if origin.task:
            task = (origin.corpus, origin.task)
            certain = origin.judge.split(" and ")[0] == "execution" or item.src in _CERTAIN_SOURCES
            tasks[task] = tasks.get(task, False) or certain
    return sum(tasks.values()), len(tasks), item.counters.helped - item.counters.hurt


def by_evidence(item: MemoryItem) -> tuple[int, int, int, bool, str, str]:
    """Return a sort key: more evidence first, then items with turns, then older, then by id."""
    certain, tasks, helped = evidence_of(item)
    return -certain, -tasks, -helped, not item.turns, item.provenance.time, item.id


class Superseding(NamedTuple):
    """An item, the one that supersedes it, and why."""

    loser: MemoryItem
    winner: MemoryItem
    reason: str


def contradictions(items: Sequence[MemoryItem], prefixes: Prefixes = None) -> list[Superseding]:
    """Find the active items that others contradict with more evidence."""
    # In the order of precedence, whatever refutes an item comes before it, and what lost refutes
    # no other.
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
    places = {item.id: precedence(item, prefixes) for item in items}
    for item in sorted(items, key=lambda one: places[one.id]):
        if item.id in lost:
            continue
        rivals = {
            rival.id: rival
            for rival in (
                *patterns.get(pattern_key(item.pattern, prefixes), ()),
                *(rival for name in _absent(item, prefixes) for rival in users[name]),
                *(rival for name in _used(item, prefixes) for rival in deniers[name]),
            )
            if rival.id not in lost
        }
        for rival in sorted(rivals.values(), key=lambda one: places[one.id]):
            if reason := refutation(item, rival, prefixes):
                lost[rival.id] = Superseding(rival, item, reason)
    return list(lost.values())


def refutation(one: MemoryItem, other: MemoryItem, prefixes: Prefixes = None) -> str:
    """Return why one item supersedes another that it contradicts; empty if it does not.

    The one with more evidence does. With equal evidence, showing that a name does not exist
    prevails over using it; if both show and use names, the first by `precedence` does. Otherwise
    both stay. Items never refute each other in a cycle, so consolidation terminates.
    """
    reason = conflict(one, other, prefixes)
    mine, others = evidence_of(one), evidence_of(other)
    if not reason or mine < others:
        return ""
    if mine > others:
        return reason
    shown = _absent(one, prefixes).keys() & _used(other, prefixes)
    return reason if shown and precedence(one, prefixes) < precedence(other, prefixes) else ""


def conflict(one: MemoryItem, other: MemoryItem, prefixes: Prefixes = None) -> str:
    """Return why two items cannot both be right; empty if they can."""
    scopes = ((one.scope.pack, other.scope.pack), (one.scope.endpoint, other.scope.endpoint))
    if any(mine and its and mine != its for mine, its in scopes):
        return ""
    for first, second in ((one, other), (other, one)):
        if first.src == _AGAINST:
            continue
        pattern = pattern_key(first.pattern, prefixes)
        if second.src == _AGAINST and pattern and pattern == pattern_key(second.pattern, prefixes):
            return "one says that a pattern works, the other that it fails"
        absent = _absent(second, prefixes)
        for name in sorted(_used(first, prefixes) & absent.keys()):
            return f"{absent[name]} was shown not to exist"
    return ""


def precedence(item: MemoryItem, prefixes: Prefixes) -> tuple[int, int, int, int, bool, str, str]:
    """Return a sort key: by evidence, and items that only deny names before those that use them."""
    certain, tasks, helped, turns, time, item_id = by_evidence(item)
    kind = 2 if not _absent(item, prefixes) else 1 if _used(item, prefixes) else 0
    return certain, tasks, helped, kind, turns, time, item_id


def _used(item: MemoryItem, prefixes: Prefixes) -> frozenset[str]:
    """Return the names that an item advises to use: those of a pattern that works."""
    works = item.src != _AGAINST and bool(item.pattern.strip())
    return pattern_names(item.pattern, prefixes) if works else frozenset()


def _absent(item: MemoryItem, prefixes: Prefixes) -> dict[str, str]:
    """Return the names that an item shows not to exist: IRI → as written."""
    written = [tag.removeprefix(ABSENT) for tag in item.tags if tag.startswith(ABSENT)]
    return {name: text for text in written for name in names_in(text, prefixes)}


def harm(counters: Counters) -> str:
    """Return why an item with these counters is to be retired; empty if it is not.

    Only tasks whose outcome changed count: they succeeded without memory and failed with the item
    (hurt), or the other way round (helped); hard tasks fail with any item. The test is repeated
    with every pair, so its level is set for an item's whole life: a neutral item is retired with
    a probability below 5% in its first 30 changed tasks.

    Examples:
        >>> harm(Counters(retrieved=90, failure=80))
        ''
        >>> harm(Counters(hurt=7))
        'hurt 7 tasks and helped 0, one-sided mid-p 0.0039'
    """
    hurt, changed = counters.hurt, counters.helped + counters.hurt
    if changed < HARM_TASKS or (p := harm_midp(counters)) > HARM_LEVEL:
        return ""
    return f"hurt {hurt} tasks and helped {counters.helped}, one-sided mid-p {p:.2g}"


def harm_midp(counters: Counters) -> float:
    """Return P(more hurt) + P(as many hurt) / 2, if helped and hurt were equally likely.

    This is the one-sided mid-p of the exact sign test (Lancaster 1961; Fagerland et al. 2013).
    """
    import scipy.stats

    chance = scipy.stats.binom(counters.helped + counters.hurt, 0.5)
    return float(chance.sf(counters.hurt) + chance.pmf(counters.hurt) / 2)
