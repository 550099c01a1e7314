"""The ReAct agent: one tool call a turn, and the query is extracted from what was seen."""

from __future__ import annotations

import json
from typing import Any

import dspy
from dspy.utils.exceptions import AdapterParseError

from reasoningbank.agents.brief import inputs_of, prefix_names, task_signature
from reasoningbank.agents.calling import asking
from reasoningbank.agents.conclusion import conclude
from reasoningbank.agents.demonstrations import Demonstration
from reasoningbank.agents.protocol import Attempt, AttemptStatus, Episode
from reasoningbank.agents.react_turns import RecordedReAct
from reasoningbank.agents.recording import ToolRecorder
from reasoningbank.agents.tool_lines import tool_lines
from reasoningbank.agents.tool_objects import tool_objects
from reasoningbank.corpus import Task
from reasoningbank.errors import BudgetError
from reasoningbank.lm.reply import query_in

__all__ = ["ReActAgent"]

#: As far as the loops allow, word for word what `rlm` is told.
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


class ReActAgent:
    """`dspy.ReAct` (Yao et al., arXiv 2210.03629) with the very tools and records of `rlm`.

    It is the control for `rlm`: the same tools, budget, hints and worked questions, but calls
    instead of code.

    Args:
        max_output_chars: Characters of an observation that the model sees.
    """

    name = "react"
    uses_lm = True
    sees_gold = False

    def __init__(self, max_output_chars: int = 1_500) -> None:
        self._max_output_chars = max_output_chars

    def solve(self, task: Task, episode: Episode) -> Attempt:
        """Answer by tool calls, ended by `finish`, a budget, or a repeated call.

        Raises:
            EndpointError: If the endpoint fails.
            ModelError: If the model cannot be reached.
        """
        calls = ToolRecorder(episode.recorder)
        react = self._program(episode)
        sparql: str | None = None
        status: AttemptStatus = "fallback"
        error = ""
        try:
            with asking(episode, calls):
                sparql = query_in(react(**inputs_of(task, episode)).sparql)
        except AdapterParseError as failure:
            # Only the extract step raises it: a turn that cannot be parsed is a failed turn.
            sparql = query_in(failure.lm_response)
        except BudgetError as spent:
            status, error = "exhausted", str(spent)
        if status != "exhausted" and react.finished:
            status = "submitted"
        repeated = "a call repeated an earlier one" if react.repeated else ""
        return conclude(episode, sparql, status, error or repeated)

    def _program(self, episode: Episode) -> RecordedReAct:
        endpoint = episode.endpoint
        react = RecordedReAct(
            task_signature(episode),
            tool_objects(episode.tools),
            episode.budget.iterations,
            meter=episode.meter,
            recorder=episode.recorder,
            max_output_chars=self._max_output_chars,
        )
        prefixes = prefix_names(endpoint)
        head = INSTRUCTIONS.format(name=endpoint.source, prefixes=prefixes)
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
