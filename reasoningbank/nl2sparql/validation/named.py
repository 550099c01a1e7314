"""Whether a query holds what its question names: quoted words and codes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from reasoningbank.nl2sparql.problems import Problem
from reasoningbank.nl2sparql.words import Token, read_tokens
from reasoningbank.sparql.tokens import tokenize

__all__ = ["unnamed"]

#: Tokens of a query that may hold a name of the question.
_HOLDING = ("string", "iri", "name")


def unnamed(question: str, sparql: str) -> Iterator[Problem]:
    """Yield a problem where quoted words or codes of a question are nowhere in the query.

    Case makes no difference, and a part of a name or of a string is enough: ``"mente"`` is in
    ``"mente$"``, and P05067 in ``uniprotkb:P05067``.

    Args:
        question: The question; empty where it is not known.
        sparql: The query.

    Examples:
        >>> query = 'SELECT ?w { ?l ontolex:writtenRep "mare" }'
        >>> [problem] = unnamed('Translate "mare" and "sole".', query)
        >>> print(problem.what)
        the question names "sole", and the query does not
        >>> print(problem.mend)
        write it, where there are several: VALUES ?name { "mare" "sole" }
        >>> list(unnamed("Which organism is P05067 of?", "ASK { uniprotkb:P05067 ?p ?o }"))
        []
    """
    named = [one for one in read_tokens(question) if one.kind in ("quoted", "code")]
    if not named:
        return
    held = " ".join(token.text.casefold() for token in tokenize(sparql) if token.kind in _HOLDING)
    missing = [one for one in named if one.text.strip().casefold() not in held]
    if missing:
        listed = ", ".join(_told(missing))
        quoted = _told([one for one in named if one.kind == "quoted"])
        mend = "name it, as the examples name theirs"
        if len(quoted) > 1:
            mend = f"write it, where there are several: VALUES ?name {{ {' '.join(quoted)} }}"
        what = f"the question names {listed}, and the query does not"
        yield Problem("semantic", "not-named", what, mend)


def _told(tokens: Iterable[Token]) -> list[str]:
    texts = (f'"{one.text}"' if one.kind == "quoted" else one.text for one in tokens)
    return list(dict.fromkeys(texts))
