"""Parts of an experiment by import path: what is refused, and what a user's module may consume."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from dspy.utils import DummyLM

from experiment.learning.orchard import experiment_data, write_orchard
from reasoningbank.agents import Budget, Episode, Meter, asks_model, make_agent
from reasoningbank.corpus import Task
from reasoningbank.errors import UsageError
from reasoningbank.experiment import Experiment, RunFolder, rejudge_run, run_experiment
from reasoningbank.experiment.manifest import code_changes
from reasoningbank.experiment.plan import plan_run
from reasoningbank.imports import imported
from reasoningbank.lm import UsageCounter
from reasoningbank.sparql import EndpointConfig
from reasoningbank.tools import SPARQLTools
from reasoningbank.trajectory import Recorder

TREES = "SELECT ?p WHERE { ?p a t:Tree }"
TASK = Task("t1", "Which plants are trees?", "", "https://trees.example/sparql/")
MODULE = """
import dspy
from reasoningbank.agents.protocol import conclude

class Writer(dspy.Module):
    def __init__(self, hint=""):
        super().__init__()
        self.write = dspy.Predict("question -> sparql")
        self.hint = hint

    def forward(self, question, context, endpoint):
        first = self.write(question=f"{question} {self.hint} {context} {endpoint.name}")
        return self.write(question=first.sparql)

class Looker(dspy.Module):
    def forward(self, question, tools):
        by_name = {tool.name: tool for tool in tools}
        seen = by_name["sparql_query"](query=question)
        return dspy.Prediction(sparql=f"```sparql\\n{question}\\n```", seen=seen)

class Gold:
    uses_lm, sees_gold = False, True
    def solve(self, task, episode):
        return conclude(episode, task.expected_sparql, "submitted")

class Needy(dspy.Module):
    def __init__(self, size):
        super().__init__()

class Wants(dspy.Module):
    def forward(self, question, schema):
        return dspy.Prediction(sparql=schema)

class Asynchronous(dspy.Module):
    async def forward(self, question):
        return dspy.Prediction(sparql=question)

class Bodyless(dspy.Module):
    async def aforward(self, question):
        return dspy.Prediction(sparql=question)

class Nameless(dspy.Module):
    def forward(self, text):
        return text

class Answers(dspy.Module):
    def forward(self, question):
        return dspy.Prediction(answer=question)

rag = dspy.ChainOfThought("context, question -> sparql")
wants = dspy.ChainOfThought("schema, question -> sparql")
NUMBER = 7
odd = lambda case: "yes"
few = lambda case: case.result.n < 3
sure = lambda case: 1.5
pair = lambda first, second: True

def fails(case):
    return case.rows[0]

def untyped(tools, uri, n: int = 5) -> str:
    'Say something.'

def sparql_peek(ref: str) -> str:
    'Look at the rows of a handle.'

async def waits(uri: str) -> str:
    'Return the IRI.'
    return uri

class Taught:
    uses_lm, sees_gold, uses = False, False, ("context",)
    def solve(self, task, episode):
        return conclude(episode, "SELECT ?p WHERE { ?p a t:Tree }", "submitted")

class Exits(Taught):
    def solve(self, task, episode):
        raise SystemExit(3)

def nothing_chosen(question, items):
    return None

def breaks(experiences):
    yield experiences[0].no_such_field
