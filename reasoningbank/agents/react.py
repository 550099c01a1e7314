"""The ReAct agent: one tool call a turn; the query is extracted from what was seen."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import dspy
from dspy.primitives.repl_types import REPLEntry
from dspy.utils.exceptions import AdapterParseError, ContextWindowExceededError

from reasoningbank.agents.calling import Repeats, instruct, run_loop, task_signature, tool_objects
from reasoningbank.agents.demonstrations import Demonstration
from reasoningbank.agents.protocol import Attempt, Episode
from reasoningbank.agents.recording import ToolRecorder
from reasoningbank.corpus import Task
from reasoningbank.errors import EndpointError, ToolError
from reasoningbank.lm import lm_failure

#: As far as the loops allow, the same words as those of `rlm`.
INSTRUCTIONS = """\
Write the SPARQL query that answers the question over the endpoint {name}.
Each turn you call one tool, and you see what it returns.
1. Look at the vocabulary: sparql_sample {{"class_uri": "a class"}}, sparql_describe
   {{"uri": "a resource"}} or sparql_find {{"pattern": "a name"}}.
2. Run your query with sparql_query and look at its rows with sparql_peek.
3. When the rows answer the question, call finish: the query that you ran is your answer.
Ask for exactly the columns the question names. Never repeat a call that you already made.
These prefixes are declared for you: {prefixes}.

Tools, called by name with next_tool_args as a JSON object:"""

FINISH = "- `finish()`: Ends the task."

REPEATED = (
    "[Repeated] You already made this call; its observation is above and it was not made again. "
    "Do something else now: another tool, another query, or finish."
)
NO_TOOL = (
    "[Error] The reply names no tool. Answer with the three fields next_thought, "
    "next_tool_name and next_tool_args (JSON)."
)
_FINISH = "finish"
#: Called for a reply that names no tool; the model never sees it among the tools.
_UNREADABLE = "unreadable"


class ReActAgent:
    """`dspy.ReAct` (Yao et al., arXiv 2210.03629) with the tools and records of `rlm`."""

    name = "react"
    uses_lm = True
    sees_gold = False

    def __init__(self, max_output_chars: int = 1_500) -> None:
        self._max_output_chars = max_output_chars

    def solve(self, task: Task, episode: Episode) -> Attempt:
        """Answer by tool calls, ended by `finish`, a budget, or a repeated call."""
        react = RecordedReAct(episode, self._max_output_chars)
        return run_loop(react, task, episode, ToolRecorder(episode.recorder))


class RecordedReAct(dspy.ReAct):  # type: ignore[misc]
    """`dspy.ReAct` with the rules of `RecordedRLM`, so that only the loop differs."""

    def __init__(self, episode: Episode, max_output_chars: int) -> None:
        tools = tool_objects(episode)
        super().__init__(task_signature(episode), tools, episode.budget.iterations)
        observed = {tool.name: self._observed(tool.name, tool) for tool in tools}
        self.tools: dict[str, Callable[..., Any]] = observed
        self.tools |= {_FINISH: self._finish, _UNREADABLE: lambda: NO_TOOL}
        self.repeats = Repeats(self.react)
        self.submitted = False
        self._episode = episode
        self._most_chars = max_output_chars
        instruct(self.react, INSTRUCTIONS, FINISH, episode)
        self.react.demos = [
            example
            for demonstration in episode.demonstrations
            for example in call_examples(demonstration, self)
        ]
        self.extract.predict.lm = episode.extractor

    def _call_with_potential_trajectory_truncation(
        self, module: Any, trajectory: dict[str, Any], **inputs: Any
    ) -> Any:
        meter = self._episode.meter
        if module is not self.react:
            meter.check()
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

    def _observed(self, name: str, tool: Callable[..., Any]) -> Callable[..., str]:
        def call(**arguments: Any) -> str:
            done = f"{name} {json.dumps(arguments, sort_keys=True, default=str)}"
            if self.repeats.again(done):
                return REPEATED
            try:
                return str(REPLEntry.format_output(str(tool(**arguments)), self._most_chars))
            except (ToolError, ValueError, TypeError) as failure:
                if isinstance(failure.__cause__, EndpointError):
                    self.repeats.forget(done)
                # DSPy's Tool raises ValueError for a wrong argument.
                return f"[Error] {' '.join(str(failure).split())}"

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
