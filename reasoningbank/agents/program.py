"""Agents and DSPy's modules: an agent as a `dspy.Module` for `dspy.Evaluate` and optimizers, to
save and load; and a user's `dspy.Module` (`question` in, `sparql` out) as an agent.

Agents build their DSPy modules anew for each attempt, since instructions name the endpoint and the
tools. An `AgentProgram` holds the predictors, and gives the module of each attempt what they are.
"""

from __future__ import annotations

import contextlib
import copy
import inspect
from collections.abc import Callable, Mapping
from typing import Any, cast

import dspy
from dspy.utils.exceptions import AdapterParseError
from pydantic import BaseModel, TypeAdapter, ValidationError

from reasoningbank.agents.calling import ToolRecorder, asking
from reasoningbank.agents.protocol import Agent, Attempt, Episode, Meter, conclude
from reasoningbank.corpus import Task
from reasoningbank.errors import BudgetError, UsageError
from reasoningbank.findings import Finding
from reasoningbank.imports import imported, one_line, wrong_type
from reasoningbank.lm.reply import query_in
from reasoningbank.tools.adapting import text_tools

#: Of each predictor, by its name in the agent's module: `instructions` and `demos`.
Predictors = Mapping[str, Mapping[str, Any]]
#: Answers a question with a query; the second argument is an episode's `adopt`.
Answer = Callable[[str, Callable[[Any], None]], str | None]


class AgentProgram(dspy.Module):  # type: ignore[misc]
    """An agent as optimizers see it: its predictors, and a call that answers a question.

    `save` and `load` keep instructions and demonstrations.
    """

    def __init__(self, parts: Mapping[str, dspy.Predict], answer: Answer) -> None:
        super().__init__()
        self.parts = dict(parts)
        self.answer = answer

    def forward(self, question: str) -> dspy.Prediction:
        """Let the agent answer, with the predictors as they are now."""
        names: dict[int, str] = {}

        def adopt(module: dspy.Module) -> None:
            give(self.predictors_by_name(), module)
            names.update((id(one), name) for name, one in module.named_predictors())

        trace = dspy.settings.trace
        own = next((one.lm for one in self.parts.values() if one.lm is not None), None)
        with dspy.context(trace=[], **({} if own is None else {"lm": own})):
            sparql = self.answer(question, adopt)
            steps = dspy.settings.trace
        if trace is not None:
            # Each attempt has a module of its own; optimizers know this one.
            trace += [(self.parts[names[id(p)]], *step) for p, *step in steps if id(p) in names]
        return dspy.Prediction(sparql=sparql or "")

    def predictors_by_name(self) -> dict[str, dict[str, Any]]:
        """Return instructions and demonstrations of each predictor."""
        return {
            name: {"instructions": one.signature.instructions, "demos": list(one.demos)}
            for name, one in self.parts.items()
        }

    def to_json(self) -> dict[str, Any]:
        """Return the same as JSON-able data, of each demonstration what its predictor shows."""
        found = self.predictors_by_name()
        for name, part in found.items():
            shown = {*self.parts[name].signature.fields, "augmented"}
            part["demos"] = [
                {
                    key: value.model_dump(mode="json") if isinstance(value, BaseModel) else value
                    for key, value in demo.items()
                    if key in shown
                }
                for demo in part["demos"]
            ]
        return found


def program_of(answer: Answer) -> AgentProgram:
    """Return an agent's program as it is without an optimizer; no model is asked."""
    parts: dict[str, dspy.Predict] = {}

    def look(module: dspy.Module) -> None:
        for name, one in module.named_predictors():
            parts[name] = dspy.Predict(one.signature)
            parts[name].demos = list(one.demos)
        raise BudgetError("only the predictors are wanted", budget="lm_calls", limit=0)

    answer("Which?", look)
    return AgentProgram(parts, answer)


def give(predictors: Predictors, module: dspy.Module) -> None:
    """Give the predictors of an agent's module their instructions and demonstrations."""
    for name, one in module.named_predictors():
        part = predictors[name]
        one.signature = one.signature.with_instructions(part["instructions"])
        fields = one.signature.fields
        one.demos = [
            dspy.Example(**{k: _typed(fields[k], v) for k, v in demo.items() if k in fields})
            for demo in part["demos"]
        ]


def _typed(field: Any, value: Any) -> Any:
    with contextlib.suppress(ValidationError):
        return TypeAdapter(field.annotation).validate_python(value)
    return value


