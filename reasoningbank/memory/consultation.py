"""One trial's access to a bank through the memory tools: leakage-filtered and recorded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import KW_ONLY, asdict, dataclass, field, replace
from typing import Any

from reasoningbank.errors import UsageError
from reasoningbank.findings import Finding
from reasoningbank.lm.tokens import count_tokens
from reasoningbank.memory.bank import MemoryBank
from reasoningbank.memory.item import ItemSource, MemoryItem, Scope
from reasoningbank.memory.leakage import LeakageFilter
from reasoningbank.memory.search import FoundItem, Retrieval, retrieve, retrieve_random
from reasoningbank.tools.memory_tools import Consulted
from reasoningbank.tools.returns import brief_repr, fit
from reasoningbank.trajectory import Recorder

#: Tokens of the items that one search returns.
SEARCH_TOKENS = 1_200


@dataclass(eq=False)
class Consultation:
    """What the memory tools of one trial search.

    Each search, and each look at an item, adds a ``memory_retrieved`` event to the recorder, with
    what was shown and what the leakage filter removed.
    """

    #: Name of the memory in the tools' results.
    source = "memory"

    bank: MemoryBank
    _: KW_ONLY
    leakage: LeakageFilter
    recorder: Recorder
    scope: Scope = field(default_factory=Scope)
    kinds: frozenset[ItemSource] | None = None
    items: int | None = None  #: Most items of one search
    tokens: int = SEARCH_TOKENS
    random_seed: int | None = None  #: Of the random-memory control, if it is one

    def search(self, query: str, limit: int) -> Consulted:
        """Return the items that fit a question best, whole."""
        limit = min(limit, self.items or limit)
        common: dict[str, Any] = {"leakage": self.leakage, "k": limit, "kinds": self.kinds}
        found = retrieve(self.bank, query, tokens=self.tokens, scope=self.scope, **common)
        if self.random_seed is not None:
            found = retrieve_random(
                self.bank, query, tokens=found.tokens, seed=self.random_seed, **common
            )
        # Record only what the size limit of one result leaves.
        entries = fit([_head(one.item) | {"text": one.text} for one in found.found], least=0)
        shown = found.found[: len(entries)]
        left = [one.item.id for one in found.found[len(entries) :]]
        left += [item_id for item_id, _ in found.skipped]
        found = replace(found, found=shown, tokens=sum(one.tokens for one in shown))
        self._record(found)
        note = f"too long to be shown here, but memory_get(id) shows: {', '.join(left)}"
        return Consulted(tuple(entries), bool(left), note if left else "")

    def get(self, item_id: str) -> Consulted:
        """Return everything known of one item."""
        try:
            item = self.bank.get(item_id)
        except UsageError:
            # Not the bank's own error, which may name items that must not be shown.
            raise UsageError(
                f"there is no memory item {brief_repr(item_id)}",
                hint="give an id that memory_search(query) gave",
                code="unknown-item",
            ) from None
        finding = self.leakage.finding(item)
        if finding is None and self.kinds is not None and item.src not in self.kinds:
            finding = Finding("other-kind", f"is of the kind {item.src}")
        if finding is None and item.status != "active":
            finding = Finding("inactive-item", f"is {item.status}")
        if finding is not None:
            self._record(Retrieval(f"id {item.id}", filtered_out=((item.id, finding),)))
            # Without the reason: the agent must not learn which tasks it is evaluated on.
            what = f"the item {brief_repr(item_id)} is not to be shown"
            raise UsageError(what, code="hidden-item")
        shown = _whole(item)
        text = "\n".join(_texts(shown))
        one = FoundItem(item, 0.0, text, count_tokens(text))
        self._record(Retrieval(f"id {item.id}", (one,), tokens=one.tokens))
        return Consulted((shown,))

    def _record(self, found: Retrieval) -> None:
        self.recorder.add("memory_retrieved", found.to_event())


def _head(item: MemoryItem) -> dict[str, Any]:
    return {"id": item.id, "title": item.title, "kind": item.src}


def _texts(shown: Any) -> Iterator[str]:
    """Yield all texts of a result, so that the record holds everything shown."""
    if isinstance(shown, str):
        yield shown
    elif isinstance(shown, Mapping | list):
        for value in shown.values() if isinstance(shown, Mapping) else shown:
            yield from _texts(value)


def _whole(item: MemoryItem) -> dict[str, Any]:
    parts: dict[str, Any] = {
        "when": item.description,
        "content": item.content,
        "question": item.question,
        "pattern": item.pattern,
        "tags": list(item.tags),
        "turns": [asdict(turn) for turn in item.turns],
        "helped": item.counters.helped,
        "hurt": item.counters.hurt,
        "experiences": sum(1 for origin in item.origins if origin.task),
    }
    return _head(item) | {name: value for name, value in parts.items() if value}
