"""The RLM agent: writes Python that calls the tools, sees its output, and submits a query."""

from __future__ import annotations

import time
from typing import Any

import dspy
from dspy.primitives.repl_types import REPLHistory, REPLVariable
from dspy.utils.exceptions import AdapterParseError

from reasoningbank.agents.calling import Repeats, instruct, run_loop, task_signature, tool_objects
from reasoningbank.agents.demonstrations import Demonstration
from reasoningbank.agents.protocol import Attempt, Episode
from reasoningbank.agents.recording import ToolRecorder
from reasoningbank.agents.sandbox import Sandbox
from reasoningbank.corpus import Task

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

SUB_CALLS = "- `llm_query(prompt)`: ask a language model; at most {calls} times."

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
        rlm = RecordedRLM(episode, calls, self._max_output_chars, self._max_sub_calls)
        return run_loop(rlm, task, episode, calls)


class RecordedRLM(dspy.RLM):  # type: ignore[misc]
    """`dspy.RLM` that is metered and recorded, and ends when it repeats itself."""

    def __init__(
        self, episode: Episode, calls: ToolRecorder, max_output_chars: int, max_sub_calls: int
    ) -> None:
        super().__init__(
            signature=task_signature(episode),
            tools=tool_objects(episode),
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
        sub_calls = SUB_CALLS.format(calls=max_sub_calls) if max_sub_calls else ""
        instruct(action, INSTRUCTIONS, sub_calls, episode)
        action.demos = [
            example
            for demonstration in episode.demonstrations
            for example in turn_examples(demonstration, episode.budget.iterations)
        ]
        self.extract.lm = episode.extractor

    def _execute_iteration(
        self, repl: Any, variables: list[Any], history: REPLHistory, *args: Any, **kwargs: Any
    ) -> Any:
        self._meter.turn()
        try:
            result = super()._execute_iteration(repl, variables, history, *args, **kwargs)
        except AdapterParseError as failure:
            said = self.repeats.unreadable(failure, self._recorder)
            result = history.append(code=said, output=NO_CODE + self._cut())
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
            self._recorder.extend(index, {"output": REPEATED, "repeated": True})
            return REPEATED
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
