"""Limits of one trial, and the meter that enforces them.

Budgets that affect verdicts count turns, calls and tokens; the limit in seconds only stops a
trial that hangs. What was done before a limit was reached is kept and judged.
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


class Budget(BaseModel):
    """Limits of one trial; None means no limit.

    Attributes:
        iterations: Turns of the agent's loop.
        lm_calls: Model calls, sub-calls included.
        tool_calls: Tool calls in total.
        tool_calls_each: Calls of any one tool.
        tokens: Tokens sent and generated.
        seconds: Wall-clock time; stops a trial that hangs.
        dollars: Cost by the model's price table.
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
    """Counts what a trial consumes and raises when a budget is used up.

    The error's fields name the budget: `budget` (a field of `Budget`) and `limit`.

    Args:
        budget: The limits.
        usage: Returns what the models have consumed so far.

    Examples:
        >>> meter = Meter(Budget(tool_calls=1))
        >>> look = meter.metered({"look": lambda: "seen"})["look"]
        >>> look()
        'seen'
        >>> try:
        ...     look()
        ... except ToolError as error:
        ...     print(error.code, error.fields["budget"], error.fields["limit"])
        budget tool_calls 1
    """

    def __init__(self, budget: Budget, usage: Callable[[], Usage] = Usage) -> None:
        self.budget = budget
        self._usage = usage
        self._began = time.monotonic()
        self._tools: Counter[str] = Counter()
        self._iterations = 0
        self._lock = threading.Lock()

    def turn(self) -> None:
        """Count one turn that is about to begin.

        Raises:
            BudgetError: If a budget other than `iterations` is used up.
        """
        self.check()
        self._iterations += 1

    def check(self) -> None:
        """Check that the model may be called once more.

        Raises:
            BudgetError: If a budget other than `iterations` is used up.
        """
        usage, budget = self.usage(), self.budget
        if budget.dollars is not None and usage.unpriced:
            raise BudgetError(
                f"the budget of {budget.dollars:g} dollars cannot be enforced: "
                "a call has no known price",
                code="unknown-price",
                budget="dollars",
                limit=budget.dollars,
            )
        spent = {
            "lm_calls": usage.lm_calls + usage.cached_calls,
            "tokens": usage.tokens,
            "seconds": usage.seconds,
            "dollars": usage.dollars or 0.0,
        }
        for name, used in spent.items():
            limit = getattr(budget, name)
            if limit is not None and used >= limit:
                raise used_up(name, limit)

    def metered(self, tools: Mapping[str, Callable[..., Any]]) -> dict[str, Callable[..., Any]]:
        """Return the tools with their calls counted, names and signatures kept."""
        return {name: self._meter(name, tool) for name, tool in tools.items()}

    def usage(self) -> Usage:
        """Return what the trial has consumed so far."""
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
                f"the budget of {every} tool calls is used up",
                hint="submit your best query now",
                code="budget",
                budget="tool_calls",
                limit=every,
            )
        if each is not None and self._tools[name] >= each:
            raise ToolError(
                f"the budget of {each} calls of {name} is used up",
                hint="use another tool or submit your best query",
                code="budget",
                budget="tool_calls_each",
                limit=each,
                tool=name,
            )


def used_up(budget: str, limit: float) -> BudgetError:
    """Return the error of a used-up budget, named as a field of `Budget`."""
    unit = budget.replace("lm_calls", "LM calls").replace("_", " ")
    what = f"the budget of {limit:g} {unit} is used up"
    return BudgetError(what, budget=budget, limit=limit)
