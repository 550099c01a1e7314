"""The bank: what is added is found; ids, prefixes, statuses, counts, snapshots."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from hashed_words import HashedWords
from hypothesis import given, settings
from hypothesis import strategies as st

from reasoningbank.errors import ModelError, UsageError
from reasoningbank.memory import Counters, MemoryBank, MemoryItem, Provenance, Snapshot
from reasoningbank.memory import bank as bank_module
from reasoningbank.retrieval.index import FaissTable

from .coded import raises
from .strategies import BANKS, ITEMS


def item(title: str, **more: object) -> MemoryItem:
    return MemoryItem(title, f"About {title}", f"Do {title}.", "success", **more)  # type: ignore[arg-type]


def bank_of(*titles: str, path: Path | None = None) -> MemoryBank:
    bank = MemoryBank(path, HashedWords())
    bank.add(map(item, titles))
    return bank


def ids(bank: MemoryBank, query: str, k: int = 9) -> list[str]:
    return [found.title for found, _ in bank.match(query, k)]


@settings(max_examples=60, deadline=None)
@given(BANKS, st.text(max_size=30), st.randoms())
def test_any_items_and_any_query(items: list[MemoryItem], query: str, dice: object) -> None:
    bank = MemoryBank(embedder=HashedWords())
    assert bank.add(items) == [one.id for one in items]
    assert bank.items(status=None) == sorted(items, key=lambda one: one.id)
    assert bank.snapshot() == Snapshot.of(items)
    found = bank.match(query, 10)
    assert {one.status for one, _ in found} <= {"active"}
    if query.strip():
        assert len(found) == len(bank.items())
    shuffled = items[:]
    dice.shuffle(shuffled)  # type: ignore[attr-defined]
    other = MemoryBank(embedder=HashedWords())
    for one in shuffled:
        other.add([one])
    assert other.match(query, 10) == found
    assert MemoryBank.from_snapshot(bank.snapshot(), embedder=HashedWords()).match(query, 10) == (
        found
    )


@settings(max_examples=60, deadline=None)
@given(ITEMS, st.lists(st.sampled_from("abcd"), min_size=1, max_size=6), st.randoms())
def test_experiences_merge_in_any_order(one: MemoryItem, tasks: list[str], dice: object) -> None:
    """Equal banks have equal hashes, also if the same was learned in another order."""
    learned = [
        replace(
            one, provenance=Provenance(task, time=f"2026-{task}"), evidence=(), tags=("x", task)
        )
        for task in dict.fromkeys(tasks)
    ]
    shuffled = learned[:]
    dice.shuffle(shuffled)  # type: ignore[attr-defined]
    first, second = MemoryBank(embedder=HashedWords()), MemoryBank(embedder=HashedWords())
    first.add(learned)
    second.add(shuffled)
    if len({tag for each in learned for tag in each.tags}) == len(tasks) + 1:
        assert first.snapshot().hash == second.snapshot().hash
    assert len(first.get(one.id).origins) == len(learned)


def test_a_bank_of_the_real_model_crosses_languages() -> None:
    bank = MemoryBank()
    bank.add(map(item, ["diseases of proteins", "molecular mass", "taxonomic ranks"]))
    for query, wanted in [
        ("malattie genetiche", "diseases of proteins"),
        ("quanto pesa?", "molecular mass"),
        ("genere e specie", "taxonomic ranks"),
    ]:
        (found, match) = bank.match(query, 1)[0]
        assert found.title == wanted
        assert (match.id, match.lexical) == (found.id, 0)


def test_the_same_learned_again_is_evidence() -> None:
    bank = bank_of("mass")
    twice = item("mass", provenance=Provenance("t2", time="2026-01-02"), counters=Counters(1, 1))
    (known,) = bank.add([twice])
    assert len(bank.items()) == 1
    assert bank.get(known).origins == (Provenance(), twice.provenance)
    assert bank.get(known).counters == Counters(1, 1)
    bank.add([replace(twice, counters=Counters())])
    assert [change.action for change in bank.history()] == ["add", "merge"]


def test_what_was_retired_does_not_come_back_by_itself() -> None:
    bank = bank_of("mass", "taxa")
    known = item("mass").id
    bank.retire(known, reason="hurts")
    bank.add([item("mass", provenance=Provenance("t2"))])
    assert bank.get(known).status == "retired"
    assert len(bank.get(known).origins) == 2
    assert ids(bank, "mass") == ["taxa"]
    bank.restore(known, reason="a mistake")
    assert ids(bank, "mass")[0] == "mass"


def test_one_takes_the_place_of_others() -> None:
    bank = bank_of("mass", "masses", "taxa")
    new = item("molecular mass")
    old = [item("mass").id, item("masses").id[:7]]
    assert bank.replace(old, new, reason="near-duplicates") == new.id
    assert {one.title for one in bank.items()} == {"molecular mass", "taxa"}
    assert {one.superseded_by for one in bank.items(status="superseded")} == {new.id}
    assert set(ids(bank, "mass")) == {"molecular mass", "taxa"}


def test_one_of_the_others_may_take_their_place() -> None:
    bank = bank_of("mass", "masses")
    bank.count([item("mass").id], Counters(retrieved=2))
    whole = replace(bank.get(item("mass").id), evidence=(Provenance("t9"),))
    bank.replace([whole.id, item("masses").id], whole, reason="near-duplicates")
    assert bank.items() == [whole]
    assert bank.get(whole.id).counters == Counters(retrieved=2)


@pytest.mark.parametrize("by", ["retire", "replace"])
def test_what_was_put_away_takes_the_place_of_no_other(by: str) -> None:
    bank = bank_of("mass", "masses")
    gone, kept = item("mass"), item("masses")
    if by == "retire":
        bank.retire(gone.id, reason="wrong")
    else:
        bank.replace([gone.id], kept, reason="the same")
    before = bank.snapshot(), bank.history()
    with raises(UsageError, "inactive-item"):
        bank.replace([kept.id], gone, reason="the same")
    assert (bank.snapshot(), bank.history()) == before
    # What it says of itself may still be changed.
    bank.replace([gone.id], replace(bank.get(gone.id), tags=("new",)), reason="better tags")
    assert bank.get(gone.id).tags == ("new",)


def test_all_or_nothing() -> None:
    bank = bank_of("mass")
    before = bank.snapshot(), bank.history()
    known = item("mass").id
    with raises(UsageError, "unknown-item"):
        bank.replace([known, "ffffffffffffffff"], item("new"), reason="")
    with raises(UsageError, "unknown-item"):
        bank.count([known, "ffffffffffffffff"], Counters(1))
    with pytest.raises(UsageError):
        bank.add(item(title) for title in ["fine", " "])
    assert (bank.snapshot(), bank.history()) == before
    assert ids(bank, "new fine") == ["mass"]


def test_an_id_may_be_begun() -> None:
    bank = bank_of(*(f"title {number}" for number in range(40)))
    known = bank.items()[7].id
    assert bank.get(f" {known.upper()} ").id == known
    assert bank.get(known[:12]).id == known
    with raises(UsageError, "ambiguous-item"):
        bank.get(next(d for d in "0123456789abcdef" if len(_beginning(bank, d)) > 1))
    with raises(UsageError, "unknown-item", near=[known]):
        bank.get(known[:-1] + ("0" if known[-1] != "0" else "1"))
    with raises(UsageError, "unknown-item", item=""):
        bank.get("")
    with raises(UsageError, "unknown-item", near=[]):
        MemoryBank(embedder=HashedWords()).get("abc")


def _beginning(bank: MemoryBank, letter: str) -> list[MemoryItem]:
    return [one for one in bank.items() if one.id.startswith(letter)]


def test_keep_sees_items_and_may_ask_the_bank() -> None:
    bank = bank_of("mass", "masses", "taxa")
    found = bank.match("mass", 9, keep=lambda one: bank.get(one.id).title != "mass")
    assert {one.title for one, _ in found} == {"masses", "taxa"}
    assert bank.match(" ", 3) == bank.match("mass", 0) == []


def test_counts_add_up() -> None:
    bank = bank_of("mass", "taxa")
    both = [one.id for one in bank.items()]
    for outcome in (Counters(1, 1, 0), Counters(1, 0, 1), Counters(helped=1)):
        bank.count(both, outcome)
    assert {one.counters for one in bank.items()} == {Counters(2, 1, 1, 1, 0)}


def test_a_thousand_items_are_one_batch_and_one_operation(tmp_path: Path) -> None:
    embedder = HashedWords()
    calls: list[int] = []
    passages = embedder.passages
    embedder.passages = lambda texts: calls.append(len(texts)) or passages(texts)  # type: ignore
    with MemoryBank(tmp_path / "bank.sqlite", embedder) as bank:
        bank.add(item(f"title {number}") for number in range(1_000))
        assert calls == [1_000]
        assert {change.operation for change in bank.history()} == {1}
        bank.undo()
        assert bank.items() == []
        bank.undo()
        assert len(bank.items()) == 1_000


class Unreachable(HashedWords):
    """A hosted model that is down."""

    def passages(self, texts: object) -> object:  # type: ignore[override]
        raise ModelError("down")


def test_items_are_kept_though_the_model_is_down(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "bank.sqlite"
    with MemoryBank(path, Unreachable()) as bank:
        bank.add([item("mass")])
        assert [one.name for one in caplog.records] == ["reasoningbank.memory.bank"]
        with pytest.raises(ModelError, match="down"):
            bank.match("mass", 1)
    with MemoryBank(path, HashedWords()) as bank:
        assert ids(bank, "mass") == ["mass"]


@pytest.mark.parametrize("use", [lambda b: b.items(), lambda b: b.match("x", 1)])
def test_a_closed_bank_says_so(use: Callable[[MemoryBank], object]) -> None:
    bank = bank_of("mass")
    bank.close()
    with raises(UsageError, "bank-closed"):
        use(bank)


def test_threads_share_a_bank(tmp_path: Path) -> None:
    bank = bank_of("mass", path=tmp_path / "bank.sqlite")
    known = item("mass").id

    def work(number: int) -> str:
        bank.add([item(f"word{number} apart")])
        bank.count([known], Counters(retrieved=1))
        return bank.match(f"word{number}", 1)[0][0].title

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(work, range(40))) == [f"word{n} apart" for n in range(40)]
    assert bank.get(known).counters.retrieved == 40
    assert len(bank.items()) == 41
    assert [change.number for change in bank.history()] == list(range(1, 82))


def test_a_bank_from_a_snapshot() -> None:
    bank = bank_of("mass", "taxa")
    bank.retire(item("taxa").id, reason="hurts")
    snapshot = bank.snapshot()
    with MemoryBank.from_snapshot(snapshot, HashedWords()) as again:
        assert again.snapshot() == snapshot
        assert again.history()[0].reason == f"snapshot {snapshot.hash}"
        assert ids(again, "taxa") == ["mass"]


def test_a_large_bank_is_searched_approximately_and_finds_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("faiss")
    items = [MemoryItem(f"topic{n % 40} case{n}", f"word{n % 7}", "x", "seed") for n in range(900)]
    exact, large = MemoryBank(embedder=HashedWords()), MemoryBank(embedder=HashedWords())
    exact.add(items)
    large.add(items[:300])
    monkeypatch.setattr(bank_module, "CANDIDATES", 60)
    for name in ("reasoningbank.memory.bank", "reasoningbank.retrieval.index"):
        monkeypatch.setattr(f"{name}.LARGE", 200)
    large._index._room = 200
    large.match("anything", 1)
    # It grows, so the index is made anew; and what goes is not found.
    large.add(items[300:])
    for bank in (exact, large):
        bank.retire(items[0].id, reason="x")
    assert isinstance(large._index._table, FaissTable)
    for number in (0, 3, 500, 899):
        question = f"topic{number % 40} case{number}"
        ours, others = ([one.id for one, _ in bank.match(question, 5)] for bank in (exact, large))
        assert ours[:1] == others[:1]
        assert len(set(ours) & set(others)) >= 4
    # Few may be kept: the search goes on until it has them.
    wanted = {items[n].id for n in range(7, 900, 150)}
    kept = large.match("topic1", 6, keep=lambda one: one.id in wanted)
    assert {one.id for one, _ in kept} == wanted
