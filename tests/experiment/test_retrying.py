"""What the infrastructure spoiled is tried again; what the agent spoiled is not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from reasoningbank.analysis.scores import Score
from reasoningbank.corpus import Task
from reasoningbank.errors import RecordError
from reasoningbank.experiment import Arm, Job, Retries, RunFolder, TrialRecord, executors
from reasoningbank.experiment.executors import RecordWriter, Retrier
from reasoningbank.experiment.state import StateWriter, Stop
from reasoningbank.trajectory import Usage

Make = Callable[..., TrialRecord]
TASK = Task("t1", "Which?", "ASK {}", "http://e/")


def settle(
    run: Callable[[], TrialRecord],
    pause: Callable[[float], bool] = lambda _: False,
    **retries: float,
) -> TrialRecord | None:
    """Run a trial with retries."""
    trial: Any = SimpleNamespace(run=run)
    return Retrier(Retries(**retries), pause).run(trial)


def _after(errors: int, record: Make) -> Callable[[], TrialRecord]:
    statuses = iter(["error"] * errors + ["submitted"] * 9)
    return lambda: record(status=next(statuses))


@pytest.mark.parametrize(
    ("errors", "tries", "status", "waited"),
    [
        (0, 1, "submitted", []),
        (2, 3, "submitted", [1.0, 3.0]),
        (9, 4, "error", [1.0, 3.0, 9.0]),
    ],
)
def test_errors_are_tried_again_with_growing_waits(
    record: Make, errors: int, tries: int, status: str, waited: list[float]
) -> None:
    pauses: list[float] = []

    def pause(seconds: float) -> bool:
        pauses.append(seconds)
        return False

    settled = settle(_after(errors, record), pause, infrastructure=3, backoff_s=1)
    assert settled is not None
    assert (settled.tries, settled.status, pauses) == (tries, status, waited)


def test_what_earlier_tries_cost_is_kept_apart(record: Make) -> None:
    spent = [Usage(lm_calls=n, prompt_tokens=10, dollars=0.5) for n in (1, 2, 4)]
    statuses = iter(zip(["error", "error", "submitted"], spent, strict=True))

    def run() -> TrialRecord:
        status, usage = next(statuses)
        return record(status=status, usage=usage)

    settled = settle(run, backoff_s=0)
    assert settled is not None
    assert settled.usage == spent[2]
    assert settled.wasted == Usage(lm_calls=3, prompt_tokens=20, dollars=1.0)
    assert Score.of(settled).dollars == 1.5
    assert TrialRecord.from_json(settled.to_json()) == settled


@pytest.mark.parametrize(
    ("wasted", "whole"),
    [
        (Usage(), 0.5),
        (Usage(cached_calls=1), 0.5),
        (Usage(lm_calls=1, dollars=0.25), 0.75),
        (Usage(lm_calls=1), None),
    ],
)
def test_a_trial_of_which_a_try_has_no_price_has_none(
    record: Make, wasted: Usage, whole: float | None
) -> None:
    paid = Usage(lm_calls=1, dollars=0.5)
    assert (wasted + paid).dollars == (paid + wasted).dollars == whole
    assert Score.of(replace(record(usage=paid), wasted=wasted)).dollars == whole


def test_an_attempt_that_is_judged_again_is_paid_once(record: Make) -> None:
    usage = Usage(lm_calls=1)
    statuses = iter(["error", "submitted"])
    run = lambda: record(status=next(statuses), usage=usage)  # noqa: E731
    settled = settle(run, backoff_s=0)
    assert settled is not None
    assert (settled.tries, settled.wasted) == (2, Usage())


def test_a_stopped_run_gives_the_trial_up_unrecorded(record: Make) -> None:
    assert settle(_after(5, record), lambda _: True) is None


def test_while_the_infrastructure_is_down_a_trial_is_tried_once(record: Make) -> None:
    trials: list[Any] = [SimpleNamespace(run=_after(n, record)) for n in (9, 9, 0, 1)]
    retrier = Retrier(Retries(infrastructure=2, backoff_s=1), lambda _: False)
    tries = [settled.tries for trial in trials if (settled := retrier.run(trial))]
    assert tries == [3, 1, 1, 2]


class _Full(RunFolder):
    """A folder without space for the first so many writes."""

    def __init__(self, path: Path, failures: int) -> None:
        super().__init__(path)
        self.failures = failures

    def write(self, record: TrialRecord) -> Path:
        if self.failures:
            self.failures -= 1
            raise RecordError("cannot be written (No space left on device)")
        return super().write(record)


def written(
    folder: RunFolder, record: TrialRecord, write_s: float, monkeypatch: pytest.MonkeyPatch
) -> tuple[list[float], list[str]]:
    """Write a record; return the seconds that were waited, and what was reported."""
    slept: list[float] = []
    reported: list[str] = []
    monkeypatch.setattr(executors.time, "sleep", slept.append)
    state, job = StateWriter(folder.path, 1, 0, 1), Job(Arm(name="a", agent="oracle"), TASK)
    retries = Retries(write_s=write_s)
    writer = RecordWriter(folder, retries, state, Stop(), lambda _: None, reported.append)
    writer.ended(job, record)
    writer.finish()
    return slept, reported


def test_a_record_waits_for_space_and_is_written(
    tmp_path: Path, record: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = _Full(tmp_path, failures=3)
    slept, reported = written(folder, record(), 60, monkeypatch)
    assert folder.exists(record().key.path)
    assert slept == [1.0, 2.0, 4.0]
    assert len(reported) == 1
    assert "No space" in reported[0]


def test_patience_ends(tmp_path: Path, record: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = _Full(tmp_path, failures=99)
    with pytest.raises(RecordError, match="No space"):
        written(folder, record(), 5, monkeypatch)
    assert 99 - folder.failures == 4
