"""One trial: judged, recorded, and infrastructure errors distinguished from the agent's."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from dspy.utils import DummyLM

from reasoningbank.agents import AGENTS, Attempt, FewShotExample
from reasoningbank.agents.sandbox.interpreter import SandboxPool
from reasoningbank.analysis import summarise
from reasoningbank.corpus import Task
from reasoningbank.errors import EndpointError
from reasoningbank.experiment import (
    Experiment,
    RunContext,
    RunFolder,
    TrialKey,
    TrialRecord,
)
from reasoningbank.experiment.context import Recall
from reasoningbank.experiment.plan import Job
from reasoningbank.experiment.trial import Trial
from reasoningbank.judge import ExecutionJudge, GoldStore
from reasoningbank.lm import open_lm
from reasoningbank.sparql import EndpointConfig, OxigraphServer, SPARQLClient
from reasoningbank.tools import DEFAULT_TOOLS
from reasoningbank.trajectory import Usage

GOLD = "SELECT ?p WHERE { ?p t:height ?marked_gold }"
RIGHT = "SELECT ?x WHERE { ?x a t:Tree }"
TASK = Task("t1", "Which plants have a height?", GOLD, "https://trees.example/sparql/", group="g")
KEY = TrialKey("arm", "t1", 0)


@dataclass
class Scripted:
    """Stands where an open model does; its replies are written by the test."""

    replies: list[dict[str, str]]
    secrets: tuple[str, ...] = ()
    workers: int = 1
    fingerprint: dict[str, Any] = field(default_factory=lambda: {"model": "scripted"})
    asked: list[dict[str, Any]] = field(default_factory=list)

    def lm(self, **settings: Any) -> DummyLM:
        if settings["role"] == "solver":
            self.asked.append(settings)
        return DummyLM(self.replies)


@dataclass
class Place:
    """A world whose endpoint can be taken away."""

    server: OxigraphServer
    world: RunContext

    def with_replies(self, *replies: dict[str, str], **rest: Any) -> RunContext:
        return replace(self.world, models={"scripted": Scripted(list(replies), **rest)})  # type: ignore[dict-item]


@pytest.fixture
def place(trees_file: Path, trees: EndpointConfig, tmp_path: Path) -> Iterator[Place]:
    with OxigraphServer([trees_file]) as server:
        config = replace(trees, query_url=server.url)
        with SPARQLClient(config) as client, SandboxPool(spare=0) as pool:
            judge = ExecutionJudge(client, GoldStore(tmp_path / "gold", "h"))
            yield Place(server, RunContext(config, client, judge, sandboxes=pool))


@pytest.fixture
def experiment(experiment_on: Callable[..., Experiment]) -> Callable[[str], Experiment]:
    return lambda agent: experiment_on(Path("p"), {"name": "arm", "agent": agent, "lm": "scripted"})


def test_a_right_query_is_judged_and_recorded_whole(
    place: Place, experiment: Callable[[str], Experiment], tmp_path: Path
) -> None:
    plan = experiment("direct")
    world = place.with_replies({"sparql": RIGHT})
    record = Trial(world, plan, Job(plan.arms[0], TASK)).run()
    assert record.strict
    assert (record.status, record.sparql, record.group) == ("submitted", RIGHT, "g")
    assert record.model == {"model": "scripted"}
    folder = RunFolder(tmp_path)
    folder.write(record)
    assert json.dumps(folder.read(KEY).to_json()) == json.dumps(record.to_json())


@pytest.mark.parametrize(
    ("tokens", "temperatures"), [(100_000, [0.0, 0.7, 0.7]), (0, [0.0]), (None, [0.7, 0.7, 0.7])]
)
def test_matched_attempts_begin_with_the_one_of_an_arm_without_memory(
    tokens: int | None, temperatures: list[float], place: Place,
    experiment_on: Callable[..., Experiment],
) -> None:  # fmt: skip
    plan = experiment_on(
        Path("p"),
        {
            "name": "arm",
            "agent": "direct",
            "lm": "scripted",
            "temperature": 0.7,
            "sampling": {"kind": "parallel", "k": 3},
        },
    )
    asked: list[dict[str, Any]] = []
    world = place.with_replies({"sparql": RIGHT}, asked=asked)
    record = Trial(world, plan, Job(plan.arms[0], TASK), tokens=tokens).run()
    assert [settings["temperature"] for settings in asked] == temperatures
    assert len({settings["seed"] for settings in asked}) == len(asked)
    assert asked[0]["seed"] == KEY.seed
    assert record.tokens_wanted == tokens
    assert TrialRecord.from_json(json.loads(json.dumps(record.to_json()))).tokens_wanted == tokens


def test_attempts_after_the_first_have_the_temperature_of_the_sampling(
    place: Place, experiment_on: Callable[..., Experiment]
) -> None:
    sampling = {"kind": "parallel", "k": 3, "temperature": 0.9}
    given = {"name": "arm", "agent": "direct", "lm": "scripted", "sampling": sampling}
    plan = experiment_on(Path("p"), given)
    asked: list[dict[str, Any]] = []
    world = place.with_replies({"sparql": RIGHT}, asked=asked)
    Trial(world, plan, Job(plan.arms[0], TASK)).run()
    assert [settings["temperature"] for settings in asked] == [0.0, 0.9, 0.9]


def test_retries_see_each_example_alone(
    place: Place, experiment_on: Callable[..., Experiment]
) -> None:
    sampling = {"kind": "retry", "k": 4, "temperature": 0.9}
    given = {"name": "arm", "agent": "direct", "lm": "scripted", "sampling": sampling}
    plan = experiment_on(Path("p"), given)
    asked: list[dict[str, Any]] = []
    world = place.with_replies({"sparql": "SELECT ?x { ?x a <urn:x> }"}, asked=asked)
    examples = (FewShotExample("Nearest?", "ASK {}"), FewShotExample("Other?", "ASK {}"))
    recall = Recall(examples=examples)
    record = Trial(world, plan, Job(plan.arms[0], TASK), remember=lambda: recall).run()
    assert [settings["temperature"] for settings in asked] == [0.0, 0.0, 0.0, 0.9]
    attempts = [json.dumps(one["trajectory"]) for one in record.rollouts]
    attempts.append(json.dumps(record.trajectory.to_json()))
    assert ["Nearest?" in one for one in attempts] == [True, True, False, True]
    assert ["Other?" in one for one in attempts] == [True, False, True, True]


@pytest.mark.parametrize(
    ("sparql", "status"),
    [("SELECT ?x WHERE { ?x", "query_error"), ("ASK { ?s ?p ?o }", "wrong_form")],
)
def test_a_wrong_query_is_the_agents_failure(
    place: Place, experiment: Callable[[str], Experiment], sparql: str, status: str
) -> None:
    plan = experiment("direct")
    record = Trial(place.with_replies({"sparql": sparql}), plan, Job(plan.arms[0], TASK)).run()
    assert record.verdict is not None
    assert record.verdict["status"] == status
    assert not record.strict
    assert summarise([record]).arms[0].judged == 1


def test_no_query_is_the_agents_failure(
    place: Place, experiment: Callable[[str], Experiment]
) -> None:
    plan = experiment("direct")
    record = Trial(place.with_replies({"sparql": "no idea"}), plan, Job(plan.arms[0], TASK)).run()
    assert (record.status, record.sparql) == ("refused", None)
    assert record.verdict is not None
    assert record.verdict["status"] == "no_query"


def test_the_gold_never_reaches_the_model(
    place: Place, experiment: Callable[[str], Experiment]
) -> None:
    plan = experiment("direct")
    world = place.with_replies({"sparql": RIGHT})
    record = Trial(world, plan, Job(plan.arms[0], TASK)).run()
    assert TASK.query in json.dumps(record.trajectory.to_json())
    assert "marked_gold" not in json.dumps(record.trajectory.to_json())


def test_agents_are_handed_blind_tasks_and_the_oracle_the_gold(
    place: Place, experiment: Callable[[str], Experiment], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: dict[str, Task] = {}

    attempt = Trial.attempt

    def spy(self: Trial, task: Task, **more: Any) -> Any:
        seen[self.job.arm.agent] = task
        return attempt(self, task, **more)

    monkeypatch.setattr(Trial, "attempt", spy)
    for agent in ("oracle", "direct"):
        plan = experiment(agent)
        Trial(place.with_replies({"sparql": RIGHT}), plan, Job(plan.arms[0], TASK)).run()
    assert seen["oracle"] == TASK
    assert seen["direct"] == TASK.blind()
    assert "marked_gold" not in repr(seen["direct"])


def test_secrets_are_not_recorded(place: Place, experiment: Callable[[str], Experiment]) -> None:
    plan = experiment("direct")
    world = place.with_replies({"sparql": f"# key-123\n{RIGHT}"}, secrets=("key-123",))
    record = Trial(world, plan, Job(plan.arms[0], TASK)).run()
    assert "key-123" not in json.dumps(record.trajectory.to_json())


@pytest.mark.parametrize("gold_is_known", [True, False])
@pytest.mark.parametrize("agent", ["oracle", "direct"])
def test_an_endpoint_that_is_gone_is_an_error_and_never_a_failure(
    place: Place, experiment: Callable[[str], Experiment], agent: str, gold_is_known: bool
) -> None:
    plan = experiment(agent)
    world = place.with_replies({"sparql": RIGHT})
    if gold_is_known:
        assert Trial(world, plan, Job(plan.arms[0], TASK)).run().strict
    place.server.stop()
    record = Trial(world, plan, Job(plan.arms[0], TASK)).run()
    assert (record.status, record.verdict) == ("error", None)
    assert "127.0.0.1" in record.error
    assert record.trajectory.of("submit")
    arm = summarise([record]).arms[0]
    assert (arm.trials, arm.judged, arm.best_case, arm.worst_case) == (1, 0, 1.0, 0.0)


@pytest.mark.sandbox
def test_no_query_because_the_endpoint_was_gone_is_an_error(
    place: Place, experiment: Callable[[str], Experiment]
) -> None:
    plan = experiment("rlm")
    look = {"reasoning": "look", "code": f"sparql_query('{RIGHT}')"}
    give_up = {"reasoning": "give up", "code": "SUBMIT('nothing')"}
    world = place.with_replies(look, give_up)
    world.judge.judge(TASK, RIGHT)
    place.server.stop()
    record = Trial(world, plan, Job(plan.arms[0], TASK)).run()
    assert (record.status, record.verdict, record.sparql) == ("error", None, None)
    assert "endpoint failed" in record.error


def test_a_model_that_is_gone_is_an_error_and_never_a_failure(
    place: Place, experiment_on: Callable[..., Experiment]
) -> None:
    name = "openai/none"
    plan = experiment_on(Path("p"), {"name": "arm", "agent": "direct", "lm": name})
    with open_lm(name, api_base="http://127.0.0.1:9/v1") as handle:
        unpatient = _Unpatient(handle)
        world = replace(place.world, models={name: unpatient})  # type: ignore[dict-item]
        record = Trial(world, plan, Job(plan.arms[0], TASK)).run()
    assert (record.status, record.verdict) == ("error", None)
    assert record.trajectory.of("error")[0].data["type"] == "ModelError"


@dataclass
class _Unpatient:
    handle: Any

    secrets = ()
    workers = 1
    fingerprint = {"model": "none"}  # noqa: RUF012

    def lm(self, **settings: Any) -> Any:
        return self.handle.lm(**settings, num_retries=0)


def test_only_judging_is_tried_again_where_only_judging_failed(
    place: Place, experiment: Callable[[str], Experiment], monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = experiment("direct")
    trial = Trial(place.with_replies({"sparql": RIGHT}), plan, Job(plan.arms[0], TASK))
    with monkeypatch.context() as patched:
        patched.setattr(ExecutionJudge, "examine", _gone)
        spoiled = trial.run()
    assert (spoiled.status, spoiled.verdict, spoiled.sparql) == ("error", None, RIGHT)
    record = trial.run()
    assert record.strict
    assert record.usage == spoiled.usage
    assert record.trajectory == spoiled.trajectory


def _gone(*_: object) -> Any:
    raise EndpointError("the endpoint is gone")


def test_an_arm_has_the_tools_that_it_names(
    place: Place, experiment_on: Callable[..., Experiment], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[list[str]] = []

    class Looker:
        uses_lm, sees_gold = False, False

        def solve(self, task: Task, episode: Any) -> Attempt:
            seen.append(sorted(episode.tools))
            return Attempt(None, "", "refused", Usage(), episode.recorder.trajectory())

    monkeypatch.setitem(AGENTS, "looker", Looker)
    for tools in (None, ["sparql_query", "sparql_peek"], [], "all"):
        plan = experiment_on(Path("p"), {"name": "arm", "agent": "looker", "tools": tools})
        Trial(place.world, plan, Job(plan.arms[0], TASK)).run()
    assert seen[0] == sorted(DEFAULT_TOOLS)
    assert seen[1:3] == [["sparql_peek", "sparql_query"], []]
    assert len(seen[3]) == 20
