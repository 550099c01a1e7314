"""The graph as an agent of the harness."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from reasoningbank.agents.calling import asking
from reasoningbank.agents.graph.attempts import attempt_of, best_attempt
from reasoningbank.agents.graph.build import build_graph
from reasoningbank.agents.graph.parts import Parts
from reasoningbank.agents.graph.running import configured, steps_of
from reasoningbank.agents.graph.settings import GraphSettings
from reasoningbank.agents.graph.state import NL2SPARQLState, initial_state
from reasoningbank.agents.protocol import Attempt, AttemptStatus, Episode, conclude
from reasoningbank.corpus import Task
from reasoningbank.errors import BudgetError, UsageError
from reasoningbank.findings import Finding

__all__ = ["GraphAgent"]


class GraphAgent:
    """The self-correcting graph: analyse, plan, retrieve, write, execute, verify, and again.

    A turn is a call of a model, whichever step makes it. Nobody can be asked back.

    Args:
        settings: Which steps are taken.
        **switches: Or one by one, as `GraphSettings` takes them.

    Raises:
        UsageError: The settings want a human.
    """

    name = "graph"
    uses_lm = True
    sees_gold = False

    def __init__(self, settings: GraphSettings | None = None, **switches: Any) -> None:
        self._settings = settings or GraphSettings(**switches)
        if self._settings.human:
            raise UsageError(
                "nobody can be asked back in a trial",
                where="agent graph",
                hint="use NL2SPARQLAgent, or leave human out",
            )

    def solve(self, task: Task, episode: Episode) -> Attempt:
        """Answer with the first query that stands, or the best one of all attempts.

        Raises:
            UsageError: The episode has no pack or no model.
            EndpointError: The endpoint fails.
            ModelError: A model cannot be reached.
        """
        budget = episode.budget
        attempts = min(self._settings.max_attempts, budget.iterations)
        seconds = min(self._settings.timeout_s, episode.endpoint.timeout_s)
        settings = replace(self._settings, max_attempts=attempts, timeout_s=seconds)
        parts = Parts.of(episode, settings)
        state = initial_state(task.query, task.language, advice=episode.context)
        status: AttemptStatus = "submitted"
        try:
            with asking(episode):
                for _, reached in steps_of(build_graph(parts), state, configured(settings)):
                    state = reached
        except BudgetError as spent:
            return conclude(episode, _best(state), "exhausted", [spent])
        sparql = state["final_sparql"] or None
        findings: list[Finding] = []
        if not state["is_valid"]:
            status = "fallback"
            findings = [Finding("invalid", text) for text in state["validation_errors"]]
        return conclude(episode, sparql, status, findings)


def _best(state: NL2SPARQLState) -> str | None:
    best = best_attempt([*state["refinement_history"], attempt_of(state, "output")])
    return best["sparql"] if best is not None else None
