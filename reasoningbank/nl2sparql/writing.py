"""Writing, adapting and fixing a query with a language model: one call each.

The prompt is a conversation: fixed instructions, few-shot examples as turns, the nearest last, then
the question. A small model imitates its own earlier turns; the same examples as text in named
fields made it copy the nearest one. What went wrong comes back as the next turn.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import dspy

from reasoningbank.agents.calling import ask_once
from reasoningbank.lm import PlainAdapter
from reasoningbank.lm.reply import query_in
from reasoningbank.nl2sparql.examples import PackExample
from reasoningbank.sparql.tokens import tokenize

TASK = "Answer each question with one SPARQL query over the knowledge base, and nothing else."
ADAPT = "The next question is nearly the same: change only what differs in your query."
#: The turn after a query that failed; the question is above and need not be repeated.
WRONG = "That query is wrong: {problem}\nWrite the whole query again without that mistake."

#: Characters of a failed query, and of its problems: more would push the rules out of sight.
MOST_EARLIER, MOST_PROBLEM = 1_500, 800
#: Failed queries in the next prompt.
MOST_FAILED = 2
_PREFIXES = re.compile(r"^(?:[ \t]*PREFIX\s+[^\s:<]*:\s*<[^>\s]*>[ \t]*)+\n?", re.I | re.M)


class QueryTurn(dspy.Signature):  # type: ignore[misc]
    """A turn of the conversation; each call brings its own instructions."""

    question: str = dspy.InputField()
    sparql: str = dspy.OutputField()


def write_query(
    question: str,
    rules: str,
    examples: Sequence[PackExample] = (),
    earlier: Sequence[tuple[str, str]] = (),
    lm: dspy.BaseLM | None = None,
    *,
    language: str = "",
    notes: str = "",
    temperature: float | None = None,
) -> str | None:
    """Write a query for a question; after earlier queries, one without their problems.

    The prompt of a second query begins with that of the first, so that a server reads only the new
    end.

    Args:
        question: The question.
        rules: How queries are written here, as `build_constraints` returns them.
        examples: Similar questions with correct queries, the best first.
        earlier: Queries that were wrong, each with its problem, in order.
        lm: The model; that of the `dspy.context` by default.
        language: The question's language, used for the examples' questions too.
        notes: What else is known about this question, added after it.
        temperature: Temperature of this call; the model's own by default.

    Returns:
        The query; None if the reply contains none.

    Raises:
        ModelError: If the model cannot be reached.
        BudgetError: If the prompt does not fit its context window.
        SetupError: If its key or name is wrong.
    """
    turns = [_turn(one.question(language), one.sparql) for one in reversed(examples)]
    said = "\n".join(filter(None, (question, notes)))
    for query, problem in earlier[-MOST_FAILED:]:
        turns.append(_turn(said, query[:MOST_EARLIER]))
        said = WRONG.format(problem=problem[:MOST_PROBLEM])
    return _ask("\n\n".join(filter(None, (TASK, rules))), turns, said, lm, temperature)


def adapt_query(
    question: str, example: PackExample, asked: str = "", lm: dspy.BaseLM | None = None
) -> str | None:
    """Change an example's query for a question that is nearly the same.

    Args:
        question: The question.
        example: The example.
        asked: The example's question in the question's language; its first one by default.
        lm: The model; that of the `dspy.context` by default.

    Returns:
        The query; None if the reply contains none.

    Raises:
        ModelError: If the model cannot be reached.
        BudgetError: If the prompt does not fit its context window.
        SetupError: If its key or name is wrong.
    """
    turn = _turn(asked or example.nl, example.sparql)
    return _ask(f"{TASK}\n{ADAPT}", [turn], question, lm, None)


def same_query(one: str, other: str) -> bool:
    """Return whether two queries differ only in white space.

    Examples:
        >>> same_query("ASK { ?s ?p ?o }", "ASK{?s ?p  ?o}")
        True
    """
    return [token.text for token in tokenize(one)] == [token.text for token in tokenize(other)]


def _turn(question: str, query: str) -> dspy.Example:
    # Prefixes are declared for the writer; a small model copies their lines with mistakes.
    bare = _PREFIXES.sub("", query).strip()
    return dspy.Example(question=question.strip(), sparql=bare).with_inputs("question")


def _ask(
    instructions: str,
    turns: list[dspy.Example],
    said: str,
    lm: dspy.BaseLM | None,
    temperature: float | None,
) -> str | None:
    reply = ask_once(
        QueryTurn.with_instructions(instructions),
        {"question": said},
        lm=lm,
        adapter=PlainAdapter(),
        demos=turns,
        config={} if temperature is None else {"temperature": temperature},
    )
    return query_in(reply["sparql"]) if reply else None
