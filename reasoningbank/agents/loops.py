"""Agents that call tools in turns, and extract a query at the end: `rlm` and `react`.

`rlm` writes Python that calls the tools, sees its output, and submits a query; `react` calls one
tool a turn. A turn that repeats an earlier one, or a budget, ends either loop.
"""

from __future__ import annotations

import copy
import inspect
import json
import time
from collections.abc import Callable
from itertools import chain
from typing import Any
from weakref import WeakKeyDictionary

import dspy
from dspy.primitives.repl_types import REPLHistory, REPLVariable
from dspy.utils.exceptions import AdapterParseError, ContextWindowExceededError

from reasoningbank.agents.calling import ToolRecorder, asking, prefix_names
from reasoningbank.agents.protocol import (
    PROMPTS,
    Attempt,
    AttemptStatus,
    Demonstration,
    Episode,
    conclude,
    last_query_with_rows,
)
from reasoningbank.agents.sandbox.interpreter import Sandbox
from reasoningbank.corpus import Task
from reasoningbank.errors import BudgetError
from reasoningbank.findings import Finding
from reasoningbank.lm import lm_failure, stuck_temperature
from reasoningbank.lm.reply import query_in, unparsed
from reasoningbank.tools.adapting import observed
from reasoningbank.trajectory import Recorder

_RLM, _REACT = PROMPTS["rlm"], PROMPTS["react"]
#: Turns that repeat an earlier one before a loop is ended.
MOST_REPEATS = 2
_FINISH = "finish"
#: Called for a reply that names no tool; the model never sees it among the tools.
_UNREADABLE = "unreadable"


def _run_loop(
    loop: RecordedRLM | RecordedReAct, task: Task, episode: Episode, calls: ToolRecorder
) -> Attempt:
    """Run a loop over a task; a budget or a repeated turn may end it."""
    inputs = {"memory": episode.context} if episode.context else {}
    try:
        episode.adopt(loop)
        with asking(episode, calls):
            sparql = query_in(loop(**inputs, question=task.query).sparql)
    except AdapterParseError as failure:
        # Only the extract step raises it: a turn that cannot be parsed is a failed turn.
        sparql = query_in(unparsed(failure))
    except BudgetError as error:
        return conclude(episode, None, "exhausted", [error])
    ended = loop.repeats.too_many
    repeated = [Finding("repeated", "a turn repeated an earlier one")] if ended else []
    status: AttemptStatus = "submitted" if loop.submitted and not ended else "fallback"
    return conclude(episode, sparql, status, repeated)


def _signature(episode: Episode) -> Any:
    """Return the signature: advice if there is any, the question, and the query."""
    fields: dict[str, Any] = {}
    if episode.context:
        fields["memory"] = (str, dspy.InputField(desc="advice from earlier tasks"))
    fields["question"] = (str, dspy.InputField())
    fields["sparql"] = (str, dspy.OutputField(desc="the query that answers the question"))
    return dspy.Signature(fields, _RLM["task"].format(name=episode.endpoint.source))


def _instruct(predict: Any, instructions: str, more: str, episode: Episode) -> None:
    """Give a predictor its instructions: with endpoint and prefixes, the tools, and more lines."""
    endpoint = episode.endpoint
    lines = [instructions.format(name=endpoint.source, prefixes=prefix_names(endpoint))]
    for name, tool in episode.tools.items():
        shown = [
            p.name if p.default is p.empty else f"{p.name}={p.default!r}"
            for p in inspect.signature(tool).parameters.values()
        ]
        summary = (inspect.getdoc(tool) or "").split("\n\n")[0].replace("\n", " ")
        lines.append(f"- `{name}({', '.join(shown)})`: {summary}")
    text = "\n".join((*lines, more) if more else lines)
    predict.signature = predict.signature.with_instructions(text)


def _tools(episode: Episode) -> list[dspy.Tool]:
    """Return the tools for `dspy.RLM` and `dspy.ReAct`."""
    return [_tool(tool, name) for name, tool in episode.tools.items()]


