"""An example that is nearly the question: how near it is, and its query with other entities.

Where two questions differ in nothing but what they name, the example's query is right with the
names exchanged; no model needs to be asked.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

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
_QUOTES = re.compile(r"\"{3}|'{3}|\"|'")
_ESCAPE = re.compile(r"\\([tnrbf\"'\\])")
#: Where a comparison ends.
_ENDS = ("&&", "||", "{", "}", ";", ".")
_ESCAPED = {"t": "\t", "n": "\n", "r": "\r", "b": "\b", "f": "\f"}
#: What a regular expression means otherwise than it is written.
_SIGNS = re.compile(r"[\\.\[\]{}()*+?^$|]")
_SIGN = re.compile(r"\\(.)")


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
        (*from X to Y* is not *from Y to X*), where an entity of the example cannot be found in its
        query, or where a number is there more than once or counts rows, behind LIMIT or OFFSET.

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
    numbers = frozenset(token.text for token in old if token.kind == "number")
    return _with(example.sparql, pairs, numbers) if pairs else example.sparql


def _wording(question: str) -> list[str]:
    """Return all words in their order: small ones and their places tell who does what to whom."""
    plain = masked(question)
    return [word for _, word in stream(read_tokens(plain), language_of(plain))]


def _entities(question: str) -> list[Token]:
    return [token for token in read_tokens(question) if token.kind != "word"]


def _with(query: str, pairs: dict[str, str], numbers: frozenset[str]) -> str | None:
    pieces: list[str] = []
    at = 0
    found: set[str] = set()
    tokens = tokenize(query)
    for place, token in enumerate(tokens):
        for before, after in pairs.items():
            new = _changed(tokens, place, before, after)
            if new is None:
                continue
            counts = place > 0 and tokens[place - 1].is_word("LIMIT", "OFFSET")
            if before in numbers and (counts or before in found):
                return None
            pieces += [query[at : token.start], new]
            at = token.end
            found.add(before)
            break
    if found != pairs.keys():
        return None
    return "".join((*pieces, query[at:]))


def _changed(tokens: Sequence[QueryToken], place: int, before: str, after: str) -> str | None:
    """Return a token of a query with another entity in it; None where it holds not this one."""
    token = tokens[place]
    if token.kind == "string":
        return _text(tokens, place, before.strip("-"), after.strip("-"))
    if token.kind == "name":
        prefix, _, local = token.text.partition(":")
        fits = local == before and after.replace("_", "").isalnum()
        return f"{prefix}:{after}" if fits else None
    if token.kind == "number":
        return after.replace(",", ".") if token.text == before.replace(",", ".") else None
    return None


def _text(tokens: Sequence[QueryToken], place: int, before: str, after: str) -> str | None:
    """Return a string with another text in it, as the function wants it that it is given to."""
    text = _content(tokens[place].text)
    bare = text.removeprefix(_MARKS[0]).removesuffix(_MARKS[1])
    called, beside = _around(tokens, place)
    expression = called.is_word("REGEX", "REPLACE") or bare != text
    plain = _SIGN.sub(r"\1", bare) if expression else bare
    if folded(plain) != folded(before):
        return None
    # Written in small letters where the query compares small letters.
    small = plain == plain.lower() and before != before.lower()
    if small or any(token.is_word("LCASE") for token in beside):
        after = after.lower()
    elif any(token.is_word("UCASE") for token in beside):
        after = after.upper()
    if expression:
        after = _SIGNS.sub(lambda sign: f"\\{sign[0]}", after)
    begin = text.index(bare)
    return string_literal(f"{text[:begin]}{after}{text[begin + len(bare) :]}")


def _content(written: str) -> str:
    """Return what a string of a query holds."""
    quotes = _QUOTES.match(written)
    assert quotes is not None, "a string begins with quotes"
    inside = written[quotes.end() : -quotes.end()]
    return _ESCAPE.sub(lambda found: _ESCAPED.get(found[1], found[1]), inside)


def _around(tokens: Sequence[QueryToken], place: int) -> tuple[QueryToken, list[QueryToken]]:
    """Return the word before the brackets that a token stands in, and what it is compared with."""
    beside: list[QueryToken] = []
    depth = 0
    for at in range(place - 1, 0, -1):
        token = tokens[at]
        listed = token.text == "(" and tokens[at - 1].is_word("IN")
        if token.text == "(" and not depth and not listed:
            # Behind it, until what it is compared with ends.
            return tokens[at - 1], [*beside, *_behind(tokens, place)]
        if not depth and token.text in _ENDS:
            break
        depth += (token.text == ")") - (token.text == "(" and not (listed and not depth))
        beside.append(token)
    return tokens[place], []


def _behind(tokens: Sequence[QueryToken], place: int) -> list[QueryToken]:
    beside: list[QueryToken] = []
    depth = 0
    for token in tokens[place + 1 :]:
        if not depth and token.text in (")", *_ENDS):
            break
        depth += (token.text == "(") - (token.text == ")")
        beside.append(token)
    return beside
