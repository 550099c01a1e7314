"""Writing, adapting and mending a query with a language model: one call each.

The model is given, never configured; within an agent's own `dspy.context` its callbacks go on.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import dspy
from dspy.utils.exceptions import AdapterParseError

from reasoningbank.lm import lm_failure
from reasoningbank.lm.reply import query_in
from reasoningbank.nl2sparql.examples import Example

__all__ = ["adapt", "examples_text", "fix", "synthesise"]

NONE = "none"
#: Of a query that failed: longer ones are cut, since they push the rules out of sight.
MOST_EARLIER = 1_500
_PREFIXES = re.compile(r"^(?:[ \t]*PREFIX\s+[^\s:<]*:\s*<[^>\s]*>[ \t]*)+\n?", re.I | re.M)


class WriteQuery(dspy.Signature):  # type: ignore[misc]
    """Write one SPARQL query that answers the question over the knowledge base.

    Follow the rules. The examples are like it: keep their structure, change what they are about.
    Where earlier queries are told, write another one that has not their problems.
    """

    rules: str = dspy.InputField(desc="how queries are written here")
    examples: str = dspy.InputField(desc="questions with right queries")
    question: str = dspy.InputField()
    earlier: str = dspy.InputField(desc="queries that were wrong, and why")
    sparql: str = dspy.OutputField(desc="the query alone")


class AdaptQuery(dspy.Signature):  # type: ignore[misc]
    """Change the example's query so that it answers the question.

    The questions are nearly the same: change what differs between them, and nothing else.
    """

    example_question: str = dspy.InputField()
    example_query: str = dspy.InputField()
    question: str = dspy.InputField()
    sparql: str = dspy.OutputField(desc="the changed query alone")


def synthesise(
    question: str,
    rules: str,
    examples: Sequence[Example],
    lm: dspy.BaseLM | None = None,
    *,
    language: str = "",
) -> str | None:
    """Write a query for a question.

    Args:
        question: The question.
        rules: What `build_constraints` gives.
        examples: Like questions with their queries, the best first.
        lm: The model; that of the `dspy.context` by default.
        language: The question's language, which the examples' questions are shown in.

    Returns:
        The query; None where the reply holds none.

    Raises:
        ModelError: The model cannot be reached.
        BudgetError: The prompt does not fit its context window.
        SetupError: Its key or name is wrong.
    """
    return _ask(WriteQuery, lm, **_inputs(question, rules, examples, language), earlier=NONE)


def fix(
    question: str,
    rules: str,
    examples: Sequence[Example],
    earlier: Sequence[tuple[str, str]],
    lm: dspy.BaseLM | None = None,
    *,
    language: str = "",
) -> str | None:
    """Write a query anew, knowing those that were wrong and why.

    The prompt begins like that of `synthesise`, so that a server reads only its end anew.

    Args:
        question: The question.
        rules: As before.
        examples: As before.
        earlier: Queries with their problems, in order; the last two are shown.
        lm: The model; that of the `dspy.context` by default.
        language: As before.

    Returns:
        The query; None where the reply holds none.

    Raises:
        ModelError: The model cannot be reached.
        BudgetError: The prompt does not fit its context window.
        SetupError: Its key or name is wrong.
    """
    told = "\n\n".join(
        f"Query:\n{query[:MOST_EARLIER]}\nProblem: {problem}" for query, problem in earlier[-2:]
    )
    return _ask(
        WriteQuery, lm, **_inputs(question, rules, examples, language), earlier=told or NONE
    )


def adapt(question: str, example: Example, asked: str = "", lm: dspy.BaseLM | None = None) -> Any:
    """Change an example's query for a question that is nearly the same.

    Args:
        question: The question.
        example: The example.
        asked: The example's question in the question's language; its first one by default.
        lm: The model; that of the `dspy.context` by default.

    Returns:
        The query; None where the reply holds none.

    Raises:
        ModelError: The model cannot be reached.
        BudgetError: The prompt does not fit its context window.
        SetupError: Its key or name is wrong.
    """
    return _ask(
        AdaptQuery,
        lm,
        example_question=asked or example.nl,
        example_query=_bare(example.sparql),
        question=question,
    )


def examples_text(examples: Sequence[Example], language: str = "") -> str:
    """Return examples as a prompt shows them, without their prefixes.

    Args:
        examples: The examples, the best first.
        language: The language of their questions, where they have it.

    Examples:
        >>> print(examples_text([Example("1", "Any?", "PREFIX e: <urn:e>\\nASK { ?s e:p ?o }")]))
        Question: Any?
        SPARQL: ASK { ?s e:p ?o }
    """
    shown = [
        f"Question: {one.question(language).strip()}\nSPARQL: {_bare(one.sparql)}"
        for one in examples
    ]
    return "\n\n".join(shown) or NONE


def _inputs(
    question: str, rules: str, examples: Sequence[Example], language: str
) -> dict[str, str]:
    shown = examples_text(examples, language)
    return {"rules": rules or NONE, "examples": shown, "question": question}


def _bare(query: str) -> str:
    # The prefixes are declared for whoever writes; a small model copies them, and errs.
    return _PREFIXES.sub("", query).strip()


def _ask(signature: Any, lm: dspy.BaseLM | None, **inputs: str) -> str | None:
    given = {"lm": lm} if lm is not None else {}
    # A reply that cannot be parsed is not asked for again in another format: one call is one.
    adapter = dspy.ChatAdapter(use_json_adapter_fallback=False)
    with dspy.context(adapter=adapter, **given):
        try:
            return query_in(dspy.Predict(signature)(**inputs).sparql)
        except AdapterParseError as failure:
            # A small model forgets the field's header; its query is in the reply all the same.
            return query_in(failure.lm_response)
        except Exception as error:
            failed = lm_failure(error)
            if failed is None or failed is error:
                raise
            raise failed from error
