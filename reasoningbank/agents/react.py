"""The ReAct agent: one tool call a turn; the query is extracted from what was seen."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import dspy
from dspy.primitives.repl_types import REPLEntry
from dspy.utils.exceptions import AdapterParseError, ContextWindowExceededError

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
from reasoningbank.corpus import Task
from reasoningbank.errors import EndpointError, ToolError
from reasoningbank.lm import lm_failure
from reasoningbank.trajectory import Recorder

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
        return run_loop(self._program(episode), task, episode, ToolRecorder(episode.recorder))

    def _program(self, episode: Episode) -> RecordedReAct:
        react = RecordedReAct(
            task_signature(episode),
            tool_objects(episode.tools),
            episode.budget.iterations,
            meter=episode.meter,
            recorder=episode.recorder,
            max_output_chars=self._max_output_chars,
        )
        endpoint = episode.endpoint
        head = INSTRUCTIONS.format(name=endpoint.source, prefixes=prefix_names(endpoint))
        step = react.react
        step.signature = step.signature.with_instructions(
            f"{head}\n{tool_lines(episode.tools)}\n{FINISH}"
        )
        step.demos = [
            example
            for demonstration in episode.demonstrations
            for example in call_examples(demonstration, react)
        ]
        react.extract.predict.lm = episode.extractor
        return react


class RecordedReAct(dspy.ReAct):  # type: ignore[misc]
    """`dspy.ReAct` with the rules of `RecordedRLM`, so that only the loop differs."""

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
        self.tools |= {_FINISH: self._finish, _UNREADABLE: lambda: NO_TOOL}
        self._meter = meter
        self._recorder = recorder
        self._most_chars = max_output_chars
        self._repeats = Repeats(self.react)
        self._finished = False

    @property
    def submitted(self) -> bool:
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
            # The way out of DSPy's loop; the model made no turn, and none is counted.
            return dspy.Prediction(next_thought="", next_tool_name=_FINISH, next_tool_args={})
        self._meter.turn()
        try:
            return self._asked(module, trajectory, inputs)
        except AdapterParseError as failure:
            said = str(failure.lm_response)
            self._recorder.add("error", UNREADABLE | {"reply": said})
            self._repeats.again(said)
            return dspy.Prediction(
                next_thought=said[-500:], next_tool_name=_UNREADABLE, next_tool_args={}
            )

    def _asked(self, module: Any, trajectory: dict[str, Any], inputs: dict[str, Any]) -> Any:
        try:
            return module(**inputs, trajectory=self._format_trajectory(trajectory))
        except ContextWindowExceededError as error:
            raise lm_failure(error) or error from error

    def _observed(self, name: str, tool: Callable[..., Any]) -> Callable[..., str]:
        def call(**arguments: Any) -> str:
            done = f"{name} {json.dumps(arguments, sort_keys=True, default=str)}"
            if self._repeats.again(done):
                return REPEATED
            try:
                return str(REPLEntry.format_output(str(tool(**arguments)), self._most_chars))
            except (ToolError, ValueError, TypeError) as error:
                if isinstance(error.__cause__, EndpointError):
                    self._repeats.forget(done)
                # DSPy's Tool raises ValueError for a wrong argument.
                return f"[Error] {' '.join(str(error).split())}"

        return call

    def _finish(self, **_: Any) -> str:
        self._finished = True
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
