"""Agents by name."""

from __future__ import annotations

from collections.abc import Callable

from reasoningbank.agents.direct import DirectAgent
from reasoningbank.agents.oracle import OracleAgent
from reasoningbank.agents.protocol import Agent
from reasoningbank.agents.react import ReActAgent
from reasoningbank.agents.rlm import RLMAgent
from reasoningbank.errors import UsageError

__all__ = ["AGENTS", "asks_model", "make_agent", "takes_examples"]

AGENTS: dict[str, Callable[[], Agent]] = {
    agent.name: agent for agent in (OracleAgent, DirectAgent, RLMAgent, ReActAgent)
}


def make_agent(name: str) -> Agent:
    """Return a new agent.

    Raises:
        UsageError: If there is no agent of that name.

    Examples:
        >>> make_agent("oracle").sees_gold
        True
        >>> make_agent("orcale")
        Traceback (most recent call last):
        reasoningbank.errors.UsageError: unknown agent 'orcale'; choose oracle, direct, rlm, react
    """
    if name not in AGENTS:
        raise UsageError(f"unknown agent {name!r}", mend=f"choose {', '.join(AGENTS)}")
    return AGENTS[name]()


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
