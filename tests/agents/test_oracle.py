"""The oracle hands in the gold, and no other agent is ever given it."""

from __future__ import annotations

from collections.abc import Callable

from reasoningbank.agents import AGENTS, Episode, make_agent
from reasoningbank.corpus import Task

TASK = Task("t1", "Which plants?", "SELECT ?p WHERE { ?p a t:Tree }", "https://trees.example/")


def test_it_submits_the_gold_without_a_model(episode: Callable[..., Episode]) -> None:
    attempt = make_agent("oracle").solve(TASK, episode())
    assert (attempt.sparql, attempt.status) == (TASK.expected_sparql, "submitted")
    assert (attempt.usage.lm_calls, attempt.usage.tool_calls, attempt.usage.iterations) == (0, 0, 1)
    assert [event.kind for event in attempt.trajectory.events] == ["submit"]


def test_it_alone_sees_the_gold() -> None:
    assert [name for name, make in AGENTS.items() if make().sees_gold] == ["oracle"]
    assert [name for name, make in AGENTS.items() if not make().uses_lm] == ["oracle"]
