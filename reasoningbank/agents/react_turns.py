"""The loop of `dspy.ReAct`, recorded, metered, and ended when it repeats itself."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import dspy
from dspy.primitives.repl_types import REPLEntry
from dspy.utils.exceptions import AdapterParseError, ContextWindowExceededError

from reasoningbank.agents.budget import Meter
from reasoningbank.agents.repeats import Repeats
from reasoningbank.errors import EndpointError, ToolError
from reasoningbank.lm import lm_failure
from reasoningbank.trajectory import Recorder

__all__ = ["RecordedReAct"]

_FINISH = "finish"
#: Stands for a reply that names no tool; the model never sees it among the tools.
_NO_TOOL = "unreadable"

_REPEATED = (
    "[Repeated] You already made this call; its observation is above and it was not made again. "
    "Do something else now: another tool, another query, or finish."
)
_NOT_READ = (
    "[Error] The reply names no tool. Answer with the three fields next_thought, "
    "next_tool_name and next_tool_args (JSON)."
)


class RecordedReAct(dspy.ReAct):  # type: ignore[misc]
    """`dspy.ReAct` with the rules of `RecordedRLM`, so that the two differ in the loop alone.

    Every turn is counted by the meter. An observation is the text that the sandbox would have
    printed, cut at the same length; a tool's failure is its one line. A reply that cannot be
    parsed is a turn that failed, not the end. A call that was already made is not made again but
    answered with a hint, and the temperature rises; the second such call ends the loop. A prompt
    that no longer fits the model's context ends the attempt, and no turn is left out of it.

    Args:
        signature: Inputs and outputs.
        tools: The tools; each call reaches DSPy's callbacks.
        max_iters: Turns.
        meter: Counts turns and raises when a budget is used up.
        recorder: Where failed replies are recorded; calls come by the callbacks.
        max_output_chars: Characters of an observation that the model sees.
    """

    def __init__(
        self,
        signature: Any,
        tools: list[dspy.Tool],
        max_iters: int,
        *,
        meter: Meter,
        recorder: Recorder,
        max_output_chars: int,
    ) -> None:
        super().__init__(signature, tools, max_iters)
        self.tools: dict[str, Callable[..., Any]] = {
            tool.name: self._observed(tool.name, tool) for tool in tools
        }
        self.tools |= {_FINISH: self._finish, _NO_TOOL: lambda: _NOT_READ}
        self._meter = meter
        self._recorder = recorder
        self._most_chars = max_output_chars
        self._repeats = Repeats(self.react)
        self._finished = False

    @property
    def finished(self) -> bool:
        """Whether the model itself ended the loop."""
        return self._finished and not self.repeated

    @property
    def repeated(self) -> bool:
        """Whether the loop ended because it repeated itself."""
        return self._repeats.too_many

    def _call_with_potential_trajectory_truncation(
        self, module: Any, trajectory: dict[str, Any], **inputs: Any
    ) -> Any:
        if module is not self.react:
            self._meter.check()
            return self._asked(module, trajectory, inputs)
        if self.repeated:
            # The way out of DSPy's loop; the turn is nobody's and is not counted.
            return dspy.Prediction(next_thought="", next_tool_name=_FINISH, next_tool_args={})
        self._meter.turn()
        try:
            return self._asked(module, trajectory, inputs)
        except AdapterParseError as failure:
            said = str(failure.lm_response)
            self._recorder.add("error", {"error": "the reply could not be parsed", "reply": said})
            self._repeats.again(said)
            return dspy.Prediction(
                next_thought=said[-500:], next_tool_name=_NO_TOOL, next_tool_args={}
            )

    def _asked(self, module: Any, trajectory: dict[str, Any], inputs: dict[str, Any]) -> Any:
        """Ask with the whole trajectory; DSPy would drop the oldest calls of a long one."""
        try:
            return module(**inputs, trajectory=self._format_trajectory(trajectory))
        except ContextWindowExceededError as error:
            raise lm_failure(error) or error from error

    def _observed(self, name: str, tool: Callable[..., Any]) -> Callable[..., str]:
        def call(**arguments: Any) -> str:
            done = f"{name} {json.dumps(arguments, sort_keys=True, default=str)}"
            if self._repeats.again(done):
                return _REPEATED
            try:
                return str(REPLEntry.format_output(str(tool(**arguments)), self._most_chars))
            except (ToolError, ValueError, TypeError) as error:
                if isinstance(error.__cause__, EndpointError):
                    self._repeats.forget(done)
                # DSPy's Tool says by ValueError which argument is wrong.
                return f"[Error] {' '.join(str(error).split())}"

        return call

    def _finish(self, **_: Any) -> str:
        self._finished = True
        return "Completed."
