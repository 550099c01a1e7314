"""The RLM agent, driven by a scripted model in the real sandbox against a real endpoint."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from dspy.utils import DummyLM

from reasoningbank.agents import Attempt, Episode, make_agent
from reasoningbank.agents.loops import RLMAgent
from reasoningbank.corpus import Task
from reasoningbank.errors import SetupError
from reasoningbank.sparql import EndpointConfig, OxigraphServer
from reasoningbank.trajectory import Event

pytestmark = pytest.mark.sandbox

TASK = Task("t1", "Which plants are trees?", "", "https://trees.example/sparql/")
QUERY = "SELECT ?p WHERE { ?p a t:Tree }"
EMPTY = "SELECT ?p WHERE { ?p a t:Fern }"
RUN = f"ref = sparql_query('{QUERY}')\nprint(sparql_peek(ref, 3))"


def turn(code: str) -> dict[str, str]:
    return {"reasoning": "next", "code": f"```python\n{code}\n```"}


def solve(episode: Episode) -> Attempt:
    return make_agent("rlm").solve(TASK, episode)


def outputs(attempt: Attempt) -> list[str]:
    resolve = attempt.trajectory.resolve
    return [resolve(event.data)["output"] for event in attempt.trajectory.of("code")]


def prompts(attempt: Attempt) -> list[str]:
    resolve = attempt.trajectory.resolve
    calls = attempt.trajectory.of("lm_call")
    return [str(resolve(event.data)["messages"]) for event in calls]


def test_it_looks_runs_and_submits(episode: Callable[..., Episode]) -> None:
    attempt = solve(episode(turn(RUN), turn(f"SUBMIT('{QUERY}')")))
    assert (attempt.sparql, attempt.status, attempt.error) == (QUERY, "submitted", "")
    assert "'t:oak'" in outputs(attempt)[0]
    usage = attempt.usage
    assert (usage.lm_calls, usage.tool_calls, usage.iterations) == (2, 2, 2)


def test_what_it_printed_is_in_the_next_prompt(episode: Callable[..., Episode]) -> None:
    attempt = solve(episode(turn("print('se' + 'en')"), turn(f"SUBMIT('{QUERY}')")))
    assert "seen" not in prompts(attempt)[0]
    assert "seen" in prompts(attempt)[1]


def test_the_trajectory_is_typed_ordered_and_nested(episode: Callable[..., Episode]) -> None:
    attempt = solve(episode(turn(RUN), turn(f"SUBMIT('{QUERY}')")))
    events = attempt.trajectory.events
    assert [event.index for event in events] == list(range(len(events)))
    called = ["tool_call", "tool_result"] * 2
    expected = ["lm_call", "code", *called, "lm_call", "code", "submit"]
    assert [event.kind for event in events] == expected
    code, call, result = events[1], events[2], events[3]
    assert (call.parent, result.parent) == (code.index, call.index)
    assert events[4].parent == code.index
    assert call.data["tool"] == "sparql_query"
    assert call.data["arguments"]["query"] == QUERY
    assert result.data["result"] == "Ref('results_0', 'results', 3 items from Trees)"
    assert {"p": "t:oak"} in events[5].data["result"]
    assert attempt.trajectory.resolve(code.data)["code"] == RUN
    ended: Callable[[Event], float] = lambda event: event.at + event.seconds  # noqa: E731
    assert code.at <= call.at <= ended(result) <= ended(code) + 0.01


def test_the_end_of_the_iterations_extracts_an_answer(episode: Callable[..., Episode]) -> None:
    given = episode(turn("print(1)"), turn("print(2)"), {"sparql": QUERY}, iterations=2)
    attempt = solve(given)
    assert (attempt.sparql, attempt.status) == (QUERY, "fallback")
    assert attempt.usage.iterations == 2
    assert attempt.usage.lm_calls == 3


def test_a_repeated_turn_gets_a_hint_and_a_second_one_ends_the_loop(
    episode: Callable[..., Episode],
) -> None:
    repeated = RUN.replace("\n", "\n\n")
    # Its query had rows, so that no model is asked to extract it.
    script = (turn(RUN), turn(repeated), turn(RUN), {"sparql": f"{QUERY} LIMIT 1"})
    attempt = solve(episode(*script, iterations=6))
    assert (attempt.sparql, attempt.status) == (QUERY, "fallback")
    assert attempt.usage.lm_calls == 3
    assert attempt.usage.iterations == 3
    assert [one.code for one in attempt.findings] == ["repeated"]
    assert [text.startswith("[Repeated]") for text in outputs(attempt)] == [False, True, True]
    assert len(attempt.trajectory.of("tool_call")) == 2


def test_an_agent_that_heeds_the_hint_goes_on(episode: Callable[..., Episode]) -> None:
    attempt = solve(episode(turn(RUN), turn(RUN), turn(f"SUBMIT('{QUERY}')")))
    assert (attempt.sparql, attempt.status, attempt.error) == (QUERY, "submitted", "")


def test_an_unparsable_reply_is_a_failed_turn(episode: Callable[..., Episode]) -> None:
    attempt = solve(episode({"answer": "SELECT nothing"}, turn(f"SUBMIT('{QUERY}')")))
    assert (attempt.sparql, attempt.status) == (QUERY, "submitted")
    assert attempt.usage.iterations == 2
    errors = attempt.trajectory.of("error")
    assert [event.data["error"] for event in errors] == ["the reply could not be parsed"]
    assert "contains no code" in prompts(attempt)[1]


def test_failing_code_is_text_and_the_trial_goes_on(episode: Callable[..., Episode]) -> None:
    failing = turn("print('seen')\nx = 1/0")
    attempt = solve(episode(failing, turn("if:"), turn(f"SUBMIT('{QUERY}')")))
    assert attempt.status == "submitted"
    error = "[Error] ZeroDivisionError: division by zero\n  line 2: x = 1/0"
    assert outputs(attempt)[0] == f"{error}\nPrinted before the error:\nseen\n"
    assert outputs(attempt)[0].replace("\n", "\\n") in prompts(attempt)[1]
    assert outputs(attempt)[1].startswith("[Error]")


def test_code_that_is_not_python_is_reported_with_where_and_why(
    episode: Callable[..., Episode],
) -> None:
    given = episode(turn("n = 1\nprint(n"), turn("if n:\n    x = = 2"), turn(f"SUBMIT('{QUERY}')"))
    first, second, _ = outputs(solve(given))
    assert first == "[Error] SyntaxError: '(' was never closed\n  line 2: print(n"
    assert second == "[Error] SyntaxError: invalid syntax\n  line 2: x = = 2"


class Cut(DummyLM):  # type: ignore[misc]
    """A scripted model whose replies end at the longest that is allowed."""

    def __init__(self, replies: list[dict[str, str]]) -> None:
        super().__init__(replies)
        whole = self._engine_spec._complete_messages
        self._engine_spec._complete_messages = lambda messages: replace(
            whole(messages), finish_reason="length"
        )


def test_code_that_was_cut_off_says_so_where_it_fails(episode: Callable[..., Episode]) -> None:
    replies = [turn('query = """SELECT'), {"answer": "SELECT"}, turn("print('whole')")]
    attempt = solve(episode(lm=Cut([*replies, turn(f"SUBMIT('{QUERY}')")])))
    cut, whole, _ = outputs(attempt)
    assert "unterminated triple-quoted string literal" in cut
    assert cut.endswith("before its code ended: write less.")
    assert "contains no code" in prompts(attempt)[2]
    assert prompts(attempt)[2].count("write less") == 2
    assert whole == "whole\n"


