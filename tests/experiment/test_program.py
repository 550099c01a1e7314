"""Agents as modules of DSPy: evaluated, saved and loaded."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import dspy
import pytest
from dspy.utils import DummyLM

from reasoningbank import load_shacl_tasks, open_metric, open_program, to_examples
from reasoningbank.errors import ModelError, UsageError
from reasoningbank.experiment import Experiment, RunFolder, run_experiment, runner
from reasoningbank.experiment.plan import plan_run

TREES = "SELECT ?p WHERE { ?p a t:Tree }"
WRONG = "SELECT ?p WHERE { ?p a t:Moss }"
COUNTED = """
import dspy

class Counted(dspy.Module):
    def __init__(self):
        super().__init__()
        self.write = dspy.Predict("question -> sparql, rows: int")

    def forward(self, question):
        return self.write(question=question)

class Late(dspy.Module):
    def forward(self, question):
        return dspy.Predict("question -> sparql")(question=question)
"""


class Scripted(DummyLM):  # type: ignore[misc]
    """A scripted model that knows the answers of some questions."""

    def __init__(self, known: dict[str, str]) -> None:
        super().__init__([])
        self.known, self.prompts = known, []

    def forward(self, prompt: Any = None, messages: Any = None, **rest: Any) -> Any:
        self.prompts.append(json.dumps(messages))
        asked = messages[-1]["content"]
        query = next((q for question, q in self.known.items() if question in asked), WRONG)
        reply = {"sparql": query} | ({} if query == WRONG else {"rows": "1"})
        return DummyLM([reply]).forward(prompt, messages, **rest)


@dataclass
class Opened:
    """Stands where an open model does."""

    model: DummyLM
    secrets: tuple[str, ...] = ()
    workers: int = 1
    fingerprint: dict[str, str] = field(default_factory=lambda: {"model": "scripted"})

    def lm(self, **_: Any) -> DummyLM:
        return self.model


@pytest.mark.parametrize("agent", ["direct", "own_module:Counted"])
def test_evaluate_and_a_run_give_the_same_scores(
    agent: str,
    make_pack: Callable[..., Path],
    experiment_on: Callable[..., Experiment],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pack = make_pack(9)
    tasks = load_shacl_tasks(pack)
    model = Scripted({task.query: task.expected_sparql for task in tasks[::2]})

    @contextlib.contextmanager
    def opened(*_: Any, **__: Any) -> Iterator[Opened]:
        yield Opened(model)

    monkeypatch.setattr(runner, "open_lm", opened)
    # Of the replies to a module that wants a number too, those without one cannot be parsed.
    (tmp_path / "own_module.py").write_text(COUNTED, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    arm = {"name": "floor", "agent": agent, "lm": "local"}
    folder = run_experiment(experiment_on(pack, arm), RunFolder(tmp_path / "run"))
    of_run = {record.key.task: float(record.strict) for record in folder.trials()}
    with (
        open_metric(pack) as metric,
        open_program(agent, pack=str(pack)) as program,
        dspy.context(lm=model),
    ):
        found = dspy.Evaluate(devset=to_examples(tasks), metric=metric, num_threads=4)(program)
    of_evaluate = {example.task: score for example, _, score in found.results}
    assert of_evaluate == of_run
    assert set(of_run.values()) == {0.0, 1.0}
    if agent == "direct":
        assert len(set(model.prompts)) == len(tasks), "both asked the same prompts"


def test_a_module_keeps_the_users_adapter(
    make_pack: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own_module.py").write_text(COUNTED, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    model = DummyLM([{"sparql": TREES, "rows": 1}], adapter=dspy.JSONAdapter())
    with (
        open_program("own_module:Counted", pack=str(make_pack(2))) as program,
        dspy.context(lm=model, adapter=dspy.JSONAdapter()),
    ):
        assert program(question="Which plants are trees?").sparql == TREES
        asked = str(model.history[-1]["messages"])
    assert "JSON object" in asked
    assert "[[ ## sparql" not in asked


def test_a_module_that_makes_its_predictors_late_is_not_compiled(
    make_pack: Callable[..., Path],
    experiment_on: Callable[..., Experiment],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "own_module.py").write_text(COUNTED, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    arm = {"name": "a", "agent": "own_module:Late", "lm": "local"}
    compiled = arm | {"compile": {"optimizer": "BootstrapFewShot", "tasks": {"split": "train"}}}
    pack = make_pack(9)
    plan_run(experiment_on(pack, arm))
    with pytest.raises(UsageError) as caught:
        plan_run(experiment_on(pack, compiled))
    assert caught.value.code == "not-compilable"


@pytest.mark.parametrize(("agent", "n"), [("direct", 1), ("react", 2), ("rlm", 2)])
def test_instructions_and_demonstrations_are_saved_and_loaded(
    agent: str, n: int, make_pack: Callable[..., Path], tmp_path: Path
) -> None:
    pack, file = str(make_pack(2)), tmp_path / "program.json"
    turn = {"reasoning": "look", "code": f"```python\nSUBMIT({TREES!r})\n```", "sparql": TREES}
    turn |= {"next_thought": "done", "next_tool_name": "finish", "next_tool_args": "{}"}
    model = DummyLM([turn] * 9)
    with open_program(agent, pack=pack) as program, dspy.context(lm=model):
        assert len(program.predictors()) == n
        assert all("Trees" in one.signature.instructions for one in program.predictors())
        trained = dspy.BootstrapFewShot(metric=lambda *_: True, max_labeled_demos=0)
        compiled = trained.compile(program, trainset=to_examples(load_shacl_tasks(pack))[:1])
        first = compiled.predictors()[0]
        first.signature = first.signature.with_instructions("Answer in the forest.")
        compiled.save(file)
    with open_program(agent, pack=pack) as program, dspy.context(lm=model):
        program.load(file)
        assert program.to_json() == compiled.to_json()
        assert [len(one.demos) for one in compiled.predictors()].count(1) >= 1
        assert program(question="Which plants are trees?").sparql == TREES
        prompt = json.dumps(model.history[-1 if agent != "react" else -2]["messages"])
        assert "Answer in the forest." in prompt
        assert "higher than 0 m" in prompt


def test_agents_without_predictors_to_compile_are_modules_too(
    make_pack: Callable[..., Path],
) -> None:
    model = DummyLM([{"sparql": TREES}] * 5)
    with open_program("rag", pack=str(make_pack(2))) as program, dspy.context(lm=model):
        assert program.predictors() == []
        assert program(question="Which plants are trees?").sparql == TREES


def test_a_program_without_a_model_says_how_to_give_one(make_pack: Callable[..., Path]) -> None:
    with (
        open_program("direct", pack=str(make_pack(1))) as program,
        dspy.context(lm=None),
        pytest.raises(ModelError, match=r"dspy\.configure"),
    ):
        program(question="Which?")
