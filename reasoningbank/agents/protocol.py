"""The one protocol of all agents: `agent.solve(task, episode) -> Attempt`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import dspy

from reasoningbank.agents.budget import Budget, Meter
from reasoningbank.corpus import Pack, Task
from reasoningbank.sparql import EndpointConfig
from reasoningbank.trajectory import Recorder, Trajectory, Usage

__all__ = ["Agent", "Attempt", "AttemptStatus", "Episode", "Example"]

#: submitted: the agent gave its query. fallback: its loop ended and a query was extracted.
#: exhausted: a budget ended it. refused: the model gave no query. error: the harness or the
#: infrastructure failed, which is never counted as the agent's failure.
AttemptStatus = Literal["submitted", "fallback", "exhausted", "refused", "error"]


@dataclass(frozen=True)
class Attempt:
    """What an agent made of a task.

    Attributes:
        sparql: The query it answers with; None where it gave none.
        answer: Its answer in words, where it was asked for one.
        status: How the attempt ended.
        usage: What it consumed.
        trajectory: What it did.
        error: One line, where something went wrong.
    """

    sparql: str | None
    answer: str
    status: AttemptStatus
    usage: Usage
    trajectory: Trajectory
    error: str = ""


@dataclass(frozen=True)
class Example:
    """A question and the query that answered it.

    Attributes:
        question: The question, as the agent would be asked it.
        query: The query; the endpoint's own prefixes may be undeclared.
    """

    question: str
    query: str


@dataclass
class Episode:
    """All that one attempt may use.

    Attributes:
        endpoint: The endpoint the task asks about.
        tools: What the agent may call, by name.
        lm: The model, with its temperature and seed; None for agents without one.
        extractor: The same model for the extract step; a local server keeps that step's prompt in
            a slot of its own, so that it does not evict the turns' cached beginning.
        budget: Limits of the attempt.
        recorder: Where events go.
        meter: Counts against the budget.
        context: Memory context (layers L0 to L3) put before the question; may be empty.
        sandbox: Makes the interpreter that the agent's code runs in.
        callbacks: DSPy callbacks active during the attempt.
        demonstrations: Worked examples of turns, from the pack.
        examples: Answered questions, the nearest first, for agents that write a query at once.
        pack: The domain pack, for agents that retrieve from its examples and follow its rules.
        hidden: Ids of the pack's tasks of which no example may be shown.
    """

    endpoint: EndpointConfig
    tools: Mapping[str, Callable[..., Any]]
    lm: dspy.BaseLM | None = None
    extractor: dspy.BaseLM | None = None
    budget: Budget = field(default_factory=Budget)
    recorder: Recorder = field(default_factory=Recorder)
    meter: Meter = field(default_factory=lambda: Meter(Budget()))
    context: str = ""
    sandbox: Callable[[], Any] | None = None
    callbacks: list[Any] = field(default_factory=list)
    demonstrations: tuple[Any, ...] = ()
    examples: tuple[Example, ...] = ()
    pack: Pack | None = None
    hidden: frozenset[str] = frozenset()


class Agent(Protocol):
    """A system that answers a question over an endpoint with a query.

    Attributes:
        name: Name in experiment files and records.
        uses_lm: Whether it needs a model.
        sees_gold: Whether it is handed the gold; true of the oracle alone.
    """

    name: str
    uses_lm: bool
    sees_gold: bool

    def solve(self, task: Task, episode: Episode) -> Attempt:
        """Answer the task's question.

        Raises:
            EndpointError: If the endpoint fails.
            ModelError: If the model cannot be reached.
        """
        ...
