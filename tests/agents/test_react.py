"""The ReAct agent, driven by a scripted model against a real endpoint."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from asked_models import make_lm
from dspy.utils import DummyLM
from dspy.utils.exceptions import ContextWindowExceededError
from lm.scripted import chat, said, scripted

from reasoningbank.agents import Attempt, Demonstration, Episode, ToolCall, make_agent
from reasoningbank.corpus import Task
from reasoningbank.sparql import EndpointConfig, OxigraphServer

TASK = Task("t1", "Which plants are trees?", "", "https://trees.example/sparql/")
QUERY = "SELECT ?p WHERE { ?p a t:Tree }"
EMPTY = "SELECT ?p WHERE { ?p a t:Fern }"
EXTRACTED = {"reasoning": "seen", "sparql": QUERY}


def call(tool: str, **arguments: object) -> dict[str, str]:
    return {
        "next_thought": "next",
        "next_tool_name": tool,
        "next_tool_args": json.dumps(arguments),
    }


FINISH = call("finish")
RUN = call("sparql_query", query=QUERY)


def solve(episode: Episode) -> Attempt:
    return make_agent("react").solve(TASK, episode)


def prompts(attempt: Attempt) -> list[str]:
    resolve = attempt.trajectory.resolve
    calls = attempt.trajectory.of("lm_call")
    return [
        "\n".join(str(message["content"]) for message in resolve(event.data)["messages"])
        for event in calls
    ]


def test_it_calls_finishes_and_the_query_is_extracted(episode: Callable[..., Episode]) -> None:
    script = (RUN, call("sparql_peek", ref="results_0", n=3), FINISH, EXTRACTED)
    attempt = solve(episode(*script))
    assert (attempt.sparql, attempt.status, attempt.error) == (QUERY, "submitted", "")
    usage = attempt.usage
    assert (usage.lm_calls, usage.tool_calls, usage.iterations) == (4, 2, 3)
    kinds = [event.kind for event in attempt.trajectory.events]
    called = ["lm_call", "tool_call", "tool_result"]
    assert kinds == [*called, *called, "lm_call", "lm_call", "submit"]
    assert attempt.trajectory.of("tool_call")[0].data["arguments"]["query"] == QUERY


def test_a_handle_and_rows_are_shown_as_in_the_sandbox(episode: Callable[..., Episode]) -> None:
    peek = call("sparql_peek", ref="results_0", n=1)
    attempt = solve(episode(RUN, peek, FINISH, EXTRACTED))
    last = prompts(attempt)[-1]
    assert "Ref('results_0', 'results', 3 items from Trees)" in last
    assert "2 more rows: sparql_slice(" in last
    assert attempt.trajectory.of("tool_result")[1].data["note"] in last


def test_a_query_that_the_model_only_thinks_of_is_not_an_answer(
    episode: Callable[..., Episode],
) -> None:
    end = "[[ ## next_thought ## ]]\nx\n[[ ## next_tool_name ## ]]\nfinish\n"
    thought = said(None, reasoning_content=f"Perhaps: {QUERY}")
    with scripted(chat(f"{end}[[ ## next_tool_args ## ]]\n{{}}"), thought) as server:
        lm = make_lm("openai/x", api_base=server.base)
        attempt = solve(replace(episode(FINISH), lm=lm))
    assert attempt.sparql is None
    assert QUERY in attempt.trajectory.of("lm_call")[-1].data["reasoning"]


def test_the_end_of_the_turns_is_a_fallback(episode: Callable[..., Episode]) -> None:
    attempt = solve(episode(RUN, EXTRACTED, iterations=1))
    assert (attempt.sparql, attempt.status) == (QUERY, "fallback")
    assert (attempt.usage.iterations, attempt.usage.lm_calls) == (1, 2)


def test_a_repeated_call_gets_a_hint_and_a_second_one_ends_the_loop(
    episode: Callable[..., Episode],
) -> None:
    attempt = solve(episode(RUN, RUN, RUN, EXTRACTED, iterations=6))
    assert (attempt.sparql, attempt.status) == (QUERY, "fallback")
    assert attempt.usage.iterations == 3
    assert [one.code for one in attempt.findings] == ["repeated"]
    assert len(attempt.trajectory.of("tool_call")) == 1
    assert "You already made this call" in prompts(attempt)[2]


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (call("sparql_query", query="SELEC"), "[Error] line 1, column 1"),
        (call("sparql_query", sparql=QUERY), "Arg sparql is not in the tool"),
        (call("sparql_query"), "query"),
        (call("sparql_peek", ref="results_9"), "unknown handle 'results_9'"),
        ({"answer": "I would look first"}, "The reply names no tool"),
        (call("no_such_tool"), "The reply names no tool"),
    ],
)
def test_what_goes_wrong_in_a_turn_is_reported_in_one_line(
    episode: Callable[..., Episode], reply: dict[str, str], said: str
) -> None:
    attempt = solve(episode(reply, RUN, FINISH, EXTRACTED))
    assert (attempt.sparql, attempt.status) == (QUERY, "submitted")
    assert said in prompts(attempt)[1]
    assert "Traceback" not in prompts(attempt)[1]


def test_without_an_extracted_query_the_last_with_rows_stands_in(
    episode: Callable[..., Episode],
) -> None:
    nothing = {"reasoning": "hm", "sparql": "I do not know"}
    empty = call("sparql_query", query=EMPTY)
    attempt = solve(episode(RUN, empty, FINISH, nothing))
    assert (attempt.sparql, attempt.status) == (QUERY, "fallback")
    refused = solve(episode(empty, FINISH, nothing))
    assert (refused.sparql, refused.status) == (None, "refused")


def test_a_budget_ends_it_and_what_was_done_is_kept(episode: Callable[..., Episode]) -> None:
    attempt = solve(episode(RUN, call("sparql_classes"), lm_calls=1))
    assert (attempt.sparql, attempt.status) == (QUERY, "exhausted")
    assert attempt.budget == "lm_calls"


def test_the_last_answer_is_a_call_within_the_budget_too(episode: Callable[..., Episode]) -> None:
    attempt = solve(episode(RUN, FINISH, EXTRACTED, lm_calls=2))
    assert (attempt.sparql, attempt.status, attempt.usage.lm_calls) == (QUERY, "exhausted", 2)


class Narrow(DummyLM):  # type: ignore[misc]
    """A scripted model with a context of so many characters."""

    def __call__(self, *args: Any, **options: Any) -> Any:
        if len(str(options["messages"])) > 7_000:
            raise ContextWindowExceededError(
                model="narrow", message="it exceeds the available context"
            )
        return super().__call__(*args, **options)


def test_a_prompt_that_no_longer_fits_ends_it_with_no_call_left_out(
    episode: Callable[..., Episode],
) -> None:
    long = [call("sparql_query", query=QUERY + " " * 1_500 * n) for n in range(1, 6)]
    attempt = solve(episode(lm=Narrow([RUN, *long, FINISH, EXTRACTED])))
    assert attempt.status == "exhausted"
    assert attempt.budget == "context_window"
    assert len(prompts(attempt)) > 2
    assert all("observation_0" in one for one in prompts(attempt)[1:])


def test_the_tool_budget_is_shown(episode: Callable[..., Episode]) -> None:
    peek = call("sparql_peek", ref="results_0")
    attempt = solve(episode(RUN, peek, FINISH, EXTRACTED, tool_calls=1))
    assert "budget of 1 tool calls" in prompts(attempt)[2]


def test_memory_and_demonstrations_are_in_the_prompt(episode: Callable[..., Episode]) -> None:
    shown = Demonstration(
        question="Which are shrubs?",
        turns=(),
        calls=(
            ToolCall(thought="look", tool="sparql_classes", observation="t:Shrub"),
            ToolCall(thought="done", tool="finish", observation="Completed."),
        ),
    )
    given = replace(episode(FINISH, EXTRACTED, context="Be brief."), demonstrations=(shown,))
    prompt = prompts(solve(given))[0]
    for part in ("Which are shrubs?", "t:Shrub", "Be brief.", "sparql_find(pattern, limit=20)"):
        assert part in prompt


def test_an_endpoint_that_went_away_is_marked(
    episode: Callable[..., Episode], trees: EndpointConfig
) -> None:
    with OxigraphServer([]) as server:
        gone = replace(trees, query_url=server.url, retries=0)
    attempt = solve(episode(RUN, FINISH, {"reasoning": "", "sparql": "none"}, endpoint=gone))
    result = attempt.trajectory.of("tool_result")[0].data
    assert result["infrastructure"] is True, result
