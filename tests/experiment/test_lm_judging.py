"""A model judges a trial: it sees what the agent did, and never the gold."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from dspy.utils import DummyLM
from dspy.utils.exceptions import LMServerError

from reasoningbank.agents import Attempt
from reasoningbank.corpus import Task
from reasoningbank.experiment import Experiment, Job, RunContext, Trial, TrialKey
from reasoningbank.experiment.records import TrialRecord
from reasoningbank.experiment.trial import judge_attempts, judge_record
from reasoningbank.judge import ExecutionJudge, GoldStore
from reasoningbank.schema import Schema
from reasoningbank.sparql import EndpointConfig, SPARQLClient
from reasoningbank.trajectory import Recorder, Usage

GOLD = 'SELECT ?giraffe WHERE { ?giraffe t:height ?h . FILTER("giraffe" != "") }'
TASK = Task("t1", "Which plants have a height?", GOLD, "https://trees.example/sparql/", group="g")
KEY = TrialKey("arm", "t1", 0)
BOAST = "ZEBRA, I am sure that it is right"
MINE = f"# {BOAST}\nSELECT ?x WHERE {{ ?x a t:Tree ; t:height 31 }} # {BOAST}"
NO = {"checked": "height: partly", "reason": "Too narrow.", "success": "no", "confidence": "0.7"}


class Gone(DummyLM):  # type: ignore[misc]
    """A model that cannot be reached."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise LMServerError(model="m", message="connection refused")


@dataclass
class Model:
    """Stands where an open model does."""

    reply: dict[str, str]
    kind: type[DummyLM] = DummyLM
    lms: list[DummyLM] = field(default_factory=list)
    settings: list[dict[str, Any]] = field(default_factory=list)
    secrets: tuple[str, ...] = ()
    workers: int = 1
    fingerprint: dict[str, Any] = field(default_factory=lambda: {"model": "scripted"})

    def lm(self, **settings: Any) -> DummyLM:
        self.settings.append(settings)
        self.lms.append(self.kind([self.reply]))
        return self.lms[-1]

    @property
    def asked(self) -> list[str]:
        entries = [entry for lm in self.lms for entry in lm.history]
        return [json.dumps(entry["messages"], ensure_ascii=False) for entry in entries]


@pytest.fixture
def world(trees: EndpointConfig, tmp_path: Path) -> Iterator[RunContext]:
    with SPARQLClient(trees) as client:
        judge = ExecutionJudge(client, GoldStore(tmp_path / "gold", "h"))
        known = Schema.of_terms(["http://e/Tree"], ["http://e/height"])
        yield RunContext(trees, client, judge, schema=known)


@pytest.fixture
def experiment(experiment_on: Callable[..., Experiment]) -> Experiment:
    arm = {"name": "arm", "agent": "direct", "lm": "local-small", "judge_lm": "local"}
    return experiment_on(Path("p"), arm)


def test_a_trial_is_judged_by_a_model_that_sees_neither_gold_nor_boast(
    world: RunContext, experiment: Experiment
) -> None:
    solver, judge = Model({"sparql": MINE}), Model(NO)
    open_world = replace(world, models={"local-small": solver, "local": judge})  # type: ignore[dict-item]
    record = Trial(open_world, experiment, Job(experiment.arms[0], TASK)).run()
    assert record.verdict is not None
    # The gold did decide, and the evidence shows it to people.
    assert record.verdict["f1"] == 0.5
    assert "giraffe" in json.dumps(record.evidence)
    said = record.judgements["lm:local"]
    assert (said["success"], said["confidence"], said["reason"]) == (False, 0.7, "Too narrow.")
    (prompt,) = judge.asked
    assert "giraffe" not in prompt
    assert "ZEBRA" not in prompt
    assert "t:height 31" in prompt
    assert "1 row; columns: ?x" in prompt
    assert "t:oak" in prompt
    assert judge.settings[0]["role"] == "judge"


def said_of(world: RunContext, sparql: str | None, **facts: Any) -> dict[str, Any]:
    attempt = Attempt(sparql, "", "submitted", Usage(), Recorder().trajectory())
    record = TrialRecord.of(KEY, TASK, attempt, None, started="", model={})
    judged = judge_record(world, "local", replace(record, **facts))
    return dict(judged.judgements["lm:local"])


def test_the_verdict_of_the_execution_judge_makes_no_difference(world: RunContext) -> None:
    prompts = []
    for gold in (GOLD, MINE, "SELECT ?h ?giraffe { ?giraffe t:height ?h } LIMIT 1"):
        model = Model(NO)
        judged = world.judge.examine(replace(TASK, id=gold, expected_sparql=gold), MINE)
        facts = {"verdict": judged.verdict.to_json(), "evidence": judged.evidence.to_json()}
        judging = replace(world, models={"local": model})  # type: ignore[dict-item]
        said_of(judging, MINE, **facts)
        prompts += model.asked
    assert len(prompts) == 3
    assert len(set(prompts)) == 1


def test_without_evidence_the_query_is_run(world: RunContext) -> None:
    model = Model(NO)
    judging = replace(world, models={"local": model})  # type: ignore[dict-item]
    said = said_of(judging, MINE)
    assert said["status"] == "judged"
    assert "1 row; columns: ?x" in model.asked[0]
    said = said_of(judging, "SELECT ?x {")
    assert (said["status"], said["success"]) == ("not_asked", False)
    said = said_of(judging, None)
    assert said["reason"] == "no query was submitted"
    assert len(model.asked) == 1


def test_a_model_that_is_gone_costs_its_judgement_and_not_the_trial(
    world: RunContext, experiment: Experiment
) -> None:
    solver = Model({"sparql": MINE})
    judge = Model(NO, Gone)
    open_world = replace(world, models={"local-small": solver, "local": judge})  # type: ignore[dict-item]
    record = Trial(open_world, experiment, Job(experiment.arms[0], TASK)).run()
    assert record.status == "submitted"
    assert record.verdict is not None
    assert record.judgements == {}


def test_attempts_that_were_not_chosen_are_judged_once(
    world: RunContext, experiment: Experiment
) -> None:
    solver, judge = Model({"sparql": MINE}), Model(NO)
    open_world = replace(world, models={"local-small": solver, "local": judge})  # type: ignore[dict-item]
    record = Trial(open_world, experiment, Job(experiment.arms[0], TASK)).run()
    known = {"success": True, "reason": "said before"}
    others = [
        {"number": 1, "sparql": MINE, "verdict": record.verdict, "judgements": {},
         "trajectory": record.trajectory.to_json()},
        {"number": 2, "sparql": None, "verdict": record.verdict, "judgements": {"lm:local": known},
         "trajectory": record.trajectory.to_json()},
    ]  # fmt: skip
    judge.lms.clear()
    whole = judge_attempts(open_world, "local", replace(record, rollouts=tuple(others)))
    said = [one["judgements"]["lm:local"] for one in whole.rollouts]
    assert [one["reason"] for one in said] == ["Too narrow.", "said before"]
    assert len(judge.asked) == 1
    assert judge_attempts(open_world, "local", whole) == whole
