"""Queries that an agent's own steps execute: metered and recorded as calls of `sparql_query`."""

from __future__ import annotations

import time
from typing import Any

from reasoningbank.agents.protocol import Episode
from reasoningbank.errors import BudgetError, EndpointError, QueryError, ToolError
from reasoningbank.refs import Ref
from reasoningbank.sparql import EndpointConfig, PreparedQuery, Result, SPARQLClient

__all__ = ["RecordedClient"]

TOOL = "sparql_query"


class RecordedClient(SPARQLClient):
    """The endpoint of an episode; every query counts as a tool call, and is recorded as one.

    So judges and records see what a graph of steps executed as they see what a tool loop did.

    Args:
        episode: Whose endpoint, meter and recorder are used.
        endpoint: Another endpoint that is asked, e.g. one that the episode's federates with.

    Attributes:
        spent: Says that the tool calls are used up, once a query was refused for that.
    """

    def __init__(self, episode: Episode, endpoint: EndpointConfig | None = None) -> None:
        super().__init__(endpoint or episode.endpoint)
        self._recorder = episode.recorder
        self._count = episode.meter.metered({TOOL: lambda: None})[TOOL]
        self._numbers = 0
        self.spent = ""

    def query(
        self,
        query: str | PreparedQuery,
        *,
        timeout_s: float | None = None,
        max_rows: int | None = None,
    ) -> Result:
        """Ask the endpoint, as `SPARQLClient.query` does.

        Raises:
            BudgetError: The tool calls of the episode are used up.
            QueryError: The query is at fault.
            EndpointError: The endpoint is.
        """
        try:
            self._count()
        except ToolError as spent:
            self.spent = spent.what
            raise BudgetError(spent.what) from spent
        text = query if isinstance(query, str) else query.original
        index = self._recorder.add("tool_call", {"tool": TOOL, "arguments": {"query": text}})
        began = time.monotonic()
        said: dict[str, Any] = {}
        try:
            result = super().query(query, timeout_s=timeout_s, max_rows=max_rows)
            self._numbers += 1
            key, source = f"results_{self._numbers}", self.config.source
            said = {"result": repr(Ref(key, "results", result.n_rows, 0, source))}
        except (QueryError, EndpointError) as error:
            said = {"error": f"{type(error).__name__}: {error}"}
            if isinstance(error, EndpointError):
                said["infrastructure"] = True
            raise
        finally:
            if said:
                seconds = time.monotonic() - began
                self._recorder.add("tool_result", said, seconds=seconds, parent=index)
        return result
