"""Calling models and tools within an attempt; calls of tools as events of a trajectory.

A ``tool_call`` event holds ``tool`` and ``arguments``. Its ``tool_result`` holds ``result`` (what
the agent saw), ``note`` (of rows) and ``ref`` (`Ref` as a mapping, of a handle); or ``error`` (the
line), its ``code`` and ``fields``, and ``infrastructure`` if the endpoint failed and not the agent.
"""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import dspy
from dspy.utils.callback import BaseCallback
from dspy.utils.exceptions import AdapterParseError

from reasoningbank.agents import protocol
from reasoningbank.errors import BudgetError, EndpointError, ModelError, QueryError, ToolError
from reasoningbank.lm import PlainAdapter
from reasoningbank.lm.calls import is_timeout, model_errors
from reasoningbank.lm.reply import query_in
from reasoningbank.refs import Ref
from reasoningbank.sparql import EndpointConfig, PreparedQuery, Result, SPARQLClient
from reasoningbank.trajectory import Recorder


@contextlib.contextmanager
def asking(episode: protocol.Episode, *callbacks: Any) -> Iterator[None]:
    """Run DSPy modules with the episode's model; nothing outside the block is configured."""
    active = [*episode.callbacks, *callbacks]
    with dspy.context(lm=episode.lm, adapter=_adapter(), callbacks=active):
        try:
            with model_errors():
                yield
        except ModelError as error:
            limit = episode.budget.seconds
            # A model that hangs: the time limit ends the trial, and what was done is judged.
            if limit is not None and episode.meter.usage().seconds >= limit and is_timeout(error):
                raise protocol.used_up("seconds", limit) from error
            raise


def ask_once(
    signature: Any,
    inputs: Mapping[str, Any],
    *,
    lm: dspy.BaseLM | None = None,
    adapter: dspy.Adapter | None = None,
    demos: Sequence[dspy.Example] = (),
    config: Mapping[str, Any] | None = None,
    adopt: Callable[[Any], None] = lambda _: None,
) -> dict[str, Any]:
    """Make one prediction and return its outputs by name."""
    predict = dspy.Predict(signature, **(config or {}))
    predict.demos = list(demos)
    adopt(predict)
    given = {"lm": lm} if lm is not None else {}
    with dspy.context(adapter=adapter or _adapter(), **given), model_errors():
        try:
            said = predict(**inputs)
        except AdapterParseError:
            return {}
    if missing := [name for name in predict.signature.output_fields if name not in said]:
        raise ModelError(f"the model's reply holds no {missing[0]}", code="empty-reply")
    return {name: said[name] for name in predict.signature.output_fields}


class QueryTurn(dspy.Signature):  # type: ignore[misc]
    """A turn of a conversation; each call brings its own instructions."""

    question: str = dspy.InputField()
    sparql: str = dspy.OutputField(desc="the query alone")


def ask_query(
    instructions: str, turns: Iterable[tuple[str, str]], question: str, **how: Any
) -> str | None:
    """Ask for a query after turns of questions with their queries; None if the reply has none."""
    demos = [dspy.Example(question=q, sparql=s).with_inputs("question") for q, s in turns]
    signature = QueryTurn.with_instructions(instructions)
    said = ask_once(signature, {"question": question}, adapter=PlainAdapter(), demos=demos, **how)
    return query_in(said["sparql"]) if said else None


def prefix_names(endpoint: EndpointConfig) -> str:
    """Return the endpoint's own prefixes as a prompt lists them, always in the same order."""
    return ", ".join(f"{prefix}:" for prefix in sorted(endpoint.prefixes)) or "none"


def _adapter() -> dspy.Adapter:
    return dspy.ChatAdapter(use_json_adapter_fallback=False)


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
            if note := getattr(result, "note", ""):
                data["note"] = note
            if isinstance(result, Ref):
                data["ref"] = asdict(result)
        else:
            finding = protocol.failure_of(error)
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
        self._open[call_id] = self.begin(instance.name, inputs.get("kwargs", inputs))

    def on_tool_end(
        self, call_id: str, outputs: Any | None, exception: BaseException | None = None
    ) -> None:
        """Record what the call returned, or its error."""
        call = self._open.pop(call_id, (None, time.monotonic()))
        self.end(call, outputs, exception)


class RecordedClient(SPARQLClient):
    """A client whose queries are metered and recorded as calls of `sparql_query`."""

    def __init__(self, episode: protocol.Episode, endpoint: EndpointConfig | None = None) -> None:
        super().__init__(endpoint or episode.endpoint)
        self._calls = ToolRecorder(episode.recorder)
        self._meter = episode.meter
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
            self._meter.count(_QUERY_TOOL)
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
