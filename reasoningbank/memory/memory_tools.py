"""`MemoryTools`: how an agent searches a bank, leakage-filtered and recorded."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import KW_ONLY, asdict, dataclass, field, replace
from typing import Any

from reasoningbank.errors import ReasoningBankError, ToolError, UsageError
from reasoningbank.findings import Finding
from reasoningbank.lm.tokens import count_tokens
from reasoningbank.memory.bank import MemoryBank
from reasoningbank.memory.grounding import leaves
from reasoningbank.memory.item import ItemSource, MemoryItem, Scope
from reasoningbank.memory.leakage import LeakageFilter
from reasoningbank.memory.search import FoundItem, Retrieval, retrieve, retrieve_random
from reasoningbank.sparql.terms import cut
from reasoningbank.tools import returns
from reasoningbank.trajectory import Recorder

#: Tokens of the items that one search returns.
SEARCH_TOKENS = 1_200
#: Characters of a search, and of an error line that memory itself gives.
MOST_QUERY, MOST_ERROR = 1_000, 300
#: Characters of one item; the notes on it have room besides.
ITEM_CHARS = returns.MAX_CHARS - returns.NOTES_CHARS - 200
NARROWER = "ask more narrowly or with a smaller limit"
NOTHING = "memory has nothing that may help; explore the endpoint instead"
LISTED = "memory_search(query) lists what there is"
#: Name of the memory in results.
_SOURCE = {"source": "memory"}


@dataclass(eq=False)
class MemoryTools:
    """The memory tools of one trial.

    Each search, and each look at an item, adds a ``memory_retrieved`` event to the recorder, with
    what was shown and what the leakage filter removed.
    """

    bank: MemoryBank
    _: KW_ONLY
    leakage: LeakageFilter
    recorder: Recorder
    scope: Scope = field(default_factory=Scope)
    kinds: frozenset[ItemSource] | None = None
    items: int | None = None  #: Most items of one search
    tokens: int = SEARCH_TOKENS
    random_seed: int | None = None  #: Of the random-memory control, if it is one

    def as_dspy_tools(self) -> dict[str, Callable[..., Any]]:
        """Return the tools by name, for `dspy.RLM(tools=[...])` and `dspy.ReAct`."""
        return {name: getattr(self, name) for name in returns.MEMORY_TOOL_NAMES}

    def memory_search(self, query: str, limit: int = 5) -> dict[str, Any]:
        """Find strategies, pitfalls and example queries for a question, e.g. the one asked."""
        limit, lowered = returns.bounded_limit("memory_search", limit)
        text = _text(query, "memory_search", "the question or a few words of it")
        if len(text) > MOST_QUERY:
            what = f"the query of memory_search has {len(text)} characters"
            hint = f"give at most {MOST_QUERY}, e.g. the question"
            raise ToolError(what, hint=hint, code="query-too-long", most=MOST_QUERY)
        with _as_tool_errors():
            found = self._found(text, min(limit, self.items or limit))
        entries = [_head(one.item) | {"text": one.text} for one in found.found]
        entries = returns.fit(entries, least=0)
        left = [one.item.id for one in found.found[len(entries) :]]
        left += [item_id for item_id, _ in found.skipped]
        too_long = f"too long to be shown here, but memory_get(id) shows: {', '.join(left)}"
        answer = returns.listing(
            _SOURCE,
            "items",
            entries,
            [lowered, too_long if left else "", "" if entries else NOTHING],
            limit=limit,
            left_out=lambda shown: f"{len(entries) - shown} more did not fit; {NARROWER}",
        )
        self._record(replace(found, found=found.found[: answer["count"]]))
        return answer | {"truncated": answer["truncated"] or bool(left)}

    def memory_get(self, item_id: str) -> dict[str, Any]:
        """Show all of one memory item, by the id that memory_search gives."""
        name = _text(item_id, "memory_get", "an id that memory_search(query) gives")
        with _as_tool_errors():
            item = self._item(name)
        whole = _whole(item)
        # All that is shown, for the record.
        text = "\n".join(value for value in leaves(whole) if isinstance(value, str))
        one = FoundItem(item, 0.0, text, count_tokens(text))
        self._record(Retrieval(f"id {item.id}", (one,)))
        shown, shortened = _bounded(whole)
        cut_off = f"cut: {', '.join(shortened)}" if shortened else ""
        answer = {**_SOURCE, "item": shown, "truncated": bool(shortened)}
        return returns.noted(answer, [cut_off])

    def _found(self, text: str, most: int) -> Retrieval:
        """Return the items that fit a question best; as many random ones for the control."""
        common: dict[str, Any] = {"leakage": self.leakage, "k": most, "kinds": self.kinds}
        found = retrieve(self.bank, text, tokens=self.tokens, scope=self.scope, **common)
        if self.random_seed is None:
            return found
        return retrieve_random(
            self.bank, text, tokens=found.tokens, seed=self.random_seed, **common
        )

    def _item(self, name: str) -> MemoryItem:
        """Return an item that may be shown; record the attempt to see another one."""
        try:
            item = self.bank.get(name)
        except UsageError:
            # Not the bank's own error, which may name items that must not be shown.
            what = f"there is no memory item {returns.brief_repr(name)}"
            hint = "give an id that memory_search(query) gave"
            raise UsageError(what, hint=hint, code="unknown-item") from None
        finding = self.leakage.finding(item)
        if finding is None and self.kinds is not None and item.src not in self.kinds:
            finding = Finding("other-kind", f"is of the kind {item.src}")
        if finding is None and item.status != "active":
            finding = Finding("inactive-item", f"is {item.status}")
        if finding is None:
            return item
        self._record(Retrieval(f"id {item.id}", filtered_out=((item.id, finding),)))
        # Without the reason: the agent must not learn which tasks it is evaluated on.
        what = f"the item {returns.brief_repr(name)} is not to be shown"
        raise UsageError(what, code="hidden-item")

    def _record(self, found: Retrieval) -> None:
        self.recorder.add("memory_retrieved", found.to_event())


@contextmanager
def _as_tool_errors() -> Iterator[None]:
    try:
        yield
    except ReasoningBankError as error:
        what, where, hint = (cut(t, MOST_ERROR) for t in (error.what, error.where, error.hint))
        raise returns.tool_error(error, hint or LISTED, what).at(where) from error


def _text(value: object, tool: str, wanted: str) -> str:
    text = " ".join(value.split()) if isinstance(value, str) else ""
    if not text:
        what = f"{tool} cannot look for {returns.brief_repr(value)}"
        raise ToolError(what, hint=f"give {wanted}", code="bad-query")
    return text


def _head(item: MemoryItem) -> dict[str, Any]:
    return {"id": item.id, "title": item.title, "kind": item.src}


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


def _bounded(item: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return an item within the cap on characters, and the names of what was cut."""
    shortened: list[str] = []
    while not returns.fit([item], ITEM_CHARS, least=0):
        name = max(item, key=lambda key: len(str(item[key])))
        value = item[name]
        if isinstance(value, str):
            item[name] = cut(value, max(1, len(value) // 2))
        elif isinstance(value, list) and value:
            item[name] = value[: len(value) // 2]
        else:
            del item[name]
        shortened.append(name)
    return item, list(dict.fromkeys(shortened))
