"""Taking in items of another bank: twice, or by two at once, is once."""

from __future__ import annotations

import contextlib
import threading
from pathlib import Path

import pytest
from hashed_words import HashedWords

from reasoningbank.memory import Counters, MemoryBank, MemoryItem, Provenance
from reasoningbank.memory.bank import Imported, import_items

ITEM = MemoryItem(
    "Names",
    "",
    "Ask.",
    "success",
    provenance=Provenance("t1"),
    counters=Counters(retrieved=2, hurt=2),
)


def test_two_that_import_at_once_import_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each begins to add when the other has had all the time to look what is there."""
    looked = threading.Barrier(2)
    add = MemoryBank.add

    def added(bank: MemoryBank, *given: object, **more: object) -> object:
        # The barrier breaks where the other has to wait until this one is done.
        with contextlib.suppress(threading.BrokenBarrierError):
            looked.wait(1)
        return add(bank, *given, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(MemoryBank, "add", added)
    path = tmp_path / "bank.sqlite"
    shown: list[Imported] = []

    def take_in(bank: MemoryBank) -> None:
        shown.append(import_items(bank, [ITEM], reason="test"))

    with MemoryBank(path, HashedWords()) as one, MemoryBank(path, HashedWords()) as two:
        threads = [threading.Thread(target=take_in, args=[bank]) for bank in (one, two)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert one.items() == [ITEM]
        assert len(one.history()) == 1
    assert sorted(shown) == [((), (), (ITEM.id,)), ((ITEM.id,), (), ())]