#: Described tools by their function, as long as it lives; without what they call.
_described: WeakKeyDictionary[Any, dict[Any, dspy.Tool]] = WeakKeyDictionary()


def _tool(tool: Callable[..., Any], name: str) -> dspy.Tool:
    """Return a function as a tool; its schema is made once, for that takes 3 ms."""
    inner = inspect.unwrap(tool)
    function = getattr(inner, "__func__", inner)
    if not inspect.isfunction(function):
        return dspy.Tool(tool, name=name)
    key = name, tool.__doc__, str(inspect.signature(tool))
    known = _described.setdefault(function, {})
    if key not in known:
        made = dspy.Tool(tool, name=name)
        known[key] = made.model_copy(update={"func": None})
    own = {"func": tool, "args": copy.deepcopy(known[key].args)}
    return known[key].model_copy(update=own)


class Repeats:
    """Detects turns that repeat an earlier one; at temperature 0 a small model never stops."""

    def __init__(self, predict: Any) -> None:
        self._predict = predict
        self._seen: set[str] = set()
        self._count = 0

    def again(self, text: str) -> bool:
        """Return whether this was done before, and remember it."""
        text = _normalized(text)
        repeated = text in self._seen
        self._seen.add(text)
        if repeated:
            self._count += 1
            warmer = stuck_temperature(self._predict.lm)
            if warmer is not None:
                self._predict.config["temperature"] = warmer
        return repeated

    def unreadable(self, failure: AdapterParseError, recorder: Recorder) -> str:
        """Record a reply that the adapter could not parse; return its end."""
        said = unparsed(failure)
        event = {"error": "the reply could not be parsed", "code": "unreadable-reply"}
        recorder.add("error", event | {"reply": said})
        self.again(said)
        return said[-500:]

    def forget(self, text: str) -> None:
        """Allow a repeat: it failed for a reason that may be gone the next time."""
        self._seen.discard(_normalized(text))

    @property
    def too_many(self) -> bool:
        """Whether the loop should end."""
        return self._count >= MOST_REPEATS

    def settled(self, recorder: Recorder) -> str | None:
        """Return the query that a loop ended by repeats ran last, if it had rows.

        Asked to extract it, a small model changes it: it adds a LIMIT.
        """
        return last_query_with_rows(recorder.trajectory()) if self.too_many else None


def _normalized(text: str) -> str:
    # Code that differs in its indentation is not a repeat: it fixes an IndentationError.
    lines = (line for line in text.splitlines() if line.strip())
    return "\n".join(
        line[: len(line) - len(line.lstrip())] + " ".join(line.split()) for line in lines
    )


class RLMAgent:
    """`dspy.RLM` in the Deno/Pyodide sandbox, with the tools and demonstration turns."""

    uses_lm = True
    compiles = True
    sees_gold = False
    uses = ("context", "tools", "sandbox")

    def __init__(self, max_output_chars: int = 1_500, max_sub_calls: int = 0) -> None:
        self._max_output_chars = max_output_chars
        self._max_sub_calls = max_sub_calls

    def solve(self, task: Task, episode: Episode) -> Attempt:
        """Answer by turns of code, ended by a submission, a budget, or a repeated turn."""
        calls = ToolRecorder(episode.recorder)
        rlm = RecordedRLM(episode, calls, self._max_output_chars, self._max_sub_calls)
        return _run_loop(rlm, task, episode, calls)


