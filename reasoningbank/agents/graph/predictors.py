"""The calls of the graph: what a model is told and asked at each step.

What is the same for all questions of a pack stands first, so that a server keeps it.
"""

from __future__ import annotations

from typing import Any, Literal

import dspy
from dspy.utils.exceptions import AdapterParseError

from reasoningbank.lm import lm_failure

__all__ = ["AnalyzeQuestion", "PlanQuery", "VerifyRows", "ask"]


class AnalyzeQuestion(dspy.Signature):  # type: ignore[misc]
    """Tell what a question over a knowledge base needs, before its SPARQL query is written."""

    kinds: str = dspy.InputField(desc="kinds of things that questions need")
    question: str = dspy.InputField()
    patterns: list[str] = dspy.OutputField(desc="names of the kinds that this question needs")
    complexity: Literal["simple", "moderate", "complex"] = dspy.OutputField(
        desc="simple for one kind, complex for several that depend on one another"
    )
    dialects: list[str] = dspy.OutputField(
        desc="dialects or languages that translations are asked into; [] for none"
    )
    unclear: str = dspy.OutputField(
        desc="a question back, only where this one cannot be understood; else: none"
    )


class PlanQuery(dspy.Signature):  # type: ignore[misc]
    """Break a question into the steps that one SPARQL query takes, each a part of its pattern.

    Two to five steps. Later steps may use what earlier ones bind; the last combines them.
    """

    question: str = dspy.InputField()
    patterns: str = dspy.InputField(desc="what it needs")
    steps: list[str] = dspy.OutputField(desc="one short sentence a step")


class VerifyRows(dspy.Signature):  # type: ignore[misc]
    """Tell whether the result of a query is what the question asks for.

    Look at what the columns hold, not at how many rows there are.
    """

    question: str = dspy.InputField()
    query: str = dspy.InputField()
    result: str = dspy.InputField()
    valid: bool = dspy.OutputField()
    issues: list[str] = dspy.OutputField(desc="what is wrong with it; [] where nothing is")


def ask(signature: Any, lm: dspy.BaseLM, **inputs: Any) -> dict[str, Any]:
    """Ask a model once.

    Args:
        signature: What it is told and asked.
        lm: The model.
        **inputs: The inputs by name.

    Returns:
        The outputs by name; empty where the reply could not be parsed.

    Raises:
        ModelError: The model cannot be reached.
        BudgetError: The prompt does not fit its context window.
        SetupError: Its key or name is wrong.
    """
    predict = dspy.Predict(signature)
    # A reply that cannot be parsed is not asked for again in another format: one call is one.
    adapter = dspy.ChatAdapter(use_json_adapter_fallback=False)
    with dspy.context(lm=lm, adapter=adapter):
        try:
            said = predict(**inputs)
        except AdapterParseError:
            return {}
        except Exception as error:
            failed = lm_failure(error)
            if failed is None or failed is error:
                raise
            raise failed from error
    return {name: said[name] for name in signature.output_fields}
