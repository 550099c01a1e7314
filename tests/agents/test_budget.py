"""Budgets end what they count and nothing else."""

from __future__ import annotations

import inspect

import pytest

from reasoningbank.agents import Budget, Meter
from reasoningbank.errors import BudgetError, ToolError
from reasoningbank.trajectory import Usage


@pytest.mark.parametrize(
    ("budget", "used", "named"),
    [
        (Budget(lm_calls=2), Usage(lm_calls=1, cached_calls=1), "2 LM calls"),
        (Budget(tokens=100), Usage(prompt_tokens=90, completion_tokens=10), "100 tokens"),
        (Budget(dollars=0.5), Usage(dollars=0.5), "0.5 dollars"),
        (Budget(dollars=0.5), Usage(lm_calls=1), "cannot be kept: a call has no known price"),
    ],
)
def test_a_used_up_budget_ends_the_next_turn(budget: Budget, used: Usage, named: str) -> None:
    with pytest.raises(BudgetError, match=named):
        Meter(budget, lambda: used).turn()


def test_a_budget_not_used_up_ends_nothing() -> None:
    meter = Meter(Budget(lm_calls=2, tokens=100), lambda: Usage(lm_calls=1, prompt_tokens=99))
    meter.turn()
    meter.turn()
    assert meter.usage().iterations == 2


def test_tools_keep_their_signature_and_are_counted_in_all_and_each() -> None:
    def look(ref: str, n: int = 5) -> str:
        """Look."""
        return ref * n

    meter = Meter(Budget(tool_calls=3, tool_calls_each=2))
    tools = meter.metered({"look": look, "find": look})
    assert inspect.signature(tools["look"]) == inspect.signature(look)
    assert tools["look"]("a", n=2) == "aa"
    tools["look"]("a")
    with pytest.raises(ToolError, match="2 calls of look"):
        tools["look"]("a")
    tools["find"]("a")
    with pytest.raises(ToolError, match="3 tool calls is used up"):
        tools["find"]("a")
    assert meter.usage().tool_calls == 3
