"""Writing, adapting and mending a query with a language model: one call each.

The prompt is a conversation: what is known beforehand, answered questions as turns, the nearest
last, then the question. A small model does as it sees itself have done; the same examples as text
in named fields made it copy the nearest one. What went wrong comes back as the next turn.

The model is given, never configured; within an agent's own `dspy.context` its callbacks go on.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import dspy
from dspy.utils.exceptions import AdapterParseError

from reasoningbank.lm import PlainAdapter, lm_failure
from reasoningbank.lm.reply import query_in
from reasoningbank.nl2sparql.examples import Example
from reasoningbank.sparql.tokens import tokenize

__all__ = ["adapt_query", "same_query", "write_query"]

TASK = "Answer each question with one SPARQL query over the knowledge base, and nothing else."
ADAPT = "The next question is nearly the same: change in your query what differs, nothing else."
#: What is said of a query that failed; the question stands above, and need not be said again.
WRONG = "That query is wrong: {problem}\nWrite the whole query again without that mistake."

#: Of a query that failed, and of what is said against it: more would push the rules out of sight.
MOST_EARLIER, MOST_PROBLEM = 1_500, 800
#: Failed queries that the next prompt tells of.
MOST_TOLD = 2
_PREFIXES = re.compile(r"^(?:[ \t]*PREFIX\s+[^\s:<]*:\s*<[^>\s]*>[ \t]*)+\n?", re.I | re.M)


class Conversation(dspy.Signature):  # type: ignore[misc]
    """A turn of the conversation; its instructions are given with each call."""

    question: str = dspy.InputField()
    sparql: str = dspy.OutputField()


def write_query(
    question: str,
    rules: str,
    examples: Sequence[Example] = (),
    earlier: Sequence[tuple[str, str]] = (),
    lm: dspy.BaseLM | None = None,
    *,
    language: str = "",
    notes: str = "",
    temperature: float | None = None,
) -> str | None:
    """Write a query for a question; with earlier queries, one that has not their problems.

    The prompt of a second query begins with that of the first, so that a server reads only its
    end anew.

    Args:
        question: The question.
        rules: How queries are written here, what `build_constraints` gives.
        examples: Like questions with right queries, the best first.
        earlier: Queries that were wrong, each with what is wrong, in order.
        lm: The model; that of the `dspy.context` by default.
        language: The question's language, which the examples' questions are shown in.
        notes: What else is known of this question, told behind it.
        temperature: Of this call; the model's own where None.

    Returns:
        The query; None where the reply holds none.

    Raises:
        ModelError: The model cannot be reached.
        BudgetError: The prompt does not fit its context window.
        SetupError: Its key or name is wrong.
    """
    turns = [_turn(one.question(language), one.sparql) for one in reversed(examples)]
    said = "\n".join(filter(None, (question, notes)))
    for query, problem in earlier[-MOST_TOLD:]:
        turns.append(_turn(said, query[:MOST_EARLIER]))
        said = WRONG.format(problem=problem[:MOST_PROBLEM])
    told = "\n\n".join(filter(None, (TASK, rules)))
    return _ask(told, turns, said, lm, temperature)


def adapt_query(
    question: str, example: Example, asked: str = "", lm: dspy.BaseLM | None = None
) -> str | None:
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
    turn = _turn(asked or example.nl, example.sparql)
    return _ask(f"{TASK}\n{ADAPT}", [turn], question, lm, None)


def same_query(one: str, other: str) -> bool:
    """Say whether two queries differ in spaces alone.

    Examples:
        >>> same_query("ASK { ?s ?p ?o }", "ASK{?s ?p  ?o}")
        True
    """
    return [token.text for token in tokenize(one)] == [token.text for token in tokenize(other)]


def _turn(question: str, query: str) -> dspy.Example:
    # The prefixes are declared for whoever writes; a small model copies them, and errs.
    bare = _PREFIXES.sub("", query).strip()
    return dspy.Example(question=question.strip(), sparql=bare).with_inputs("question")


def _ask(
    told: str,
    turns: list[dspy.Example],
    said: str,
    lm: dspy.BaseLM | None,
    temperature: float | None,
) -> str | None:
    predict = dspy.Predict(Conversation.with_instructions(told))
    predict.demos = turns
    if temperature is not None:
        predict.config["temperature"] = temperature
    given = {"lm": lm} if lm is not None else {}
    with dspy.context(adapter=PlainAdapter(), **given):
        try:
            return query_in(predict(question=said).sparql)
        except AdapterParseError:
            # An empty reply: the model was asked, and gave nothing.
            return None
        except Exception as error:
            failed = lm_failure(error)
            if failed is None or failed is error:
                raise
            raise failed from error
