"""The RLM agent: writes Python that calls the tools, sees its output, and submits a query."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import dspy
from dspy.primitives.repl_types import REPLHistory, REPLVariable
from dspy.utils.exceptions import AdapterParseError

from reasoningbank.agents.calling import (
    UNREADABLE,
    Repeats,
    prefix_names,
    run_loop,
    task_signature,
    tool_lines,
    tool_objects,
)
from reasoningbank.agents.demonstrations import Demonstration
from reasoningbank.agents.protocol import Attempt, Episode, Meter
from reasoningbank.agents.recording import ToolRecorder
from reasoningbank.agents.sandbox import Sandbox
from reasoningbank.corpus import Task
from reasoningbank.trajectory import Recorder

INSTRUCTIONS = """\
Write the SPARQL query that answers the question over the endpoint {name}.
Each turn you write Python; it runs, and you see what it prints. Variables persist.
1. Look at the vocabulary: print(sparql_sample("a class")), print(sparql_describe("a resource")) or
   print(sparql_find("a name")).
2. Run your query with sparql_query and print its rows with sparql_peek.
3. When the rows answer the question, SUBMIT the text of the query that you ran.
Ask for exactly the columns the question names. Never repeat code that you already ran.
These prefixes are declared for you: {prefixes}.

The question is in the variable `question`. `SUBMIT(sparql)` ends the task.
Tools:"""

SUB_CALLS = "\n- `llm_query(prompt)`: ask a language model; at most {calls} times."

REPEATED = (
    "[Repeated] You already ran this code; its output is above and it was not run again. "
    "Do something else now: another tool, another query, or SUBMIT."
)
NO_CODE = "[Error] The reply contains no code. Answer with the two fields reasoning and code."
CUT = "\n[Cut] The reply reached the length limit before its code ended: write less."


class RLMAgent:
    """`dspy.RLM` in the Deno/Pyodide sandbox, with the tools and demonstration turns."""

    name = "rlm"
    uses_lm = True
    sees_gold = False

    def __init__(self, max_output_chars: int = 1_500, max_sub_calls: int = 0) -> None:
        self._max_output_chars = max_output_chars
        self._max_sub_calls = max_sub_calls

    def solve(self, task: Task, episode: Episode) -> Attempt:
        """Answer by turns of code, ended by a submission, a budget, or a repeated turn."""
        calls = ToolRecorder(episode.recorder)
        return run_loop(self._program(episode, calls), task, episode, calls)

    def _program(self, episode: Episode, calls: ToolRecorder) -> RecordedRLM:
        factory: Callable[[], Any] = episode.sandbox or Sandbox
        rlm = RecordedRLM(
            meter=episode.meter,
            recorder=episode.recorder,
            calls=calls,
            signature=task_signature(episode),
            tools=tool_objects(episode.tools),
            max_iters=episode.budget.iterations,
            max_llm_calls=self._max_sub_calls,
            max_output_chars=self._max_output_chars,
            interpreter_factory=factory,
        )
        endpoint = episode.endpoint
        head = INSTRUCTIONS.format(name=endpoint.source, prefixes=prefix_names(endpoint))
        sub_calls = SUB_CALLS.format(calls=self._max_sub_calls) if self._max_sub_calls else ""
        instructions = f"{head}\n{tool_lines(episode.tools)}{sub_calls}"
        rlm.extract.lm = episode.extractor
        action = rlm.generate_action
        action.signature = action.signature.with_instructions(instructions)
        action.demos = [
            example
            for demonstration in episode.demonstrations
            for example in turn_examples(demonstration, episode.budget.iterations)
        ]
        return rlm


class RecordedRLM(dspy.RLM):  # type: ignore[misc]
    """`dspy.RLM` that is metered and recorded, and ends when it repeats itself."""

    def __init__(
        self, *, meter: Meter, recorder: Recorder, calls: ToolRecorder, **options: Any
    ) -> None:
        super().__init__(**options)
        self._meter = meter
        self._recorder = recorder
        self._calls = calls
        self._repeats = Repeats(self.generate_action)
        self._action: Any = None
        self.submitted = True

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
            self._recorder.add("error", UNREADABLE | {"reply": said})
            self._repeats.again(said)
            result = history.append(code=said[-500:], output=NO_CODE + self._cut())
        if isinstance(result, REPLHistory) and self.repeated:
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
        if self._repeats.again(code):
            self._recorder.extend(index, {"output": REPEATED, "repeated": True})
            return REPEATED
        self._calls.parent = index
        began, failures = time.monotonic(), self._calls.infrastructure_failures
        try:
            result = super()._execute_code(repl, code, input_args)
        finally:
            self._calls.parent = None
        if self._calls.infrastructure_failures > failures:
            self._repeats.forget(code)
        # DSPy marks a failed execution so.
        if isinstance(result, str) and result.startswith("[Error]"):
            result += self._cut()
        output = "\n".join(map(str, result)) if isinstance(result, list) else str(result or "")
        self._recorder.extend(index, {"output": output}, seconds=time.monotonic() - began)
        return result

    def _cut(self) -> str:
        calls = self._recorder.trajectory().of("lm_call")
        return CUT if calls and calls[-1].data.get("finish_reason") == "length" else ""

    def _extract_fallback(self, *args: Any, **kwargs: Any) -> Any:
        self._meter.check()
        self.submitted = False
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
