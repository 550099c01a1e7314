"""Consolidating a real bank: what is changed, that it can be undone, and that it ends."""

from __future__ import annotations

import random
import zlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from reasoningbank.memory import Counters, MemoryBank, MemoryItem
from reasoningbank.memory.consolidate import consolidate, evidence_of
from reasoningbank.memory.store import Store
from reasoningbank.retrieval import Vectors

from .items import MASS, item, seen

RENAMED = "SELECT ?x WHERE { ?x up:mass <<weight>> . }"
NAME = "SELECT ?protein { ?protein up:name <<name>> }"


class NoTwoNear:
    """Stands in for the embedding model where words do not matter."""

    name = "no two near"
    dimensions = 64

    def passages(self, texts: Sequence[str]) -> Vectors:
        rows = [np.random.default_rng(zlib.crc32(text.encode())).normal(size=64) for text in texts]
        return np.array([row / np.linalg.norm(row) for row in rows], dtype=np.float32)

    queries = passages


@pytest.fixture
def bank() -> MemoryBank:
    return MemoryBank(embedder=NoTwoNear())


def tidy(bank: MemoryBank, new: Sequence[str] | None = None) -> list[tuple[str, str]]:
    changes = consolidate(bank, new=new, embedder=NoTwoNear())
    assert {change.made_by for change in changes} <= {"consolidation"}
    assert [change.number for change in changes] == sorted({change.number for change in changes})
    assert all(change in bank.history() for change in changes)
    before = bank.snapshot()
    assert consolidate(bank, embedder=NoTwoNear()) == []
    assert bank.snapshot() == before
    return [(change.action, change.item_id) for change in changes]


def test_duplicates_become_one_with_all_evidence(bank: MemoryBank) -> None:
    weak = item("weak", tasks=seen("t1"), counters=Counters(3, 1, 2, 1, 0))
    strong = item("strong", pattern=RENAMED, tasks=seen("t2", "t3"), counters=Counters(4, 4))
    bank.add([weak, strong])
    assert tidy(bank) == [("replace", strong.id), ("supersede", weak.id)]
    (left,) = bank.items()
    assert [origin.task for origin in left.origins] == ["t2", "t3", "t1"]
    assert left.counters == Counters(6, 4, 2, 1, 0)
    gone = bank.get(weak.id)
    assert (gone.status, gone.superseded_by) == ("superseded", strong.id)


def test_a_merge_is_undone_as_one_and_not_made_again(bank: MemoryBank) -> None:
    items = [item("weak", tasks=seen("t1")), item("strong", tasks=seen("t2", "t3"))]
    bank.add(items)
    before = bank.snapshot()
    assert tidy(bank)
    bank.undo()
    assert bank.snapshot() == before
    assert tidy(bank) == []
    assert bank.snapshot() == before


def test_a_third_goes_up_in_them_all_the_same(bank: MemoryBank) -> None:
    weak, strong = item("weak", tasks=seen("t1")), item("strong", tasks=seen("t2", "t3"))
    bank.add([weak, strong])
    tidy(bank)
    bank.undo()
    third = item("third", tasks=seen("t2"))
    bank.add([third])
    assert tidy(bank, [third.id]) == [("supersede", third.id)]
    assert bank.get(third.id).superseded_by == strong.id


@pytest.mark.parametrize(
    ("first", "second", "loser"),
    [
        (item("works", tasks=seen("t1", "t2")), item("fails", "failure", tasks=seen("t3")), 1),
        (item("works", tasks=seen("t1")), item("fails", "failure", tasks=seen("t2", "t3")), 0),
        (
            item("advice", "seed"),
            item("absent", "failure", "", tasks=seen("t1"), tags=("absent:up:mass",)),
            0,
        ),
    ],
)
def test_the_contradicted_is_superseded_and_can_come_back(
    bank: MemoryBank, first: MemoryItem, second: MemoryItem, loser: int
) -> None:
    bank.add([first, second])
    gone, kept = (first, second) if loser == 0 else (second, first)
    assert tidy(bank) == [("supersede", gone.id)]
    assert bank.get(gone.id).superseded_by == kept.id
    assert bank.get(kept.id) == kept
    bank.undo()
    assert {one.id for one in bank.items()} == {first.id, second.id}
    assert tidy(bank) == []


def test_what_both_judges_say_counts_as_the_execution_judges() -> None:
    said = {judge: item(judge, tasks=seen("t1", judge=judge)) for judge in (
        "execution", "lm:local", "execution and lm:local"
    )}  # fmt: skip
    assert {judge: evidence_of(one)[0] for judge, one in said.items()} == {
        "execution": 1, "lm:local": 0, "execution and lm:local": 1,
    }  # fmt: skip


