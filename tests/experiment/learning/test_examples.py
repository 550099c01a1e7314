"""Answered questions as turns, and linked questions: what the model is really sent."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from lm.scripted import Asked, chat, scripted

from reasoningbank.errors import UsageError
from reasoningbank.experiment import Experiment, RunFolder, plan_run

Make = Callable[..., Experiment]
Run = Callable[..., RunFolder]


def asked_of(
    make: Make, run: Run, monkeypatch: pytest.MonkeyPatch, **arm: Any
) -> tuple[RunFolder, list[Asked]]:
    """Run the direct agent, whose model is scripted, on one held-out task."""
    with scripted(chat("[[ ## sparql ## ]]\nASK {}\n\n[[ ## completed ## ]]")) as model:
        monkeypatch.setenv("OPENAI_API_BASE", model.base)
        monkeypatch.setenv("OPENAI_API_KEY", "replayed")
        direct = {"name": "shown", "agent": "direct", "lm": "openai/replay", **arm}
        experiment = make(direct, mode="evaluate", tasks={"ids": ["t001"]}, learning={})
        return run(experiment), model.asked


@pytest.fixture
def named(pack: Path) -> None:
    file = pack / "examples" / "tasks.ttl"
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace("Which plants", "Beside the oak, which plants"), encoding="utf-8")


@pytest.mark.usefixtures("named")
@pytest.mark.parametrize("linking", [False, True])
def test_few_shot_examples_are_turns_whose_questions_are_linked_like_the_tasks(
    learning: Make, run: Run, monkeypatch: pytest.MonkeyPatch, linking: bool
) -> None:
    folder, (asked,) = asked_of(
        learning, run, monkeypatch, memory={"source": "gold", "items": 2}, linking=linking
    )
    system, *turns, last = asked.body["messages"]
    (record,) = folder.trials()
    (event,) = record.trajectory.of("memory_retrieved")
    shown = record.trajectory.resolve(event.data)["items"]
    assert len(turns) == 2 * len(shown) == 4
    assert [turn["role"] for turn in turns] == ["user", "assistant"] * 2
    # The nearest stands next to the question.
    for item, question, query in zip(reversed(shown), turns[::2], turns[1::2], strict=True):
        assert ("Beside the oak (t:oak), which" in question["content"]) is linking
        # What is recorded, and counted, is what was shown.
        assert item["text"] == f"Question: {question['content']}\nQuery:\n{query['content']}"
        assert ("question" in item) is linking
        assert item["text"].split("Query:\n")[1] in query["content"]
        assert item["text"].split("Query:\n")[1] not in system["content"]
    assert ("the oak (t:oak), which plants are higher than 1 m" in last["content"]) is linking
    # The record keeps the task's own question.
    assert record.question == "Beside the oak, which plants are higher than 1 m?"


@pytest.mark.usefixtures("named")
def test_linking_needs_no_memory(learning: Make, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    _, (asked,) = asked_of(learning, run, monkeypatch, linking=True)
    assert "(t:oak)" in asked.body["messages"][-1]["content"]
    assert len(asked.body["messages"]) == 2


OWN = """
import dspy

class Shown(dspy.Module):
    def forward(self, question, examples):
        return dspy.Prediction(sparql=examples[-1].query)

class Alone(dspy.Module):
    def forward(self, question):
        return dspy.Prediction(sparql="ASK {}")
"""


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "shown_parts.py").write_text(OWN, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)


@pytest.mark.usefixtures("own")
def test_a_users_module_is_given_the_few_shot_examples_that_it_names(
    learning: Make, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = {"source": "gold", "items": 2}
    folder, _ = asked_of(learning, run, monkeypatch, agent="shown_parts:Shown", memory=memory)
    (record,) = folder.trials()
    (event,) = record.trajectory.of("memory_retrieved")
    shown = record.trajectory.resolve(event.data)["items"]
    assert record.sparql in [item["text"].split("Query:\n")[1].strip() for item in shown]


@pytest.mark.usefixtures("own")
@pytest.mark.parametrize(
    ("arm", "code"),
    [
        ({"agent": "shown_parts:Alone", "memory": "gold"}, "memory-not-shown"),
        ({"agent": "shown_parts:Alone", "layers": ["L1"]}, "memory-not-shown"),
        ({"memory": {"source": "gold", "show": "tools"}}, "agent-without-tools"),
        ({"agent": "algebra", "memory": {"source": "gold", "show": "both"}}, "agent-without-tools"),
        ({"memory": {"source": "gold", "demonstrations": True}}, "demonstrations-need-rlm"),
    ],
)
def test_an_arm_whose_agent_cannot_use_its_memory_is_refused(
    learning: Make, arm: dict[str, Any], code: str
) -> None:
    experiment = learning({"name": "a", "agent": "direct", **arm}, mode="evaluate", learning={})
    with pytest.raises(UsageError) as caught:
        plan_run(experiment)
    assert (caught.value.code, caught.value.where) == (code, "arm a")
