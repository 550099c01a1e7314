"""An agent as a `dspy.Module`: for `dspy.Evaluate`, for optimizers, and to save and load.

Agents build their DSPy modules anew for each attempt, since instructions name the endpoint and the
tools. An `AgentProgram` holds the predictors, and gives the module of each attempt what they are.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from typing import Any

import dspy
from pydantic import BaseModel, TypeAdapter, ValidationError

from reasoningbank.errors import BudgetError

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
                {key: _plain(value) for key, value in demo.items() if key in shown}
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


def _plain(value: Any) -> Any:
    return value.model_dump(mode="json") if isinstance(value, BaseModel) else value


def _typed(field: Any, value: Any) -> Any:
    with contextlib.suppress(ValidationError):
        return TypeAdapter(field.annotation).validate_python(value)
    return value
