"""One prediction from the question to the query: the floor that every agent must beat."""

from __future__ import annotations

import dspy
from dspy.utils.exceptions import AdapterParseError

from reasoningbank.agents.brief import prefix_names
from reasoningbank.agents.calling import asking
from reasoningbank.agents.conclusion import conclude
from reasoningbank.agents.protocol import Attempt, AttemptStatus, Episode
from reasoningbank.agents.reply import query_in
from reasoningbank.corpus import Task
from reasoningbank.errors import BudgetError
from reasoningbank.sparql import EndpointConfig

__all__ = ["DirectAgent"]


class WriteQuery(dspy.Signature):  # type: ignore[misc]
    """Write one SPARQL query that answers the question over the endpoint.

    Write no PREFIX lines: the endpoint's prefixes are declared for you. Begin with SELECT; ASK
    for yes or no. Ask for exactly the columns the question names, no others.
    """

    endpoint: str = dspy.InputField(desc="what is asked, and its prefixes")
    memory: str = dspy.InputField(desc="advice from earlier tasks; may be empty")
    question: str = dspy.InputField()
    sparql: str = dspy.OutputField(desc="the query alone")


def _about(endpoint: EndpointConfig) -> str:
    """Return what the prompt says of the endpoint, always the same.

    Prefixes are named, not written out: a small model copies their lines, or invents them,
    until its tokens run out. The client declares those that a query leaves undeclared.
    """
    name = endpoint.name or endpoint.url
    return f"{name}; prefixes that are declared: {prefix_names(endpoint)}"


class DirectAgent:
    """Asks the model once and submits what it wrote, unexecuted."""

    name = "direct"
    uses_lm = True
    sees_gold = False

    def solve(self, task: Task, episode: Episode) -> Attempt:
        """Answer with one call to the model.

        Raises:
            ModelError: If the model cannot be reached.
        """
        sparql: str | None = None
        error = ""
        status: AttemptStatus = "submitted"
        predict = dspy.Predict(WriteQuery)
        try:
            episode.meter.turn()
            with asking(episode):
                prediction = predict(
                    endpoint=_about(episode.endpoint),
                    memory=episode.context or "none",
                    question=task.query,
                )
            sparql = query_in(prediction.sparql)
        except AdapterParseError as failure:
            # A small model forgets the field's header; its query is in the reply all the same.
            sparql = query_in(failure.lm_response)
        except BudgetError as spent:
            status, error = "exhausted", str(spent)
        if sparql is None and status == "submitted":
            error = "the reply holds no query"
        return conclude(episode, sparql, status, error)
