"""What is settled stays settled: nothing flips for ever, whatever the history."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hashed_words import HashedWords

from reasoningbank.memory import Action, Counters, ItemSource, MemoryBank, MemoryItem, Provenance
from reasoningbank.memory.consolidate import consolidate

from .items import item, seen

MASSES = "SELECT ?p { ?p up:mass <<mass>> }"
NAMES = "SELECT ?p { ?p up:name <<name>> }"
LESSON = item("lesson", pattern=MASSES, tasks=seen("t1"))
#: Shows that masses are not there, and uses names, which the last one shows not to be there.
AGAINST = item("against", "contrast", NAMES, tasks=seen("t2"), tags=("absent:up:mass",))
LAST = item("last", "failure", "", tasks=seen("t3"), tags=("absent:up:name",))


def tidy(bank: MemoryBank, new: list[str] | None = None) -> list[Action]:
    done = [change.action for change in consolidate(bank, new=new, embedder=HashedWords())]
    before = bank.snapshot(), len(bank.history())
    assert consolidate(bank, embedder=HashedWords()) == []
    assert (bank.snapshot(), len(bank.history())) == before
    return done


def active(bank: MemoryBank) -> set[str]:
    return {one.title for one in bank.items()}


@pytest.fixture
def bank() -> MemoryBank:
    return MemoryBank(embedder=HashedWords())


@pytest.mark.parametrize("days", ["123", "132", "213", "231", "312", "321"])
def test_what_loses_speaks_against_no_other_whichever_is_older(bank: MemoryBank, days: str) -> None:
    aged = [
        replace(one, provenance=replace(one.provenance, time=f"2026-01-0{day}"))
        for one, day in zip((LESSON, AGAINST, LAST), days, strict=True)
    ]
    bank.add(aged)
    assert tidy(bank) == ["supersede"]
    assert active(bank) == {"lesson", "last"}


def test_two_that_deny_each_other_do_not_take_turns(bank: MemoryBank) -> None:
    other = item("other", "contrast", MASSES, tasks=seen("t9"), tags=("absent:up:name",))
    for ids in (bank.add([AGAINST]), bank.add([other])):
        tidy(bank, ids)
    assert len(active(bank)) == 1


def test_a_ring_of_denials_comes_to_rest(bank: MemoryBank) -> None:
    names = ["up:mass", "up:name", "up:length", "up:sequence"]
    ring = [
        item(
            f"{n}",
            "contrast",
            f"SELECT ?p {{ ?p {names[n]} <<it>> }}",
            tasks=seen(f"t{n}"),
            tags=(f"absent:{names[n - 1]}",),
        )
        for n in range(len(names))
    ]
    for one in ring:
        tidy(bank, bank.add([one]))
    assert active(bank)


PATTERNS = [
    "",
    MASSES,
    "SELECT ?x { ?x up:mass <<weight>> . }",
    NAMES,
    "SELECT ?p { ?p up:mass ?m ; up:name ?n }",
]


#: Histories at whose end two items took turns for ever, before a tie was broken.
FLIPPED = (106, 138, 225, 328, 798, 894)


def drawn(draw: random.Random) -> MemoryItem:
    sources: list[ItemSource] = ["success", "failure", "contrast", "contrast"]
    src = draw.choice(sources)
    pattern = draw.choice(PATTERNS)
    denied = [name for name in ("up:mass", "up:name") if name not in pattern]
    return item(
        draw.choice("AB"),
        src,
        pattern,
        tags=() if src == "success" or not denied else (f"absent:{draw.choice(denied)}",),
        content=draw.choice(["Use it now.", "Use it now please.", "Leave up:mass.", "Leave it."]),
    )


def experience(draw: random.Random) -> Provenance:
    (one,) = seen(f"t{draw.randrange(4)}", judge=draw.choice(["execution"] * 4 + ["lm:local"]))
    return replace(one, time=f"2026-01-0{draw.randrange(1, 9)}")


@pytest.mark.parametrize("seed", [*range(40), *FLIPPED])
def test_what_was_consolidated_stays_whatever_its_history(seed: int) -> None:
    """Learned one by one, counted, retired and put back by hand."""
    draw = random.Random(seed)
    items = list(
        {one.id: one for one in (drawn(draw) for _ in range(draw.randrange(2, 8)))}.values()
    )
    bank = MemoryBank(embedder=HashedWords())
    for _ in range(draw.randrange(2, 16)):
        known = {one.id for one in bank.items(status=None)}
        added = bank.add([replace(draw.choice(items), provenance=experience(draw))])
        chosen = draw.choice(bank.items(status=None))
        by_hand = draw.randrange(20)
        if by_hand == 0:
            bank.retire(chosen.id, reason="by hand")
        elif by_hand == 1:
            bank.restore(chosen.id, reason="by hand")
        elif by_hand < 4:
            changed = draw.choice(["helped", "hurt"])
            bank.count([chosen.id], Counters(retrieved=9, **{changed: draw.randrange(1, 7)}))
        new = [one for one in added if one not in known]
        consolidate(bank, new=new, embedder=HashedWords(), near=0.9)
    first = consolidate(bank, embedder=HashedWords(), near=0.9)
    # Only what was put back by hand may have duplicates that a step by step has not seen.
    assert not first or any(change.reason == "by hand" for change in bank.history())
    before = bank.snapshot(), len(bank.history())
    assert consolidate(bank, embedder=HashedWords(), near=0.9) == []
    assert (bank.snapshot(), len(bank.history())) == before