# -- a user's module as an agent -----------------------------------------------------------------


def own_agent(path: str, options: Mapping[str, Any]) -> Agent:
    """Return a new agent by its import path: a user's agent, or a module of DSPy as one.

    Raises:
        UsageError: If it is neither, or cannot be made with these options.
    """
    made: Any = imported(path)
    if isinstance(made, dspy.Module):
        if options:
            what = f"is already made, so it takes no options: {', '.join(options)}"
            raise UsageError(what, where=path, hint="name its class", code="unknown-option")
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


#: What a module may be given beside the question, by its name.
_GIVEN: Mapping[str, Callable[[Episode], Any]] = {
    "tools": lambda episode: text_tools(episode.tools.values()),
    "context": lambda episode: episode.context,
    "endpoint": lambda episode: episode.endpoint,
    "examples": lambda episode: episode.examples,
    "episode": lambda episode: episode,
}


class ModuleAgent:
    """Runs a user's module; its calls of models and tools are recorded and count as any agent's.

    The module is called with `question` and with what else its `forward` names of these:
    `tools` (a list for `dspy.ReAct`, whose results are text), `context` (memory, or empty),
    `endpoint` (an `EndpointConfig`), `examples` (few-shot examples) and `episode` (all of it).
    """

    uses_lm, sees_gold = True, False

    def __init__(self, module: dspy.Module, name: str) -> None:
        self.name, self._module = name, module
        # Predictors that forward makes are unknown to an optimizer.
        self.compiles = bool(module.predictors())
        method = getattr(type(module), "forward", None)
        if method is None or inspect.iscoroutinefunction(method):
            raise wrong_type(name, "a module with a forward that is not async")
        _, *forward = inspect.signature(method).parameters.values()
        takes = {one.name for one in forward}
        named = [one for one in forward if one.kind not in (one.VAR_KEYWORD, one.VAR_POSITIONAL)]
        needed = {one.name for one in named if one.default is one.empty}
        if any(one.kind == one.VAR_KEYWORD for one in forward) and module.predictors():
            # A predictor of DSPy takes the inputs of its signature.
            inputs = module.predictors()[0].signature.input_fields
            takes |= set(inputs)
            if isinstance(module, (dspy.Predict, dspy.ChainOfThought)):
                needed |= {field for field, one in inputs.items() if one.is_required()}
        if "question" not in takes:
            raise wrong_type(name, "a module that takes question")
        if lacking := sorted(needed - {"question", *_GIVEN}):
            hint = f"its forward needs {', '.join(lacking)}; give it a default"
            raise wrong_type(name, "a module that runs with what a trial gives", hint=hint)
        self._takes = takes & _GIVEN.keys()
        parts = {"context", "examples", "tools"}
        self.uses = tuple(parts if "episode" in self._takes else parts & self._takes)

    def solve(self, task: Task, episode: Episode) -> Attempt:
        """Answer with the `sparql` of the module's prediction."""
        calls = ToolRecorder(episode.recorder)
        given = {name: of(episode) for name, of in _GIVEN.items() if name in self._takes}
        adapter = _metered(episode.meter)
        try:
            episode.adopt(self._module)
            episode.meter.turn()
            with asking(episode, calls), dspy.context(adapter=adapter):
                said = self._module(question=task.query, **given)
        except BudgetError as error:
            return conclude(episode, None, "exhausted", [error])
        except AdapterParseError:
            unread = Finding("unparsed-reply", "a reply of the model could not be parsed")
            return conclude(episode, None, "fallback", [unread])
        if not isinstance(said, dspy.Prediction) or "sparql" not in said:
            what = f"the prediction of {self.name} has no field sparql"
            raise UsageError(what, hint="return dspy.Prediction(sparql=…)", code="no-sparql-field")
        return conclude(episode, query_in(str(said["sparql"] or "")), "submitted")


def _metered(meter: Meter) -> dspy.Adapter:
    """Return the user's adapter, or DSPy's default, with a check of the budgets before a call."""
    adapter = copy.copy(dspy.settings.adapter or dspy.ChatAdapter())
    kind: Any = type(adapter)

    class Metered(kind):  # type: ignore[misc]
        def __call__(self, *args: Any, **kwargs: Any) -> Any:
            meter.check()
            return super().__call__(*args, **kwargs)

    adapter.__class__ = Metered
    return adapter
