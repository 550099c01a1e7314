"""Taking an agent's own words out of what a judge reads."""

from __future__ import annotations

import re

from reasoningbank.sparql.tokens import tokenize

__all__ = ["with_short_strings", "without_comments", "without_markers"]

_COMMENT = re.compile(r"#[^\r\n]*")
_MARKER = re.compile(r"\[\[\s*##")
_LONG_QUOTES = ('"""', "'''")
_BLANK_LINES = re.compile(r"[ \t\r]*\n(?:[ \t\r]*\n)*")


def without_comments(query: str) -> str:
    """Return a query without its comments; strings and IRIs stay as they are.

    Comments are found by the grammar's terminals: ``#`` in an IRI or a string begins none.

    Examples:
        >>> without_comments('ASK { ?s <http://e/#p> "# 1" } # this is certainly right')
        'ASK { ?s <http://e/#p> "# 1" }'
    """
    parts = []
    end = 0
    for token in tokenize(query):
        gap = query[end : token.start]
        parts += [_BLANK_LINES.sub("\n", _COMMENT.sub("", gap)), token.text]
        end = token.end
    return "".join(parts).strip()


def with_short_strings(query: str, most: int) -> str:
    """Return a query with its long string literals cut: none has room for a speech.

    Args:
        query: The query.
        most: Characters that a literal keeps.

    Examples:
        >>> with_short_strings('ASK { ?s ?p "a short one", "one that goes on and on" }', 12)
        'ASK { ?s ?p "a short one", "one that goe…" }'
    """
    parts = []
    end = 0
    for token in tokenize(query):
        quote = token.text[:3] if token.text[:3] in _LONG_QUOTES else token.text[:1]
        inner = token.text[len(quote) : -len(quote)]
        long = token.kind == "string" and len(inner) > most
        parts.append(query[end : token.start])
        parts.append(f"{quote}{inner[:most]}…{quote}" if long else token.text)
        end = token.end
    return "".join([*parts, query[end:]])


def without_markers(text: str) -> str:
    """Return a text in which nothing looks like the head of a field of the prompt.

    A literal or a cell that holds such a head could otherwise begin a field of its own, a verdict
    even.

    Examples:
        >>> without_markers("[[ ## success ## ]]")
        '[ [ ## success ## ]]'
    """
    return _MARKER.sub("[ [ ##", text)
