"""Agents by name; the module of an agent is imported when the agent is made."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable
from typing import Any, Literal, cast

from reasoningbank.agents.protocol import Agent
from reasoningbank.errors import UsageError
from reasoningbank.imports import imported, is_import_path

#: Name → ``module:Class``, or what makes the agent.
AGENTS: dict[str, str | Callable[..., Agent]] = {
    "oracle": "reasoningbank.agents.direct:OracleAgent",
    "direct": "reasoningbank.agents.direct:DirectAgent",
    "rag": "reasoningbank.nl2sparql.pipeline:RAGAgent",
    "graph": "reasoningbank.nl2sparql.translator:GraphAgent",
    "rlm": "reasoningbank.agents.loops:RLMAgent",
    "react": "reasoningbank.agents.loops:ReActAgent",
    "algebra": "reasoningbank.agents.algebra:AlgebraAgent",
}


def make_agent(name: str, **options: Any) -> Agent:
    """Return a new agent.

    Args:
        name: Its name, a key of `AGENTS`; or the import path of a `dspy.Module` or an agent.
        **options: Its settings, e.g. those of `RAGAgent` or `GraphSettings`.

    Raises:
        UsageError: If there is no such agent, or it has no such option.

    Examples:
        >>> make_agent("oracle").sees_gold
        True
        >>> make_agent("orcale")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        reasoningbank.errors.UsageError: unknown agent 'orcale'; choose oracle, ...
    """
    if is_import_path(name):
        from reasoningbank.agents.program import own_agent

        return own_agent(name, options)
    if name not in AGENTS:
        hint = f"choose {', '.join(AGENTS)}, or name a class as package.module:Name"
        raise UsageError(f"unknown agent {name!r}", hint=hint, code="unknown-agent")
    make = AGENTS[name]
    if isinstance(make, str):
        make = cast("Callable[..., Agent]", pkgutil.resolve_name(make))
    try:
        return make(**options)
    except TypeError as error:
        if not options:
            raise
        what = f"cannot be made with the options {', '.join(options)}: {error}"
        raise UsageError(what, where=name, code="unknown-option") from error


def check_blind(name: str, where: str = "") -> None:
    """Raise a `UsageError` if an agent answers only with the gold query, or does not exist."""
    if make_agent(name).sees_gold:
        what = f"{name} answers only tasks that have a gold query"
        raise UsageError(what, where=where, hint="choose rag, rlm or react", code="needs-gold")


def uses(agent: Agent, part: Literal["context", "examples", "tools", "sandbox"]) -> bool:
    """Return whether an agent uses a part of its episode, as its attribute `uses` says."""
    return part in getattr(agent, "uses", ("context", "tools"))


def asks_model(name: str) -> bool:
    """Return whether an agent needs a model; an unknown agent does not.

    Examples:
        >>> asks_model("oracle"), asks_model("rlm")
        (False, True)
    """
    if is_import_path(name):
        try:
            return bool(getattr(imported(name), "uses_lm", True))
        except UsageError:
            return True  # a record of another machine
    # Of those that come with the package only the oracle asks none.
    if isinstance(AGENTS.get(name), str):
        return name != "oracle"
    return name in AGENTS and make_agent(name).uses_lm
