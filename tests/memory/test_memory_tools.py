"""The memory tools over a real bank: leakage-filtered and recorded."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import dspy
import pytest

from reasoningbank.errors import RecordError, ToolError
from reasoningbank.lm.tokens import count_tokens
from reasoningbank.memory import (
    Counters,
    LeakageFilter,
    MemoryBank,
    MemoryItem,
    MemoryTools,
    Provenance,
    Turn,
)
from reasoningbank.tools import CAPS
from reasoningbank.tools.returns import MAX_CHARS
from reasoningbank.trajectory import Recorder

HEIGHT = MemoryItem(
    "Height of a tree",
    "How tall something is",
    "Ask :height.",
    "success",
    pattern="SELECT ?h { <<tree>> :height ?h }",
    question="How tall is the ash?",
    provenance=Provenance(task="t2"),
    counters=Counters(helped=2, hurt=1),
    turns=(Turn("I look.", "print(1)", "1"),),
)
LEAK = MemoryItem("Height of the oak", "", "31", "success", provenance=Provenance(task="t1"))
PITFALL = MemoryItem("No unit", "Heights are compared", "They are metres.", "failure")
LONG = MemoryItem("Height of everything", "", "word " * 3_000, "success")


@pytest.fixture
def bank() -> Iterator[MemoryBank]:
    with MemoryBank() as made:
        made.add([HEIGHT, LEAK, PITFALL, LONG])
        yield made


def consult(bank: MemoryBank, **how: object) -> tuple[MemoryTools, Recorder]:
    recorder = Recorder()
    leakage = LeakageFilter(task="t1")
    tools = MemoryTools(bank, leakage=leakage, recorder=recorder, **how)  # type: ignore[arg-type]
    return tools, recorder


def events(recorder: Recorder) -> list[dict[str, Any]]:
    trajectory = recorder.trajectory()
    return [trajectory.resolve(event.data) for event in trajectory.of("memory_retrieved")]


def test_a_search_shows_whole_items_and_records_them(bank: MemoryBank) -> None:
    tools, recorder = consult(bank)
    answer = tools.memory_search("How tall is the oak?")
    assert json.loads(json.dumps(answer)) == answer
    assert [one["id"] for one in answer["items"]] == [HEIGHT.id, PITFALL.id]
    assert answer["items"][0]["text"].endswith(HEIGHT.pattern)
    assert (answer["source"], answer["count"], answer["truncated"]) == ("memory", 2, True)
    assert LONG.id in answer["note"]
    assert LEAK.id not in str(answer)
    (event,) = events(recorder)
    assert event["query"] == "How tall is the oak?"
    assert [(one["id"], one["code"]) for one in event["filtered_out"]] == [(LEAK.id, "own-task")]


def test_tokens_are_recorded_of_what_one_return_had_room_for(bank: MemoryBank) -> None:
    bank.add([MemoryItem(f"Height {n}", "", f"{n} tall " * 300, "seed") for n in range(6)])
    tools, recorder = consult(bank, kinds=frozenset({"seed"}), tokens=9_000)
    answer = tools.memory_search("How tall is the oak?", limit=6)
    assert 0 < len(answer["items"]) < 6
    (event,) = events(recorder)
    assert event["tokens"] == sum(count_tokens(one["text"]) for one in answer["items"])


def test_a_limit_is_kept_and_kinds_restrict(bank: MemoryBank) -> None:
    tools, _ = consult(bank, kinds=frozenset({"failure"}))
    answer = tools.memory_search("How tall is the oak?", limit=1)
    assert [one["id"] for one in answer["items"]] == [PITFALL.id]
    with pytest.raises(ToolError, match="is not to be shown"):
        tools.memory_get(HEIGHT.id)


def test_no_search_gives_more_than_is_allowed(bank: MemoryBank) -> None:
    bank.add([MemoryItem(f"Height {n}", "", "In metres.", "seed") for n in range(4)])
    tools, _ = consult(bank, items=2)
    assert len(tools.memory_search("How tall is the oak?", limit=9)["items"]) == 2
    assert len(tools.memory_search("How tall is the oak?", limit=1)["items"]) == 1


def test_five_by_default_twenty_at_most_and_said(bank: MemoryBank) -> None:
    bank.add([MemoryItem(f"Height {n}", "", "In metres.", "seed") for n in range(30)])
    tools, recorder = consult(bank, tokens=9_000)
    assert tools.memory_search("Height")["count"] == 5
    answer = tools.memory_search("  the\n Height ", limit=500)
    assert answer["count"] <= CAPS["memory_search"].most == 20
    assert "lowered from 500 to 20" in answer["note"]
    assert [event["query"] for event in events(recorder)] == ["Height", "the Height"]


def test_nothing_found_says_what_to_do() -> None:
    with MemoryBank() as bank:
        answer = consult(bank)[0].memory_search("oak")
    assert (answer["count"], answer["items"], answer["truncated"]) == (0, [], False)
    assert "explore the endpoint" in answer["note"]


def test_one_item_is_shown_with_its_evidence_and_turns(bank: MemoryBank) -> None:
    tools, recorder = consult(bank)
    answer = tools.memory_get(HEIGHT.id[:8])
    item = answer["item"]
    assert (item["id"], item["pattern"]) == (HEIGHT.id, HEIGHT.pattern)
    assert (item["helped"], item["hurt"], item["experiences"]) == (2, 1, 1)
    assert item["turns"] == [{"reasoning": "I look.", "code": "print(1)", "output": "1"}]
    assert answer["truncated"] is False
    (entry,) = events(recorder)[0]["items"]
    assert entry["id"] == HEIGHT.id
    # What is recorded as shown is all of it.
    for text in (HEIGHT.title, HEIGHT.content, HEIGHT.question, HEIGHT.pattern, "print(1)"):
        assert text in entry["text"]


def test_a_long_item_is_cut_and_said_so(bank: MemoryBank) -> None:
    tools, _ = consult(bank)
    answer = tools.memory_get(LONG.id)
    assert len(json.dumps(answer["item"])) <= MAX_CHARS
    assert answer["truncated"]
    assert "cut: content" in answer["note"]


@pytest.mark.parametrize("query", ["", " \n", None, 5, ["oak"], "x" * 5_000])
def test_a_query_that_is_none_is_refused_with_what_to_give(bank: MemoryBank, query: Any) -> None:
    with pytest.raises(ToolError, match="the question") as caught:
        consult(bank)[0].memory_search(query)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("item_id", ["", None, 7])
def test_an_id_that_is_none_is_refused(bank: MemoryBank, item_id: Any) -> None:
    with pytest.raises(ToolError, match="memory_search"):
        consult(bank)[0].memory_get(item_id)


@pytest.mark.parametrize("limit", [0, -1, "5", None])
def test_a_limit_that_is_none_is_refused(bank: MemoryBank, limit: Any) -> None:
    with pytest.raises(ToolError, match="number from 1"):
        consult(bank)[0].memory_search("oak", limit)


def test_a_failure_of_the_memory_is_a_line_for_the_agent(
    bank: MemoryBank, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RecordError("x" * 9_000, where="y" * 900)

    tools, _ = consult(bank)
    monkeypatch.setattr(bank, "match", fail)
    monkeypatch.setattr(bank, "get", fail)
    for call in (tools.memory_search, tools.memory_get):
        with pytest.raises(ToolError) as caught:
            call("oak")
        assert len(str(caught.value)) < 1_200
        assert caught.value.hint


def test_dspy_takes_them_by_position_and_by_name(bank: MemoryBank) -> None:
    named = consult(bank)[0].as_dspy_tools()
    assert list(named) == ["memory_search", "memory_get"]
    for name, tool in named.items():
        made = dspy.Tool(tool, name=name)
        assert made.args
        assert "\n" not in made.desc
        assert len(made.desc) <= 110
    assert named["memory_search"]("oak", 2) == named["memory_search"](query="oak", limit=2)


def test_a_filtered_item_is_recorded_but_not_revealed(bank: MemoryBank) -> None:
    tools, recorder = consult(bank)
    with pytest.raises(ToolError) as caught:
        tools.memory_get(LEAK.id)
    assert "t1" not in str(caught.value)
    assert "31" not in str(caught.value).replace(LEAK.id, "")
    assert "memory_search(query)" in str(caught.value)
    (removed,) = events(recorder)[0]["filtered_out"]
    assert (removed["id"], removed["code"]) == (LEAK.id, "own-task")


@pytest.mark.parametrize("item_id", ["nothing", "0", "x" * 5_000])
def test_an_unknown_id_is_one_line_that_says_what_to_do(bank: MemoryBank, item_id: str) -> None:
    tools, recorder = consult(bank)
    with pytest.raises(ToolError) as caught:
        tools.memory_get(item_id)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 1_000
    assert events(recorder) == []


def test_an_unknown_id_reveals_no_filtered_item() -> None:
    with MemoryBank() as bank:
        bank.add([LEAK])
        tools, _ = consult(bank)
        with pytest.raises(ToolError) as caught:
            tools.memory_get("0" * 16)
        assert LEAK.id not in str(caught.value)


def test_what_is_retired_is_not_shown(bank: MemoryBank) -> None:
    bank.retire(HEIGHT.id, reason="it hurts")
    tools, _ = consult(bank)
    assert HEIGHT.id not in str(tools.memory_search("How tall is the oak?"))
    with pytest.raises(ToolError, match="not to be shown"):
        tools.memory_get(HEIGHT.id)


def test_random_items_do_not_depend_on_the_question(bank: MemoryBank) -> None:
    more = [replace(PITFALL, title=f"Item {n}") for n in range(30)]
    bank.add(more)
    tools, recorder = consult(bank, random_seed=3)
    answers = [tools.memory_search(query) for query in ("How tall is the oak?", "Tree heights")]
    drawn = [[one["id"] for one in answer["items"]] for answer in answers]
    assert drawn[0][:2] == drawn[1][:2]
    assert all(0 < len(ids) <= 5 for ids in drawn)
    assert all(event["at_random"] for event in events(recorder))
    recorded = [[one["id"] for one in event["items"]] for event in events(recorder)]
    assert recorded == drawn


# Two items of 2,700 characters are as long as one return, and leave no room for what it adds.
@pytest.mark.parametrize("chars", [2_000, 2_700])
def test_what_is_recorded_as_shown_is_what_one_return_holds(chars: int) -> None:
    with MemoryBank() as bank:
        long = "word " * (chars // 5)
        bank.add([replace(PITFALL, title=f"Item {n}", content=long) for n in range(9)])
        tools, recorder = consult(bank, tokens=10**6)
        answer = tools.memory_search("Item", limit=9)
        assert 0 < answer["count"] < 9
        assert answer["truncated"]
        assert len(json.dumps(answer)) < 7_000
        ids = [one["id"] for one in answer["items"]]
        assert [one["id"] for one in events(recorder)[0]["items"]] == ids
