"""The benchmark of retrieval runs, and both ways find the same."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def test_a_bank_and_a_loop_find_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT))
    from benchmarks import retrieval

    taken = retrieval._make(tmp_path, 300)
    ways = {way: retrieval._process(way, tmp_path) for way in ("bank", "loop")}
    assert ways["bank"].keys() == ways["loop"].keys()
    assert ways["bank"]["nearest"] == ways["loop"]["nearest"] > 0
    for numbers in (taken, *(way.values() for way in ways.values())):
        assert all(number >= 0 for number in numbers)
