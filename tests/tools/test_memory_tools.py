"""Bounds, errors and names of the memory tools, over a memory that says what it is told to."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import dspy
import pytest

from reasoningbank.errors import ReasoningBankError, RecordError, ToolError, UsageError
from reasoningbank.tools import (
    CAPS,
    MemoryTools,
)
from reasoningbank.tools.memory_tools import Consulted
from reasoningbank.tools.returns import MAX_CHARS


class Shelf:
    """A memory of so many items of so many characters."""

    source = "shelf"

    def __init__(self, items: int = 30, chars: int = 20, fault: ReasoningBankError | None = None):
        self.items = [{"id": f"{n:02}", "title": "T", "text": "x" * chars} for n in range(items)]
        self.fault = fault
        self.asked: list[tuple[str, int]] = []

    def search(self, query: str, limit: int) -> Consulted:
        self.asked.append((query, limit))
        if self.fault:
            raise self.fault
        return Consulted(tuple(self.items[:limit]))

    def get(self, item_id: str) -> Consulted:
        if self.fault:
            raise self.fault
        found: Mapping[str, Any] = {"id": item_id, "turns": ["t" * 900] * 20, "text": "x" * 9_000}
        return Consulted((found,))


def test_five_by_default_twenty_at_most_and_said() -> None:
    shelf = Shelf()
    tools = MemoryTools(shelf)
    assert tools.memory_search("oak")["count"] == CAPS["memory_search"].default == 5
    answer = tools.memory_search("  the\n oak ", limit=500)
    assert answer["count"] == CAPS["memory_search"].most == 20
    assert "lowered from 500 to 20" in answer["note"]
    assert shelf.asked == [("oak", 5), ("the oak", 20)]


def test_what_does_not_fit_is_left_out_whole_and_said() -> None:
    answer = MemoryTools(Shelf(chars=1_500)).memory_search("oak")
    assert 0 < answer["count"] < 5
    assert answer["truncated"]
    assert "did not fit" in answer["note"]
    assert all(len(item["text"]) == 1_500 for item in answer["items"])
    assert len(json.dumps(answer["items"])) <= MAX_CHARS + 100


def test_nothing_found_says_what_to_do() -> None:
    answer = MemoryTools(Shelf(items=0)).memory_search("oak")
    assert (answer["count"], answer["items"], answer["truncated"]) == (0, [], False)
    assert "explore the endpoint" in answer["note"]


def test_one_item_is_bounded_too() -> None:
    answer = MemoryTools(Shelf()).memory_get("07")
    assert answer["item"]["id"] == "07"
    assert len(json.dumps(answer["item"])) <= MAX_CHARS
    assert answer["truncated"]
    assert "text" in answer["note"]
    assert "turns" in answer["note"]


@pytest.mark.parametrize("query", ["", " \n", None, 5, ["oak"], "x" * 5_000])
def test_a_query_that_is_none_is_refused_with_what_to_give(query: Any) -> None:
    with pytest.raises(ToolError, match="the question") as caught:
        MemoryTools(Shelf()).memory_search(query)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("item_id", ["", None, 7])
def test_an_id_that_is_none_is_refused(item_id: Any) -> None:
    with pytest.raises(ToolError, match="memory_search"):
        MemoryTools(Shelf()).memory_get(item_id)


@pytest.mark.parametrize("limit", [0, -1, "5", None])
def test_a_limit_that_is_none_is_refused(limit: Any) -> None:
    with pytest.raises(ToolError, match="number from 1"):
        MemoryTools(Shelf()).memory_search("oak", limit)


@pytest.mark.parametrize(
    "fault", [UsageError("no such item", hint="look"), RecordError("x" * 9_000, where="y" * 900)]
)
def test_a_failure_of_the_memory_is_a_line_for_the_agent(fault: ReasoningBankError) -> None:
    tools = MemoryTools(Shelf(fault=fault))
    for call in (lambda: tools.memory_search("oak"), lambda: tools.memory_get("07")):
        with pytest.raises(ToolError) as caught:
            call()
        assert len(str(caught.value)) < 1_200
        assert caught.value.hint


def test_dspy_takes_them_by_position_and_by_name() -> None:
    named = MemoryTools(Shelf()).as_dspy_tools()
    assert list(named) == ["memory_search", "memory_get"]
    for name, tool in named.items():
        made = dspy.Tool(tool, name=name)
        assert made.args
        assert "\n" not in made.desc
        assert len(made.desc) <= 110
    assert named["memory_search"]("oak", 2) == named["memory_search"](query="oak", limit=2)
