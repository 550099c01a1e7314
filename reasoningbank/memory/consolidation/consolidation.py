"""Consolidating a bank: what the rules find, done as changes that can be undone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

from reasoningbank.memory.bank import MemoryBank
from reasoningbank.memory.consolidation.closeness import closeness_by
from reasoningbank.memory.consolidation.contradictions import beats, contradictions, opposed, turn
from reasoningbank.memory.consolidation.duplicates import NEAR, DuplicateRule, duplicates
from reasoningbank.memory.consolidation.harm import HarmRule
from reasoningbank.memory.history import Change
from reasoningbank.memory.item import MemoryItem
from reasoningbank.retrieval import Embedder, open_embedder

__all__ = ["consolidate"]

#: Who made the changes here, see `Change.made_by`; their reasons begin with it.
MADE_BY = "consolidation"
BY = f"{MADE_BY}: "


def consolidate(
    bank: MemoryBank,
    *,
    new: Iterable[str] | None = None,
    embedder: Embedder | None = None,
    prefixes: Mapping[str, str] | None = None,
    near: float = NEAR,
    harm: HarmRule = HarmRule(),  # noqa: B008
) -> list[Change]:
    """Merge duplicates, supersede what is contradicted, retire what hurts.

    The same bank always becomes the same, and a bank that was just consolidated stays as it is.
    What a person has put back (by an undo, or by restoring it) is left alone.

    Args:
        bank: The bank, which is changed; each change carries its reason.
        new: Ids of what was added since the last time, which is compared with all; by default
            everything is compared.
        embedder: What tells near words; by default the one of the package, loaded when items can
            be told apart by nothing else.
        prefixes: Prefixes that patterns use without declaring them: those of the pack.
        near: Cosine from which words are near enough; see `DuplicateRule`.
        harm: When an item is retired.

    Returns:
        What was changed, in order.

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
    work = _Work(bank, prefixes)
    compared = None if new is None else frozenset(new)
    while True:
        back = work.pass_on()
        made = len(work.changes)
        work.merge(None if compared is None else compared | back, near, embedder)
        work.supersede()
        work.retire(harm)
        if len(work.changes) == made:
            return work.changes
        # What was put away may be all that spoke against something, which is then heard again.
        compared = frozenset()


class _Work:
    """One consolidation: the items as they are by now, and what was changed."""

    def __init__(self, bank: MemoryBank, prefixes: Mapping[str, str] | None) -> None:
        self.changes: list[Change] = []
        self._bank = bank
        self._prefixes = prefixes
        # Reading 1,000 items takes a tenth of a second, so they are read once; after that, what
        # was changed. The number comes first: what is changed in between is then read twice.
        self._seen = bank.last_change
        self._items = {item.id: item for item in bank.items(status=None)}

    def pass_on(self) -> frozenset[str]:
        """Give experience of merged items to their heirs, and bring back what nothing contradicts.

        What was contradicted has no heir: evidence for it is none for what contradicted it, nor
        for what contradicted that. It comes back when what contradicted it is gone, or rests on
        no more than it any longer.

        Returns:
            Ids of what was brought back.
        """
        with self._holding():
            superseded = [item for item in self._items.values() if item.status == "superseded"]
            for item in superseded:
                heir = self._heir(item)
                further = tuple(one for one in item.origins if one not in heir.origins)
                if further and heir.status != "retired":
                    heir = replace(heir, evidence=(*heir.evidence, *further))
                    self._replace([], heir, f"evidence of {item.id}")
            back = []
            # What speaks against others comes back before them.
            for item in sorted(superseded, key=lambda one: turn(one, self._prefixes)):
                item = self._items[item.id]
                if reason := self._unopposed(item):
                    self._bank.restore(item.id, reason=BY + reason, made_by=MADE_BY)
                    self._take_over()
                    back.append(item.id)
        return frozenset(back)

    def merge(self, added: frozenset[str] | None, near: float, embedder: Embedder | None) -> None:
        """Merge duplicates."""

        def closeness(item: MemoryItem, others: Sequence[MemoryItem]) -> Sequence[float]:
            return closeness_by(embedder or open_embedder())(item, others)

        rule = DuplicateRule(closeness, near, self._prefixes, self._put_back)
        # What may take long is done while others may write.
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
        """Supersede what is contradicted."""
        with self._holding():
            for loser, winner, reason in contradictions(self._active(), self._prefixes):
                if not self._put_back(loser):
                    told = f"{winner.id} rests on more than {loser.id}, and {reason}"
                    self._replace([loser.id], winner, told)

    def retire(self, rule: HarmRule) -> None:
        """Retire what hurts."""
        with self._holding():
            for item in self._active():
                reason = rule.says(item.counters)
                if reason and not self._put_back(item):
                    self._bank.retire(item.id, reason=BY + reason, made_by=MADE_BY)
                    self._take_over()

    def _active(self) -> list[MemoryItem]:
        return [item for item in self._items.values() if item.status == "active"]

    def _line(self, item: MemoryItem) -> list[MemoryItem]:
        """Return an item, what took its place, what took the place of that, to the last."""
        line = {item.id: item}
        while item.status == "superseded":
            heir = self._items.get(item.superseded_by)
            if heir is None or heir.id in line:
                break
            line[heir.id] = item = heir
        return list(line.values())

    def _heir(self, item: MemoryItem) -> MemoryItem:
        """Return what an item was merged into in the end; itself if it was contradicted."""
        heir = item
        for one in self._line(item)[1:]:
            if any(opposed(other, one, self._prefixes) for other in (item, heir)):
                break
            heir = one
        return heir

    def _unopposed(self, item: MemoryItem) -> str:
        """Return why an item that was contradicted is to come back; empty if it is not."""
        line = self._line(item)
        if len(line) < 2 or not opposed(item, line[1], self._prefixes):
            return ""
        if any(one.status == "active" and beats(one, item, self._prefixes) for one in line[1:]):
            return ""
        if line[1].status == "active":
            return f"it rests on no less by now than {line[1].id}"
        return f"{line[1].id}, which spoke against it, is {line[1].status}"

    def _put_back(self, item: MemoryItem) -> bool:
        """Tell whether a person has put an item back that had been put away."""
        change = self._bank.reinstated_by(item.id)
        return change is not None and change.made_by != MADE_BY

    def _replace(self, gone: Sequence[str], kept: MemoryItem, reason: str) -> None:
        # An item that is among what it replaces becomes what is given; nothing is added twice.
        self._bank.replace([kept.id, *gone], kept, reason=BY + reason, made_by=MADE_BY)
        self._take_over()

    def _take_over(self) -> None:
        """Note what was just changed here."""
        self.changes += self._follow()

    @contextmanager
    def _holding(self) -> Iterator[bool]:
        """Keep others from changing the bank; tell whether they did so until now."""
        with self._bank.holding():
            yield bool(self._follow())

    def _follow(self) -> list[Change]:
        """Take over what was changed since the last time."""
        made = self._bank.history(since=self._seen)
        for change in made:
            self._seen = change.number
            if change.after is None:
                self._items.pop(change.item_id, None)
            else:
                self._items[change.item_id] = change.after
        return made
