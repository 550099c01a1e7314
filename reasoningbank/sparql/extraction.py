"""Finding queries in other text: in prose, or in strings of code."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

from reasoningbank.sparql.tokens import FORMS, Token, closing, iter_tokens, tokenize

_START = re.compile(r"\b(?:PREFIX|BASE|SELECT|ASK|CONSTRUCT|DESCRIBE)\b", re.IGNORECASE)
_MODIFIERS = ("GROUP", "BY", "HAVING", "ORDER", "ASC", "DESC", "LIMIT", "OFFSET", "VALUES")
#: Most tokens of a prologue and a head, and most characters of a query.
_HEAD_TOKENS = 400
_MOST_CHARS = 40_000


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
    at = _head(iter_tokens(text[:_MOST_CHARS]))
    if at < 0:
        return ""
    tokens = tokenize(text[:_MOST_CHARS])
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


def _head(tokens: Iterable[Token]) -> int:
    """Return the index of the first group, or of the end of a DESCRIBE; -1 if it is no query."""
    described = False
    forms = at = 0
    before: Token | None = None
    for at, token in enumerate(tokens, 1):
        if token.is_word(*FORMS):
            forms += 1
            described = token.is_word("DESCRIBE")
            if forms > 1:
                return -1
        elif token.text == "{":
            return at - 1 if forms else -1
        elif described and token.kind not in ("iri", "name", "variable", "punct"):
            whole = before is not None and before.kind != "word"
            return at - 1 if whole or token.is_word("WHERE", "FROM") else -1
        else:
            stray = before is not None and before.is_word("PREFIX") and token.kind != "name"
            if stray or token.kind == "other" or token.text in ("}", ";") or at == _HEAD_TOKENS:
                return -1
        before = token
    return at if described else -1


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
