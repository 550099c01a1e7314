"""Which form of query a question asks for, by the words that ask for it."""

from __future__ import annotations

import re
from functools import lru_cache

from reasoningbank.errors import QueryError
from reasoningbank.sparql.tree import Form, outline

__all__ = ["asked_form", "pattern_form"]

_SLOT = re.compile(r"<<\w+>>")
#: English and Italian. The first that is found decides; most questions ask for a table.
_SIGNS: tuple[tuple[Form, re.Pattern[str]], ...] = (
    (
        "CONSTRUCT",
        re.compile(r"(?i)\b(?:as an? (?:rdf )?graph|triples|construct|come grafo|triple)\b"),
    ),
    (
        "DESCRIBE",
        re.compile(
            r"(?i)^\W*(?:describe|descrivi)\b"
            r"|\b(?:everything|all) that is (?:recorded|known|said|stated)\b"
            r"|\btutto ci(?:ò|o') che (?:è|si) (?:registrato|noto|sa|dice)\b"
        ),
    ),
    (
        "ASK",
        re.compile(
            r"(?i)^\W*(?:is|are|was|were|do|does|did|has|have|can"
            r"|è vero|esiste|esistono|è|ha|hanno|ci sono)\b"
        ),
    ),
)


def asked_form(question: str) -> Form:
    """Return the form of query that a question asks for.

    Examples:
        >>> asked_form("Is the tau protein heavier than P05067?")
        'ASK'
        >>> asked_form("Extract as a graph the genes of the bonobo.")
        'CONSTRUCT'
        >>> asked_form("Show everything that is recorded about the taxon.")
        'DESCRIBE'
        >>> asked_form("Which proteins are located in the melanosome?")
        'SELECT'
    """
    return next((form for form, sign in _SIGNS if sign.search(question)), "SELECT")


@lru_cache(maxsize=4096)
def pattern_form(pattern: str) -> Form | None:
    """Return the form of an item's query, None where it has none.

    Slots may stand in it.

    Examples:
        >>> pattern_form("ASK { <<protein>> a up:Protein }"), pattern_form("")
        ('ASK', None)
    """
    try:
        return outline(_SLOT.sub("1", pattern)).form
    except QueryError:
        return None
