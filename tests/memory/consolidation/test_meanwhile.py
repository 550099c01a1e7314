"""Consolidating while others change the same file: nothing that they write is lost."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hashed_words import HashedWords

from reasoningbank.errors import RecordError
from reasoningbank.memory import Counters, MemoryBank
from reasoningbank.memory.consolidate import consolidate, contradictions

from ..coded import raises
from .items import item, seen

ONE = item("a", "failure", "")
WORKS = item("works", tasks=seen("t1", "t2"))
FAILS = item("fails", "failure", tasks=seen("t3"))
COUNTED = Counters(retrieved=3, hurt=3)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "bank.sqlite"


@pytest.fixture
def banks(path: Path) -> Iterator[tuple[MemoryBank, MemoryBank]]:
    with MemoryBank(path, HashedWords()) as bank, MemoryBank(path, HashedWords()) as other:
        yield bank, other


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
