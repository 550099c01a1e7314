"""The two bounds: `oracle` submits the gold (ceiling), `direct` asks the model once (floor)."""

from __future__ import annotations

from collections.abc import Sequence

from reasoningbank.agents.calling import ask_query, asking, prefix_names
from reasoningbank.agents.protocol import PROMPTS, Attempt, Episode, conclude
from reasoningbank.corpus import Task
from reasoningbank.errors import BudgetError
from reasoningbank.lm.reply import repaired

_TEXTS = PROMPTS["direct"]


class OracleAgent:
    """Submits the gold query: the test of corpus, endpoint and judge."""

    uses_lm = False
    sees_gold = True

    def solve(self, task: Task, episode: Episode) -> Attempt:
        """Return the task's gold query as the attempt."""
        episode.meter.turn()
        episode.recorder.add("submit", {"sparql": task.expected_sparql})
        usage, trajectory = episode.meter.usage(), episode.recorder.trajectory()
        return Attempt(task.expected_sparql, "", "submitted", usage, trajectory)


class DirectAgent:
    """Asks the model once and submits what it wrote, unexecuted."""

    uses_lm = True
    compiles = True
    sees_gold = False
    uses = ("context", "examples")

    def solve(self, task: Task, episode: Episode) -> Attempt:
        """Answer with one call to the model."""
        try:
            episode.meter.turn()
            sparql = written_query(episode, task.query)
        except BudgetError as error:
            return conclude(episode, None, "exhausted", [error])
        return conclude(episode, sparql, "submitted")


def written_query(
    episode: Episode, question: str, form: str = "", rejected: Sequence[tuple[str, str]] = ()
) -> str | None:
    """Ask the model once for the query that answers a question; None if it wrote none.

    The form is that of the query, if it is known. `rejected` holds the queries that the model has
    already written for the question, each with what is wrong with it.
    """
    turns = [(shown.question, shown.query) for shown in reversed(episode.examples)]
    endpoint = episode.endpoint
    for query, problem in rejected:
        turns.append((question, query))
        question = _TEXTS["again"].format(problem=problem)
    head = _TEXTS["instructions"].format(
        name=endpoint.name or endpoint.url,
        prefixes=prefix_names(endpoint),
        form=_TEXTS[f"form_{form.lower()}".rstrip("_")],
    )
    # The instructions begin with what is the same for all questions.
    instructions = "\n\n".join(filter(None, (head, episode.context)))
    with asking(episode):
        written = ask_query(instructions, turns, question, adopt=episode.adopt)
    return repaired(written) if written else None
