"""Demonstrations from a success's own turns."""

from __future__ import annotations

from reasoningbank.memory import MemoryItem
from reasoningbank.memory.demonstrations import (
    MOST_OUTPUT_CHARS,
    MOST_TURNS,
    shown_demonstration,
    turns_of,
)
from reasoningbank.memory.item import Turn

from .attempts import MASS, MASS_QUESTION, by_turns

RAN = ("I run the query.", f'query = """{MASS}"""\nref = sparql_query(query)\nprint(ref)', "Ref(…)")
SUBMITTED = ("I submit it.", "SUBMIT(query)", "")


def turns(*taken: tuple[str, str, str]) -> tuple[Turn, ...]:
    return turns_of(by_turns(*taken), MASS)


def test_what_led_to_the_query_is_kept() -> None:
    looked = ("I look at sequences.", 'print(sparql_describe("up:sequence"))', "{…}")
    kept = turns(looked, RAN, SUBMITTED)

    assert [turn.reasoning for turn in kept] == [one[0] for one in (looked, RAN, SUBMITTED)]
    assert [turn.code for turn in kept] == [one[1] for one in (looked, RAN, SUBMITTED)]


def test_failed_repeated_and_idle_turns_are_dropped() -> None:
    kept = turns(
        ("Look.", 'print(sparql_sample("up:Disease"))', "{…}"),
        ("Look.", 'print(sparql_describe("up:mass"))', "[Error] no"),
        ("Look.", 'print(sparql_describe("up:sequence"))', "{…}"),
        ("Look.", 'print( sparql_describe("up:sequence") )', "{…}"),
        ("Again.", "x()", "[Repeated] You already ran this code"),
        ("Crash.", "1/0", "Traceback (most recent call last):\nZeroDivisionError"),
        RAN,
        ("Doubt.", "print('hm')", "hm"),
        SUBMITTED,
    )

    assert [turn.code[:30] for turn in kept] == [
        'print(sparql_describe("up:sequ',
        'print( sparql_describe("up:seq',
        RAN[1][:30],
        "SUBMIT(query)",
    ]


def test_a_success_that_was_never_submitted_ends_with_its_submission() -> None:
    assert turns(RAN)[-1].code == "SUBMIT(query)"
    inline = ("I run it.", "query = make()\nsparql_query(query)", "Ref(…)")
    assert turns(inline)[-1].code == f'SUBMIT("""{MASS}""")'


def test_a_turn_that_runs_and_submits_is_the_last() -> None:
    both = (RAN[0], f"{RAN[1]}\nSUBMIT(query)", "")

    assert turns(both) == (Turn(both[0], both[1]),)


def test_outputs_and_turns_are_bounded() -> None:
    looked = [("L.", f'print(sparql_describe("up:mass", {n}))', "x" * 9_000) for n in range(9)]
    kept = turns(*looked, RAN, SUBMITTED)

    assert len(kept) == MOST_TURNS
    assert all(len(turn.output) <= MOST_OUTPUT_CHARS for turn in kept)


def test_an_attempt_without_turns_has_none() -> None:
    assert turns_of(by_turns(), MASS) == turns_of(by_turns(), "") == ()
    assert turns(("I only look.", "print(1)", "1")) == ()


def test_items_become_demonstrations() -> None:
    item = MemoryItem(
        "Mass", "", "x", "success", question=MASS_QUESTION, turns=turns(RAN, SUBMITTED)
    )
    without = MemoryItem("Other", "", "x", "failure", question="?")
    shown = shown_demonstration(item)

    assert shown_demonstration(without) is None
    assert shown is not None
    assert shown.demonstration.question == MASS_QUESTION
    assert [turn.code for turn in shown.demonstration.turns] == [turn.code for turn in item.turns]
