"""The history: every change is written down, and can be undone, undoing included."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hashed_words import HashedWords
from hypothesis import given, settings
from hypothesis import strategies as st

from reasoningbank.errors import UsageError
from reasoningbank.memory import Counters, MemoryBank, MemoryItem, Provenance, Snapshot

from .coded import raises

TITLES = ("mass", "taxa", "genes", "enzymes")


def item(title: str, **more: object) -> MemoryItem:
    return MemoryItem(title, f"About {title}", f"Do {title}.", "success", **more)  # type: ignore[arg-type]


IDS = {title: item(title).id for title in (*TITLES, "merged")}


@pytest.fixture
def bank() -> MemoryBank:
    bank = MemoryBank(embedder=HashedWords())
    for title in TITLES:
        bank.add([item(title)], reason=f"learned {title}")
    return bank


def found(bank: MemoryBank, query: str) -> set[str]:
    return {one.title for one, _ in bank.match(query, 99)}


def test_a_change_says_what_when_and_why(bank: MemoryBank) -> None:
    bank.retire(IDS["taxa"], reason="hurts")
    changes = bank.history()
    assert [change.number for change in changes] == [1, 2, 3, 4, 5]
    last = changes[-1]
    assert (last.action, last.reason, last.item_id) == ("retire", "hurts", IDS["taxa"])
    assert last.before == item("taxa")
    assert last.after == item("taxa", status="retired")
    assert last.time.endswith("+00:00")
    assert [change.action for change in bank.history(IDS["taxa"])] == ["add", "retire"]
    assert bank.history(IDS["taxa"][:8]) == bank.history(IDS["taxa"])
    assert changes[0].before is None
    with raises(UsageError, "unknown-item"):
        bank.history("ffffffffffffffff")


def test_the_end_of_a_history(bank: MemoryBank) -> None:
    assert MemoryBank(embedder=HashedWords()).last_change == 0
    last = bank.last_change
    bank.retire(IDS["taxa"], reason="hurts")
    assert (last, bank.last_change) == (4, 5)
    assert bank.history(since=last) == bank.history()[4:] == bank.history(IDS["taxa"], since=4)
    assert bank.history(since=5) == bank.history(IDS["mass"], since=4) == []


def test_what_was_put_back_says_why(bank: MemoryBank) -> None:
    shown = []
    for change in (
        lambda: bank.retire(IDS["mass"], reason="hurts"),
        lambda: bank.restore(IDS["mass"], reason="it was the endpoint"),
        lambda: bank.count([IDS["mass"]], Counters(1)),
        lambda: bank.add([item("mass", provenance=Provenance("t2"))]),
        lambda: bank.replace([IDS["mass"]], item("merged"), reason="the same"),
        bank.undo,
    ):
        change()
        change = bank.reinstated_by(IDS["mass"])
        shown.append(change and (change.action, change.reason, change.undoes))
    back = ("restore", "it was the endpoint", 0)
    assert shown == [None, back, back, back, None, ("undo", "undo of change 9", 9)]
    assert bank.reinstated_by(IDS["taxa"]) is None


def test_undoing_a_merge_restores_all(bank: MemoryBank) -> None:
    before = bank.snapshot()
    bank.replace([IDS["mass"], IDS["taxa"]], item("merged"), reason="the same")
    assert {change.operation for change in bank.history()[4:]} == {5}
    undone = bank.undo(6)
    assert (undone.action, undone.undoes) == ("undo", 5)
    assert bank.snapshot() == before
    assert found(bank, "mass merged") == set(TITLES)
    assert [change.item_id for change in bank.history(IDS["merged"])] == [IDS["merged"]] * 2


def test_undoing_an_undo(bank: MemoryBank) -> None:
    states = [bank.snapshot()]
    bank.replace([IDS["mass"], IDS["taxa"]], item("merged"), reason="the same")
    states.append(bank.snapshot())
    for round_ in range(1, 5):
        bank.undo()
        assert bank.snapshot() == states[(round_ + 1) % 2]
        assert found(bank, "x") == {one.title for one in bank.items()}


def test_later_counts_and_evidence_stay(bank: MemoryBank) -> None:
    mass = IDS["mass"]
    bank.count([mass], Counters(retrieved=1, failure=1))
    bank.add([item("mass", provenance=Provenance("t2"))])
    bank.retire(mass, reason="hurts")
    bank.count([mass], Counters(retrieved=5))
    bank.add([item("mass", provenance=Provenance("t3"))])
    bank.undo(6)
    assert {one.task for one in bank.get(mass).origins} == {"", "t3"}
    assert bank.get(mass).status == "retired"
    bank.undo(7)
    bank.undo(5)
    now = bank.get(mass)
    assert (now.status, now.counters) == ("active", Counters(retrieved=5))
    assert {one.task for one in now.origins} == {"", "t3"}


def test_a_later_change_may_stand_in_the_way(bank: MemoryBank) -> None:
    bank.retire(IDS["mass"], reason="hurts")
    bank.restore(IDS["mass"], reason="a mistake")
    before = bank.snapshot(), len(bank.history())
    with raises(UsageError, "later-change", change=5):
        bank.undo(5)
    bank.add([item("merged")])
    bank.replace([IDS["taxa"]], item("merged"), reason="the same")
    with raises(UsageError, "later-change", item=IDS["taxa"]):
        bank.undo(7)
    bank.undo()
    bank.undo(7)
    assert bank.snapshot() == before[0]
    with raises(UsageError, "undone-already"):
        bank.undo(7)


def test_a_change_is_taken_back_once(bank: MemoryBank) -> None:
    mass = IDS["mass"]
    bank.count([mass], Counters(retrieved=5))
    bank.count([mass], Counters(retrieved=1))
    bank.undo(6)
    with raises(UsageError, "undone-already", change=6, by=7):
        bank.undo(6)
    assert bank.get(mass).counters == Counters(retrieved=5)
    # Of an undone undo, what it took back is in effect, and can be taken back.
    for number, retrieved in ((7, 6), (6, 5), (9, 6), (8, 5)):
        bank.undo(number)
        assert bank.get(mass).counters == Counters(retrieved=retrieved)
    assert bank.history()[-1].number == 11
    before = bank.snapshot(), len(bank.history())
    for number in (6, 8, 10):
        with raises(UsageError, "undone-already"):
            bank.undo(number)
    assert (bank.snapshot(), len(bank.history())) == before


def test_a_merge_is_taken_back_once(bank: MemoryBank) -> None:
    bank.add([item("mass", counters=Counters(9, 9), provenance=Provenance("t1"))])
    bank.add([item("mass", counters=Counters(2, 0, 2), provenance=Provenance("t2"))])
    bank.undo(6)
    for _ in range(2):
        with raises(UsageError, "undone-already"):
            bank.undo(6)
    assert bank.get(IDS["mass"]).counters == Counters(9, 9)


def test_undoing_many_looks_once_for_what_they_replaced(bank: MemoryBank) -> None:
    bank.add(item(f"title {number}") for number in range(30))
    asked: list[str] = []
    bank._store._database.set_trace_callback(asked.append)
    bank.undo()
    assert sum("superseded_by')" in statement for statement in asked) == 1


def test_what_is_not_there_cannot_be_undone(bank: MemoryBank) -> None:
    with raises(UsageError, "no-change"):
        bank.undo(99)
    with raises(UsageError, "no-change"):
        MemoryBank(embedder=HashedWords()).undo()


def test_what_changes_nothing_is_not_a_change(bank: MemoryBank) -> None:
    bank.add([item("mass")])
    bank.restore(IDS["mass"], reason="")
    bank.count([IDS["mass"]], Counters())
    assert len(bank.history()) == 4


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["add", "count", "retire", "restore", "replace", "rewrite", "undo"]),
        st.sampled_from(TITLES),
        st.sampled_from(TITLES),
        st.integers(1, 30),
    ),
    max_size=12,
)


def take(bank: MemoryBank, step: tuple[str, str, str, int]) -> None:
    action, one, other, number = step
    if action == "add":
        bank.add([item(one, provenance=Provenance(f"t{number}")), item(other)])
    elif action == "count":
        bank.count([IDS[one]], Counters(retrieved=number, success=1))
    elif action == "retire":
        bank.retire(IDS[one], reason="r")
    elif action == "restore":
        bank.restore(IDS[one], reason="r")
    elif action == "replace":
        bank.replace([IDS[one]], item(other, provenance=Provenance(f"t{number}")), reason="r")
    elif action == "rewrite":
        now = bank.get(IDS[one])
        bank.replace([now.id], replace(now, tags=(f"tag{number}",)), reason="r")
    else:
        bank.undo(number if number <= len(bank.history()) else None)


@settings(max_examples=100, deadline=None)
@given(STEPS)
def test_any_history_can_be_walked_back_and_forth(steps: list[tuple[str, str, str, int]]) -> None:
    bank = MemoryBank(embedder=HashedWords())
    bank.add([item("mass"), item("taxa")])
    states: list[tuple[int, Snapshot]] = []
    for step in steps:
        before, changes = bank.snapshot(), len(bank.history())
        try:
            take(bank, step)
        except UsageError:
            assert (bank.snapshot(), len(bank.history())) == (before, changes)
            continue
        if len(bank.history()) > changes:
            states.append((changes + 1, before))
    # Back, each operation in turn, and forth again.
    last = bank.snapshot()
    undoings = []
    for number, before in reversed(states):
        undoings.append(bank.undo(number).number)
        assert bank.snapshot() == before
    for number in reversed(undoings):
        bank.undo(number)
    assert bank.snapshot() == last
    # The history alone gives the state of the bank.
    shown: dict[str, MemoryItem | None] = {}
    for change in bank.history():
        assert shown.get(change.item_id) == change.before
        shown[change.item_id] = change.after
    assert Snapshot.of(one for one in shown.values() if one) == last
    assert found(bank, "anything") == {one.title for one in bank.items()}
