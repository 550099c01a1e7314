"""Why a query failed or gave nothing, as an agent with tools would be told."""

from __future__ import annotations

from reasoningbank.errors import EndpointError, QueryError, UsageError
from reasoningbank.experiment.world import World
from reasoningbank.tools.diagnosis import diagnose, probe_run, suggest_for_error, unknown_names

__all__ = ["diagnosed"]


def diagnosed(world: World, query: str, *, empty: bool) -> tuple[str, ...]:
    """Return what is known to be wrong with a query, a line each; nothing where nothing is known.

    No gold is looked at: names are compared with the vocabulary, and the endpoint is asked which
    pattern of a query without rows fails first.

    Args:
        world: The endpoint and its vocabulary.
        query: The query.
        empty: Whether it ran and returned nothing.
    """
    endpoint, known = world.endpoint, world.vocabulary
    if known is None:
        return ()
    run, namespaces = probe_run(endpoint), endpoint.namespaces
    try:
        prepared = world.client.prepare(query)
    except QueryError as error:
        meant = suggest_for_error(query, error, known, namespaces)
        return (meant,) if meant else ()
    try:
        if empty:
            return diagnose(prepared, run, known, namespaces=namespaces)
        return unknown_names(prepared, known, run, namespaces=namespaces)
    except (QueryError, EndpointError, UsageError):
        # A diagnosis is help, not a result: without it the refinement is told what happened.
        return ()
