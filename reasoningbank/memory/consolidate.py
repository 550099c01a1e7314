"""Consolidation: merge duplicates, supersede contradicted items, retire harmful ones.

Deterministic, without a model. Each change is an operation of the bank with its reason, and can
be undone; docs/consolidation.md gives the rules.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

from reasoningbank.memory.bank import MemoryBank
from reasoningbank.memory.contradictions import (
    HarmRule,
    conflict,
    contradictions,
    precedence,
    refutation,
)
from reasoningbank.memory.duplicates import NEAR, DuplicateRule, duplicates, text_similarity
from reasoningbank.memory.history import Change
from reasoningbank.memory.item import MemoryItem
from reasoningbank.retrieval import Embedder, open_embedder

#: `Change.made_by` of the changes made here; their reasons begin with it.
MADE_BY = "consolidation"


def consolidate(
    bank: MemoryBank,
    *,
    new: Iterable[str] | None = None,
    embedder: Embedder | None = None,
    prefixes: Mapping[str, str] | None = None,
    near: float = NEAR,
    harm: HarmRule = HarmRule(),  # noqa: B008
) -> list[Change]:
    """Merge duplicates, supersede contradicted items, and retire harmful ones.

    The result depends on the bank only, and consolidating twice changes nothing more. What a
    person has restored, or undone, is left alone.

    Args:
        bank: The bank, which is changed.
        new: Ids of the items added since the last time, to be compared with all; by default
            everything is compared.
        embedder: Compares wordings; by default the bundled one, loaded only if needed.
        prefixes: Prefixes of the pack, which patterns use without declaring them.
        near: Cosine from which wordings count as the same; see `DuplicateRule`.
        harm: When an item is retired.

    Returns:
        The changes, in order.

    Examples:
        >>> bank = MemoryBank()
        >>> ids = bank.add([
        ...     MemoryItem("Names", "", "Ask.", "success", pattern="SELECT ?n {?p up:name ?n}"),
        ...     MemoryItem("Names", "", "Look.", "success", pattern="SELECT ?x {?y up:name ?x}")])
        >>> [change.action for change in consolidate(bank)], len(bank.items())
        (['supersede'], 1)
        >>> consolidate(bank)
        []
        >>> bank.undo().action, len(bank.items()), consolidate(bank)
        ('undo', 2, [])
    """
    work = _Consolidation(bank, prefixes)
    compared = None if new is None else frozenset(new)
    while True:
        back = work.pass_on()
        made = len(work.changes)
        work.merge(None if compared is None else compared | back, near, embedder)
        work.supersede()
        work.retire(harm)
        if len(work.changes) == made:
            return work.changes
        # The items put away may be all that contradicted others, which are then reinstated.
        compared = frozenset()


class _Consolidation:
    """One consolidation: the current items, and the changes made."""

    def __init__(self, bank: MemoryBank, prefixes: Mapping[str, str] | None) -> None:
        self.changes: list[Change] = []
        self._bank = bank
        self._prefixes = prefixes
        # Reading 1,000 items takes 0.1 s, so read them once and then follow the changes. Get the
        # number first: a change made in between is then read twice, not missed.
        self._seen = bank.last_change
        self._items = {item.id: item for item in bank.items(status=None)}

    def pass_on(self) -> frozenset[str]:
        """Pass new evidence of merged items on, and reinstate items that nothing contradicts."""
        # Evidence for a contradicted item is no evidence for what contradicted it.
        with self._holding():
            superseded = [item for item in self._items.values() if item.status == "superseded"]
            for item in superseded:
                heir = item
                for one in self._line(item)[1:]:
                    if any(conflict(other, one, self._prefixes) for other in (item, heir)):
                        break
                    heir = one
                further = tuple(one for one in item.origins if one not in heir.origins)
                if further and heir.status != "retired":
                    heir = replace(heir, evidence=(*heir.evidence, *further))
                    self._replace([], heir, f"evidence of {item.id}")
            back = []
            # Items that contradict others come back before them.
            for item in sorted(superseded, key=lambda one: precedence(one, self._prefixes)):
                item = self._items[item.id]
                if reason := self._uncontradicted(item):
                    self._bank.restore(item.id, reason=_reason(reason), made_by=MADE_BY)
                    self.changes += self._follow()
                    back.append(item.id)
        return frozenset(back)

    def merge(self, added: frozenset[str] | None, near: float, embedder: Embedder | None) -> None:
        """Merge duplicates."""

        def similarity(item: MemoryItem, others: Sequence[MemoryItem]) -> Sequence[float]:
            return text_similarity(embedder or open_embedder(), item, others)

        rule = DuplicateRule(similarity, near, self._prefixes, self._is_reinstated)
        # Comparing may take long, so others may write meanwhile.
        found = duplicates(self._active(), rule, added)
        with self._holding() as others_changed:
            if others_changed:
                found = duplicates(self._active(), rule, added)
            for merge in found:
                reasons = "; ".join(
                    f"{gone.id} is a duplicate of {merge.kept.id}: {reason}"
                    for gone, reason in zip(merge.gone, merge.reasons, strict=True)
                )
                self._replace([gone.id for gone in merge.gone], merge.kept, reasons)

    def supersede(self) -> None:
        """Supersede contradicted items."""
        with self._holding():
            for loser, winner, reason in contradictions(self._active(), self._prefixes):
                if not self._is_reinstated(loser):
                    why = f"{winner.id} has more evidence than {loser.id}, and {reason}"
                    self._replace([loser.id], winner, why)

    def retire(self, rule: HarmRule) -> None:
        """Retire harmful items."""
        with self._holding():
            for item in self._active():
                reason = rule.reason(item.counters)
                if reason and not self._is_reinstated(item):
                    self._bank.retire(item.id, reason=_reason(reason), made_by=MADE_BY)
                    self.changes += self._follow()

    def _active(self) -> list[MemoryItem]:
        return [item for item in self._items.values() if item.status == "active"]

    def _line(self, item: MemoryItem) -> list[MemoryItem]:
        """Return an item, its successor, the successor of that, and so on."""
        line = {item.id: item}
        while item.status == "superseded":
            heir = self._items.get(item.superseded_by)
            if heir is None or heir.id in line:
                break
            line[heir.id] = item = heir
        return list(line.values())

    def _uncontradicted(self, item: MemoryItem) -> str:
        """Return why a contradicted item is to be reinstated; empty if it is not."""
        line = self._line(item)
        if len(line) < 2 or not conflict(item, line[1], self._prefixes):
            return ""
        active = [one for one in line[1:] if one.status == "active"]
        if any(refutation(one, item, self._prefixes) for one in active):
            return ""
        if line[1].status == "active":
            return f"{line[1].id} no longer has more evidence"
        return f"{line[1].id}, which contradicted it, is {line[1].status}"

    def _is_reinstated(self, item: MemoryItem) -> bool:
        """Return whether a person has reinstated an item."""
        change = self._bank.reinstated_by(item.id)
        return change is not None and change.made_by != MADE_BY

    def _replace(self, gone: Sequence[str], kept: MemoryItem, reason: str) -> None:
        # An item among those it replaces is rewritten, so no evidence is added twice.
        self._bank.replace([kept.id, *gone], kept, reason=_reason(reason), made_by=MADE_BY)
        self.changes += self._follow()

    @contextmanager
    def _holding(self) -> Iterator[bool]:
        """Lock the bank; yield whether others have changed it until now."""
        with self._bank.holding():
            yield bool(self._follow())

    def _follow(self) -> list[Change]:
        """Apply the changes since the last time, and return them."""
        made = self._bank.history(since=self._seen)
        for change in made:
            self._seen = change.number
            if change.after is None:
                self._items.pop(change.item_id, None)
            else:
                self._items[change.item_id] = change.after
        return made


def _reason(text: str) -> str:
    return f"{MADE_BY}: {text}"
