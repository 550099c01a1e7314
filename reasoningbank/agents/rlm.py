"""The RLM agent: writes Python that calls the tools, sees its output, and submits a query."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dspy
from dspy.primitives.repl_types import REPLHistory, REPLVariable
from dspy.utils.exceptions import AdapterParseError

from reasoningbank.agents.brief import inputs_of, prefix_names, task_signature
from reasoningbank.agents.calling import asking
from reasoningbank.agents.conclusion import conclude
from reasoningbank.agents.demonstrations import Demonstration
from reasoningbank.agents.protocol import Attempt, AttemptStatus, Episode
from reasoningbank.agents.recording import ToolRecorder
from reasoningbank.agents.sandbox import Sandbox
from reasoningbank.agents.tool_lines import tool_lines
from reasoningbank.agents.tool_objects import tool_objects
from reasoningbank.agents.turns import RecordedRLM
from reasoningbank.corpus import Task
from reasoningbank.errors import BudgetError
from reasoningbank.lm.reply import query_in

__all__ = ["RLMAgent"]

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


class RLMAgent:
    """`dspy.RLM` in the Deno/Pyodide sandbox, with the tools and demonstration turns.

    The instructions are our own, half as long as DSPy's: a small model reads 50 tokens a second.

    Args:
        max_output_chars: Characters of a turn's output that the model sees.
        max_sub_calls: Calls of the sandbox's own `llm_query`; it is mentioned if above 0.
    """

    name = "rlm"
    uses_lm = True
    sees_gold = False

    def __init__(self, max_output_chars: int = 1_500, max_sub_calls: int = 0) -> None:
        self._max_output_chars = max_output_chars
        self._max_sub_calls = max_sub_calls

    def solve(self, task: Task, episode: Episode) -> Attempt:
        """Answer by turns of code, ended by a submission, a budget, or a repeated turn.

        Raises:
            EndpointError: If the endpoint fails.
            ModelError: If the model cannot be reached.
            SetupError: If the sandbox cannot be started.
        """
        calls = ToolRecorder(episode.recorder)
        rlm = self._program(episode, calls)
        sparql: str | None = None
        status: AttemptStatus = "submitted"
        error = ""
        try:
            with asking(episode, calls):
                prediction = rlm(**inputs_of(task, episode))
            sparql = query_in(prediction.sparql)
            status = "fallback" if rlm.fell_back else "submitted"
        except AdapterParseError as failure:
            # Only the extract step raises it: a turn that cannot be parsed is a failed turn.
            sparql, status = query_in(failure.lm_response), "fallback"
        except BudgetError as spent:
            status, error = "exhausted", str(spent)
        return conclude(
            episode,
            sparql,
            status,
            error or ("a turn repeated an earlier one" if rlm.repeated else ""),
        )

    def _program(self, episode: Episode, calls: ToolRecorder) -> RecordedRLM:
        endpoint = episode.endpoint
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
        tools = tool_lines(episode.tools)
        prefixes = prefix_names(endpoint)
        head = INSTRUCTIONS.format(name=endpoint.source, prefixes=prefixes)
        sub_calls = SUB_CALLS.format(calls=self._max_sub_calls) if self._max_sub_calls else ""
        rlm.extract.lm = episode.extractor
        action = rlm.generate_action
        action.signature = action.signature.with_instructions(f"{head}\n{tools}{sub_calls}")
        rlm.generate_action.demos = [
            example
            for demonstration in episode.demonstrations
            for example in turn_examples(demonstration, episode.budget.iterations)
        ]
        return rlm


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