def test_what_hurts_is_retired_by_pairs_and_never_by_what_came_after(bank: MemoryBank) -> None:
    hurts = item("hurts", counters=Counters(6, 0, 6, 0, 6))
    unlucky = item("unlucky", pattern=NAME, counters=Counters(500, 0, 500))
    bank.add([hurts, unlucky])
    (change,) = consolidate(bank, embedder=NoTwoNear())
    assert (change.action, change.item_id) == ("retire", hurts.id)
    assert "hurt 6 tasks and helped 0" in change.reason
    assert [one.id for one in bank.items()] == [unlucky.id]
    bank.restore(hurts.id, reason="it was the endpoint")
    assert tidy(bank) == []


def test_duplicates_shown_to_the_same_trials_do_not_count_them_twice(bank: MemoryBank) -> None:
    ids = bank.add([item(title) for title in "ab"])
    for _ in range(3):
        bank.count(ids, Counters(retrieved=1, failure=1, hurt=1))
    before = bank.snapshot()
    kept, gone = sorted(ids)
    assert tidy(bank) == [("supersede", gone)]
    assert bank.get(kept).counters == Counters(retrieved=3, failure=3, hurt=3)
    bank.undo()
    assert bank.snapshot() == before


def test_what_hurts_does_not_live_on_in_a_duplicate(bank: MemoryBank) -> None:
    kept, gone = item("kept", tasks=seen("t1")), item("gone", counters=Counters(hurt=6))
    bank.add([kept, gone])
    assert tidy(bank) == [("replace", kept.id), ("supersede", gone.id), ("retire", kept.id)]


def test_the_order_of_arrival_does_not_matter_and_every_change_can_be_undone(
    tmp_path: Path,
) -> None:
    draw = random.Random(7)
    patterns = [MASS, RENAMED, NAME, ""]
    items = [
        item(
            f"{src} {n}",
            src,
            patterns[n % 4],
            tasks=seen(*(f"t{draw.randrange(9)}" for _ in range(draw.randrange(4)))),
            counters=Counters(helped=draw.randrange(4), hurt=draw.randrange(14)),
            tags=("absent:up:name",) if src == "failure" and n % 5 == 0 else (),
        )
        for n in range(12)
        for src in ("success", "failure", "gold")
    ]
    ends = []
    for number in range(3):
        draw.shuffle(items)
        bank = MemoryBank(tmp_path / f"{number}.sqlite", embedder=NoTwoNear())
        bank.add(items)
        before = bank.snapshot()
        changes = consolidate(bank, embedder=NoTwoNear())
        assert {change.action for change in changes} == {"replace", "supersede", "retire"}
        ends.append(bank.snapshot())
        assert consolidate(bank, embedder=NoTwoNear()) == []
        for operation in sorted({change.operation for change in changes}, reverse=True):
            bank.undo(operation)
        assert bank.snapshot() == before
    assert ends[0] == ends[1] == ends[2]


def test_an_empty_bank_stays_empty(bank: MemoryBank) -> None:
    assert tidy(bank) == []
    assert tidy(bank, []) == []


def test_words_are_asked_for_only_where_nothing_else_tells(bank: MemoryBank) -> None:
    class Unasked(NoTwoNear):
        name = "unasked"

        def passages(self, texts: Sequence[str]) -> Vectors:
            raise AssertionError(texts)

    bank.add([item("a"), item("b", pattern=RENAMED), item("c", pattern=NAME)])
    assert len(consolidate(bank, embedder=Unasked())) == 1


def test_a_long_history_is_not_read_again(
    bank: MemoryBank, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pitfall that is met on many tasks has a long history of large rows."""
    read: list[str] = []
    real = Store.parsed

    def counted(store: Store, text: str) -> MemoryItem:
        read.append(text)
        return real(store, text)

    monkeypatch.setattr(Store, "parsed", counted)
    taken = []
    for n in range(40):
        met = item("met", "failure", "", content="The same.", tasks=seen(f"t{n}"))
        (new,) = bank.add([replace(met, description=f"task {n}")])
        read.clear()
        assert consolidate(bank, new=[new], embedder=NoTwoNear()) or n == 0
        taken.append(len(read))
    assert taken[-1] == taken[1]


def test_step_by_step_or_at_once(tmp_path: Path) -> None:
    """Only the survivors' evidence may differ in order."""
    items = [
        item(f"{n}", pattern=[MASS, RENAMED, NAME][n % 3], tasks=seen(f"t{n}")) for n in range(9)
    ]
    at_once, by_steps = MemoryBank(embedder=NoTwoNear()), MemoryBank(embedder=NoTwoNear())
    at_once.add(items)
    consolidate(at_once, embedder=NoTwoNear())
    for one in items:
        consolidate(by_steps, new=by_steps.add([one]), embedder=NoTwoNear())
    left = [{frozenset(one.origins) for one in bank.items()} for bank in (at_once, by_steps)]
    assert left[0] == left[1]
    assert len(left[0]) == 2