"""


@pytest.fixture(autouse=True)
def _module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    (tmp_path / "own_parts.py").write_text(MODULE, encoding="utf-8")
    (tmp_path / "broken_parts.py").write_text("import no_such_package\n", encoding="utf-8")
    (tmp_path / "wrong_parts.py").write_text("1 / 0\n", encoding="utf-8")
    (tmp_path / "ends_parts.py").write_text("raise SystemExit(0)\n", encoding="utf-8")
    (tmp_path / "needs_parts.py").write_text("import needs\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield
    for name in ("own_parts", "broken_parts", "wrong_parts", "kept_parts"):
        sys.modules.pop(name, None)


def test_a_changed_module_is_other_code(
    tmp_path: Path, make_pack: Callable[..., Path], experiment_on: Callable[..., Experiment]
) -> None:
    # A package may only name what another module defines.
    (tmp_path / "kept_parts.py").write_text("from own_parts import Gold", encoding="utf-8")
    names = ("kept_parts:Gold", "own_parts:Gold")
    arms = [{"name": name[:4], "agent": name} for name in names]
    experiment = experiment_on(make_pack(2), *arms, retries={"infrastructure": 0})
    folder, notices = RunFolder(tmp_path / "run"), list[str]()
    run_experiment(experiment, folder, limit=1)
    (tmp_path / "own_parts.py").write_text(f"{MODULE}\n# changed\n", encoding="utf-8")
    for _ in range(2):
        run_experiment(experiment, folder, on_notice=notices.append)
    manifest = folder.manifest or {}
    assert [change.parts for change in code_changes(manifest)] == [names]
    assert {*names, "version"} <= set(manifest["code"])
    assert len([one for one in notices if all(name in one for name in names)]) == 1
    (tmp_path / "own_parts.py").write_text(f"{MODULE}\n# changed again\n", encoding="utf-8")
    run_experiment(experiment, folder, on_notice=notices.append)
    assert all(part in notices[-1] for part in (*names, "--out")), "nothing was left to run"


@pytest.mark.parametrize(
    ("path", "code", "said"),
    [
        ("no_such_module:Agent", "not-importable", "there is no module 'no_such_module'"),
        ("own_parts.deeper:Agent", "not-importable", "own_parts.deeper"),
        ("own_parts:Writr", "not-importable", "did you mean Writer?"),
        ("broken_parts:Agent", "not-importable", "'no_such_package', which broken_parts imports"),
        ("wrong_parts:Agent", "not-importable", "ZeroDivisionError"),
        ("ends_parts:Agent", "not-importable", "SystemExit"),
        ("needs_parts:Agent", "not-importable", "'needs', which needs_parts imports"),
        ("own_parts:NUMBER", "wrong-type", "is not a dspy.Module"),
        ("own_parts:Needy", "unknown-option", "size"),
        ("own_parts:Nameless", "wrong-type", "takes question"),
        ("own_parts:Wants", "wrong-type", "its forward needs schema"),
        ("own_parts:wants", "wrong-type", "its forward needs schema"),
        ("own_parts:Asynchronous", "wrong-type", "a forward that is not async"),
        ("own_parts:Bodyless", "wrong-type", "a forward that is not async"),
        ("own_parts.Writer", "unknown-agent", "package.module:Name"),
    ],
)
def test_a_wrong_agent_is_one_line(
    path: str,
    code: str,
    said: str,
    make_pack: Callable[..., Path],
    experiment_on: Callable[..., Experiment],
) -> None:
    experiment = experiment_on(make_pack(1), {"name": "a", "agent": path})
    with pytest.raises(UsageError) as caught:
        plan_run(experiment)
    assert caught.value.code == code
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_module_that_is_already_made_takes_no_options(
    make_pack: Callable[..., Path], experiment_on: Callable[..., Experiment]
) -> None:
    arm = {"name": "a", "agent": "own_parts:rag", "options": {"turns": 4}}
    with pytest.raises(UsageError) as caught:
        plan_run(experiment_on(make_pack(1), arm))
    assert (caught.value.code, caught.value.where) == ("unknown-option", "own_parts:rag")


@pytest.mark.parametrize(
    ("arm", "code"),
    [
        ({"tools": ["sparql_query", "own_parts:NUMBER"]}, "wrong-type"),
        ({"tools": ["own_parts:nothing"]}, "not-importable"),
        ({"tools": ["sparql_qery"]}, "usage"),
        ({"tools": ["own_parts:untyped"]}, "wrong-type"),
        ({"tools": ["own_parts:sparql_peek"]}, "tool-name-taken"),
        ({"tools": ["own_parts:waits"]}, "wrong-type"),
        ({"judge_lm": "own_parts:waits"}, "wrong-type"),
        ({"judge_lm": "own_parts:pair"}, "wrong-type"),
        ({"memory": {"source": "gold", "retriever": "own_parts:few"}}, "wrong-type"),
        ({"judge_lm": "own_parts:NUMBER"}, "wrong-type"),
        ({"judge_lm": "own_parts:nothing"}, "not-importable"),
        ({"memory": {"source": "gold", "retriever": "own_parts:NUMBER"}}, "wrong-type"),
        ({"memory": {"source": "gold", "retriever": "no_such_module:rank"}}, "not-importable"),
    ],
)
def test_other_wrong_parts_are_one_line_that_names_the_arm(
    arm: dict[str, Any],
    code: str,
    make_pack: Callable[..., Path],
    experiment_on: Callable[..., Experiment],
) -> None:
    with pytest.raises(UsageError) as caught:
        plan_run(experiment_on(make_pack(1), {"name": "a", "agent": "react", **arm}))
    assert caught.value.code == code
    assert caught.value.where.startswith("arm a")


@pytest.mark.parametrize(("name", "code"), [("nothing", "not-importable"), ("pair", "wrong-type")])
def test_a_wrong_distiller_is_one_line(
    name: str, code: str, make_pack: Callable[..., Path], experiment_on: Callable[..., Experiment]
) -> None:
    memory = {"source": "learned", "distiller": f"own_parts:{name}"}
    arm = {"name": "a", "agent": "react", "memory": memory}
    with pytest.raises(UsageError) as caught:
        plan_run(experiment_on(make_pack(30), arm, mode="learn", tasks={"split": "dev"}))
    assert (caught.value.code, caught.value.where) == (code, "arm a, memory.distiller")


def run_taught(trees: EndpointConfig, folder: Path, memory: dict[str, str], **more: Any) -> None:
    arm = {"name": "a", "agent": "own_parts:Taught", "memory": memory}
    data = experiment_data(write_orchard(folder / "orchard"), trees.address, arm, **more)
    run_experiment(Experiment.model_validate(data), RunFolder(folder / "run"))


def test_a_distiller_that_fails_is_one_line_with_its_place(
    trees: EndpointConfig, tmp_path: Path
) -> None:
    with pytest.raises(UsageError) as caught:
        run_taught(trees, tmp_path, {"source": "learned", "distiller": "own_parts:breaks"})
    assert caught.value.code == "own-part-failed"
    assert re.search(r"own_parts.py:\d+ in breaks: own_parts:breaks fails", str(caught.value))


def test_a_retriever_that_returns_nothing_is_one_line(
    trees: EndpointConfig, tmp_path: Path
) -> None:
    memory = {"source": "gold", "retriever": "own_parts:nothing_chosen"}
    with pytest.raises(UsageError, match="the retriever returned something else than items"):
        run_taught(trees, tmp_path, memory, mode="evaluate")


def test_a_module_that_ends_the_process_ends_its_trial_only(
    make_pack: Callable[..., Path], experiment_on: Callable[..., Experiment], tmp_path: Path
) -> None:
    arms = [{"name": name, "agent": f"own_parts:{name}"} for name in ("Exits", "Gold")]
    experiment = experiment_on(make_pack(1), *arms, retries={"infrastructure": 0})
    folder = run_experiment(experiment, RunFolder(tmp_path / "run"))
    assert [one.status for one in folder.trials()] == ["bug", "submitted"]


def episode(config: EndpointConfig, model: DummyLM, **limits: Any) -> Episode:
    recorder = Recorder()
    counter = UsageCounter(recorder)
    meter = Meter(Budget(**limits), lambda: counter.usage)
    tools = meter.metered(SPARQLTools(config).as_dspy_tools())
    return Episode(config, tools, model, None, recorder, meter, "Trees grow.", None, [counter])


def test_a_module_is_given_what_its_forward_names(trees: EndpointConfig) -> None:
    model = DummyLM([{"sparql": TREES}] * 2)
    agent = make_agent("own_parts:Writer", hint="Be short.")
    attempt = agent.solve(TASK, episode(trees, model))
    assert (attempt.sparql, attempt.status, agent.name) == (TREES, "submitted", "own_parts:Writer")
    assert attempt.usage.lm_calls == 2
    prompt = json.dumps(model.history[0]["messages"])
    assert "Which plants are trees? Be short. Trees grow. Trees" in prompt


def test_a_predictor_is_given_the_inputs_of_its_signature(trees: EndpointConfig) -> None:
    model = DummyLM([{"reasoning": "so", "sparql": TREES}])
    attempt = make_agent("own_parts:rag").solve(TASK, episode(trees, model))
    assert attempt.sparql == TREES
    assert "Trees grow." in json.dumps(model.history[0]["messages"])
    first, second = make_agent("own_parts:rag"), make_agent("own_parts:rag")
    assert first._module is not second._module  # type: ignore[attr-defined]


def test_tool_calls_are_recorded_and_return_text(trees: EndpointConfig) -> None:
    question = Task("t", TREES, "", "https://trees.example/sparql/")
    attempt = make_agent("own_parts:Looker").solve(question, episode(trees, DummyLM([])))
    assert attempt.sparql == TREES
    assert [one.data["tool"] for one in attempt.trajectory.of("tool_call")] == ["sparql_query"]
    assert attempt.usage.tool_calls == 1


def test_a_budget_ends_a_users_module(trees: EndpointConfig) -> None:
    model = DummyLM([{"sparql": TREES}] * 2)
    attempt = make_agent("own_parts:Writer").solve(TASK, episode(trees, model, lm_calls=1))
    assert (attempt.status, attempt.budget, attempt.usage.lm_calls) == ("exhausted", "lm_calls", 1)


def test_a_prediction_without_the_field_is_said_so(trees: EndpointConfig) -> None:
    with pytest.raises(UsageError) as caught:
        make_agent("own_parts:Answers").solve(TASK, episode(trees, DummyLM([])))
    assert caught.value.code == "no-sparql-field"


def test_whether_a_model_is_needed() -> None:
    assert asks_model("own_parts:Writer")
    assert not asks_model("own_parts:Gold")
    assert asks_model("gone_with_its_machine:Agent")
    assert imported("own_parts:NUMBER") == 7


def test_an_own_judge_judges_a_run_that_is_done(
    make_pack: Callable[..., Path], experiment_on: Callable[..., Experiment], tmp_path: Path
) -> None:
    arm = {"name": "own", "agent": "own_parts:Gold"}
    experiment = experiment_on(make_pack(3), arm)
    folder = run_experiment(experiment, RunFolder(tmp_path / "run"))
    assert all(record.strict for record in folder.trials())
    outcome = rejudge_run(folder, "lm:own_parts:few")
    assert outcome.judged == 3
    said = [record.judgements["lm:own_parts:few"] for record in folder.trials()]
    assert [one["success"] for one in said] == [False] * 3, "each has three rows"
    assert [one["confidence"] for one in said] == [1.0] * 3
    failed = rejudge_run(folder, "lm:own_parts:odd").failed
    assert len(failed) == 3
    assert "own_parts:odd returned 'yes'" in failed[0][1]
    assert "own_parts:sure returned 1.5" in rejudge_run(folder, "lm:own_parts:sure").failed[0][1]
    # A user must see what failed, and where.
    said_of = rejudge_run(folder, "lm:own_parts:fails").failed[0][1]
    assert "AttributeError" in said_of
    assert re.search(r"own_parts.py:\d+ in fails", said_of)
    with pytest.raises(UsageError):
        rejudge_run(folder, "lm:own_parts:nothing")
