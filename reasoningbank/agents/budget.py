"""What a trial may consume, and the meter that ends it.

Budgets that decide verdicts are counted in turns, calls and tokens; seconds only guard
against hanging. What was done up to the limit is kept and judged.
"""

from __future__ import annotations

import functools
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from reasoningbank.errors import BudgetError, ToolError
from reasoningbank.trajectory import Usage

__all__ = ["Budget", "Meter"]


class Budget(BaseModel):
    """Limits of one trial; None means no limit.

    Attributes:
        iterations: Turns of the agent's loop.
        lm_calls: Calls to a model, sub-calls included.
        tool_calls: Tool calls in all.
        tool_calls_each: Calls of any one tool.
        tokens: Tokens sent and generated.
        seconds: Wall time; a guard against hanging.
        dollars: Price by the model's price table.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    iterations: int = Field(default=6, ge=1, le=100)
    lm_calls: int | None = Field(default=12, ge=1)
    tool_calls: int | None = Field(default=40, ge=0)
    tool_calls_each: int | None = Field(default=None, ge=0)
    tokens: int | None = Field(default=None, ge=1)
    seconds: float | None = Field(default=600.0, gt=0)
    dollars: float | None = Field(default=None, gt=0)


class Meter:
    """Counts what a trial consumes and says when a budget is used up.

    Args:
        budget: The limits.
        usage: Returns what the models consumed so far.

    Examples:
        >>> meter = Meter(Budget(tool_calls=1))
        >>> look = meter.metered({"look": lambda: "seen"})["look"]
        >>> look()
        'seen'
        >>> look()  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        reasoningbank.errors.ToolError: the budget of 1 tool calls is used up; ...
    """

    def __init__(self, budget: Budget, usage: Callable[[], Usage] = Usage) -> None:
        self.budget = budget
        self._usage = usage
        self._began = time.monotonic()
        self._tools: Counter[str] = Counter()
        self._iterations = 0
        self._lock = threading.Lock()

    def turn(self) -> None:
        """Count one turn about to begin.

        Raises:
            BudgetError: If a budget other than the turns' is used up.
        """
        self.check()
        self._iterations += 1

    def check(self) -> None:
        """Tell whether a model may be asked once more.

        Raises:
            BudgetError: If a budget other than the turns' is used up.
        """
        usage, budget = self.usage(), self.budget
        spent: list[tuple[str, float, float | None]] = [
            ("LM calls", usage.lm_calls + usage.cached_calls, budget.lm_calls),
            ("tokens", usage.tokens, budget.tokens),
            ("seconds", usage.seconds, budget.seconds),
            ("dollars", usage.dollars or 0.0, budget.dollars),
        ]
        if budget.dollars is not None and usage.unpriced:
            what = f"of {budget.dollars:g} dollars cannot be kept: a call has no known price"
            raise BudgetError(f"the budget {what}")
        for name, used, limit in spent:
            if limit is not None and used >= limit:
                raise BudgetError(f"the budget of {limit:g} {name} is used up")

    def metered(self, tools: Mapping[str, Callable[..., Any]]) -> dict[str, Callable[..., Any]]:
        """Return the tools, each counted against the budget, with names and signatures kept."""
        return {name: self._meter(name, tool) for name, tool in tools.items()}

    def usage(self) -> Usage:
        """Return what the trial consumed so far."""
        return replace(
            self._usage(),
            tool_calls=self._tools.total(),
            iterations=self._iterations,
            seconds=round(time.monotonic() - self._began, 3),
        )

    def _meter(self, name: str, tool: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(tool)
        def call(*args: Any, **kwargs: Any) -> Any:
            with self._lock:
                self._check_tool(name)
                self._tools[name] += 1
            return tool(*args, **kwargs)

        return call

    def _check_tool(self, name: str) -> None:
        every, each = self.budget.tool_calls, self.budget.tool_calls_each
        if every is not None and self._tools.total() >= every:
            raise ToolError(
                f"the budget of {every} tool calls is used up", hint="submit your best query now"
            )
        if each is not None and self._tools[name] >= each:
            raise ToolError(
                f"the budget of {each} calls of {name} is used up",
                hint="use another tool or submit your best query",
            )
