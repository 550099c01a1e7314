"""The two bounds: the oracle gives the gold, the direct agent asks once."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from asked_models import make_lm
from dspy.utils import DummyLM
from dspy.utils.exceptions import LMRateLimitError, LMTimeoutError

from reasoningbank.agents import AGENTS, Episode, FewShotExample, make_agent
from reasoningbank.corpus import Task
from reasoningbank.errors import ModelError

TASK = Task("t1", "Which plants are trees?", "", "https://trees.example/sparql/")
QUERY = "SELECT ?p WHERE { ?p a t:Tree }"


def test_one_call_and_its_query_is_submitted(episode: Callable[..., Episode]) -> None:
    attempt = make_agent("direct").solve(TASK, episode({"sparql": f"```sparql\n{QUERY}\n```"}))
    assert (attempt.sparql, attempt.status, attempt.error) == (QUERY, "submitted", "")
    assert (attempt.usage.lm_calls, attempt.usage.tool_calls, attempt.usage.iterations) == (1, 0, 1)
    assert [event.kind for event in attempt.trajectory.events] == ["lm_call", "submit"]
    assert attempt.trajectory.resolve(attempt.trajectory.events[-1].data)["sparql"] == QUERY


def test_question_prefixes_and_memory_are_in_the_prompt(episode: Callable[..., Episode]) -> None:
    given = episode({"sparql": QUERY}, context="Trees have heights.")
    trajectory = make_agent("direct").solve(TASK, given).trajectory
    prompt = json.dumps(trajectory.resolve(trajectory.of("lm_call")[0].data)["messages"])
    for part in (TASK.query, "prefixes are declared for you: t:", "Trees have heights."):
        assert part in prompt


def test_examples_are_turns_before_the_question_the_nearest_last(
    episode: Callable[..., Episode],
) -> None:
    near, far = (
        FewShotExample("Which trees are tall?", "ASK {}"),
        FewShotExample("Why?", "SELECT * {}"),
    )
    given = episode({"sparql": QUERY}, context="Trees have heights.")
    given.examples = (near, far)
    trajectory = make_agent("direct").solve(TASK, given).trajectory
    system, *turns, asked = trajectory.resolve(trajectory.of("lm_call")[0].data)["messages"]
    assert system["role"] == "system"
    assert "Trees have heights." in system["content"]
    assert [turn["role"] for turn in turns] == ["user", "assistant"] * 2
    for shown, text in zip(
        (far.question, far.query, near.question, near.query), turns, strict=True
    ):
        assert shown in text["content"]
    assert TASK.query in asked["content"]
    assert "not supplied" not in json.dumps(turns).casefold()


def test_a_query_without_its_header_is_found_with_no_second_call(
    episode: Callable[..., Episode],
) -> None:
    attempt = make_agent("direct").solve(TASK, episode({"query": QUERY}))
    assert attempt.sparql is not None
    assert attempt.sparql.startswith(QUERY)
    assert attempt.status == "submitted"
    assert attempt.usage.lm_calls == 1


@pytest.mark.parametrize("reply", [{"sparql": "I do not know."}, {"answer": "No idea"}])
def test_a_reply_without_a_query_is_a_refusal(
    episode: Callable[..., Episode], reply: dict[str, str]
) -> None:
    attempt = make_agent("direct").solve(TASK, episode(reply))
    assert (attempt.sparql, attempt.status) == (None, "refused")
    assert [one.code for one in attempt.findings] == ["no-query"]
    assert not attempt.trajectory.of("submit")


def test_a_model_that_cannot_be_reached_is_not_the_agents_failure(
    episode: Callable[..., Episode],
) -> None:
    lm = make_lm("openai/none", api_base="http://127.0.0.1:9/v1", num_retries=0, timeout_s=5)
    given = episode(lm=lm)
    with pytest.raises(ModelError) as caught:
        make_agent("direct").solve(TASK, given)
    assert "\n" not in str(caught.value)


class Late(DummyLM):  # type: ignore[misc]
    """A scripted model that fails after a while."""

    def __init__(self, failure: Exception) -> None:
        super().__init__([])
        self.failure = failure

    def __call__(self, *args: Any, **options: Any) -> Any:
        time.sleep(0.1)
        raise self.failure


def test_a_refusal_is_not_hanging_however_late_it_comes(episode: Callable[..., Episode]) -> None:
    refused = LMRateLimitError(model="m", message="too many requests")
    with pytest.raises(ModelError, match="rate limit"):
        make_agent("direct").solve(TASK, episode(lm=Late(refused), seconds=0.05))
    silent = LMTimeoutError(model="m", message="no answer")
    attempt = make_agent("direct").solve(TASK, episode(lm=Late(silent), seconds=0.05))
    assert (attempt.status, attempt.budget) == ("exhausted", "seconds")
    assert attempt.error == "the budget of 0.05 seconds is used up"


def test_the_oracle_submits_the_gold_without_a_model(episode: Callable[..., Episode]) -> None:
    gold = replace(TASK, expected_sparql=QUERY)
    attempt = make_agent("oracle").solve(gold, episode())
    assert (attempt.sparql, attempt.status) == (QUERY, "submitted")
    assert (attempt.usage.lm_calls, attempt.usage.tool_calls, attempt.usage.iterations) == (0, 0, 1)
    assert [event.kind for event in attempt.trajectory.events] == ["submit"]


def test_only_the_oracle_sees_the_gold() -> None:
    assert [name for name in AGENTS if make_agent(name).sees_gold] == ["oracle"]
    assert [name for name in AGENTS if not make_agent(name).uses_lm] == ["oracle"]
