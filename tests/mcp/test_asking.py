"""Questions to the model: one at a time, and none for a client that is gone."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest

from reasoningbank.agents import Attempt
from reasoningbank.algebra import QueryRequest
from reasoningbank.corpus import Task
from reasoningbank.errors import BudgetError, ToolError
from reasoningbank.experiment import Arm, Trial
from reasoningbank.experiment.ask import Solver
from reasoningbank.mcp.asking import Asker
from reasoningbank.trajectory import Recorder, Usage


@pytest.fixture
def asker() -> Asker:
    """An asker whose model was not opened."""
    world: Any = SimpleNamespace(endpoint=SimpleNamespace(url="http://e/", source="E"))
    pack: Any = SimpleNamespace(root="uniprot", endpoint="http://e/", languages=("en", "it"))
    return Asker(Solver(world, pack, Arm(name="ask", agent="direct"), (), None))


def test_a_question_that_waits_is_given_up_when_it_is_called_off(
    asker: Asker, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[int] = []
    monkeypatch.setattr(Trial, "attempt", lambda *_, **__: begun.append(1))
    stops = [threading.Event() for _ in range(3)]
    faults: list[Exception] = []

    def ask(stop: threading.Event) -> None:
        try:
            asker.compose(QueryRequest("Which trees?"), stop)
        except ToolError as error:
            faults.append(error)

    with asker.lock:
        threads = [threading.Thread(target=ask, args=(stop,)) for stop in stops]
        for thread in threads:
            thread.start()
        for stop in stops:
            stop.set()
        for thread in threads:
            thread.join(120)
            assert not thread.is_alive()
    assert (len(faults), begun) == (3, [])


def test_a_question_has_the_language_that_it_is_asked_in(
    asker: Asker, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def attempt(_: object, task: Task, **__: object) -> Attempt:
        asked.append(task.language)
        return Attempt("ASK {}", "", "submitted", Usage(), Recorder().trajectory())

    monkeypatch.setattr(Trial, "attempt", attempt)
    for question in ("Quali sono le parole che esprimono la gioia?", "Which of the words are sad?"):
        asker.compose(QueryRequest(question))
    assert asked == ["it", "en"]


def test_an_attempt_ends_with_its_next_step_when_it_is_called_off(
    asker: Asker, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop = threading.Event()

    def attempt(*_: object, watch: Any, **__: object) -> Attempt:
        recorder = Recorder(watch=watch)
        recorder.add("tool_call", {"tool": "sparql_query"})
        stop.set()
        try:
            recorder.add("tool_call", {"tool": "sparql_peek"})
        except BudgetError as error:
            return Attempt(None, str(error), "exhausted", Usage(), Recorder().trajectory())
        raise AssertionError("it went on")

    monkeypatch.setattr(Trial, "attempt", attempt)
    with pytest.raises(ToolError, match="wrote no query"):
        asker.compose(QueryRequest("Which trees?"), stop)
