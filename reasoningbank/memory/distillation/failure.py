"""From a failure: the pitfall, how it shows, and what to do instead where that is known.

No gold is read, and what the judge said is taken only for what kind of difference there was.
"""

from __future__ import annotations

from collections.abc import Iterator

from reasoningbank.errors import QueryError
from reasoningbank.memory.distillation.experience import Draft, Experience
from reasoningbank.memory.distillation.facts import Facts
from reasoningbank.memory.distillation.name_pitfalls import name_pitfall
from reasoningbank.memory.distillation.result_pitfalls import result_pitfalls
from reasoningbank.memory.distillation.syntax_pitfalls import (
    Pitfall,
    needless_prefixes,
    syntax_pitfalls,
)
from reasoningbank.schema.names import wrong_prefixes
from reasoningbank.sparql.query import prepare

__all__ = ["MOST_PITFALLS", "failure_drafts"]

#: Pitfalls taken from one attempt, the most telling first.
MOST_PITFALLS = 2

_REPEATED = Pitfall(
    "Do not run again what you ran; change it, or submit",
    "Any question, once a turn repeats an earlier one",
    "Code that ran before tells nothing new. Change the query: another property, another class, "
    "fewer conditions; or SUBMIT the last query whose rows fit the question.\n"
    'Sign: "[Repeated] You already ran this code", and the attempt ends without SUBMIT.',
    tags=("repetition", "turns"),
)
_SPENT = Pitfall(
    "Submit before the turns are used up",
    "Any question, once a query has rows that fit",
    "Look at names once, run the query, look at its rows, SUBMIT it. Do not go on looking.\n"
    "Sign: the budget ends and nothing was submitted.",
    tags=("budget", "turns"),
)
_SILENT = Pitfall(
    "Answer with the query alone",
    "Any question",
    "Write the query and nothing else, beginning with SELECT, ASK, CONSTRUCT or DESCRIBE.\n"
    "Sign: the reply holds no query.",
    tags=("reply",),
)


def failure_drafts(experience: Experience, facts: Facts) -> list[Draft]:
    """Return what a failure teaches, the most telling first; nothing where nobody knows why.

    Args:
        experience: The failed attempt.
        facts: What is known of the endpoint's names.
    """
    once = {pitfall.title: pitfall for pitfall in _pitfalls(experience, facts)}
    return [
        Draft(
            title=pitfall.title,
            description=pitfall.description,
            content=pitfall.content,
            src="failure",
            experience=experience,
            tags=pitfall.tags,
            denied=pitfall.denied,
            constants=pitfall.constants,
        )
        for pitfall in list(once.values())[:MOST_PITFALLS]
    ]


def _pitfalls(experience: Experience, facts: Facts) -> Iterator[Pitfall]:
    query = experience.sparql
    if query is None or not query.strip():
        yield from _without_query(experience)
        return
    try:
        prepared = prepare(query, prefixes=facts.namespaces)
    except QueryError as error:
        yield from syntax_pitfalls(query, error, facts)
        names = name_pitfall(experience.question, query, facts)
        if names is not None:
            yield names
    else:
        names = name_pitfall(experience.question, prepared, facts)
        if names is not None:
            yield names
        if wrong_prefixes(prepared, facts.namespaces):
            yield needless_prefixes(facts)
        yield from result_pitfalls(experience, prepared, facts, known=names is None)
    if _repeats(experience):
        yield _REPEATED


def _without_query(experience: Experience) -> Iterator[Pitfall]:
    if _repeats(experience):
        yield _REPEATED
    elif experience.trajectory.of("code", "tool_call"):
        yield _SPENT
    else:
        yield _SILENT


def _repeats(experience: Experience) -> bool:
    """Say whether the attempt ran in circles."""
    resolve = experience.trajectory.resolve
    return any(
        str(resolve(event.data).get("output") or "").startswith("[Repeated]")
        for event in experience.trajectory.of("code")
    )
