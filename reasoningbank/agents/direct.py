"""One prediction from the question to the query: the floor that every agent must beat."""

from __future__ import annotations

from typing import Any

import dspy
from dspy.utils.exceptions import AdapterParseError

from reasoningbank.agents.brief import prefix_names
from reasoningbank.agents.calling import asking
from reasoningbank.agents.conclusion import conclude
from reasoningbank.agents.protocol import Attempt, AttemptStatus, Episode
from reasoningbank.corpus import Task
from reasoningbank.errors import BudgetError
from reasoningbank.lm import PlainAdapter
from reasoningbank.lm.reply import query_in

__all__ = ["DirectAgent", "written_query"]


#: Prefixes are named, not written out: a small model copies their lines, or invents them, until
#: its tokens run out. The client declares those that a query leaves undeclared.
INSTRUCTIONS = """\
Write one SPARQL query that answers the question over the endpoint {name}.
Write no PREFIX lines: these prefixes are declared for you: {prefixes}.
Begin with SELECT; ASK for yes or no. Ask for exactly the columns the question names, no others.
Reply with the query alone."""


def _signature(episode: Episode) -> type[dspy.Signature]:
    """Return the signature: what is known beforehand are instructions, the same part first."""
    endpoint = episode.endpoint
    told = INSTRUCTIONS.format(name=endpoint.name or endpoint.url, prefixes=prefix_names(endpoint))
    fields: dict[str, Any] = {
        "question": (str, dspy.InputField()),
        "sparql": (str, dspy.OutputField(desc="the query alone")),
    }
    signature: type[dspy.Signature] = dspy.Signature(
        fields, "\n\n".join(filter(None, (told, episode.context)))
    )
    return signature


def written_query(episode: Episode, question: str) -> str | None:
    """Ask the model once for the query that answers a question; None where it wrote none.

    Raises:
        BudgetError: The prompt outgrew the model's context, or it did not answer in time.
        ModelError: The model cannot be reached.
    """
    predict = dspy.Predict(_signature(episode))
    predict.demos = [
        dspy.Example(question=shown.question, sparql=shown.query).with_inputs("question")
        for shown in reversed(episode.examples)
    ]
    try:
        with asking(episode, adapter=PlainAdapter()):
            return query_in(predict(question=question).sparql)
    except AdapterParseError:
        # An empty reply: the model was asked, and gave nothing.
        return None


class DirectAgent:
    """Asks the model once and submits what it wrote, unexecuted.

    Answered questions that it is given stand before the question as turns of the conversation,
    the nearest last: a small model does as it sees itself have done.
    """

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
        try:
            episode.meter.turn()
            sparql = written_query(episode, task.query)
        except BudgetError as spent:
            status, error = "exhausted", str(spent)
        if sparql is None and status == "submitted":
            error = "the reply holds no query"
        return conclude(episode, sparql, status, error)
