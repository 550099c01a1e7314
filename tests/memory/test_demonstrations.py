"""Demonstrations of items: bounded, recorded, and their random control."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import dspy
import pytest

from reasoningbank.agents.loops import turn_examples
from reasoningbank.lm.tokens import count_tokens
from reasoningbank.memory import (
    FoundItem,
    LeakageFilter,
    MemoryBank,
    MemoryItem,
    Provenance,
    Retrieval,
    Turn,
)
from reasoningbank.memory.demonstrations import (
    MOST_TOKENS,
    ShownDemonstration,
    random_demonstration,
    shown_demonstration,
    shown_demonstrations,
    worked_turns,
)

LOOK = Turn("Which names are there?", 'print(schema_search("height"))', "t:height: metres\n" * 20)
RUN = Turn("Now I ask.", 'q = "SELECT ?x { ?x t:height 7 }"\nprint(sparql_query(q))', "3 rows")
SUBMIT = Turn("The rows answer it.", "SUBMIT(q)", "never shown")


def item(name: str, *turns: Turn, task: str = "") -> MemoryItem:
    return MemoryItem(
        name, "", "Look first.", "success", question=f"Which trees are like {name}?", turns=turns,
        provenance=Provenance(task=task, trial=f"a/{task}.0"),
    )  # fmt: skip


def found(of: MemoryItem, tokens: int = MOST_TOKENS) -> ShownDemonstration:
    one = shown_demonstration(of, tokens)
    assert one is not None
    return one


@pytest.fixture
def bank() -> Iterator[MemoryBank]:
    with MemoryBank() as made:
        yield made


def test_tokens_are_those_of_the_prompt() -> None:
    one = found(item("oak", LOOK, RUN, SUBMIT))
    action = dspy.Signature("variables_info, repl_history, iteration -> reasoning, code")
    examples = turn_examples(one.demonstration, 6)
    messages = dspy.ChatAdapter().format_demos(action, examples)
    prompted = sum(count_tokens(str(message["content"])) for message in messages)
    # Beside the fields, the adapter marks where each reply ends.
    assert one.tokens <= prompted <= 1.15 * one.tokens
    assert one.tokens > 2 * count_tokens(one.text)


def test_the_event_holds_what_is_shown_once() -> None:
    one = found(item("oak", LOOK, RUN, SUBMIT, task="t7"))
    for said in ("Which trees are like oak?", RUN.code, RUN.output, "SUBMIT(q)"):
        assert one.text.count(said) == 1
    assert "never shown" not in one.text
    hit = FoundItem(one.item, 1.0, "any", 5)
    entry = Retrieval("q", (hit,), demonstrations=(one,)).to_event()
    assert entry["tokens"] == 5 + one.tokens
    (demonstration,) = entry["demonstrations"]
    assert demonstration == {
        "id": one.item.id, "task": "t7", "trial": "a/t7.0", "tokens": one.tokens,
        "turns": 3, "left_out": 0, "text": one.text,
    }  # fmt: skip


def test_a_long_one_is_shortened_to_its_last_turns() -> None:
    long = item("oak", LOOK, LOOK, RUN, SUBMIT)
    whole = found(long, 10_000)
    assert whole.tokens > MOST_TOKENS
    one = found(long)
    assert one.tokens <= MOST_TOKENS
    assert [turn.code for turn in one.demonstration.turns][-2:] == [RUN.code, SUBMIT.code]
    assert 2 <= len(one.demonstration.turns) < 4
    assert one.to_event()["left_out"] == 4 - len(one.demonstration.turns)
    assert found(long, whole.tokens).demonstration == whole.demonstration
    assert len(found(long, whole.tokens - 1).demonstration.turns) == 3


def test_one_that_would_only_submit_is_left_out() -> None:
    wide = Turn("Now I ask.", RUN.code, "a row of the result\n" * 300)
    assert shown_demonstration(item("oak", LOOK, wide, SUBMIT)) is None
    assert shown_demonstration(item("oak")) is None
    shown = shown_demonstrations(
        [item("oak"), item("elm", LOOK, wide, SUBMIT), item("ash", RUN, SUBMIT)], 1
    )
    assert [one.item.title for one in shown] == ["ash"]


def test_an_item_without_turns_is_worked_on_and_stays_the_banks_item() -> None:
    query = "SELECT ?x { ?x t:height 7 }"
    tools = {"sparql_query": "Ref of {}".format, "sparql_peek": "{1} rows of {0}".format}
    ran, submitted = worked_turns(query, tools)
    assert f'"""{query}"""' in ran.code
    assert ran.output == f"Ref of {query}\n3 rows of Ref of {query}\n"
    assert submitted.code == "SUBMIT(query)"

    def work(asked: str) -> tuple[Turn, ...]:
        return worked_turns(asked, tools)

    gold = replace(item("oak", task="t7"), src="gold", pattern=query)
    solved, unknown = replace(item("elm"), query=query), item("ash")
    own = item("fir", RUN, SUBMIT)
    shown = shown_demonstrations([gold, solved, unknown, own], 9, work)
    assert [one.item for one in shown] == [gold, solved, own]
    assert [len(one.demonstration.turns) for one in shown] == [2, 2, 2]
    assert shown[0].to_event()["id"] == gold.id
    assert shown[2].demonstration.turns[0].code == RUN.code
    assert shown_demonstrations([gold], 9) == ()


def test_the_random_control_is_one_of_the_nearest_but_not_the_same(bank: MemoryBank) -> None:
    of = item("oak", RUN, SUBMIT)
    near = [item(f"tree {n}", RUN, SUBMIT) for n in range(5)]
    far = [item(f"bush {n}", LOOK, RUN, SUBMIT) for n in range(5)]
    bank.add([of, *near, *far, item("without turns")])
    drawn = [
        random_demonstration(bank, found(of), leakage=LeakageFilter(task="t"), seed=seed)[
            0
        ].item.title
        for seed in range(60)
    ]
    assert set(drawn) == {one.title for one in near}
    again = [
        random_demonstration(bank, found(of), leakage=LeakageFilter(task="t"), seed=seed)[
            0
        ].item.title
        for seed in range(60)
    ]
    assert again == drawn


def test_the_random_control_is_filtered_and_keeps_to_kinds(bank: MemoryBank) -> None:
    of, leak = item("oak", RUN, SUBMIT), item("elm", RUN, SUBMIT, task="t")
    bank.add([of, leak, item("ash", LOOK, RUN, SUBMIT)])
    one, filtered_out = random_demonstration(bank, found(of), leakage=LeakageFilter(task="t"))
    assert one.item.title == "ash"
    assert [(one, why.code) for one, why in filtered_out] == [(leak.id, "own-task")]
    # If no other can be drawn, the one that was found is returned.
    kinds = frozenset({"gold"})
    assert random_demonstration(bank, found(of), leakage=LeakageFilter(), kinds=kinds) == (
        found(of),
        (),
    )  # type: ignore[arg-type]
