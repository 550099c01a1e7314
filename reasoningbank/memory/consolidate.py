"""Consolidation: merge duplicates, supersede contradicted items, retire harmful ones.

Deterministic, without a model; docs/consolidation.md gives the rules. Embeddings alone cannot
decide what is a duplicate: whole banks lie within a tenth of cosine. Prose alone contradicts
nothing: an item is contradicted by one that says that its pattern fails, or that shows that a name
which it uses does not exist.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from reasoningbank.memory.bank import MemoryBank
from reasoningbank.memory.item import ABSENT, Counters, MemoryItem, Scope
from reasoningbank.memory.store import Change
from reasoningbank.retrieval import Embedder, open_embedder
from reasoningbank.sparql.shape import names_in, pattern_key, pattern_names

#: Cosine from which two wordings of the same names say the same; docs/consolidation.md says how
#: it was found.
NEAR = 0.97
#: Sources whose content is their pattern. Two failures or contrasts may share a pattern and warn
#: of different things.
_PATTERN_IS_ALL = frozenset({"success", "composed", "gold", "seed"})
#: The source that warns of its pattern; every other source has a pattern that works.
_AGAINST = "failure"
#: Sources whose tasks count as certain: a gold query or a person, not a model's opinion.
_CERTAIN_SOURCES = frozenset({"gold", "seed"})
#: Changed tasks from which an item may be retired, and the largest one-sided mid-p.
HARM_TASKS, HARM_LEVEL = 6, 0.01
#: `Change.made_by` of the changes made here; their reasons begin with it.
MADE_BY = "consolidation"

Prefixes = Mapping[str, str] | None


def consolidate(
    bank: MemoryBank,
    *,
    new: Iterable[str] | None = None,
    embedder: Embedder | None = None,
    prefixes: Prefixes = None,
    near: float = NEAR,
) -> list[Change]:
    """Merge duplicates, supersede contradicted items, and retire harmful ones; return the changes.

    The result depends on the bank only, and consolidating twice changes nothing more. What a
    person has restored, or undone, is left alone.

    Args:
        new: Ids of the items added since the last time, to be compared with all, or in a bank of
            more than 1,000 with the 1,000 most like each; by default everything is compared.
        embedder: Compares wordings; by default the bundled one, loaded only if needed.
        prefixes: Prefixes of the pack, which patterns use without declaring them.
        near: Cosine from which wordings count as the same; see `DuplicateRule`.
    """

    def is_reinstated(item: MemoryItem) -> bool:
        change = bank.reinstated_by(item.id)
        return change is not None and change.made_by != MADE_BY

    with bank.holding():
        begun = bank.last_change
        # Reading 1,000 items takes 0.1 s, so they are read once, and only those in use.
        new = None if new is None else frozenset(new)
        items = bank.items() if new is None else bank.around(new, hurt=HARM_TASKS)
        active = {item.id: item for item in items}

        def replaced(gone: Iterable[MemoryItem], kept: MemoryItem, reason: str) -> None:
            # An item among those it replaces is rewritten, so no evidence is added twice.
            ids = [one.id for one in gone]
            reason = f"{MADE_BY}: {reason}"
            bank.replace([kept.id, *ids], kept, reason=reason, made_by=MADE_BY)
            active[kept.id] = kept
            for one in ids:
                del active[one]

        rule = DuplicateRule(embedder, near, prefixes, is_reinstated)
        for kept, gone, reasons in duplicates(list(active.values()), rule, new):
            said = (
                f"{one.id} is a duplicate of {kept.id}: {reason}"
                for one, reason in zip(gone, reasons, strict=True)
            )
            replaced(gone, kept, "; ".join(said))
        # What is retired supersedes nothing.
        for item in list(active.values()):
            if (reason := harm(item.counters)) and not is_reinstated(item):
                bank.retire(item.id, reason=f"{MADE_BY}: {reason}", made_by=MADE_BY)
                del active[item.id]
        for loser, winner, reason in contradictions(list(active.values()), prefixes):
            if not is_reinstated(loser):
                why = f"{winner.id} has more evidence than {loser.id}, and {reason}"
                replaced([loser], winner, why)
        return bank.history(since=begun)


# -- duplicates ---------------------------------------------------------------------------


class DuplicateMerge(NamedTuple):
    """An item, those that are merged into it, and why each is a duplicate."""

    kept: MemoryItem
    gone: tuple[MemoryItem, ...]
    reasons: tuple[str, ...]


@dataclass(frozen=True)
class DuplicateRule:
    """When two items are duplicates; those of which `stays` holds are not merged into others."""

    embedder: Embedder | None = None  #: The bundled one if None, loaded only if needed
    near: float = NEAR
    prefixes: Prefixes = None
    stays: Callable[[MemoryItem], bool] = lambda item: False

    def kind(self, item: MemoryItem) -> tuple[str, Scope, str]:
        """Return what duplicates have in common: source, scope, and pattern or query."""
        return item.src, item.scope, pattern_key(item.pattern or item.query, self.prefixes)

    def buckets(self, item: MemoryItem) -> dict[Hashable, str]:
        """Return keys that duplicates have in common, and why; without a reason, words decide."""
        kind, said = self.kind(item), tuple(item.content.split())
        if kind[2] and item.src in _PATTERN_IS_ALL:
            return {kind: "the same pattern"}
        text = "\n".join((item.title, item.description, item.content))
        same: dict[Hashable, str] = {(kind, said): "the same content"} if said else {}
        return {**same, (kind, names_in(text, self.prefixes)): ""}

    def matches(self, item: MemoryItem, near: Sequence[tuple[MemoryItem, str]]) -> dict[str, str]:
        """Return the ids of an item's duplicates with the reasons, among others of its buckets."""
        found = {other.id: reason for other, reason in near if reason}
        in_doubt = [other for other, reason in near if not reason]
        for other, cosine in zip(in_doubt, self.cosines(item, in_doubt), strict=True):
            if cosine >= self.near:
                found[other.id] = f"the same names in similar words, cosine {cosine:.3f}"
        return found

    def cosines(self, item: MemoryItem, others: Sequence[MemoryItem]) -> list[float]:
        """Return the cosines of an item's title, description and content with those of others."""
        if not others:
            return []
        # The vectors of a bank's index lack the content: they say nothing about the advice.
        embedder = self.embedder or open_embedder()
        mine, *theirs = embedder.passages([_text(one) for one in (item, *others)])
        return [round(float(np.dot(mine, one)), 5) for one in theirs]


