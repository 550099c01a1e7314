"""`MemoryTools`: how an agent searches what was learned before."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from reasoningbank.errors import ReasoningBankError, ToolError
from reasoningbank.sparql.terms import cut
from reasoningbank.tools import returns

#: Characters of a search, and of an error line or a note that memory itself gives.
MOST_QUERY, MOST_NOTE = 1_000, 300
#: Characters of one item; the notes on it have room besides.
ITEM_CHARS = returns.MAX_CHARS - returns.NOTES_CHARS - 200
NARROWER = "ask more narrowly or with a smaller limit"


@dataclass(frozen=True)
class Consulted:
    """What a memory answers.

    Attributes:
        items: JSON-able entries, the best first, each with ``id``, ``title``, ``kind`` and
            ``text``, or a longer form of one.
        more: Whether there is more than was given.
        note: What to say about it.
    """

    items: tuple[Mapping[str, Any], ...]
    more: bool = False
    note: str = ""


class SearchableMemory(Protocol):
    """What the tools search; it decides what may be shown, and records what was."""

    @property
    def source(self) -> str:
        """Name of the memory, as returns give it."""

    def search(self, query: str, limit: int) -> Consulted:
        """Return the items that fit a question best."""

    def get(self, item_id: str) -> Consulted:
        """Return one item in full.

        Raises:
            UsageError: If there is no such item, or it may not be shown.
        """


class MemoryTools:
    """The memory tools of one trial.

    Args:
        memory: What they search.
    """

    def __init__(self, memory: SearchableMemory) -> None:
        self._memory = memory

    def as_dspy_tools(self) -> dict[str, Callable[..., Any]]:
        """Return the tools by name, for `dspy.RLM(tools=[...])` and `dspy.ReAct`."""
        return {"memory_search": self.memory_search, "memory_get": self.memory_get}

    def memory_search(self, query: str, limit: int = 5) -> dict[str, Any]:
        """Find strategies, pitfalls and example queries for a question, e.g. the one asked."""
        limit, note = returns.bounded_limit("memory_search", limit)
        text = _text(query, "memory_search", "the question or a few words of it")
        if len(text) > MOST_QUERY:
            what = f"the query of memory_search has {len(text)} characters"
            hint = f"give at most {MOST_QUERY}, e.g. the question"
            raise ToolError(what, hint=hint, code="query-too-long", most=MOST_QUERY)
        answer = self._ask(lambda: self._memory.search(text, limit))
        nothing = "memory has nothing that may help; explore the endpoint instead"
        found = returns.listing(
            {"source": self._memory.source},
            "items",
            [dict(item) for item in answer.items],
            [note, answer.note, "" if answer.items else nothing],
            limit=limit,
            left_out=lambda shown: f"{len(answer.items) - shown} more did not fit; {NARROWER}",
        )
        return found | {"truncated": found["truncated"] or answer.more}

    def memory_get(self, item_id: str) -> dict[str, Any]:
        """Show all of one memory item, by the id that memory_search gives."""
        name = _text(item_id, "memory_get", "an id that memory_search(query) gives")
        answer = self._ask(lambda: self._memory.get(name))
        item, shortened = _bounded(dict(answer.items[0]))
        cut_off = f"cut: {', '.join(shortened)}" if shortened else ""
        shown = {"item": item, "truncated": answer.more or bool(shortened)}
        return returns.noted({"source": self._memory.source, **shown}, [answer.note, cut_off])

    def _ask(self, ask: Callable[[], Consulted]) -> Consulted:
        try:
            return ask()
        except ToolError:
            raise
        except ReasoningBankError as error:
            what, where, hint = (cut(t, MOST_NOTE) for t in (error.what, error.where, error.hint))
            hint = hint or "memory_search(query) lists what there is"
            raise returns.tool_error(error, hint, what).at(where) from error


def _text(value: object, tool: str, wanted: str) -> str:
    text = " ".join(value.split()) if isinstance(value, str) else ""
    if not text:
        what = f"{tool} cannot look for {returns.brief_repr(value)}"
        raise ToolError(what, hint=f"give {wanted}", code="bad-query")
    return text


def _bounded(item: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return an item within the cap on characters, and the names of what was cut."""
    shortened: list[str] = []
    while not returns.fit([item], ITEM_CHARS, least=0):
        name = max(item, key=lambda key: len(str(item[key])))
        value = item[name]
        if isinstance(value, str):
            item[name] = cut(value, max(1, len(value) // 2))
        elif isinstance(value, (list, tuple)) and value:
            item[name] = list(value)[: len(value) // 2]
        else:
            del item[name]
        shortened.append(name)
    return item, list(dict.fromkeys(shortened))
