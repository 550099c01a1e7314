"""Finding queries in other text: in prose, or in strings of code."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from reasoningbank.sparql.tokens import Token, closing, tokenize

_START = re.compile(r"\b(?:PREFIX|BASE|SELECT|ASK|CONSTRUCT|DESCRIBE)\b", re.IGNORECASE)
_FORMS = ("SELECT", "ASK", "CONSTRUCT", "DESCRIBE")
_MODIFIERS = ("GROUP", "BY", "HAVING", "ORDER", "ASC", "DESC", "LIMIT", "OFFSET", "VALUES")
#: Most tokens of a prologue and a head, and most characters of a query.
_HEAD_TOKENS = 400
_MOST_CHARS = 40_000
#: Characters that mostly suffice to tell prose that says "select" from a query.
_NEAR_CHARS = 300


@lru_cache(maxsize=4096)
def queries_in(text: str) -> tuple[str, ...]:
    """Return what may be queries in a text: SPARQL alone, in prose, or in strings of code."""
    found: dict[str, None] = {}
    unescaped = text.replace("\\n", "\n").replace('\\"', '"') if "\\" in text else text
    for written in dict.fromkeys((text, unescaped)):
        done = 0
        for start in _START.finditer(written):
            if start.start() < done:
                continue
            query = _query_at(written[start.start() :])
            if query:
                done = start.start() + len(query)
                found[query] = None
    return tuple(found)


def _query_at(text: str) -> str:
    """Return the query at the beginning of a text; empty if there is none."""
    # The last token of a window may be cut.
    near = [token for token in tokenize(text[:_NEAR_CHARS]) if token.end < _NEAR_CHARS - 80]
    if _head(near, complete=False) == -1:
        return ""
    tokens = tokenize(text[:_MOST_CHARS])
    at = _head(tokens)
    if at < 0:
        return ""
    depth = 0
    end = tokens[at - 1].end
    while at < len(tokens):
        token = tokens[at]
        depth += (token.text == "{") - (token.text == "}")
        if token.text == "}":
            end = token.end
        elif not depth and not token.is_word("WHERE"):
            break
        at += 1
    if depth > 0:
        return f"{text[: tokens[-1].end]} {'}' * depth}"
    return text[: _modified(tokens, at, end)]


def _head(tokens: Sequence[Token], *, complete: bool = True) -> int:
    """Return the index of the first group, or of the end of a DESCRIBE; -1 if it is no query."""
    described = False
    forms = 0
    for at, token in enumerate(tokens[:_HEAD_TOKENS]):
        if token.is_word(*_FORMS):
            forms += 1
            described = token.is_word("DESCRIBE")
            if forms > 1:
                return -1
            if described and not complete:
                return at
        elif token.text == "{":
            return at if forms else -1
        elif described and token.kind not in ("iri", "name", "variable", "punct"):
            return at if token.is_word("WHERE", "FROM") or tokens[at - 1].kind != "word" else -1
        elif token.kind == "other" or token.text in ("}", ";"):
            return -1
    if not complete or (described and len(tokens) < _HEAD_TOKENS):
        return len(tokens)
    return -1


def _modified(tokens: Sequence[Token], at: int, end: int) -> int:
    """Return the end offset of the solution modifiers that begin at a token."""
    while at < len(tokens) and tokens[at].is_word(*_MODIFIERS):
        at += 1
        while at < len(tokens) and not tokens[at].is_word(*_MODIFIERS):
            token = tokens[at]
            bracket = token.text in ("(", "{")
            if not bracket and token.kind not in ("variable", "number") and not token.is_word("BY"):
                return end
            at = closing(tokens, at) if bracket else at + 1
            end = tokens[at - 1].end
    return end
