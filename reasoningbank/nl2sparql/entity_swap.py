"""Reusing the query of a similar example: how similar, and the query with other entities.

If two questions differ only in the entities they name, the example's query with the entities
swapped is right; no model is needed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from reasoningbank.nl2sparql.examples import PackExample
from reasoningbank.nl2sparql.words import (
    QuestionToken,
    content_words,
    folded,
    language_of,
    masked,
    read_tokens,
    stream,
)
from reasoningbank.sparql import string_literal
from reasoningbank.sparql.tokens import Token as QueryToken
from reasoningbank.sparql.tokens import tokenize

#: From here a model changes the example's query instead of writing a new one.
NEAR = 0.8

_MARKS = ("^", "$")
_QUOTES = re.compile(r"\"{3}|'{3}|\"|'")
_ESCAPE = re.compile(r"\\([tnrbf\"'\\])")
#: Tokens that end a comparison.
_ENDS = ("&&", "||", "{", "}", ";", ".")
_ESCAPED = {"t": "\t", "n": "\n", "r": "\r", "b": "\b", "f": "\f"}
#: Special characters of a regular expression.
_SIGNS = re.compile(r"[\\.\[\]{}()*+?^$|]")
_SIGN = re.compile(r"\\(.)")


def question_similarity(one: str, other: str) -> float:
    """Return the share of words that two questions have in common, entities masked: 0 to 1.

    Examples:
        >>> question_similarity('Qual è la polarità di "guaio"?', 'La polarità di "nonna", qual è?')
        1.0
        >>> question_similarity("Which genes encode P05067?", "Which diseases involve P05067?")
        0.0
    """
    first, second = (set(content_words(masked(text)).split()) - {"x"} for text in (one, other))
    if not first or not second:
        return 0.0
    return round(2 * len(first & second) / (len(first) + len(second)), 6)


def nearest_question(question: str, example: PackExample) -> tuple[str, float]:
    """Return the form of an example's question most similar to a question, and the similarity."""
    texts = [text for _, text in example.questions] or [example.nl]
    best = max(texts, key=lambda text: question_similarity(question, text))
    return best, question_similarity(question, best)


def swap_entities(question: str, example: PackExample) -> str | None:
    """Return an example's query with the entities of a question instead of its own.

    Returns:
        The query; None if the questions differ in more than quoted entities, codes and numbers
        (*from X to Y* is not *from Y to X*), if an entity of the example does not occur in its
        query, or if a number occurs twice or counts rows, after LIMIT or OFFSET.

    Examples:
        >>> first = PackExample("1", 'Sensi di "cane"?', 'SELECT ?s { ?w rdfs:label "cane"@it }')
        >>> swap_entities('Sensi di "gatto"?', first)
        'SELECT ?s { ?w rdfs:label "gatto"@it }'
        >>> swap_entities('Iperonimi di "gatto"?', first) is None
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
    """Return all words in order; function words and positions matter here."""
    plain = masked(question)
    return [word for _, word in stream(read_tokens(plain), language_of(plain))]


def _entities(question: str) -> list[QuestionToken]:
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
    """Return a token of a query with another entity in it; None if it contains another one."""
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
    """Return a string with another text in it, in the form that its function needs."""
    text = _content(tokens[place].text)
    bare = text.removeprefix(_MARKS[0]).removesuffix(_MARKS[1])
    called, beside = _around(tokens, place)
    expression = called.is_word("REGEX", "REPLACE") or bare != text
    plain = _SIGN.sub(r"\1", bare) if expression else bare
    if folded(plain) != folded(before):
        return None
    # Lower case if the query compares lower case.
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
    """Return the content of a string of a query."""
    quotes = _QUOTES.match(written)
    assert quotes is not None
    inside = written[quotes.end() : -quotes.end()]
    return _ESCAPE.sub(lambda found: _ESCAPED.get(found[1], found[1]), inside)


def _around(tokens: Sequence[QueryToken], place: int) -> tuple[QueryToken, list[QueryToken]]:
    """Return the word before the brackets around a token, and what it is compared with."""
    beside: list[QueryToken] = []
    depth = 0
    for at in range(place - 1, 0, -1):
        token = tokens[at]
        listed = token.text == "(" and tokens[at - 1].is_word("IN")
        if token.text == "(" and not depth and not listed:
            return tokens[at - 1], [*beside, *_after(tokens, place)]
        if not depth and token.text in _ENDS:
            break
        depth += (token.text == ")") - (token.text == "(" and not (listed and not depth))
        beside.append(token)
    return tokens[place], []


def _after(tokens: Sequence[QueryToken], place: int) -> list[QueryToken]:
    beside: list[QueryToken] = []
    depth = 0
    for token in tokens[place + 1 :]:
        if not depth and token.text in (")", *_ENDS):
            break
        depth += (token.text == "(") - (token.text == ")")
        beside.append(token)
    return beside
