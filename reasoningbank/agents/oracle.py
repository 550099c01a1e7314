"""The oracle: submits the gold. It must score 1.0 on every task of a sound corpus."""

from __future__ import annotations

from reasoningbank.agents.protocol import Attempt, Episode
from reasoningbank.corpus import Task

__all__ = ["OracleAgent"]


class OracleAgent:
    """Submits the gold query. A ceiling, and the test of corpus, endpoint and judge."""

    name = "oracle"
    uses_lm = False
    sees_gold = True

    def solve(self, task: Task, episode: Episode) -> Attempt:
        """Return the gold of the task as the attempt."""
        episode.meter.turn()
        episode.recorder.add("submit", {"sparql": task.expected_sparql})
        return Attempt(
            sparql=task.expected_sparql,
            answer="",
            status="submitted",
            usage=episode.meter.usage(),
            trajectory=episode.recorder.trajectory(),
        )
