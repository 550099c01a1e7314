"""The bank that an arm names: what it holds, and files that are not banks."""

from __future__ import annotations

from pathlib import Path

import pytest
from hashed_words import HashedWords

from reasoningbank.errors import UsageError
from reasoningbank.experiment import Arm
from reasoningbank.experiment.memory_sources import read_bank
from reasoningbank.experiment.settings import BankMemory
from reasoningbank.memory import MemoryBank, MemoryItem


def arm_with(bank: Path) -> Arm:
    return Arm(name="a", agent="direct", memory=BankMemory(source="bank", bank=str(bank)))


def test_a_bank_is_read_and_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "bank.sqlite"
    with MemoryBank(path, HashedWords()) as bank:
        bank.add([MemoryItem("Names", "", "Ask.", "seed")])
        wanted = bank.snapshot()
    before = path.read_bytes()
    assert read_bank(arm_with(path), 0) == wanted
    assert path.read_bytes() == before


@pytest.mark.parametrize("name", ["bank.sqlite", "bank.db"])
def test_an_empty_file_is_not_an_empty_bank(tmp_path: Path, name: str) -> None:
    """A run would begin without a memory, and without a word of it."""
    (tmp_path / name).touch()
    with pytest.raises(UsageError) as raised:
        read_bank(arm_with(tmp_path / name), 0)
    assert raised.value.code == "empty-file"
    assert (tmp_path / name).stat().st_size == 0
