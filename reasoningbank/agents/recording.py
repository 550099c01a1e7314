"""Tool calls as events, taken from DSPy's callbacks."""

from __future__ import annotations

import json
import threading
import time
from typing import Any

from dspy.utils.callback import BaseCallback

from reasoningbank.errors import EndpointError
from reasoningbank.refs import Ref
from reasoningbank.trajectory import Recorder

__all__ = ["ToolRecorder"]


class ToolRecorder(BaseCallback):  # type: ignore[misc]
    """Writes a `tool_call` event when a tool begins and a `tool_result` when it ends.

    Args:
        recorder: Where the events go.

    Attributes:
        parent: Index of the event that calls tools now, e.g. the code being executed.
        spoiled: How many calls the infrastructure has failed.
    """

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._open: dict[str, tuple[int, float]] = {}
        self._lock = threading.Lock()
        self.parent: int | None = None
        self.spoiled = 0

    def on_tool_start(self, call_id: str, instance: Any, inputs: dict[str, Any]) -> None:
        """Record the call with its arguments."""
        arguments = inputs.get("kwargs", inputs)
        data = {"tool": instance.name, "arguments": _plain(arguments)}
        index = self._recorder.add("tool_call", data, parent=self.parent)
        with self._lock:
            self._open[call_id] = index, time.monotonic()

    def on_tool_end(
        self, call_id: str, outputs: Any | None, exception: BaseException | None = None
    ) -> None:
        """Record what the call returned, or its error."""
        with self._lock:
            index, began = self._open.pop(call_id, (None, time.monotonic()))
        data: dict[str, Any]
        if exception is None:
            data = {"result": _plain(outputs)}
        else:
            data = {"error": f"{type(exception).__name__}: {exception}"}
            if isinstance(exception.__cause__, EndpointError):
                data["infrastructure"] = True
                with self._lock:
                    self.spoiled += 1
        self._recorder.add("tool_result", data, seconds=time.monotonic() - began, parent=index)


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
