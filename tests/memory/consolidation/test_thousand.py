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

from reasoningbank.memory import MemoryBank, MemoryItem
from reasoningbank.memory.consolidate import consolidate

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
