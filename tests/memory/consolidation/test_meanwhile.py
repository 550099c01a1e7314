"""Consolidating while others change the same file: nothing that they write is lost."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from hashed_words import HashedWords

from reasoningbank.errors import RecordError
from reasoningbank.memory import Counters, MemoryBank, MemoryItem
from reasoningbank.memory.consolidate import _Consolidation, consolidate
from reasoningbank.memory.contradictions import contradictions
from reasoningbank.retrieval import Vectors

from ..coded import raises
from .items import item, seen

ONE, TWO = (item(t, "failure", "", content=f"{t}: not up:mass!", tasks=seen(t)) for t in "ab")
WORKS = item("works", tasks=seen("t1", "t2"))
FAILS = item("fails", "failure", tasks=seen("t3"))
COUNTED = Counters(retrieved=3, hurt=3)


class AllAlike(HashedWords):
    """Takes every text for the same, and lets others in while it does."""

    def __init__(self, meanwhile: Callable[[], object]) -> None:
        super().__init__("all alike")
        self._meanwhile = [meanwhile]

    def passages(self, texts: Sequence[str]) -> Vectors:
        while self._meanwhile:
            self._meanwhile.pop()()
        return np.full((len(texts), 1), 1, dtype=np.float32)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "bank.sqlite"


@pytest.fixture
def banks(path: Path) -> Iterator[tuple[MemoryBank, MemoryBank]]:
    with MemoryBank(path, HashedWords()) as bank, MemoryBank(path, HashedWords()) as other:
        yield bank, other


def test_what_is_written_during_the_comparing_is_kept(
    banks: tuple[MemoryBank, MemoryBank],
) -> None:
    bank, other = banks
    bank.add([ONE, TWO])

    def meanwhile() -> None:
        other.count([ONE.id, TWO.id], COUNTED)
        other.add([item("a", "failure", "", content=ONE.content, tasks=seen("t9"))])

    changes = consolidate(bank, embedder=AllAlike(meanwhile))
    assert [change.action for change in changes] == ["replace", "supersede"]
    kept, gone = bank.get(ONE.id), bank.get(TWO.id)
    assert (kept.counters, gone.counters) == (COUNTED, COUNTED)
    assert {origin.task for origin in kept.origins} == {"a", "b", "t9"}
    assert gone.superseded_by == kept.id


@pytest.mark.parametrize("gone", [ONE, TWO])
def test_what_is_put_away_during_the_comparing_stays_away(
    banks: tuple[MemoryBank, MemoryBank], gone: MemoryItem
) -> None:
    bank, other = banks
    bank.add([ONE, TWO])
    embedder = AllAlike(lambda: other.retire(gone.id, reason="wrong"))
    assert consolidate(bank, embedder=embedder) == []
    assert bank.get(gone.id).status == "retired"


@pytest.mark.parametrize("step", ["pass_on", "merge", "supersede", "retire"])
def test_every_step_begins_with_what_there_is_by_then(
    banks: tuple[MemoryBank, MemoryBank], monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    bank, other = banks
    bank.add([WORKS, FAILS])
    real = getattr(_Consolidation, step)

    def later(work: object, *given: object) -> object:
        monkeypatch.setattr(_Consolidation, step, real)
        other.add([item("fails", "failure", tasks=seen("t4", "t5"))])
        other.count([WORKS.id, FAILS.id], COUNTED)
        return real(work, *given)

    monkeypatch.setattr(_Consolidation, step, later)
    consolidate(bank, embedder=HashedWords())
    now = [bank.get(one.id) for one in (WORKS, FAILS)]
    assert [one.counters for one in now] == [COUNTED, COUNTED]
    assert [len(one.origins) for one in now] == [2, 3]
    assert [one.status for one in now] == ["superseded", "active"]


def test_deciding_and_changing_is_one_transaction(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = contradictions

    def asked(*given: object) -> object:
        with raises(RecordError, "bank-busy"):
            other.count([WORKS.id], COUNTED)
        return real(*given)  # type: ignore[arg-type]

    monkeypatch.setattr("reasoningbank.memory.store.WAIT_S", 0.05)
    monkeypatch.setattr("reasoningbank.memory.consolidate.contradictions", asked)
    with MemoryBank(path, HashedWords()) as bank, MemoryBank(path, HashedWords()) as other:
        bank.add([WORKS, FAILS])
        assert consolidate(bank, embedder=HashedWords())
        other.count([WORKS.id], COUNTED)


def test_an_error_takes_back_what_was_begun(banks: tuple[MemoryBank, MemoryBank]) -> None:
    bank, _ = banks

    def begun() -> None:
        with bank.holding():
            bank.add([ONE])
            bank.retire(ONE.id, reason="r")
            raise KeyError

    with pytest.raises(KeyError):
        begun()
    assert bank.items(status=None) == []
    assert bank.history() == []
    with bank.holding():
        bank.add([ONE])
        bank.retire(ONE.id, reason="r")
    assert [change.operation for change in bank.history()] == [1, 2]
