"""Budgets: each kind ends a trial, and what was done up to there is judged."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from lm.scripted import Reply, chat

from .scenario import Scenario

__all__ = ["BUDGETS", "Ending", "Limit", "ended"]

LOOKS = """\
[[ ## next_thought ## ]]
look

[[ ## next_tool_name ## ]]
sparql_query

[[ ## next_tool_args ## ]]
{{"query": "SELECT ?plant WHERE {{ ?plant t:height ?h . FILTER(?h > {task}) }} # {number}"}}

[[ ## reasoning ## ]]
seen

[[ ## sparql ## ]]
SELECT ?plant WHERE {{ ?plant t:height ?h . FILTER(?h > {task}) }}

[[ ## completed ## ]]"""


@dataclass(frozen=True)
class Limit:
    """A budget, and how the trials must end that use it up.

    Attributes:
        name: Its key in an experiment file.
        value: The limit.
        status: How the trials end.
        said: Regular expression that their error matches, or what a tool said.
        setting: What else there is to the scenario.
    """

    name: str
    value: float
    status: str
    said: str
    setting: Callable[[Scenario], None] = field(default=lambda _: None, repr=False)


@dataclass(frozen=True)
class Ending:
    """How trials ended that used a budget up.

    Attributes:
        exit: Exit status of the run.
        statuses: Their statuses.
        said: What ended them.
        judged: How many were judged.
        strict: How many were right.
        lm_calls: Most calls of the model in one trial.
        tool_calls: Most tool calls in one trial.
    """

    exit: int
    statuses: tuple[str, ...]
    said: str
    judged: int
    strict: int
    lm_calls: int
    tool_calls: int


def slow(scenario: Scenario) -> None:
    """Let the model answer the first question of each task at once, the others late."""
    quick = scenario.model.answer

    def answer(number: int, task: int) -> Reply:
        if scenario.model.calls[task] > 1:
            time.sleep(2)
        return quick(number, task)

    scenario.model.answer = answer


def ended(limit: Limit, scenario: Scenario) -> Ending:
    """Run trials of an agent that would look for ever, under a budget."""
    scenario.experiment(
        agent="react",
        lm="gpt-4o-mini",
        rest=f'[tasks]\nids = ["t001", "t002"]\n[budget]\n{limit.name} = {limit.value}\n',
    )
    scenario.model.answer = lambda number, task: chat(LOOKS.format(number=number, task=task))
    limit.setting(scenario)
    done = scenario.run()
    records = list(scenario.records())
    tools = [
        str(record.trajectory.resolve(event.data.get("error") or ""))
        for record in records
        for event in record.trajectory.of("tool_result")
    ]
    said = {record.error for record in records} - {""} or {line for line in tools if line}
    return Ending(
        done.status,
        tuple(record.status for record in records),
        "; ".join(sorted(said)),
        sum(record.verdict is not None for record in records),
        sum(record.strict for record in records),
        max((record.usage.lm_calls for record in records), default=0),
        max((record.usage.tool_calls for record in records), default=0),
    )


BUDGETS = [
    Limit("iterations", 2, "fallback", ""),
    Limit("lm_calls", 2, "exhausted", r"budget of 2 LM calls"),
    Limit("tool_calls", 1, "fallback", r"budget of 1 tool calls"),
    Limit("tool_calls_each", 1, "fallback", r"budget of 1 calls of sparql_query"),
    Limit("tokens", 20, "exhausted", r"budget of 20 tokens"),
    # Enough for the first answer even where the machine does much else.
    Limit("seconds", 4, "exhausted", r"budget of 4 seconds", slow),
    Limit("dollars", 0.000001, "exhausted", r"budget of 1e-06 dollars"),
]
