"""Trials of `experiments/peers` over a pack of fourteen questions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from experiment.learning.orchard import write_orchard

from reasoningbank.agents import Budget, Episode, Meter
from reasoningbank.corpus import Pack, load_pack
from reasoningbank.lm import UsageCounter
from reasoningbank.sparql import EndpointConfig
from reasoningbank.trajectory import Recorder

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def _repository(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs of the experiment are started there."""
    monkeypatch.syspath_prepend(str(ROOT))


@pytest.fixture
def orchard(tmp_path: Path) -> Pack:
    return load_pack(write_orchard(tmp_path / "trees"))


@pytest.fixture
def episode(orchard: Pack, trees: EndpointConfig) -> Callable[..., Episode]:
    """Return what makes the episode of a trial with a model."""

    def make(model: Any, hidden: frozenset[str] = frozenset(), **limits: Any) -> Episode:
        recorder = Recorder()
        counter = UsageCounter(recorder)
        meter = Meter(Budget(**limits), lambda: counter.usage)
        made = Episode(trees, {}, model, None, recorder, meter, callbacks=[counter])
        return replace(made, pack=orchard, hidden=hidden)

    return make
