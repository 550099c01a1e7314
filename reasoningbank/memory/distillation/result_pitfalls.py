"""Pitfalls of queries that ran: no rows, another form, other columns, a condition left out."""

from __future__ import annotations

import re
from collections.abc import Iterator

from reasoningbank.findings import Finding
from reasoningbank.memory.distillation.experience import Experience
from reasoningbank.memory.distillation.facts import Facts
from reasoningbank.memory.distillation.grounding import names_in
from reasoningbank.memory.distillation.syntax_pitfalls import Pitfall
from reasoningbank.schema import explain_empty
from reasoningbank.sparql import PreparedQuery
from reasoningbank.sparql.tokens import tokenize

__all__ = ["result_pitfalls"]

#: Causes told of one empty result.
_MOST_CAUSES = 2
#: Characters of one cause.
_MOST_CAUSE = 200
_OF_NAMES = ("unknown-class", "unknown-property", "wrong-prefix")
_CODE = re.compile(r"[A-Za-z.].*\d|\d.*[A-Za-z.]")
_NAME = re.compile(r"[A-Z][a-z]{2,}")

_FORMS = {
    "boolean": (
        "A question for yes or no takes ASK",
        'Questions such as "Is it true that …?", "Does …?", "Is there …?"',
        "Write ASK { … } with the conditions as patterns, and no columns.\n"
        "Sign: a SELECT that lists values where only yes or no was asked for.",
    ),
    "graph": (
        "A question for all that is recorded, or for a graph, takes DESCRIBE or CONSTRUCT",
        "Questions that want everything about a thing, or statements as a graph",
        "Write DESCRIBE ?thing WHERE { … } for everything about a thing, CONSTRUCT { … } WHERE "
        "{ … } for chosen statements.\nSign: a SELECT where triples were asked for.",
    ),
    "table": (
        "A question for values takes SELECT",
        "Questions that want a list of things, names or numbers",
        "Write SELECT with a column for each thing that is asked for.\n"
        "Sign: ASK, CONSTRUCT or DESCRIBE where values were asked for.",
    ),
}


def result_pitfalls(
    experience: Experience, prepared: PreparedQuery, facts: Facts, *, known: bool
) -> Iterator[Pitfall]:
    """Yield the pitfalls of a query that ran, the most telling first.

    What another judge than the execution judge says is not read: a model's words prove nothing.

    Args:
        experience: The attempt.
        prepared: Its query.
        facts: What is known of the endpoint's names.
        known: Whether all its names exist; only then is it asked why there are no rows.
    """
    form = experience.finding("form-mismatch")
    if form is not None:
        yield Pitfall(*_FORMS[form.fields["gold"]], tags=("form",))
        return
    if not experience.rows and known:
        yield from _empty(experience, prepared, facts)
    yield from _columns(experience, prepared)
    if experience.rows and experience.ran and prepared.form == "SELECT":
        yield from _left_out(experience, prepared, facts)


def _empty(experience: Experience, prepared: PreparedQuery, facts: Facts) -> Iterator[Pitfall]:
    causes = explain_empty(prepared, facts.vocabulary, facts.run, namespaces=facts.namespaces)
    told = [line for cause in causes if (line := _worth_telling(cause))][:_MOST_CAUSES]
    if not told:
        return
    lines = "\n".join(f"- {line}" for line in told)
    yield Pitfall(
        _short(f"No rows: {told[0]}"),
        f"Questions such as: {experience.question}",
        f"A query with these parts has no rows, and why:\n{lines}",
        constants=frozenset(name for line in told for name in names_in(line)),
        tags=("empty",),
    )


def _worth_telling(cause: Finding) -> str:
    """Return what of a cause is worth remembering; empty if nothing is.

    A name that exists nowhere has an item of its own, and a label near a resource need not be the
    one that was meant.
    """
    if cause.code in _OF_NAMES:
        return ""
    line = cause.what if cause.fields.get("guess") else str(cause)
    return line if len(line) <= _MOST_CAUSE else ""


def _columns(experience: Experience, prepared: PreparedQuery) -> Iterator[Pitfall]:
    if experience.finding("columns-missing"):
        yield Pitfall(
            "A column for everything the question asks to be given",
            'Questions that say "Give the …, the … and the …", or "List the … with …"',
            "SELECT one variable for each thing that the question wants, the thing itself "
            '("which proteins") included, and none else.\nSign: fewer columns than things '
            "that are asked for.",
            tags=("columns",),
        )
    elif experience.finding("columns-extra"):
        yield Pitfall(
            "No column that the question does not ask for",
            "Questions that name what they want to be given",
            "SELECT only what the question asks for; variables that only join patterns stay in "
            "WHERE.\nSign: more columns than things that are asked for.",
            tags=("columns",),
        )
    elif experience.finding("wrong-order"):
        yield Pitfall(
            "The order that the question names takes ORDER BY",
            'Questions that say "the largest first", "by name", "the five most …"',
            "Write ORDER BY DESC(?number), then what decides where numbers are equal, then LIMIT."
            "\nSign: the right rows in another order.",
            tags=("order",),
        )


def _left_out(experience: Experience, prepared: PreparedQuery, facts: Facts) -> Iterator[Pitfall]:
    """Yield what the question names and the query does not."""
    said = prepared.original.casefold()
    labels = " ".join(
        found[1]
        for token in tokenize(prepared.original)
        if token.kind in ("iri", "name")
        and (name := facts.iri_of(token.text)) is not None
        and not facts.is_term(name)
        and (found := facts.called_in(name, experience.question)) is not None
    ).casefold()
    absent = [
        named
        for named in named_in(experience.question)
        if named.casefold() not in said
        and named.casefold() not in labels
        and _is_condition(named, experience.question, facts)
    ]
    if not absent:
        return
    listed = ", ".join(f'"{named}"' for named in absent[:2])
    yield Pitfall(
        _short(f"Every condition of the question goes into the query: {listed} was left out"),
        f"Questions such as: {experience.question}",
        f"The query had rows and nothing in it for {listed}: add a pattern or FILTER for each "
        "thing that the question names.\nSign: many more rows than there can be.",
        constants=frozenset(absent),
        tags=("conditions",),
    )


def _is_condition(named: str, question: str, facts: Facts) -> bool:
    """Say whether a name that a query lacks can be a condition.

    A quoted text and a code are. A word with a capital may say what the whole endpoint is about
    ("Italian words"); it is one where the data have it, alone or with the next one or two words.
    """
    if f'"{named}"' in question or _CODE.search(named):
        return True
    following = re.findall(r"[\w-]+", question.partition(named)[2])[:2]
    return facts.is_called([" ".join((named, *following[:n])) for n in range(3)])


def named_in(question: str) -> tuple[str, ...]:
    """Return what a question names: quoted texts, codes with digits, words with a capital.

    A word that begins a sentence has its capital anyway, and is none of them.

    Examples:
        >>> named_in('Which proteins of Mus musculus have the name "App" or are like P05067?')
        ('App', 'Mus', 'P05067')
    """
    quoted = re.findall(r'"([^"]{2,80})"', question)
    rest = re.sub(r'"[^"]*"', " ", question)
    words = re.findall(r"(?:(?<=[.?!:] )|^)\W*\w+|(\w[\w.:-]*\w)", rest)
    telling = (word for word in words if _CODE.search(word) or _NAME.fullmatch(word))
    return tuple(dict.fromkeys((*quoted, *telling)))


def _short(title: str) -> str:
    return title if len(title) <= 118 else f"{title[:117].rsplit(' ', 1)[0]} …"
