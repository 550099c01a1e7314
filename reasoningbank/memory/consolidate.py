"""Consolidation: merge duplicates, supersede contradicted items, retire harmful ones.

Deterministic, without a model; docs/consolidation.md gives the rules. Embeddings alone cannot
decide what is a duplicate: whole banks lie within a tenth of cosine.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from reasoningbank.memory.bank import MemoryBank
from reasoningbank.memory.contradictions import by_evidence, contradictions, harm
from reasoningbank.memory.history import Change
from reasoningbank.memory.item import MemoryItem, Scope
from reasoningbank.retrieval import Embedder, open_embedder
from reasoningbank.sparql.shape import names_in, pattern_key

#: Cosine from which two wordings of the same names say the same; docs/consolidation.md says how
#: it was found.
NEAR = 0.97
#: Sources whose content is their pattern. Two failures or contrasts may share a pattern and warn
#: of different things.
_PATTERN_IS_ALL = frozenset({"success", "gold", "seed"})

#: Cosines of an item's text with those of others.
Similarity = Callable[[MemoryItem, Sequence[MemoryItem]], Sequence[float]]


class DuplicateMerge(NamedTuple):
    """An item, those that are merged into it, and why each is a duplicate."""

    kept: MemoryItem
    gone: tuple[MemoryItem, ...]
    reasons: tuple[str, ...]


@dataclass(frozen=True)
class DuplicateRule:
    """When two items are duplicates; those of which `stays` holds are not merged into others."""

    similarity: Similarity
    near: float = NEAR
    prefixes: Mapping[str, str] | None = None
    stays: Callable[[MemoryItem], bool] = lambda item: False

    def matches(self, item: MemoryItem, others: Iterable[MemoryItem]) -> dict[str, str]:
        """Return the ids of an item's duplicates, among others of its kind, with the reasons."""
        names, said = self._names(item), item.content.split()
        found: dict[str, str] = {}
        in_doubt = []
        for other in others:
            if self._is_pattern(item):
                found[other.id] = "the same pattern"
            elif said and said == other.content.split():
                found[other.id] = "the same content"
            elif self._names(other) == names:
                in_doubt.append(other)
        cosines = self.similarity(item, in_doubt) if in_doubt else ()
        for other, cosine in zip(in_doubt, cosines, strict=True):
            if cosine >= self.near:
                found[other.id] = f"the same names in similar words, cosine {cosine:.3f}"
        return found

    def kind(self, item: MemoryItem) -> tuple[str, Scope, str]:
        """Return what duplicates have in common: source, scope and pattern."""
        return item.src, item.scope, pattern_key(item.pattern, self.prefixes)

    def buckets(self, item: MemoryItem) -> list[Hashable]:
        """Return keys of which an item and each of its duplicates have one in common."""
        kind = self.kind(item)
        if self._is_pattern(item):
            return [kind]
        said = tuple(item.content.split())
        return [(kind, self._names(item)), *([(kind, said)] if said else ())]

    def _is_pattern(self, item: MemoryItem) -> bool:
        return item.src in _PATTERN_IS_ALL and bool(pattern_key(item.pattern, self.prefixes))

    def _names(self, item: MemoryItem) -> frozenset[str]:
        return names_in("\n".join((item.title, item.description, item.content)), self.prefixes)


#: `Change.made_by` of the changes made here; their reasons begin with it.
MADE_BY = "consolidation"


def consolidate(
    bank: MemoryBank,
    *,
    new: Iterable[str] | None = None,
    embedder: Embedder | None = None,
    prefixes: Mapping[str, str] | None = None,
    near: float = NEAR,
) -> list[Change]:
    """Merge duplicates, supersede contradicted items, and retire harmful ones; return the changes.

    The result depends on the bank only, and consolidating twice changes nothing more. What a
    person has restored, or undone, is left alone.

    Args:
        new: Ids of the items added since the last time, to be compared with all; by default
            everything is compared.
        embedder: Compares wordings; by default the bundled one, loaded only if needed.
        prefixes: Prefixes of the pack, which patterns use without declaring them.
        near: Cosine from which wordings count as the same; see `DuplicateRule`.
    """
    with bank.holding():
        begun = bank.last_change
        work = _Consolidation(bank, prefixes)
        work.merge(None if new is None else frozenset(new), near, embedder)
        # What is retired supersedes nothing.
        work.retire()
        work.supersede()
        return bank.history(since=begun)


class _Consolidation:
    """One consolidation of a bank that is held, with its current items."""

    def __init__(self, bank: MemoryBank, prefixes: Mapping[str, str] | None) -> None:
        self._bank = bank
        self._prefixes = prefixes
        # Reading 1,000 items takes 0.1 s, so read them once.
        self._items = {item.id: item for item in bank.items(status=None)}

    def merge(self, added: frozenset[str] | None, near: float, embedder: Embedder | None) -> None:
        """Merge duplicates."""

        def similarity(item: MemoryItem, others: Sequence[MemoryItem]) -> Sequence[float]:
            return text_similarity(embedder or open_embedder(), item, others)

        rule = DuplicateRule(similarity, near, self._prefixes, self._is_reinstated)
        for merge in duplicates(self._active(), rule, added):
            reasons = "; ".join(
                f"{gone.id} is a duplicate of {merge.kept.id}: {reason}"
                for gone, reason in zip(merge.gone, merge.reasons, strict=True)
            )
            self._replace([gone.id for gone in merge.gone], merge.kept, reasons)

    def supersede(self) -> None:
        """Supersede contradicted items."""
        for loser, winner, reason in contradictions(self._active(), self._prefixes):
            if not self._is_reinstated(loser):
                why = f"{winner.id} has more evidence than {loser.id}, and {reason}"
                self._replace([loser.id], winner, why)

    def retire(self) -> None:
        """Retire harmful items."""
        for item in self._active():
            reason = harm(item.counters)
            if reason and not self._is_reinstated(item):
                self._bank.retire(item.id, reason=_reason(reason), made_by=MADE_BY)
                self._read(item.id)

    def _active(self) -> list[MemoryItem]:
        return [item for item in self._items.values() if item.status == "active"]

    def _is_reinstated(self, item: MemoryItem) -> bool:
        """Return whether a person has reinstated an item."""
        change = self._bank.reinstated_by(item.id)
        return change is not None and change.made_by != MADE_BY

    def _replace(self, gone: Sequence[str], kept: MemoryItem, reason: str) -> None:
        # An item among those it replaces is rewritten, so no evidence is added twice.
        self._bank.replace([kept.id, *gone], kept, reason=_reason(reason), made_by=MADE_BY)
        self._read(kept.id, *gone)

    def _read(self, *ids: str) -> None:
        self._items |= {item_id: self._bank.get(item_id) for item_id in ids}


def _reason(text: str) -> str:
    return f"{MADE_BY}: {text}"


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
        near = set().union(*(together[bucket] for bucket in buckets[item.id])) - {item.id}
        found = rule.matches(item, [one for one in alive.values() if one.id in near])
        if not found:
            continue
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


def text_similarity(
    embedder: Embedder, item: MemoryItem, others: Sequence[MemoryItem]
) -> list[float]:
    """Return the cosines of an item's title, description and content with those of others."""
    # The vectors of a bank's index lack the content: they say nothing about the advice.
    mine, *theirs = embedder.passages([_text(one) for one in (item, *others)])
    return [round(float(np.dot(mine, one)), 5) for one in theirs]


def _text(item: MemoryItem) -> str:
    # A few-shot example has no content; its question distinguishes it from others.
    return "\n".join(filter(None, (item.title, item.description, item.content or item.question)))