def test_a_tool_error_is_text_and_the_trial_goes_on(episode: Callable[..., Episode]) -> None:
    attempt = solve(episode(turn("sparql_query('SELECT ?x WHERE {')"), turn(f"SUBMIT('{QUERY}')")))
    assert (attempt.sparql, attempt.status) == (QUERY, "submitted")
    assert "ToolError" in outputs(attempt)[0]
    assert "add the '}'" in outputs(attempt)[0]
    failed = attempt.trajectory.of("tool_result")[0]
    assert failed.data["error"].startswith("ToolError: line 1, column")
    assert "infrastructure" not in failed.data


def test_the_lm_call_budget_ends_it_and_what_was_done_is_kept(
    episode: Callable[..., Episode],
) -> None:
    empty = f"print(sparql_query('{EMPTY}'))"
    attempt = solve(episode(turn(RUN), turn(empty), turn("print(3)"), lm_calls=2))
    assert (attempt.sparql, attempt.status) == (QUERY, "exhausted")
    assert attempt.budget == "lm_calls"
    assert attempt.usage.lm_calls == 2
    assert attempt.trajectory.of("submit")[0].data["sparql"] == QUERY


def test_the_extract_step_is_a_call_within_the_budget_too(episode: Callable[..., Episode]) -> None:
    given = episode(turn(RUN), turn("print(2)"), {"sparql": QUERY}, iterations=2, lm_calls=2)
    attempt = solve(given)
    assert (attempt.sparql, attempt.status, attempt.usage.lm_calls) == (QUERY, "exhausted", 2)


def test_code_that_is_indented_anew_is_run(episode: Callable[..., Episode]) -> None:
    flat, fixed = "for n in [7]:\nprint(n)", "for n in [7]:\n    print(n)"
    attempt = solve(episode(turn(flat), turn(fixed), turn(f"SUBMIT('{QUERY}')")))
    assert "ndent" in outputs(attempt)[0]
    assert outputs(attempt)[1].strip() == "7"


