"""What one trial is given of memory, as plain data: agents know nothing of banks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from reasoningbank.agents import Demonstration, Example
from reasoningbank.trajectory import Recorder

__all__ = ["NOTHING", "Recall"]


@dataclass(frozen=True)
class Recall:
    """What one trial is given of memory.

    Attributes:
        snapshot: Hash of the bank that the agent can see; empty without one.
        context: What is put before the question: layers and retrieved items.
        demonstrations: Worked turns of retrieved items.
        examples: Answered questions of retrieved items, for agents that take these.
        question: The task's question with the resources that it names; empty where not linked.
        tools: Makes the tools that search the bank, which tell a recorder what they show; None
            where the agent has none.
        event: What was retrieved for the context, as a `memory_retrieved` event holds it.
        seconds: How long that took.
    """

    snapshot: str = ""
    context: str = ""
    demonstrations: tuple[Demonstration, ...] = ()
    examples: tuple[Example, ...] = ()
    question: str = ""
    tools: Callable[[Recorder], Mapping[str, Callable[..., Any]]] | None = None
    event: Mapping[str, Any] | None = None
    seconds: float = 0.0


NOTHING = Recall()
