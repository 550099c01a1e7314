"""A bug in an agent's code has a status of its own: not retried, and shown with its traceback."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from reasoningbank.agents import AGENTS, Attempt, Episode
from reasoningbank.analysis import summarise_run
from reasoningbank.corpus import Task
from reasoningbank.errors import (
    BudgetError,
    EndpointError,
    QueryError,
    SetupError,
    ToolError,
    UsageError,
    causes,
)
from reasoningbank.experiment import Experiment, RunFolder, TrialRecord, run_experiment
from reasoningbank.trajectory import Usage

Make = Callable[..., Experiment]
#: What a trial may be run again after; a second attempt would wait.
RETRIES = {"infrastructure": 1, "backoff_s": 0.0, "stop_after": None}


def raising(error: Exception | None, cause: Exception | None = None) -> type:
    """Return an agent that fails on all tasks but the first, or returns nothing."""

    class Failing:
        uses_lm, sees_gold = False, False

        def solve(self, task: Task, episode: Episode) -> Attempt:
            if task.id == "t000":
                return Attempt("ASK {}", "", "submitted", Usage(), episode.recorder.trajectory())
            if error is None:
                return None  # type: ignore[return-value]
            raise error.with_traceback(None) from cause

    return Failing


@pytest.fixture
def failing_on(
    tmp_path: Path, make_pack: Callable[..., Path], experiment_on: Make,
    monkeypatch: pytest.MonkeyPatch,
) -> Callable[..., tuple[RunFolder, list[str]]]:  # fmt: skip
    """Return what runs an agent that raises an error."""

    def run(
        error: Exception | None, cause: Exception | None = None, *, tasks: int = 2, **retries: Any
    ) -> tuple[RunFolder, list[str]]:
        monkeypatch.setitem(AGENTS, "failing", raising(error, cause))
        folder, notices = RunFolder(tmp_path / "run"), list[str]()
        arm = {"name": "mine", "agent": "failing"}
        experiment = experiment_on(make_pack(tasks), arm, retries={**RETRIES, **retries})
        run_experiment(experiment, folder, on_notice=notices.append)
        return folder, notices

    return run


def test_a_slip_while_a_lost_connection_is_handled_is_a_bug(
    failing_on: Callable[..., tuple[RunFolder, list[str]]],
) -> None:
    slip = KeyError("nope")
    slip.__context__ = ConnectionError("gone")
    folder, _ = failing_on(slip)
    assert (last(folder).status, last(folder).tries) == ("bug", 1)


def last(folder: RunFolder) -> TrialRecord:
    return list(folder.trials())[-1]


@pytest.mark.parametrize(
    ("error", "cause", "status", "tries"),
    [
        (KeyError("name"), None, "bug", 1),
        (FileNotFoundError(2, "No such file", "prompts.txt"), None, "bug", 1),
        (QueryError("does not parse"), None, "bug", 1),
        (ToolError("unknown class"), None, "bug", 1),
        (EndpointError("gone"), None, "error", 2),
        (ToolError("no answer"), EndpointError("gone"), "error", 2),
        (ConnectionResetError("by peer"), None, "error", 2),
        (RuntimeError("my client failed"), httpx.ConnectError("refused"), "error", 2),
        (OSError(28, "No space left on device"), None, "error", 2),
        (BudgetError("used up", budget="tokens"), None, "exhausted", 1),
    ],
)
def test_bugs_are_distinguished_from_infrastructure_errors(
    failing_on: Callable[..., tuple[RunFolder, list[str]]],
    error: Exception, cause: Exception | None, status: str, tries: int,
) -> None:  # fmt: skip
    record = last(failing_on(error, cause)[0])
    assert (record.status, record.tries) == (status, tries)
    assert (record.verdict is None) == (status in ("bug", "error"))


def test_an_error_that_is_its_own_cause_is_looked_at_once() -> None:
    error = ValueError("no")
    error.__cause__ = error
    assert list(causes(error, implicit=True)) == [error]


def test_an_agent_that_returns_no_attempt_has_a_bug(
    failing_on: Callable[..., tuple[RunFolder, list[str]]],
) -> None:
    record = last(failing_on(None)[0])
    assert (record.status, record.tries) == ("bug", 1)
    assert "NoneType, not an Attempt" in record.error


def test_an_error_of_the_machine_ends_the_run(
    failing_on: Callable[..., tuple[RunFolder, list[str]]],
) -> None:
    with pytest.raises(SetupError):
        failing_on(SetupError("Deno is not installed"))


def test_a_bug_is_shown_and_recorded_with_its_traceback_and_counted_apart(
    failing_on: Callable[..., tuple[RunFolder, list[str]]],
) -> None:
    folder, notices = failing_on(KeyError("name"), tasks=4)
    shown = [notice for notice in notices if "Traceback" in notice or "a bug" in notice]
    # The same bug is shown once.
    assert len(shown) == 1
    assert "test_bugs.py" in shown[0]
    assert notices[-1].endswith("--status bug")
    record = last(folder)
    (finding,) = record.findings
    assert finding["code"] == "bug"
    assert finding["fields"]["type"] == "KeyError"
    assert 'File "test_bugs.py"' in finding["fields"]["traceback"]
    assert str(Path(__file__).parent) not in str(record.to_json())
    (arm,) = summarise_run(folder).arms
    assert (arm.statuses, arm.judged) == ({"submitted": 1, "bug": 3}, 1)


def test_many_bugs_in_a_row_end_the_run(
    failing_on: Callable[..., tuple[RunFolder, list[str]]],
) -> None:
    with pytest.raises(UsageError) as caught:
        failing_on(KeyError("name"), tasks=9, stop_after=3)
    assert caught.value.code == "too-many-failures"
    assert f"rerun {caught.value.where} --status bug" in caught.value.hint