def test_code_that_a_dead_endpoint_failed_may_come_again(
    episode: Callable[..., Episode], trees: EndpointConfig
) -> None:
    with OxigraphServer([]) as server:
        gone = replace(trees, query_url=server.url, retries=0)
    attempt = solve(episode(turn(RUN), turn(RUN), turn("SUBMIT('nothing')"), endpoint=gone))
    assert ["no connection" in one for one in outputs(attempt)[:2]] == [True, True]


def test_an_exhausted_budget_with_nothing_done_submits_nothing(
    episode: Callable[..., Episode],
) -> None:
    attempt = solve(episode(turn("print(1)"), turn("print(2)"), lm_calls=1))
    assert (attempt.sparql, attempt.status) == (None, "exhausted")
    assert not attempt.trajectory.of("submit")


def test_the_tool_budget_is_shown_to_the_agent(episode: Callable[..., Episode]) -> None:
    attempt = solve(episode(turn(RUN), turn(f"SUBMIT('{QUERY}')"), tool_calls=1))
    assert attempt.status == "submitted"
    assert "1 tool calls is used up; submit your best query now" in outputs(attempt)[0]
    assert attempt.usage.tool_calls == 1


def test_submitting_no_query_falls_back_to_the_last_with_rows(
    episode: Callable[..., Episode],
) -> None:
    attempt = solve(episode(turn(RUN), turn("SUBMIT('three of them')")))
    assert (attempt.sparql, attempt.status) == (QUERY, "fallback")


def test_no_query_at_all_is_a_refusal(episode: Callable[..., Episode]) -> None:
    attempt = solve(episode(turn("SUBMIT('I do not know')")))
    assert (attempt.sparql, attempt.status) == (None, "refused")
    assert attempt.error


def test_an_extract_step_that_cannot_be_parsed_is_searched_for_a_query(
    episode: Callable[..., Episode],
) -> None:
    attempt = solve(episode(turn("print(1)"), {"answer": QUERY}, iterations=1))
    assert attempt.status == "fallback"
    assert attempt.sparql is not None
    assert attempt.sparql.startswith(QUERY)


def test_memory_is_an_input_and_in_the_prompt(episode: Callable[..., Episode]) -> None:
    given = episode(
        turn("print(memory.upper())"), turn(f"SUBMIT('{QUERY}')"), context="look at heights"
    )
    attempt = solve(given)
    assert outputs(attempt)[0] == "LOOK AT HEIGHTS\n"
    assert "look at heights" in prompts(attempt)[0]


def test_memory_is_shown_whole_and_before_the_question(episode: Callable[..., Episode]) -> None:
    memory = "\n".join(f"Item {number}: look at this." for number in range(200))
    attempt = solve(episode(turn(f"SUBMIT('{QUERY}')"), context=memory))
    (event,) = attempt.trajectory.of("lm_call")
    asked = attempt.trajectory.resolve(event.data)["messages"][-1]["content"]
    assert all(f"Item {number}:" in asked for number in range(200))
    assert asked.index("Item 0:") < asked.index(TASK.query)


def test_sub_calls_are_refused_where_none_are_allowed(episode: Callable[..., Episode]) -> None:
    attempt = solve(episode(turn("print(llm_query('help'))"), turn(f"SUBMIT('{QUERY}')")))
    assert attempt.usage.lm_calls == 2
    assert "[Error]" in outputs(attempt)[0]


def test_long_output_is_cut_for_the_model_and_kept_whole(
    episode: Callable[..., Episode],
) -> None:
    given = episode(turn("print('y' * 5000)"), turn(f"SUBMIT('{QUERY}')"))
    attempt = RLMAgent(max_output_chars=200).solve(TASK, given)
    assert outputs(attempt)[0].count("y") == 5000
    assert prompts(attempt)[1].count("y" * 100) <= 2


def test_a_dead_endpoint_is_marked_as_infrastructure(
    episode: Callable[..., Episode], trees: EndpointConfig
) -> None:
    with OxigraphServer([]) as server:
        gone = replace(trees, query_url=server.url)
    attempt = solve(episode(turn(RUN), turn("SUBMIT('nothing')"), endpoint=gone))
    assert attempt.sparql is None
    failed = attempt.trajectory.of("tool_result")[0]
    assert failed.data["infrastructure"] is True
    assert "no connection" in outputs(attempt)[0]


def test_a_sandbox_that_cannot_start_ends_the_run_with_one_line(
    episode: Callable[..., Episode],
) -> None:
    def none() -> Any:
        raise SetupError("Deno is not installed", hint="pip install 'reasoningbank[sandbox]'")

    given = episode(turn(RUN))
    given.sandbox = none
    with pytest.raises(SetupError, match="Deno is not installed"):
        solve(given)