class RecordedRLM(dspy.RLM):  # type: ignore[misc]
    """`dspy.RLM` that is metered and recorded, and ends when it repeats itself."""

    def __init__(
        self, episode: Episode, calls: ToolRecorder, max_output_chars: int, max_sub_calls: int
    ) -> None:
        super().__init__(
            signature=_signature(episode),
            tools=_tools(episode),
            max_iters=episode.budget.iterations,
            max_llm_calls=max_sub_calls,
            max_output_chars=max_output_chars,
            interpreter_factory=episode.sandbox or Sandbox,
        )
        action = self.generate_action
        self.repeats = Repeats(action)
        self.submitted = True
        self._meter, self._recorder, self._calls = episode.meter, episode.recorder, calls
        self._action: Any = None
        sub_calls = _RLM["sub_calls"].format(calls=max_sub_calls) if max_sub_calls else ""
        _instruct(action, _RLM["instructions"], sub_calls, episode)
        turns = episode.budget.iterations
        shown = (turn_examples(one, turns) for one in episode.demonstrations)
        action.demos = list(chain.from_iterable(shown))
        self.extract.lm = episode.extractor

    def _execute_iteration(
        self, repl: Any, variables: list[Any], history: REPLHistory, *args: Any, **kwargs: Any
    ) -> Any:
        self._meter.turn()
        try:
            result = super()._execute_iteration(repl, variables, history, *args, **kwargs)
        except AdapterParseError as failure:
            said = self.repeats.unreadable(failure, self._recorder)
            result = history.append(code=said, output=_RLM["unreadable"] + self._cut())
        if isinstance(result, REPLHistory) and self.repeats.too_many:
            return self._extract_fallback(variables, result, list(self.signature.output_fields))
        return result

    def _action_signature_for_current_factory(self, *args: Any) -> Any:
        # It is the same in every turn; each new one would be a new class.
        if self._action is None:
            self._action = super()._action_signature_for_current_factory(*args)
        return self._action

    def _build_variables(self, **inputs: Any) -> list[REPLVariable]:
        # DSPy would show 500 characters of each end, which cuts memory items apart.
        fields = self.signature.input_fields
        return [
            REPLVariable.from_value(name, value, fields.get(name), preview_chars=len(str(value)))
            for name, value in inputs.items()
        ]

    def _setup_facade(self, repl: Any, *args: Any) -> str:
        # Sub-agents built inside the sandbox would escape the meter.
        return ""

    def _prepare_serializable_vars(self, input_args: dict[str, Any], repl: Any) -> Any:
        # The inputs are texts, which are sent with each turn's code.
        begin = getattr(repl, "begin", None)
        if begin is None:
            return super()._prepare_serializable_vars(input_args, repl)
        begin()
        return input_args

    def _execute_code(self, repl: Any, code: str, input_args: dict[str, Any]) -> Any:
        index = self._recorder.add("code", {"code": code})
        if self.repeats.again(code):
            self._recorder.extend(index, {"output": _RLM["repeated"], "repeated": True})
            return _RLM["repeated"]
        self._calls.parent = index
        began, failures = time.monotonic(), self._calls.infrastructure_failures
        try:
            result = super()._execute_code(repl, code, input_args)
        finally:
            self._calls.parent = None
        if self._calls.infrastructure_failures > failures:
            self.repeats.forget(code)
        # DSPy marks a failed execution so.
        if isinstance(result, str) and result.startswith("[Error]"):
            result += self._cut()
        output = "\n".join(map(str, result)) if isinstance(result, list) else str(result or "")
        self._recorder.extend(index, {"output": output}, seconds=time.monotonic() - began)
        return result

    def _cut(self) -> str:
        calls = self._recorder.trajectory().of("lm_call")
        return _RLM["cut"] if calls and calls[-1].data.get("finish_reason") == "length" else ""

    def _extract_fallback(self, *args: Any, **kwargs: Any) -> Any:
        self._meter.check()
        self.submitted = False
        if ran := self.repeats.settled(self._recorder):
            return dspy.Prediction(sparql=ran)
        return super()._extract_fallback(*args, **kwargs)


def turn_examples(demonstration: Demonstration, iterations: int) -> list[dspy.Example]:
    """Return one example a turn, each with the history of the turns before it."""
    variables = [REPLVariable.from_value("question", demonstration.question).format()]
    history = REPLHistory()
    examples = []
    for number, turn in enumerate(demonstration.turns, 1):
        examples.append(
            dspy.Example(
                variables_info=variables,
                repl_history=history,
                iteration=f"{number}/{iterations}",
                reasoning=turn.reasoning,
                code=f"```python\n{turn.code}\n```",
            )
        )
        history = history.append(reasoning=turn.reasoning, code=turn.code, output=turn.output)
    return examples


