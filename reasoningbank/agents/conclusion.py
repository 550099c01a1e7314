"""How an attempt ends: what was done up to the limit is kept and judged."""

from __future__ import annotations

from reasoningbank.agents.protocol import Attempt, AttemptStatus, Episode
from reasoningbank.trajectory import Trajectory

__all__ = ["conclude", "last_query_with_rows"]


def conclude(
    episode: Episode, sparql: str | None, status: AttemptStatus, error: str = ""
) -> Attempt:
    """Return the attempt; where no query came out, the last that it ran with rows stands in.

    Args:
        episode: The episode that ended.
        sparql: The query that was submitted or extracted; None where there is none.
        status: How the loop ended.
        error: One line, where something went wrong.
    """
    if sparql is None:
        sparql = last_query_with_rows(episode.recorder.trajectory())
        if sparql is None and status != "exhausted":
            status, error = "refused", error or "no query was submitted or could be extracted"
        elif status == "submitted":
            status = "fallback"
    if sparql is not None:
        episode.recorder.add("submit", {"sparql": sparql, "status": status})
    return Attempt(
        sparql=sparql,
        answer="",
        status=status,
        usage=episode.meter.usage(),
        trajectory=episode.recorder.trajectory(),
        error=error,
    )


def last_query_with_rows(trajectory: Trajectory) -> str | None:
    """Return the last query that the agent ran and that had rows; None if there is none."""
    found: str | None = None
    calls = {e.index: e.data for e in trajectory.of("tool_call")}
    for event in trajectory.of("tool_result"):
        call = calls.get(event.parent if event.parent is not None else -1)
        if call is None or call["tool"] != "sparql_query" or "error" in event.data:
            continue
        if ", 0 items from " not in str(trajectory.resolve(event.data.get("result"))):
            found = str(trajectory.resolve(call["arguments"]).get("query") or "") or found
    return found
