"""Taking an agent's own words out of what a judge reads."""

from __future__ import annotations

import re

from reasoningbank.sparql.tokens import tokenize

__all__ = ["without_comments"]

_COMMENT = re.compile(r"#[^\r\n]*")
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