class ReActAgent:
    """`dspy.ReAct` (Yao et al., arXiv 2210.03629) with the tools and records of `rlm`."""

    uses_lm = True
    compiles = True
    sees_gold = False
    uses = ("context", "tools")

    def __init__(self, max_output_chars: int = 1_500) -> None:
        self._max_output_chars = max_output_chars

    def solve(self, task: Task, episode: Episode) -> Attempt:
        """Answer by tool calls, ended by `finish`, a budget, or a repeated call."""
        react = RecordedReAct(episode, self._max_output_chars)
        return _run_loop(react, task, episode, ToolRecorder(episode.recorder))


class RecordedReAct(dspy.ReAct):  # type: ignore[misc]
    """`dspy.ReAct` with the rules of `RecordedRLM`, so that only the loop differs."""

    def __init__(self, episode: Episode, max_output_chars: int) -> None:
        tools = _tools(episode)
        super().__init__(_signature(episode), tools, episode.budget.iterations)
        self.tools: dict[str, Callable[..., Any]] = {t.name: self._observed(t) for t in tools}
        self.tools |= {_FINISH: self._finish, _UNREADABLE: lambda: _REACT["unreadable"]}
        self.repeats = Repeats(self.react)
        self.submitted = False
        self._episode = episode
        self._most_chars = max_output_chars
        _instruct(self.react, _REACT["instructions"], _REACT["finish"], episode)
        shown = (call_examples(one, self) for one in episode.demonstrations)
        self.react.demos = list(chain.from_iterable(shown))
        self.extract.predict.lm = episode.extractor

    def _call_with_potential_trajectory_truncation(
        self, module: Any, trajectory: dict[str, Any], **inputs: Any
    ) -> Any:
        meter = self._episode.meter
        if module is not self.react:
            meter.check()
            if ran := self.repeats.settled(self._episode.recorder):
                return dspy.Prediction(sparql=ran)
            return self._asked(module, trajectory, inputs)
        if self.repeats.too_many:
            # The way out of DSPy's loop; the model made no turn, and none is counted.
            return dspy.Prediction(next_thought="", next_tool_name=_FINISH, next_tool_args={})
        meter.turn()
        try:
            return self._asked(module, trajectory, inputs)
        except AdapterParseError as failure:
            said = self.repeats.unreadable(failure, self._episode.recorder)
            return dspy.Prediction(next_thought=said, next_tool_name=_UNREADABLE, next_tool_args={})

    def _asked(self, module: Any, trajectory: dict[str, Any], inputs: dict[str, Any]) -> Any:
        try:
            return module(**inputs, trajectory=self._format_trajectory(trajectory))
        except ContextWindowExceededError as error:
            raise lm_failure(error) or error from error

    def _observed(self, tool: dspy.Tool) -> Callable[..., str]:
        def call(**arguments: Any) -> str:
            done = f"{tool.name} {json.dumps(arguments, sort_keys=True, default=str)}"
            if self.repeats.again(done):
                return _REACT["repeated"]
            text, infrastructure = observed(tool, arguments, self._most_chars)
            if infrastructure:
                self.repeats.forget(done)
            return text

        return call

    def _finish(self, **_: Any) -> str:
        self.submitted = True
        return "Completed."


def call_examples(demonstration: Demonstration, react: RecordedReAct) -> list[dspy.Example]:
    """Return one example a call, each with the trajectory of the calls before it."""
    trajectory: dict[str, Any] = {}
    examples = []
    for number, call in enumerate(demonstration.calls):
        turn = {
            "next_thought": call.thought,
            "next_tool_name": call.tool,
            "next_tool_args": json.dumps(call.arguments, ensure_ascii=False),
        }
        before = react._format_trajectory(trajectory)
        examples.append(dspy.Example(question=demonstration.question, trajectory=before, **turn))
        trajectory |= {
            f"thought_{number}": call.thought,
            f"tool_name_{number}": call.tool,
            f"tool_args_{number}": call.arguments,
            f"observation_{number}": call.observation,
        }
    return examples
