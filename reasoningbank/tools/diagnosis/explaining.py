"""Why a query failed or gave nothing, in one call: as an agent with tools would be told."""

from __future__ import annotations

from collections.abc import Callable

from reasoningbank.errors import EndpointError, QueryError, UsageError
from reasoningbank.sparql import SPARQLClient
from reasoningbank.tools.diagnosis.empty_results import (
    diagnose,
    probe_run,
    suggest_for_error,
    unknown_names,
)
from reasoningbank.tools.vocabulary import Vocabulary

__all__ = ["explain_query", "explainer"]


def explainer(
    client: SPARQLClient, names: Vocabulary | None
) -> Callable[[str, bool], tuple[str, ...]]:
    """Return `explain_query` for one endpoint: it takes a query, and whether it gave nothing.

    Args:
        client: Prepares queries; its endpoint is asked, by connections of their own.
        names: The endpoint's vocabulary; nothing is known without one.
    """
    return lambda query, empty: explain_query(query, client, names, empty=empty)


def explain_query(
    query: str, client: SPARQLClient, names: Vocabulary | None, *, empty: bool
) -> tuple[str, ...]:
    """Return what is known to be wrong with a query, a line each; nothing where nothing is known.

    No gold is looked at: names are compared with the vocabulary, and the endpoint is asked which
    pattern of a query without rows fails first.

    Args:
        query: The query.
        client: Prepares it; its endpoint is asked, by connections of their own.
        names: The endpoint's vocabulary; nothing is known without one.
        empty: Whether it ran and returned nothing.
    """
    if names is None:
        return ()
    namespaces = client.config.namespaces
    try:
        prepared = client.prepare(query)
    except QueryError as error:
        meant = suggest_for_error(query, error, names, namespaces)
        return (meant,) if meant else ()
    run = probe_run(client.config)
    try:
        if empty:
            return diagnose(prepared, run, names, namespaces=namespaces)
        return unknown_names(prepared, names, run, namespaces=namespaces)
    except (QueryError, EndpointError, UsageError):
        # A diagnosis is help, not a result: without it the query's author is told what happened.
        return ()
