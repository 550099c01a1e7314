"""Whether a query holds what its question names: quoted words and codes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from reasoningbank.findings import Finding
from reasoningbank.nl2sparql.words import QuestionToken, folded, read_tokens
from reasoningbank.sparql.tokens import tokenize

__all__ = ["unnamed"]

#: Tokens of a query that may hold a name of the question.
_HOLDING = ("string", "iri", "name")
#: Codes that name one thing: not *20th*, *CO2*, *B12*, *1,000aa* or *top100*.
_IDENTIFIER = re.compile(r"(?![a-z]{3,}\d+$)[^\W\d_](?=(?:.*\d){3}).{5,}")


def unnamed(
    question: str, sparql: str, shapes: Mapping[str, re.Pattern[str]] | None = None
) -> Iterator[Finding]:
    """Yield a problem where quoted words or codes of a question are nowhere in the query.

    Case, accents and the hyphen of an affix make no difference, and a part of a name or of a
    string is enough: ``"-mente"`` is in ``"mente$"``, and P05067 in ``uniprotkb:P05067``. Codes
    are what looks like an identifier, or is of one of the pack's own shapes.

    Args:
        question: The question; empty where it is not known.
        sparql: The query.
        shapes: Kinds of codes by name, as a pack has them.

    Examples:
        >>> query = 'SELECT ?w { ?l ontolex:writtenRep "mare" }'
        >>> [problem] = unnamed('Translate "mare" and "sole".', query)
        >>> print(problem.what)
        the question names "sole", and the query does not
        >>> print(problem.hint)
        write it, where there are several: VALUES ?name { "mare" "sole" }
        >>> list(unnamed("Which organism is P05067 of?", "ASK { uniprotkb:P05067 ?p ?o }"))
        []
    """
    named = [one for one in read_tokens(question) if _names(one, shapes or {})]
    if not named:
        return
    held = " ".join(_plain(token.text) for token in tokenize(sparql) if token.kind in _HOLDING)
    missing = [one for one in named if _plain(one.text.strip().strip("-")) not in held]
    if missing:
        listed = ", ".join(_told(missing))
        quoted = _told([one for one in named if one.kind == "quoted"])
        hint = "name it, as the examples name theirs"
        if len(quoted) > 1:
            hint = f"write it, where there are several: VALUES ?name {{ {' '.join(quoted)} }}"
        what = f"the question names {listed}, and the query does not"
        yield Finding("semantic", "not-named", what, hint)


def _names(token: QuestionToken, shapes: Mapping[str, re.Pattern[str]]) -> bool:
    """Say whether a token of a question is the name of something."""
    if token.kind != "code":
        return token.kind == "quoted"
    shaped = any(form.fullmatch(token.text) for form in shapes.values())
    return shaped or _IDENTIFIER.fullmatch(token.text) is not None


def _plain(text: str) -> str:
    # Within a regular expression signs are escaped.
    return folded(text).replace("\\", "")


def _told(tokens: Iterable[QuestionToken]) -> list[str]:
    texts = (f'"{one.text}"' if one.kind == "quoted" else one.text for one in tokens)
    return list(dict.fromkeys(texts))
