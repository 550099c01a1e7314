"""The calls of the graph: what a model is told and asked at each step.

What is the same for all questions of a pack stands first, so that a server keeps it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import dspy
from dspy.utils.exceptions import AdapterParseError

from reasoningbank.lm import lm_failure
from reasoningbank.lm.reply import query_in

__all__ = ["AnalyzeQuestion", "PlanQuery", "Said", "VerifyRows", "WriteQuery", "ask", "ask_query"]


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


class WriteQuery(dspy.Signature):  # type: ignore[misc]
    """Write one SPARQL query that answers the question over the knowledge base.

    Follow the rules. The examples are like it: keep their structure, change what they are about.
    Where earlier queries are told, write another one that has not their problems.
    """

    rules: str = dspy.InputField(desc="how queries are written here")
    examples: str = dspy.InputField(desc="questions with right queries")
    question: str = dspy.InputField()
    plan: str = dspy.InputField(desc="steps that the query takes")
    data: str = dspy.InputField(desc="what the data really have")
    earlier: str = dspy.InputField(desc="queries that were wrong, and why")
    sparql: str = dspy.OutputField(desc="the query alone")


class VerifyRows(dspy.Signature):  # type: ignore[misc]
    """Tell whether the result of a query is what the question asks for.

    Look at what the columns hold, not at how many rows there are.
    """

    question: str = dspy.InputField()
    query: str = dspy.InputField()
    result: str = dspy.InputField()
    valid: bool = dspy.OutputField()
    issues: list[str] = dspy.OutputField(desc="what is wrong with it; [] where nothing is")


@dataclass(frozen=True)
class Said:
    """What a model answered.

    Attributes:
        fields: The outputs by name; empty where the reply could not be parsed.
        text: The reply, where it could not be parsed.
    """

    fields: dict[str, Any]
    text: str = ""

    def __bool__(self) -> bool:
        return bool(self.fields)


def ask(
    signature: Any,
    lm: dspy.BaseLM,
    *,
    temperature: float | None = None,
    **inputs: Any,
) -> Said:
    """Ask a model once.

    Args:
        signature: What it is told and asked.
        lm: The model.
        temperature: Of this call; the model's own where None.
        **inputs: The inputs by name.

    Raises:
        ModelError: The model cannot be reached.
        BudgetError: The prompt does not fit its context window.
        SetupError: Its key or name is wrong.
    """
    predict = dspy.Predict(signature)
    if temperature is not None:
        predict.config["temperature"] = temperature
    # A reply that cannot be parsed is not asked for again in another format: one call is one.
    adapter = dspy.ChatAdapter(use_json_adapter_fallback=False)
    with dspy.context(lm=lm, adapter=adapter):
        try:
            said = predict(**inputs)
        except AdapterParseError as failure:
            return Said({}, str(failure.lm_response or ""))
        except Exception as error:
            failed = lm_failure(error)
            if failed is None or failed is error:
                raise
            raise failed from error
    return Said({name: said[name] for name in signature.output_fields})


def ask_query(
    signature: Any, lm: dspy.BaseLM, *, temperature: float | None = None, **inputs: Any
) -> str:
    """Ask a model for a query; errors are those of `ask`.

    Returns:
        The query; ``''`` where the reply holds none.
    """
    said = ask(signature, lm, temperature=temperature, **inputs)
    # A small model forgets the field's header; its query is in the reply all the same.
    return query_in(said.fields["sparql"] if said else said.text) or ""
