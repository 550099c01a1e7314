"""A user's `dspy.Module` as an agent: `question` in, `sparql` out."""

from __future__ import annotations

import inspect
from typing import Any

import dspy

from reasoningbank.agents.calling import ToolRecorder, asking
from reasoningbank.agents.protocol import Attempt, Episode, Meter, conclude
from reasoningbank.corpus import Task
from reasoningbank.errors import BudgetError, UsageError
from reasoningbank.findings import Finding
from reasoningbank.imports import wrong_type
from reasoningbank.lm.reply import query_in
from reasoningbank.tools.adapting import text_tools


def as_agent(made: Any, path: str) -> Any:
    """Return what an import path made as an agent: itself if it is one, or a module of DSPy.

    Raises:
        UsageError: If it is neither.
    """
    if isinstance(made, dspy.Module):
        return ModuleAgent(made, path)
    missing = [name for name in ("solve", "uses_lm", "sees_gold") if not hasattr(made, name)]
    if missing:
        hint = f"it has no {missing[0]}" if len(missing) < 3 else ""
        raise wrong_type(path, "a dspy.Module, nor an agent with solve(task, episode)", hint=hint)
    return made


class ModuleAgent:
    """Runs a user's module; its calls of models and tools are recorded and count as any agent's.

    The module is called with `question` and with what else its `forward` names of these:
    `tools` (a list for `dspy.ReAct`, whose results are text), `context` (memory, or empty),
    `endpoint` (an `EndpointConfig`), `examples` (few-shot examples) and `episode` (all of it).
    """

    uses_lm = True
    compiles = True
    sees_gold = False

    def __init__(self, module: dspy.Module, name: str) -> None:
        self.name = name
        self._module = module
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
            "tools": lambda: text_tools(
                dspy.Tool(tool, name=name) for name, tool in episode.tools.items()
            ),
            "context": lambda: episode.context,
            "endpoint": lambda: episode.endpoint,
            "examples": lambda: episode.examples,
            "episode": lambda: episode,
        }
        given = {name: make() for name, make in known.items() if name in self._takes}
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
