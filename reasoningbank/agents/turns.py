"""The loop of `dspy.RLM`, recorded, metered, and ended when it repeats itself."""

from __future__ import annotations

import time
from typing import Any

import dspy
from dspy.primitives.repl_types import REPLHistory, REPLVariable
from dspy.utils.exceptions import AdapterParseError

from reasoningbank.agents.budget import Meter
from reasoningbank.agents.recording import ToolRecorder
from reasoningbank.agents.repeats import Repeats
from reasoningbank.trajectory import Recorder

__all__ = ["RecordedRLM"]

_REPEATED = (
    "[Repeated] You already ran this code; its output is above and was not run again. "
    "Do something else now: another tool, another query, or SUBMIT."
)
_NO_CODE = "[Error] The reply holds no code. Answer with the two fields reasoning and code."
_CUT = "\n[Cut] The reply was longer than allowed and ended before its code did: write less."


class RecordedRLM(dspy.RLM):  # type: ignore[misc]
    """`dspy.RLM` with three rules of its own.

    Every turn is counted by the meter and recorded with its code and output. A reply that
    cannot be parsed is a turn that failed, not the end, and one that failed since it was cut off
    is told so. A turn whose code was already run is not run again but answered with a hint, and
    the temperature rises; the second such turn ends the loop, and the extract step gives the
    answer.

    Args:
        meter: Counts turns and raises when a budget is used up.
        recorder: Where turns are recorded.
        calls: Records tool calls; is told which turn they belong to.
        **options: As `dspy.RLM`.

    Attributes:
        fell_back: Whether the answer was extracted instead of submitted.
    """

    def __init__(
        self, *, meter: Meter, recorder: Recorder, calls: ToolRecorder, **options: Any
    ) -> None:
        super().__init__(**options)
        self._meter = meter
        self._recorder = recorder
        self._calls = calls
        self._repeats = Repeats(self.generate_action)
        self._action: Any = None
        self.fell_back = False

    @property
    def repeated(self) -> bool:
        """Whether the loop ended because it repeated itself."""
        return self._repeats.too_many

    def _execute_iteration(
        self,
        repl: Any,
        variables: list[Any],
        history: REPLHistory,
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        self._meter.turn()
        try:
            result = super()._execute_iteration(repl, variables, history, *args, **kwargs)
        except AdapterParseError as failure:
            said = str(failure.lm_response)
            self._recorder.add("error", {"error": "the reply could not be parsed", "reply": said})
            self._repeats.again(said)
            result = history.append(code=said[-500:], output=_NO_CODE + self._cut())
        if not isinstance(result, REPLHistory):
            return result
        if self.repeated:
            return self._extract_fallback(variables, result, list(self.signature.output_fields))
        return result

    def _action_signature_for_current_factory(self, *args: Any) -> Any:
        # It is the same in every turn; each new one would be a new class.
        if self._action is None:
            self._action = super()._action_signature_for_current_factory(*args)
        return self._action

    def _build_variables(self, **inputs: Any) -> list[REPLVariable]:
        # By itself DSPy shows 500 characters of each end: of memory that would be parts of items.
        fields = self.signature.input_fields
        return [
            REPLVariable.from_value(name, value, fields.get(name), preview_chars=len(str(value)))
            for name, value in inputs.items()
        ]

    def _setup_facade(self, repl: Any, *args: Any) -> str:
        # Sub-agents built inside the sandbox would escape the meter.
        return ""

    def _prepare_serializable_vars(self, input_args: dict[str, Any], repl: Any) -> Any:
        # The inputs are texts, which go along with each turn's code.
        begin = getattr(repl, "begin", None)
        if begin is None:
            return super()._prepare_serializable_vars(input_args, repl)
        begin()
        return input_args

    def _execute_code(self, repl: Any, code: str, input_args: dict[str, Any]) -> Any:
        index = self._recorder.add("code", {"code": code})
        if self._repeats.again(code):
            self._recorder.extend(index, {"output": _REPEATED})
            return _REPEATED
        self._calls.parent = index
        began, spoiled = time.monotonic(), self._calls.spoiled
        try:
            result = super()._execute_code(repl, code, input_args)
        finally:
            self._calls.parent = None
        if self._calls.spoiled > spoiled:
            self._repeats.forget(code)
        if isinstance(result, str) and result.startswith("[Error]"):
            result += self._cut()
        output = "\n".join(map(str, result)) if isinstance(result, list) else str(result or "")
        self._recorder.extend(index, {"output": output}, seconds=time.monotonic() - began)
        return result

    def _cut(self) -> str:
        calls = self._recorder.trajectory().of("lm_call")
        return _CUT if calls and calls[-1].data.get("finish_reason") == "length" else ""

    def _extract_fallback(self, *args: Any, **kwargs: Any) -> Any:
        self._meter.check()
        self.fell_back = True
        return super()._extract_fallback(*args, **kwargs)
