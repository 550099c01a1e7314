"""Tool calls as events of a trajectory: the calls of DSPy's tools and of an agent's own steps.

A ``tool_call`` event holds ``tool`` and ``arguments``. Its ``tool_result`` holds ``result`` (what
the agent saw), and ``ref`` (`Ref` as a mapping) if that is a handle; or ``error`` (the line), its
``code`` and ``fields``, and ``infrastructure`` if the endpoint failed and not the agent.
"""

from __future__ import annotations

import json
import threading
import time
from dataclasses import asdict
from typing import Any

from dspy.utils.callback import BaseCallback

from reasoningbank.agents.protocol import Episode, failure_of
from reasoningbank.errors import BudgetError, EndpointError, QueryError, ToolError
from reasoningbank.refs import Ref
from reasoningbank.sparql import EndpointConfig, PreparedQuery, Result, SPARQLClient
from reasoningbank.trajectory import Recorder

_QUERY_TOOL = "sparql_query"


class ToolRecorder(BaseCallback):  # type: ignore[misc]
    """Writes a `tool_call` event when a call begins and a `tool_result` when it ends."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._open: dict[str, tuple[int, float]] = {}
        self._lock = threading.Lock()
        self.parent: int | None = None
        self.infrastructure_failures = 0

    def begin(self, tool: str, arguments: Any) -> tuple[int, float]:
        """Record a call that begins; pass what is returned to `end`."""
        data = {"tool": tool, "arguments": _plain(arguments)}
        return self._recorder.add("tool_call", data, parent=self.parent), time.monotonic()

    def end(
        self, call: tuple[int | None, float], result: Any, error: BaseException | None = None
    ) -> None:
        """Record what a call returned, or its error."""
        parent, began = call
        data: dict[str, Any]
        if error is None:
            data = {"result": _plain(result)}
            if isinstance(result, Ref):
                data["ref"] = asdict(result)
        else:
            finding = failure_of(error)
            data = {"error": f"{type(error).__name__}: {error}", "code": finding.code}
            if finding.fields:
                data["fields"] = dict(finding.fields)
            if isinstance(error, EndpointError) or isinstance(error.__cause__, EndpointError):
                data["infrastructure"] = True
                with self._lock:
                    self.infrastructure_failures += 1
        self._recorder.add("tool_result", data, seconds=time.monotonic() - began, parent=parent)

    def on_tool_start(self, call_id: str, instance: Any, inputs: dict[str, Any]) -> None:
        """Record the call with its arguments."""
        call = self.begin(instance.name, inputs.get("kwargs", inputs))
        with self._lock:
            self._open[call_id] = call

    def on_tool_end(
        self, call_id: str, outputs: Any | None, exception: BaseException | None = None
    ) -> None:
        """Record what the call returned, or its error."""
        with self._lock:
            call = self._open.pop(call_id, None)
        self.end(call or (None, time.monotonic()), outputs, exception)


class RecordedClient(SPARQLClient):
    """A client whose queries are metered and recorded as calls of `sparql_query`."""

    def __init__(self, episode: Episode, endpoint: EndpointConfig | None = None) -> None:
        super().__init__(endpoint or episode.endpoint)
        self._calls = ToolRecorder(episode.recorder)
        self._count = episode.meter.metered({_QUERY_TOOL: lambda: None})[_QUERY_TOOL]
        self._results = 0
        self.exhausted: BudgetError | None = None

    def query(
        self,
        query: str | PreparedQuery,
        *,
        timeout_s: float | None = None,
        max_rows: int | None = None,
    ) -> Result:
        """Query the endpoint as `SPARQLClient.query` does."""
        try:
            self._count()
        except ToolError as error:
            self.exhausted = BudgetError(error.what, **error.fields)
            raise self.exhausted from error
        text = query if isinstance(query, str) else query.original
        call = self._calls.begin(_QUERY_TOOL, {"query": text})
        try:
            result = super().query(query, timeout_s=timeout_s, max_rows=max_rows)
        except (QueryError, EndpointError) as error:
            self._calls.end(call, None, error)
            raise
        self._results += 1
        key = f"results_{self._results}"
        self._calls.end(call, Ref(key, "results", result.n_rows, 0, self.config.source))
        return result


def _plain(value: Any) -> Any:
    """Return `value` as text or JSON-able data: what the agent saw of it."""
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    if isinstance(value, Ref):
        return repr(value)
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items()}
    try:
        json.dumps(value)
    except (TypeError, ValueError):
        return repr(value)
    return value
