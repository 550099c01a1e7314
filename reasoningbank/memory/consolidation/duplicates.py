"""Items that teach the same, to be merged into the one that rests on more.

Embeddings alone cannot tell: whole banks lie within a tenth of cosine. So two items are duplicates
only if kind, scope and pattern agree, or neither has a pattern; and they have the same content, or
name the same in very near words. Of items that say what works, the same pattern is enough.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from reasoningbank.memory.consolidation.evidence import by_evidence
from reasoningbank.memory.item import MemoryItem, Scope
from reasoningbank.sparql.shape import names_in, pattern_key

__all__ = ["NEAR", "Closeness", "DuplicateRule", "Merge", "duplicates", "merged"]

#: Cosine from which two wordings say the same of the same names; docs/consolidation.md tells how
#: it was found.
NEAR = 0.97

#: Cosines of an item's text with those of others.
Closeness = Callable[[MemoryItem, Sequence[MemoryItem]], Sequence[float]]


class Merge(NamedTuple):
    """An item, those that go up in it, and by what each was known."""

    kept: MemoryItem
    gone: tuple[MemoryItem, ...]
    reasons: tuple[str, ...]


@dataclass(frozen=True)
class DuplicateRule:
    """When two items are duplicates.

    Attributes:
        closeness: Cosines of texts.
        near: Cosine from which wordings count as the same.
        prefixes: Prefixes that patterns use without declaring them.
        stays: What is not to go up in another, whatever it is like.
    """

    closeness: Closeness
    near: float = NEAR
    prefixes: Mapping[str, str] | None = None
    stays: Callable[[MemoryItem], bool] = lambda item: False

    def matches(self, item: MemoryItem, others: Iterable[MemoryItem]) -> dict[str, str]:
        """Return the duplicates of an item by id, each with the reason."""
        kind, names = self.kind(item), self._names(item)
        found: dict[str, str] = {}
        in_doubt = []
        for other in others:
            if other.id == item.id or self.kind(other) != kind:
                continue
            if kind[-1] and item.src in _PATTERN_IS_ALL:
                found[other.id] = "the same pattern"
            elif item.content.strip() and item.content.split() == other.content.split():
                found[other.id] = "the same content"
            elif self._names(other) == names:
                in_doubt.append(other)
        cosines = self.closeness(item, in_doubt) if in_doubt else ()
        for other, cosine in zip(in_doubt, cosines, strict=True):
            if cosine >= self.near:
                found[other.id] = f"the same names in near words, cosine {cosine:.3f}"
        return found

    def kind(self, item: MemoryItem) -> tuple[str, Scope, str]:
        """Return what duplicates have in common: source, scope and pattern."""
        return item.src, item.scope, pattern_key(item.pattern, self.prefixes)

    def places(self, item: MemoryItem) -> list[Hashable]:
        """Return where to look for duplicates: they have one of these in common with the item."""
        kind = self.kind(item)
        if kind[-1] and item.src in _PATTERN_IS_ALL:
            return [kind]
        said = tuple(item.content.split())
        return [(kind, self._names(item)), *([(kind, said)] if said else ())]

    def _names(self, item: MemoryItem) -> frozenset[str]:
        return names_in("\n".join((item.title, item.description, item.content)), self.prefixes)


#: What these say is their pattern. Of failures and contrasts two may share a pattern and warn of
#: different things.
_PATTERN_IS_ALL = frozenset({"success", "gold", "seed"})


def duplicates(
    items: Sequence[MemoryItem], rule: DuplicateRule, new: Iterable[str] | None = None
) -> list[Merge]:
    """Find what to merge, so that no two of the items that remain are duplicates.

    Args:
        items: Active items.
        rule: When two are duplicates.
        new: Ids of the items to compare with all; None for every item. The others are taken to
            have been compared with one another.
    """
    chosen = frozenset(new) if new is not None else None
    alive = {item.id: item for item in items}
    order = {item_id: at for at, item_id in enumerate(alive)}
    together: dict[Hashable, list[str]] = defaultdict(list)
    asked = {rule.kind(item) for item in items if chosen is None or item.id in chosen}
    places = {item.id: rule.places(item) for item in items if rule.kind(item) in asked}
    for item_id, its in places.items():
        for place in its:
            together[place].append(item_id)
    merges = []
    for item in sorted(items, key=by_evidence):
        if item.id not in alive or (chosen is not None and item.id not in chosen):
            continue
        near = {one for place in places[item.id] for one in together[place] if one in alive}
        found = rule.matches(item, [alive[one] for one in sorted(near, key=order.__getitem__)])
        if not found:
            continue
        best, *_ = sorted((item, *(alive[one] for one in found)), key=by_evidence)
        # Nearness does not carry over: what is near the item need not be near a better one.
        gone = [alive[one] for one in found] if best.id == item.id else [item]
        gone = [one for one in gone if not rule.stays(one)]
        if not gone:
            continue
        for one in gone:
            del alive[one.id]
        reasons = tuple(found[one.id if best.id == item.id else best.id] for one in gone)
        alive[best.id] = merged(best, gone)
        merges.append(Merge(alive[best.id], tuple(gone), reasons))
    return merges


def merged(kept: MemoryItem, gone: Iterable[MemoryItem]) -> MemoryItem:
    """Return an item with the evidence, counts and tags of others; its id stays.

    Counts are not added: what is alike is found by the same questions, so that two duplicates were
    mostly shown to the same trials, and one task that went wrong would be held against the item
    twice. The larger of each count is what is certain.

    Examples:
        >>> from reasoningbank.memory.item import Counters, Provenance
        >>> one = MemoryItem("a", "", "b", "seed", tags=("x",), counters=Counters(retrieved=2))
        >>> two = MemoryItem("c", "", "d", "seed", tags=("y", "x"), counters=Counters(retrieved=3),
        ...                  provenance=Provenance(author="somebody"))
        >>> both = merged(one, [two])
        >>> both.id == one.id, both.tags, both.counters.retrieved, len(both.origins)
        (True, ('x', 'y'), 3, 2)
    """
    for other in gone:
        tags = tuple(dict.fromkeys((*kept.tags, *other.tags)))
        counters = kept.counters | other.counters
        kept = replace(kept.merged_with(other), tags=tags, counters=counters)
    return kept
