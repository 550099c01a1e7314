"""A user's `dspy.Module` as an agent: `question` in, `sparql` out."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, cast

import dspy

from reasoningbank.agents.calling import ToolRecorder, asking
from reasoningbank.agents.protocol import Agent, Attempt, Episode, Meter, conclude
from reasoningbank.corpus import Task
from reasoningbank.errors import BudgetError, UsageError
from reasoningbank.findings import Finding
from reasoningbank.imports import imported, one_line, wrong_type
from reasoningbank.lm.reply import query_in
from reasoningbank.tools.adapting import text_tools


def own_agent(path: str, options: Mapping[str, Any]) -> Agent:
    """Return a new agent by its import path: a user's agent, or a module of DSPy as one.

    Raises:
        UsageError: If it is neither, or cannot be made with these options.
    """
    made: Any = imported(path)
    if isinstance(made, dspy.Module):
        # Trials at the same time must not share it.
        made = made.deepcopy()
    elif callable(made):
        try:
            made = made(**options)
        except Exception as error:  # a class can raise anything
            what = f"cannot be made with the options {', '.join(options) or 'none'}"
            said = f"{what}: {one_line(error)}"
            raise UsageError(said, where=path, code="unknown-option") from error
    if isinstance(made, dspy.Module):
        return ModuleAgent(made, path)
    for name in ("solve", "uses_lm", "sees_gold"):
        if not hasattr(made, name):
            what = "a dspy.Module, nor an agent with solve(task, episode)"
            raise wrong_type(path, what, hint=f"it has no {name}")
    return cast("Agent", made)


class ModuleAgent:
    """Runs a user's module; its calls of models and tools are recorded and count as any agent's.

    The module is called with `question` and with what else its `forward` names of these:
    `tools` (a list for `dspy.ReAct`, whose results are text), `context` (memory, or empty),
    `endpoint` (an `EndpointConfig`), `examples` (few-shot examples) and `episode` (all of it).
    """

    uses_lm, sees_gold, compiles = True, False, True

    def __init__(self, module: dspy.Module, name: str) -> None:
        self.name, self._module = name, module
        forward = inspect.signature(type(module).forward).parameters
        self._takes = set(forward)
        if any(one.kind == one.VAR_KEYWORD for one in forward.values()) and module.predictors():
            # A predictor of DSPy takes the inputs of its signature.
            self._takes |= set(module.predictors()[0].signature.input_fields)
        if "question" not in self._takes:
            raise wrong_type(name, "a module that takes question")

    def solve(self, task: Task, episode: Episode) -> Attempt:
        """Answer with the `sparql` of the module's prediction."""
        calls = ToolRecorder(episode.recorder)
        known = {
            "tools": text_tools(episode.tools.values()),
            "context": episode.context,
            "endpoint": episode.endpoint,
            "examples": episode.examples,
            "episode": episode,
        }
        given = {name: one for name, one in known.items() if name in self._takes}
        try:
            episode.adopt(self._module)
            episode.meter.turn()
            with asking(episode, calls), dspy.context(adapter=_MeteredAdapter(episode.meter)):
                said = self._module(question=task.query, **given)
        except BudgetError as error:
            return conclude(episode, None, "exhausted", [error])
        if not isinstance(said, dspy.Prediction) or "sparql" not in said:
            what = f"the prediction of {self.name} has no field sparql"
            raise UsageError(what, hint="return dspy.Prediction(sparql=…)", code="no-sparql-field")
        sparql = query_in(str(said["sparql"] or ""))
        nothing = [] if sparql else [Finding("no-query", "the prediction contains no query")]
        return conclude(episode, sparql, "submitted", nothing)


class _MeteredAdapter(dspy.ChatAdapter):  # type: ignore[misc]
    """Checks the budgets before each call of a model."""

    def __init__(self, meter: Meter) -> None:
        super().__init__(use_json_adapter_fallback=False)
        self._meter = meter

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self._meter.check()
        return super().__call__(*args, **kwargs)
