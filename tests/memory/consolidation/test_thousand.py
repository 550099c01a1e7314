"""A bank of 1,000 items: what consolidation leaves finds as much, with less."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest
from hashed_words import HashedWords
from work import calls

from reasoningbank.memory import Counters, MemoryBank, MemoryItem
from reasoningbank.memory import bank as bank_module
from reasoningbank.memory.consolidate import consolidate
from reasoningbank.memory.store import Store

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def benchmark() -> ModuleType:
    with pytest.MonkeyPatch.context() as patched:
        patched.syspath_prepend(str(ROOT))
        from benchmarks import consolidation
    return consolidation


@pytest.fixture(scope="module")
def thousand(benchmark: ModuleType) -> tuple[tuple[MemoryItem, ...], Mapping[str, str]]:
    made = benchmark.lessons(1_000)
    return made.items, made.lesson


Thousand = tuple[tuple[MemoryItem, ...], Mapping[str, str]]


def test_less_is_kept_and_more_is_found(benchmark: ModuleType, thousand: Thousand) -> None:
    items, lesson = thousand
    asked = [one for one in benchmark.questions() if one.language == "en"]
    by_words = (0.0, 1.0)
    with MemoryBank(embedder=HashedWords()) as bank:
        bank.add(items)
        before = benchmark.usefulness(bank, lesson, asked, by_words)
        consolidate(bank)
        after = benchmark.usefulness(bank, lesson, asked, by_words)
        assert benchmark.joined(bank, lesson) == []
        assert {lesson[item.id] for item in bank.items()} == set(lesson.values())
        kept = {origin for item in bank.items() for origin in item.origins}
    assert kept == {origin for item in items for origin in item.origins}
    assert (before.items, after.items) == (1_000, len(set(lesson.values())))
    assert after.mrr >= before.mrr > 0.2
    assert after.distinct > before.distinct + 0.5


def test_one_new_item_takes_bounded_work(thousand: Thousand) -> None:
    items, _ = thousand
    draw = random.Random(3)
    with MemoryBank(embedder=HashedWords()) as bank:
        bank.add(items)
        for item in draw.sample(items, 3):
            (new,) = bank.add([replace(item, description=f"{item.description} again")])
            assert calls(lambda new=new: consolidate(bank, new=[new])) < 3_000_000  # type: ignore[misc]


def test_a_large_bank_is_not_read_whole(
    thousand: Thousand, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A new item is compared with the 1,000 most like it; harm is found wherever it is."""
    items = [
        replace(item, title=f"{item.title} {n}", content=f"{item.content} {n}", pattern="")
        for n in range(3)
        for item in thousand[0]
    ]
    read: list[MemoryItem] = []
    real = Store.parsed

    def counted(store: Store, text: str) -> MemoryItem:
        read.append(real(store, text))
        return read[-1]

    monkeypatch.setattr(Store, "parsed", counted)
    found = []
    for compared in (1_000, 1_000_000):
        monkeypatch.setattr(bank_module, "CANDIDATES", compared)
        with MemoryBank(embedder=HashedWords()) as bank:
            bank.add(items)
            # Nothing in common with the new item, and no word of it.
            (harmful,) = bank.add([MemoryItem("Zzz", "qqq", "xxx", "success")])
            bank.count([harmful], Counters(6, 0, 6, 0, 6))
            (new,) = bank.add([replace(items[0], description=f"{items[0].description} again")])
            bank.match("any", 1)
            read.clear()
            changes = consolidate(bank, new=[new], embedder=HashedWords())
            found.append({(one.action, one.item_id) for one in changes})
            assert (len(read) < 1_100) == (compared == 1_000)
    assert found[0] == found[1]
    assert ("retire", harmful) in found[0]
    assert len(found[0]) > 2
