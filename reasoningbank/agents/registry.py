"""Agents by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from reasoningbank.agents.algebra import AlgebraAgent
from reasoningbank.agents.direct import DirectAgent
from reasoningbank.agents.graph.solver import GraphAgent
from reasoningbank.agents.oracle import OracleAgent
from reasoningbank.agents.protocol import Agent
from reasoningbank.agents.rag import RAGAgent
from reasoningbank.agents.react import ReActAgent
from reasoningbank.agents.rlm import RLMAgent
from reasoningbank.errors import UsageError

__all__ = ["AGENTS", "asks_model", "make_agent", "takes_examples"]

AGENTS: dict[str, Callable[..., Agent]] = {
    agent.name: agent
    for agent in (
        OracleAgent,
        DirectAgent,
        RAGAgent,
        GraphAgent,
        RLMAgent,
        ReActAgent,
        AlgebraAgent,
    )
}


def make_agent(name: str, **options: Any) -> Agent:
    """Return a new agent.

    Args:
        name: Its name.
        **options: What it is made with, e.g. `RAGAgent`'s or those of `GraphSettings`.

    Raises:
        UsageError: If there is no agent of that name, or it has no such option.

    Examples:
        >>> make_agent("oracle").sees_gold
        True
        >>> make_agent("orcale")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        reasoningbank.errors.UsageError: unknown agent 'orcale'; choose oracle, ...
    """
    if name not in AGENTS:
        raise UsageError(f"unknown agent {name!r}", hint=f"choose {', '.join(AGENTS)}")
    try:
        return AGENTS[name](**options)
    except TypeError as error:
        if not options:
            raise
        known = ", ".join(options)
        raise UsageError(f"it cannot be made with {known}: {error}", where=name) from error


def asks_model(name: str) -> bool:
    """Tell whether an agent needs a model; one that this version does not know needs none.

    Examples:
        >>> asks_model("oracle"), asks_model("rlm")
        (False, True)
    """
    return name in AGENTS and AGENTS[name]().uses_lm


def takes_examples(name: str) -> bool:
    """Tell whether an agent is shown answered questions as turns of its own, not as text.

    Examples:
        >>> takes_examples("direct"), takes_examples("rlm")
        (True, False)
    """
    return name == DirectAgent.name
