"""Items that teach the same, to be merged into the one with more evidence.

Embeddings alone cannot decide: whole banks lie within a tenth of cosine. So two items are
duplicates only if source, scope and pattern agree, or neither has a pattern; and they have the
same content, or use the same names in very similar wording. For items that say what works, the
same pattern is enough.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from reasoningbank.memory.contradictions import by_evidence
from reasoningbank.memory.item import MemoryItem, Scope
from reasoningbank.retrieval import Embedder, Vectors
from reasoningbank.sparql.shape import names_in, pattern_key

#: Cosine from which two wordings of the same names say the same; docs/consolidation.md says how
#: it was found.
NEAR = 0.97
#: Sources whose content is their pattern. Two failures or contrasts may share a pattern and warn
#: of different things.
_PATTERN_IS_ALL = frozenset({"success", "gold", "seed"})

#: Vectors of texts that were made before, by embedder; 1.5 kB each.
_VECTORS: WeakKeyDictionary[Any, dict[str, Vectors]] = WeakKeyDictionary()

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
        for one in gone:
            del alive[one.id]
        reasons = tuple(found[one.id if best.id == item.id else best.id] for one in gone)
        alive[best.id] = _merged_into(best, gone)
        merges.append(DuplicateMerge(alive[best.id], tuple(gone), reasons))
    return merges


def _merged_into(kept: MemoryItem, gone: Iterable[MemoryItem]) -> MemoryItem:
    """Return an item with the evidence, counts and tags of others; its id stays."""
    # Duplicates were mostly shown to the same trials, so the larger of two counts is certain, and
    # their sum is not.
    for other in gone:
        tags = tuple(dict.fromkeys((*kept.tags, *other.tags)))
        counters = kept.counters | other.counters
        kept = replace(kept.merged_with(other), tags=tags, counters=counters)
    return kept


def text_similarity(
    embedder: Embedder, item: MemoryItem, others: Sequence[MemoryItem]
) -> list[float]:
    """Return the cosines of an item's title, description and content with those of others."""
    # The vectors of a bank's index lack the content: they say nothing about the advice.
    vectors = _VECTORS.setdefault(embedder, {})
    every = {_text(one): None for one in (item, *others)}
    missing = [text for text in every if text not in vectors]
    vectors.update(zip(missing, embedder.passages(missing), strict=True))
    mine = vectors[_text(item)]
    return [round(float(np.dot(mine, vectors[_text(other)])), 5) for other in others]


def _text(item: MemoryItem) -> str:
    # A few-shot example has no content; its question distinguishes it from others.
    return "\n".join(filter(None, (item.title, item.description, item.content or item.question)))
