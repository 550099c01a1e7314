"""Running a graph step by step, with the whole state after each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from reasoningbank.agents.graph.settings import GraphSettings
from reasoningbank.agents.graph.state import NL2SPARQLState

__all__ = ["WAITS", "configured", "steps_of"]

#: The name under which a graph that waits for an answer tells of it.
WAITS = "clarify"
_INTERRUPT = "__interrupt__"


def configured(settings: GraphSettings, thread: str = "") -> dict[str, Any]:
    """Return LangGraph's configuration of a run; it holds no secret.

    Args:
        settings: How many attempts there may be.
        thread: The name its checkpoints are kept under.
    """
    # Five nodes an attempt, and those around them.
    config: dict[str, Any] = {"recursion_limit": 10 + 6 * settings.max_attempts}
    if thread:
        config["configurable"] = {"thread_id": thread}
    return config


def steps_of(
    graph: Any, start: Any, config: dict[str, Any], *, durable: bool = False
) -> Iterator[tuple[str, NL2SPARQLState]]:
    """Yield each node that completed, with the state as it is then.

    The state is the whole of it, accumulated parts included; what a node alone returns is not
    enough to see the history grow.

    Args:
        graph: A compiled graph.
        start: The state to begin with, a `Command` to resume with, or None to go on.
        config: LangGraph's configuration.
        durable: Whether each checkpoint is on disk before the next node begins.

    Yields:
        Name and state; ``clarify`` last where the graph waits for an answer.
    """
    options: dict[str, Any] = {"durability": "sync"} if durable else {}
    names: list[str] = []
    state: NL2SPARQLState = {}
    for mode, value in graph.stream(start, config, stream_mode=["updates", "values"], **options):
        if mode == "values":
            state = {key: one for key, one in value.items() if key != _INTERRUPT}  # type: ignore[assignment]
            yield from ((name, state) for name in names)
            names = []
        elif _INTERRUPT in value:
            yield WAITS, state
        else:
            names += value
