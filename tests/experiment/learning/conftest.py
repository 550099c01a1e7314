"""Learning runs on a small orchard, with the real bank, distiller and endpoint."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reasoningbank.agents import AGENTS
from reasoningbank.experiment import Experiment, RunFolder, parse_experiment, run_experiment, trial
from reasoningbank.sparql import EndpointConfig

from .orchard import enrol, experiment_data, write_orchard


@pytest.fixture(autouse=True)
def _pupil(monkeypatch: pytest.MonkeyPatch) -> None:
    # Both are put back afterwards.
    monkeypatch.setattr(trial, "datetime", trial.datetime)
    monkeypatch.setitem(AGENTS, "pupil", object)  # type: ignore[arg-type]
    enrol()


@pytest.fixture
def pack(tmp_path: Path) -> Path:
    return write_orchard(tmp_path / "trees")


@pytest.fixture
def learning(pack: Path, trees: EndpointConfig) -> Callable[..., Experiment]:
    """Return what makes a learning experiment; one arm that learns unless others are given."""

    def make(*arms: dict[str, Any], **rest: Any) -> Experiment:
        return parse_experiment(experiment_data(pack, trees.address, *arms, **rest))

    return make


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., RunFolder]:
    """Return what runs an experiment in a folder."""

    def go(experiment: Experiment, name: str = "run", **rest: Any) -> RunFolder:
        return run_experiment(experiment, RunFolder(tmp_path / name), **rest)

    return go
