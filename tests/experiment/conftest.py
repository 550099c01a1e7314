"""Experiments over a pack of a few tasks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reasoningbank.agents import Attempt
from reasoningbank.experiment import Experiment, TrialKey, TrialRecord
from reasoningbank.trajectory import Recorder, Usage


@pytest.fixture
def experiment_on() -> Callable[..., Experiment]:
    """Return what makes an experiment on a pack; the oracle unless other arms are given."""

    def make(pack: Path, *arms: dict[str, Any], **rest: Any) -> Experiment:
        data = {"name": "small", "pack": str(pack), **rest}
        data["arms"] = list(arms) or [{"name": "oracle", "agent": "oracle"}]
        return Experiment.model_validate(data)

    return make


@pytest.fixture
def record() -> Callable[..., TrialRecord]:
    """Return what makes the record of a trial."""

    def make(arm: str = "a", task: str = "t1", seed: int = 0, **rest: Any) -> TrialRecord:
        recorder = Recorder()
        recorder.add("lm_call", {"response": "x" * 1000})
        attempt = Attempt("ASK {}", "", "submitted", Usage(lm_calls=1), recorder.trajectory())
        facts = {
            "question": "Which?",
            "complexity": "simple",
            "form": "ASK",
            "group": "g",
            "status": attempt.status,
            "sparql": attempt.sparql,
            "answer": "",
            "error": "",
            "verdict": {"strict": True, "f1": 1.0, "status": "judged"},
            "usage": attempt.usage,
            "trajectory": attempt.trajectory,
            "started": "2026-01-01T00:00:00+00:00",
            "model": {},
        }
        return TrialRecord(key=TrialKey(arm, task, seed), **{**facts, **rest})

    return make