def duplicates(
    items: Sequence[MemoryItem], rule: DuplicateRule, new: Iterable[str] | None = None
) -> list[DuplicateMerge]:
    """Find what to merge, so that no two remaining items are duplicates."""
    alive = {item.id: item for item in items}
    chosen = alive.keys() if new is None else frozenset(new)
    asked = {rule.kind(item) for item in items if item.id in chosen}
    buckets = {item.id: rule.buckets(item) for item in items if rule.kind(item) in asked}
    together: dict[Hashable, set[str]] = defaultdict(set)
    for item_id, its in buckets.items():
        for bucket in its:
            together[bucket].add(item_id)
    merges = []
    for item in sorted(items, key=by_evidence):
        if item.id not in alive or item.id not in chosen:
            continue
        why: dict[str, str] = {}
        for bucket, reason in reversed(buckets[item.id].items()):
            why.update(dict.fromkeys(together[bucket], reason))
        others = (one for one in alive.values() if one.id in why and one.id != item.id)
        found = rule.matches(item, [(one, why[one.id]) for one in others])
        best = min((item, *(alive[one] for one in found)), key=by_evidence)
        # Similarity is not transitive: a duplicate of the item need not be one of the best.
        gone = [alive[one] for one in found] if best.id == item.id else [item]
        gone = [one for one in gone if not rule.stays(one)]
        if not gone:
            continue
        reasons = tuple(found[one.id if best.id == item.id else best.id] for one in gone)
        for one in gone:
            del alive[one.id]
            # Duplicates were mostly shown to the same trials, so the larger of two counts is
            # certain, and their sum is not.
            tags = tuple(dict.fromkeys((*best.tags, *one.tags)))
            counters = best.counters | one.counters
            best = replace(best.merged_with(one), tags=tags, counters=counters)
        alive[best.id] = best
        merges.append(DuplicateMerge(best, tuple(gone), reasons))
    return merges


