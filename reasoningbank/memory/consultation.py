"""One trial's look into a bank: guarded, recorded, and counted as retrieved."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from reasoningbank.errors import UsageError
from reasoningbank.lm.tokens import count_tokens
from reasoningbank.memory.bank import MemoryBank
from reasoningbank.memory.guard import Guard
from reasoningbank.memory.item import ItemSource, MemoryItem, Scope
from reasoningbank.memory.packing import Found
from reasoningbank.memory.search import Retrieval, deal_at_random, retrieve
from reasoningbank.tools.bounds import fit, told
from reasoningbank.tools.memory_tools import Consulted
from reasoningbank.trajectory import Recorder

__all__ = ["Consultation"]

#: Tokens of the items that one search gives.
SEARCH_TOKENS = 1_200


class Consultation:
    """What the memory tools of one trial look into.

    Each search, and each look at an item, adds a ``memory_retrieved`` event to the recorder, with
    what was shown and what the leakage guard kept back.

    Args:
        bank: The items.
        guard: What the trial must not be shown.
        recorder: Where events go.
        scope: Where the trial is.
        kinds: Sources to take items from; None for all.
        items: Items at most that one search gives, whatever the agent asks for.
        tokens: Tokens at most of the items that one search gives.
        deal: A seed: items are dealt at random, as many tokens as a search would give. None
            searches.
        count: Counts the tokens of a text.
        source: Name of the memory, as returns give it.
    """

    def __init__(
        self,
        bank: MemoryBank,
        *,
        guard: Guard,
        recorder: Recorder,
        scope: Scope = Scope(),  # noqa: B008
        kinds: frozenset[ItemSource] | None = None,
        items: int | None = None,
        tokens: int = SEARCH_TOKENS,
        deal: int | None = None,
        count: Callable[[str], int] = count_tokens,
        source: str = "memory",
    ) -> None:
        self._bank = bank
        self._guard = guard
        self._recorder = recorder
        self._scope = scope
        self._kinds = kinds
        self._items = items
        self._tokens = tokens
        self._deal = deal
        self._count = count
        self._source = source
        self._shown: dict[str, None] = {}

    @property
    def source(self) -> str:
        """Name of the memory, as returns give it."""
        return self._source

    @property
    def shown(self) -> tuple[str, ...]:
        """Ids of all items that were shown so far, each once, the first first."""
        return tuple(self._shown)

    def search(self, query: str, limit: int) -> Consulted:
        """Return the items that fit a question best, whole."""
        limit = min(limit, self._items or limit)
        found = retrieve(
            self._bank,
            query,
            guard=self._guard,
            k=limit,
            tokens=self._tokens,
            kinds=self._kinds,
            scope=self._scope,
            count=self._count,
        )
        if self._deal is not None:
            found = deal_at_random(
                self._bank,
                query,
                like=found.tokens,
                k=limit,
                guard=self._guard,
                seed=self._deal,
                kinds=self._kinds,
                count=self._count,
            )
        # What is recorded as shown must be what one return holds.
        entries = fit([_entry(one) for one in found.found], least=0)
        shown = found.found[: len(entries)]
        left = [one.item.id for one in found.found[len(entries) :]]
        found = replace(found, found=shown, tokens=sum(one.tokens for one in shown))
        self._record(found)
        left += [item_id for item_id, _ in found.skipped]
        note = f"too long to be shown here, but memory_get(id) shows: {', '.join(left)}"
        return Consulted(tuple(entries), bool(left), note if left else "")

    def get(self, item_id: str) -> Consulted:
        """Return all that is known of one item.

        Raises:
            UsageError: If there is no such item, or it may not be shown.
        """
        try:
            item = self._bank.get(item_id)
        except UsageError:
            # The bank names ids that are near, of items that may not be shown among them.
            raise UsageError(
                f"there is no memory item {told(item_id)}",
                hint="give an id that memory_search(query) gave",
            ) from None
        objection = self._guard.objection(item)
        if not objection and self._kinds is not None and item.src not in self._kinds:
            objection = f"is of the kind {item.src}"
        if not objection and item.status != "active":
            objection = f"is {item.status}"
        if objection:
            self._record(Retrieval(f"id {item.id}", withheld=((item.id, objection),)))
            # Not why: the agent need not know which tasks it is measured on.
            raise UsageError(f"the item {told(item_id)} is not to be shown")
        shown = _whole(item)
        text = "\n".join(_texts(shown))
        one = Found(item, 0.0, text, self._count(text))
        self._record(Retrieval(f"id {item.id}", (one,), tokens=one.tokens))
        return Consulted((shown,))

    def _record(self, found: Retrieval) -> None:
        self._recorder.add("memory_retrieved", found.to_event())
        self._shown.update(dict.fromkeys(one.item.id for one in found.found))


def _entry(one: Found) -> dict[str, Any]:
    item = one.item
    return {"id": item.id, "title": item.title, "kind": item.src, "text": one.text}


def _texts(shown: Any) -> Iterator[str]:
    """Yield all texts that a return holds: what is recorded is all that was shown."""
    if isinstance(shown, str):
        yield shown
    elif isinstance(shown, Mapping):
        for value in shown.values():
            yield from _texts(value)
    elif isinstance(shown, list):
        for value in shown:
            yield from _texts(value)


def _whole(item: MemoryItem) -> dict[str, Any]:
    parts: dict[str, Any] = {
        "when": item.description,
        "content": item.content,
        "question": item.question,
        "pattern": item.pattern,
        "tags": list(item.tags),
        "turns": [
            {"reasoning": t.reasoning, "code": t.code, "output": t.output} for t in item.turns
        ],
        "helped": item.counters.helped,
        "hurt": item.counters.hurt,
        "experiences": sum(1 for origin in item.origins if origin.task),
    }
    head = {"id": item.id, "title": item.title, "kind": item.src}
    return head | {name: value for name, value in parts.items() if value}
