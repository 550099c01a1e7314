"""Who gives way when two items cannot both be right."""

from __future__ import annotations

import itertools

import pytest

from reasoningbank.memory import ItemSource, MemoryItem, Provenance, Scope
from reasoningbank.memory.consolidate import contradictions

from .items import item, seen

UP = {"up": "http://purl.uniprot.org/core/"}


def lost(*items: MemoryItem) -> list[tuple[str, str]]:
    found = {
        tuple((s.loser.title, s.winner.title) for s in contradictions(order, UP))
        for order in itertools.permutations(items)
    }
    assert len(found) == 1
    return list(found.pop())


def works(*tasks: str, title: str = "works", judge: str = "execution") -> MemoryItem:
    return item(title, tasks=seen(*tasks, judge=judge))


def fails(*tasks: str, title: str = "fails", judge: str = "execution") -> MemoryItem:
    return item(title, src="failure", tasks=seen(*tasks, judge=judge))


def absent(name: str, *tasks: str, title: str = "absent", judge: str = "execution") -> MemoryItem:
    tags = ("up:Protein", f"absent:{name}")
    shown = seen(*tasks, judge=judge)
    return item(title, src="failure", pattern="", content="No.", tags=tags, tasks=shown)


def test_the_side_with_more_tasks_stays() -> None:
    assert lost(works("t1", "t2"), fails("t3")) == [("fails", "works")]
    assert lost(works("t1"), fails("t2", "t3")) == [("works", "fails")]
    assert lost(works("t1"), fails("t2")) == []


def test_attempts_at_one_task_are_one_experience() -> None:
    thrice = tuple(
        Provenance(task="t1", corpus="uniprot", trial=f"one/t1.{n}", judge="execution")
        for n in range(3)
    )
    assert lost(item("works", tasks=thrice), fails("t2")) == []


def test_execution_outweighs_opinions() -> None:
    assert lost(works("t1"), fails("t2", "t3", "t4", judge="lm:local")) == [("fails", "works")]


@pytest.mark.parametrize(
    "other",
    [
        item("other", src="failure", pattern="SELECT ?p { ?p up:name <<mass>> }"),
        item("other", src="contrast"),
        item("other", src="failure", scope=Scope("liita")),
        item("other", src="failure", pattern=""),
    ],
)
def test_what_can_both_be_right_stays(other: MemoryItem) -> None:
    assert lost(works("t1", "t2"), other) == []


def test_items_without_a_pattern_do_not_share_one() -> None:
    assert lost(item("a", pattern="", tasks=seen("t1")), item("b", src="failure", pattern="")) == []


@pytest.mark.parametrize("src", ["seed", "success", "gold"])
def test_advice_to_use_what_is_not_there_gives_way(src: ItemSource) -> None:
    advice = item("advice", src=src)
    assert lost(advice, absent("up:mass", "t1")) == [("advice", "absent")]
    assert lost(advice, absent("<http://purl.uniprot.org/core/mass>", "t1")) == [
        ("advice", "absent")
    ]
    assert lost(advice, absent("up:weight", "t1")) == []


def test_at_equal_evidence_what_was_looked_for_in_the_data_stays() -> None:
    assert lost(works("t1"), absent("up:mass", "t2")) == [("works", "absent")]
    assert lost(works("t1", "t2"), absent("up:mass", "t3")) == [("absent", "works")]


def test_words_and_tags_are_never_held_against_an_item() -> None:
    advice = item("advice", src="seed", pattern="", content="Never filter on up:mass.")
    tagged = item("tagged", "seed", "SELECT ?p { ?p up:name ?n }", tags=("up:mass",))
    assert lost(advice, absent("up:mass", "t1"), tagged) == []
    warning = item("warning", "contrast", tags=("absent:up:weight",), tasks=seen("t1"))
    assert lost(warning, absent("up:weight", "t2", "t3")) == []
    assert lost(warning, absent("up:mass", "t2", "t3")) == [("warning", "absent")]


def test_what_has_lost_speaks_no_more() -> None:
    strong = works("t1", "t2", "t3", title="strong")
    middle = fails("t4", "t5", title="middle")
    weak = works("t6", title="weak")
    assert lost(strong, middle, weak) == [("middle", "strong")]