def _text(item: MemoryItem) -> str:
    # A few-shot example has no content; its question distinguishes it from others.
    return "\n".join(filter(None, (item.title, item.description, item.content or item.question)))


# -- contradictions and harm ----------------------------------------------------------------


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


class _Claims:
    """What an item says: of its pattern, the names it uses, and those it shows not to exist."""

    def __init__(self, item: MemoryItem, prefixes: Prefixes) -> None:
        self.item = item
        self.warns = item.src == _AGAINST
        self.pattern = pattern_key(item.pattern, prefixes)
        works = not self.warns and item.pattern.strip()
        self.used = pattern_names(item.pattern, prefixes) if works else frozenset()
        written = [tag.removeprefix(ABSENT) for tag in item.tags if tag.startswith(ABSENT)]
        #: IRI → as written
        self.absent = {name: text for text in written for name in names_in(text, prefixes)}
        self.evidence = evidence_of(item)
        certain, tasks, helped, *rest = by_evidence(item)
        # Items that only deny names come before those that use them.
        kind = 2 if not self.absent else 1 if self.used else 0
        self.place = (certain, tasks, helped, kind, *rest)

    def contradiction(self, other: _Claims) -> str:
        """Return why two items cannot both be right; empty if they can."""
        mine, its = self.item.scope, other.item.scope
        scopes = ((mine.pack, its.pack), (mine.endpoint, its.endpoint))
        if any(one and another and one != another for one, another in scopes):
            return ""
        for first, second in ((self, other), (other, self)):
            if first.warns:
                continue
            if second.warns and first.pattern and first.pattern == second.pattern:
                return "one says that a pattern works, the other that it fails"
            for name in sorted(first.used & second.absent.keys()):
                return f"{second.absent[name]} was shown not to exist"
        return ""


def contradictions(items: Sequence[MemoryItem], prefixes: Prefixes = None) -> list[Superseding]:
    """Find the active items that others contradict with more evidence."""
    # In a fixed order, items never refute each other in a cycle, so consolidation terminates; and
    # what lost refutes no other.
    ordered = sorted((_Claims(item, prefixes) for item in items), key=lambda one: one.place)
    saying: dict[tuple[str, str], list[_Claims]] = defaultdict(list)
    for one in ordered:
        if one.pattern:
            saying["pattern", one.pattern].append(one)
        for name in one.used:
            saying["used", name].append(one)
        for name in one.absent:
            saying["absent", name].append(one)
    lost: dict[str, Superseding] = {}
    for one in ordered:
        if one.item.id in lost:
            continue
        keys = [("pattern", one.pattern), *(("used", name) for name in one.absent)]
        keys += [("absent", name) for name in one.used]
        rivals = {rival.item.id: rival for key in keys for rival in saying.get(key, ())}
        for rival in sorted(rivals.values(), key=lambda rival: rival.place):
            later = rival.item.id not in lost and one.place < rival.place
            wins = one.evidence > rival.evidence or one.absent.keys() & rival.used
            if later and wins and (reason := one.contradiction(rival)):
                lost[rival.item.id] = Superseding(rival.item, one.item, reason)
    return list(lost.values())


def harm(counters: Counters) -> str:
    """Return why an item with these counters is to be retired; empty if it is not."""
    # The test is repeated with every pair: its level keeps a neutral item's risk below 5% in its
    # first 30 changed tasks.
    hurt, changed = counters.hurt, counters.helped + counters.hurt
    if changed < HARM_TASKS or (p := harm_midp(counters)) > HARM_LEVEL:
        return ""
    return f"hurt {hurt} tasks and helped {counters.helped}, one-sided mid-p {p:.2g}"


def harm_midp(counters: Counters) -> float:
    """Return the one-sided mid-p of the exact sign test (Lancaster 1961; Fagerland et al. 2013)."""
    import scipy.stats

    chance = scipy.stats.binom(counters.helped + counters.hurt, 0.5)
    return float(chance.sf(counters.hurt) + chance.pmf(counters.hurt) / 2)
