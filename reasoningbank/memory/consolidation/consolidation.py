"""Consolidating a bank: what the rules find, done as changes that can be undone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise

from reasoningbank.memory.bank import MemoryBank
from reasoningbank.memory.changes import Change
from reasoningbank.memory.consolidation.closeness import closeness_by
from reasoningbank.memory.consolidation.contradictions import beats, contradictions, opposed
from reasoningbank.memory.consolidation.duplicates import NEAR, DuplicateRule, duplicates
from reasoningbank.memory.consolidation.harm import HarmRule
from reasoningbank.memory.item import MemoryItem
from reasoningbank.retrieval import Embedder, open_embedder

__all__ = ["consolidate"]

#: Begins the reason of every change made here.
BY = "consolidation: "


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
    work.pass_on()
    work.merge(None if new is None else frozenset(new), near, embedder)
    work.supersede()
    work.retire(harm)
    return work.changes


class _Work:
    """One consolidation: the items as they are by now, and what was changed."""

    def __init__(self, bank: MemoryBank, prefixes: Mapping[str, str] | None) -> None:
        self.changes: list[Change] = []
        self._bank = bank
        self._prefixes = prefixes
        # Reading 1,000 items takes a tenth of a second, so they are read once.
        self._items = {item.id: item for item in bank.items(status=None)}

    def pass_on(self) -> None:
        """Give experience that came for merged items to what took their place.

        What was contradicted has no heir: evidence for it is none for what contradicted it, nor
        for what contradicted that.
        """
        for item in list(self._items.values()):
            line = self._line(item)
            heir = line[-1]
            if len(line) < 2 or heir.status != "active":
                continue
            if beats(item, heir, self._prefixes):
                reason = f"{BY}it rests on more by now than {heir.id}"
                self._do([item.id], partial(self._bank.restore, item.id, reason=reason))
                continue
            links = (*pairwise(line), (item, heir))
            if not any(opposed(one, other, self._prefixes) for one, other in links):
                further = tuple(one for one in item.origins if one not in heir.origins)
                if further:
                    heir = replace(heir, evidence=(*heir.evidence, *further))
                    self._replace([], heir, f"evidence of {item.id}")

    def merge(self, added: frozenset[str] | None, near: float, embedder: Embedder | None) -> None:
        """Merge duplicates."""

        def closeness(item: MemoryItem, others: Sequence[MemoryItem]) -> Sequence[float]:
            return closeness_by(embedder or open_embedder())(item, others)

        rule = DuplicateRule(closeness, near, self._prefixes, self._put_back)
        for merge in duplicates(self._active(), rule, added):
            reasons = "; ".join(
                f"{gone.id} is a duplicate of {merge.kept.id}: {reason}"
                for gone, reason in zip(merge.gone, merge.reasons, strict=True)
            )
            self._replace([gone.id for gone in merge.gone], merge.kept, reasons)

    def supersede(self) -> None:
        """Supersede what is contradicted."""
        for loser, winner, reason in contradictions(self._active(), self._prefixes):
            if not self._put_back(loser):
                told = f"{winner.id} rests on more than {loser.id}, and {reason}"
                self._replace([loser.id], winner, told)

    def retire(self, rule: HarmRule) -> None:
        """Retire what hurts."""
        for item in self._active():
            reason = rule.says(item.counters)
            if reason and not self._put_back(item):
                self._do([item.id], partial(self._bank.retire, item.id, reason=BY + reason))

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

    def _put_back(self, item: MemoryItem) -> bool:
        """Tell whether a person has put an item back that had been put away."""
        for change in reversed(self._bank.history(item.id)):
            if change.before is None or change.after is None:
                return False
            if change.before.status != change.after.status:
                return change.after.status == "active" and not change.reason.startswith(BY)
        return False

    def _replace(self, gone: Sequence[str], kept: MemoryItem, reason: str) -> None:
        # An item that is among what it replaces becomes what is given; nothing is added twice.
        ids = [kept.id, *gone]
        self._do(ids, partial(self._bank.replace, ids, kept, reason=BY + reason))

    def _do(self, ids: Sequence[str], change: Callable[[], object]) -> None:
        """Change items, and take over what they became."""
        before = {item_id: len(self._bank.history(item_id)) for item_id in ids}
        change()
        made = [one for item_id in ids for one in self._bank.history(item_id)[before[item_id] :]]
        self.changes += sorted(made, key=lambda one: one.number)
        self._items.update((one.item_id, one.after) for one in made if one.after is not None)
