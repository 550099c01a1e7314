"""What the agents with tools are given alike, so that they differ in their loop alone."""

from __future__ import annotations

from typing import Any

import dspy

from reasoningbank.agents.protocol import Episode
from reasoningbank.corpus import Task
from reasoningbank.sparql import EndpointConfig

__all__ = ["inputs_of", "prefix_names", "task_signature"]

#: What the extract step is told the turns were for.
TASK = "Write the SPARQL query that answers the question over the endpoint {name}."


def task_signature(episode: Episode) -> Any:
    """Return the signature: advice where there is some, a question, and the query.

    The advice comes first: its beginning is the same for all questions, and stays in a server's
    prefix cache.
    """
    fields: dict[str, Any] = {}
    if episode.context:
        fields["memory"] = (str, dspy.InputField(desc="advice from earlier tasks"))
    fields["question"] = (str, dspy.InputField())
    fields["sparql"] = (str, dspy.OutputField(desc="the query that answers the question"))
    return dspy.Signature(fields, TASK.format(name=episode.endpoint.source))


def inputs_of(task: Task, episode: Episode) -> dict[str, str]:
    """Return the inputs that `task_signature` asks for."""
    advice = {"memory": episode.context} if episode.context else {}
    return {**advice, "question": task.query}


def prefix_names(endpoint: EndpointConfig) -> str:
    """Return the endpoint's own prefixes as a prompt lists them, always in the same order."""
    return ", ".join(f"{prefix}:" for prefix in sorted(endpoint.prefixes)) or "none"
