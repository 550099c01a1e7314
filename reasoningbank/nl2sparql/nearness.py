"""An example that is nearly the question: how near it is, and its query with other entities.

Where two questions differ in nothing but what they name, the example's query is right with the
names exchanged; no model needs to be asked.
"""

from __future__ import annotations

from reasoningbank.nl2sparql.examples import Example
from reasoningbank.nl2sparql.languages import language_of
from reasoningbank.nl2sparql.words import Token, folded, masked, read_tokens, stream, telling
from reasoningbank.sparql import string_literal
from reasoningbank.sparql.tokens import Token as QueryToken
from reasoningbank.sparql.tokens import tokenize

__all__ = ["NEAR", "exchanged", "likeness", "nearest_question"]

#: From here the example's query is changed, rather than one written from several examples.
NEAR = 0.8

_MARKS = ("^", "$")


def likeness(one: str, other: str) -> float:
    """Return the share of words that two questions have in common, entities masked: 0 to 1.

    Examples:
        >>> likeness('Qual è la polarità di "guaio"?', 'La polarità di "nonna", qual è?')
        1.0
        >>> likeness("Which genes encode P05067?", "Which diseases involve P05067?")
        0.0
    """
    first, second = (set(telling(masked(text)).split()) - {"x"} for text in (one, other))
    if not first or not second:
        return 0.0
    return round(2 * len(first & second) / (len(first) + len(second)), 6)


def nearest_question(question: str, example: Example) -> tuple[str, float]:
    """Return the form of an example's question that is most like a question, and how much."""
    texts = [text for _, text in example.questions] or [example.nl]
    best = max(texts, key=lambda text: likeness(question, text))
    return best, likeness(question, best)


def exchanged(question: str, example: Example) -> str | None:
    """Return an example's query with the entities of a question in place of its own.

    Args:
        question: A question.
        example: An example whose question says the same of other entities.

    Returns:
        The query; None where the questions differ in more than quoted entities, codes and numbers
        (*from X to Y* is not *from Y to X*), or where an entity of the example cannot be found in
        its query.

    Examples:
        >>> first = Example("1", 'Sensi di "cane"?', 'SELECT ?s { ?w rdfs:label "cane"@it }')
        >>> exchanged('Sensi di "gatto"?', first)
        'SELECT ?s { ?w rdfs:label "gatto"@it }'
        >>> exchanged('Iperonimi di "gatto"?', first) is None
        True
    """
    asked, like = nearest_question(question, example)
    if like < 1.0 or _wording(asked) != _wording(question):
        return None
    old, new = _entities(asked), _entities(question)
    if len(old) != len(new) or any(a.kind != b.kind for a, b in zip(old, new, strict=True)):
        return None
    pairs: dict[str, str] = {}
    for before, after in zip(old, new, strict=True):
        if pairs.setdefault(before.text, after.text) != after.text:
            return None
    pairs = {before: after for before, after in pairs.items() if before != after}
    return _with(example.sparql, pairs) if pairs else example.sparql


def _wording(question: str) -> list[str]:
    """Return all words in their order: small ones and their places tell who does what to whom."""
    plain = masked(question)
    return [word for _, word in stream(read_tokens(plain), language_of(plain))]


def _entities(question: str) -> list[Token]:
    return [token for token in read_tokens(question) if token.kind != "word"]


def _with(query: str, pairs: dict[str, str]) -> str | None:
    pieces: list[str] = []
    at = 0
    found: set[str] = set()
    for token in tokenize(query):
        for before, after in pairs.items():
            new = _changed(token, before, after)
            if new is not None:
                pieces += [query[at : token.start], new]
                at = token.end
                found.add(before)
                break
    if found != pairs.keys():
        return None
    return "".join((*pieces, query[at:]))


def _changed(token: QueryToken, before: str, after: str) -> str | None:
    """Return a token of a query with another entity in it; None where it holds not this one."""
    if token.kind == "string":
        text = token.text.strip("\"'")
        bare = text.removeprefix(_MARKS[0]).removesuffix(_MARKS[1])
        if folded(bare) != folded(before.strip("-")):
            return None
        new = after.strip("-")
        # Written in small letters where the query compares small letters.
        new = new.lower() if bare == bare.lower() and before != before.lower() else new
        return string_literal(text.replace(bare, new, 1))
    if token.kind == "name":
        prefix, _, local = token.text.partition(":")
        fits = local == before and after.replace("_", "").isalnum()
        return f"{prefix}:{after}" if fits else None
    if token.kind == "number":
        return after.replace(",", ".") if token.text == before.replace(",", ".") else None
    return None
