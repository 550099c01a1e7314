"""Whose verdict is learned from, and what of a record reaches distillation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from reasoningbank.corpus import Task
from reasoningbank.errors import ModelError
from reasoningbank.experiment import Arm, Experiment, RunFolder, TrialKey, TrialRecord
from reasoningbank.experiment import session as sessions
from reasoningbank.experiment import trial as trials
from reasoningbank.experiment.memory_sources import read_snapshot
from reasoningbank.experiment.session import experiences_of, outcome_of, retrieved_in
from reasoningbank.trajectory import Recorder

Record = Callable[..., TrialRecord]

TASK = Task("t1", "Which?", "SELECT ?the_gold {}", "http://e/", group="g", corpus="Trees")
RIGHT = {"strict": True, "lenient": True, "status": "judged", "n_predicted": 2, "reason": "equal"}
WRONG = {**RIGHT, "strict": False, "lenient": False, "reason": "1 of 2 rows missing"}
BROKEN = {"status": "query_error", "strict": False, "reason": "no such prefix: x"}


def arm(judge: str = "execution") -> Arm:
    memory = {"source": "learned", "judge": judge}
    return Arm(name="a", agent="direct", lm="m", judge_lm="j", memory=memory)  # type: ignore[arg-type]


def said(success: bool | None) -> dict[str, dict[str, Any]]:
    return {"lm:j": {"success": success, "reason": "it looks so"}}


@pytest.mark.parametrize(
    ("judge", "verdict", "lm", "success"),
    [
        ("execution", RIGHT, False, True),
        ("execution", {"status": "gold_defect"}, True, None),
        ("lm", WRONG, True, True),  # a wrong verdict is believed: that is the point
        ("lm", RIGHT, False, False),
        ("lm", RIGHT, None, None),
        ("both", RIGHT, True, True),
        ("both", WRONG, False, False),
        ("both", RIGHT, False, None),
        ("both", WRONG, None, None),
    ],
)
def test_the_arms_judge_is_believed_and_the_others_are_kept(
    record: Record, judge: str, verdict: dict[str, Any], lm: bool | None, success: bool | None
) -> None:
    found = outcome_of(arm(judge), "strict", record(verdict=verdict, judgements=said(lm)))
    assert found.success is success
    assert found.judges["lm:j"] is lm
    assert set(found.judges) == {"execution", "lm:j", "rule"}


def test_a_lenient_match_is_a_success_where_that_is_the_metric(record: Record) -> None:
    trial = record(verdict={**WRONG, "lenient": True})
    assert outcome_of(arm(), "lenient", trial).success is True
    assert outcome_of(arm(), "strict", trial).success is False


def rollout(sparql: str, verdict: dict[str, Any], lm: bool | None = None) -> dict[str, Any]:
    judgements = said(lm) if lm is not None else {}
    trajectory = Recorder().trajectory().to_json()
    return {"sparql": sparql, "verdict": verdict, "judgements": judgements,
            "trajectory": trajectory, "error": ""}  # fmt: skip


def test_every_attempt_is_an_experience_and_none_holds_the_gold(
    record: Record,
) -> None:
    trial = record(
        sparql="SELECT ?x {}",
        verdict=RIGHT,
        gold=TASK.expected_sparql,
        evidence={"gold": {"rows": [["the_gold"]]}},
        rollouts=(rollout("ASK {", BROKEN), rollout("ASK {}", {"status": "gold_defect"})),
    )
    first, second = experiences_of(trial, arm(), TASK, "strict")
    assert (first.success, first.ran, first.rows) == (True, True, 2)
    assert (second.success, second.ran, second.rows) == (False, False, None)
    assert first.trial == "a/t1.0"
    assert (first.group, first.corpus, first.model) == ("g", "Trees", "m")
    assert "the_gold" not in repr((first, second))


def test_attempts_of_which_nothing_is_believed_teach_nothing(
    record: Record,
) -> None:
    trial = record(verdict=RIGHT, judgements=said(None), rollouts=(rollout("ASK {}", WRONG, True),))
    (only,) = experiences_of(trial, arm("lm"), TASK, "strict")
    assert (only.success, only.judge) == (True, "lm:j")


def test_items_that_any_attempt_saw_are_counted(record: Record) -> None:
    def saw(*ids: str) -> Recorder:
        recorder = Recorder()
        recorder.add("memory_retrieved", {"items": [{"id": one} for one in ids]})
        return recorder

    other = {**rollout("ASK {}", WRONG), "trajectory": saw("b", "c").trajectory().to_json()}
    trial = record(trajectory=saw("a", "b").trajectory(), rollouts=(other,))
    assert retrieved_in(trial) == ("a", "b", "c")


@pytest.mark.parametrize("judge", ["lm", "both"])
def test_a_stream_learns_from_what_the_model_says(
    judge: str,
    learning: Callable[..., Experiment],
    run: Callable[..., RunFolder],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A judge that holds everything for right: scripted, and asked at each step."""
    asked: list[str] = []

    def credulous(_: Any, model: str, record: TrialRecord) -> TrialRecord:
        asked.append(record.question)
        said = {"success": True, "confidence": 1.0, "reason": "fine", "status": "judged"}
        return replace(record, judgements={f"lm:{model}": said})

    def gone(*_: Any) -> TrialRecord:
        raise ModelError("the judge is away")

    # It was away when the trials ended, and is there when they are learned from.
    monkeypatch.setattr(trials, "judge_record", gone)
    monkeypatch.setattr(sessions, "judge_attempts", credulous)
    memory = {"source": "learned", "judge": judge}
    believer = {"name": "believer", "agent": "pupil", "judge_lm": "ollama/none", "memory": memory}
    folder = run(learning(believer), limit=6)
    steps = folder.taken("believer", 0)
    assert len(asked) == len(steps) == 6
    name = "lm:ollama/none"
    for step in steps:
        record = folder.read(TrialKey("believer", step.task, 0))
        assert record.judgements[name]["success"] is True
        assert record.verdict is not None
        rule = record.verdict["n_predicted"] > 0
        assert step.judges == {"execution": record.strict, name: True, "rule": rule}
        assert step.success is (True if judge == "lm" or record.strict else None)
    judges = {
        origin.judge
        for item in read_snapshot(folder, steps[-1].after).items
        for origin in item.origins
    }
    assert judges == {name if judge == "lm" else f"execution and {name}"}
