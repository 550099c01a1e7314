"""The tokens of a SPARQL text, so that queries are edited by the grammar and not by substring.

Follows the terminals of SPARQL 1.1 (section 19.8) with the additions of SPARQL 1.2. Codepoint
escapes outside of strings and IRIs are not expanded; they come out as ``other``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

__all__ = ["Token", "TokenKind", "position", "tokenize"]

TokenKind = Literal[
    "iri", "string", "name", "variable", "blank", "number", "word", "tag", "punct", "other"
]

_BASE = (
    "A-Za-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02ff\u0370-\u037d\u037f-\u1fff\u200c-\u200d"
    "\u2070-\u218f\u2c00-\u2fef\u3001-\ud7ff\uf900-\ufdcf\ufdf0-\ufffd\U00010000-\U000effff"
)
_START = _BASE + "_"
_WORD = _START + "0-9\u00b7\u0300-\u036f\u203f-\u2040"
_CHARS = _WORD + "-"
_PLX = r"%[0-9A-Fa-f]{2}|\\[_~.\-!$&'()*+,;=/?#@%]"
_LOCAL = (
    rf"(?:[{_START}:0-9]|{_PLX})"
    rf"(?:(?:[{_CHARS}:]|{_PLX})|\.+(?=[{_CHARS}:%\\]))*"
)
_PREFIX = rf"[{_BASE}](?:[{_CHARS}]|\.+(?=[{_CHARS}]))*"

_PATTERN = re.compile(
    "|".join(
        (
            r"(?P<space>[ \t\r\n]+|\#[^\r\n]*)",
            r"(?P<iri><(?:[^<>\"{}|^`\\\x00-\x20]|\\u[0-9A-Fa-f]{4}|\\U[0-9A-Fa-f]{8})*>)",
            r'(?P<string>"""(?:"{0,2}(?:[^"\\]|\\.))*"""'
            r"|'''(?:'{0,2}(?:[^'\\]|\\.))*'''"
            r'|"(?:[^"\\\n\r]|\\.)*"'
            r"|'(?:[^'\\\n\r]|\\.)*')",
            rf"(?P<variable>[?$][{_START}0-9][{_WORD}]*)",
            rf"(?P<blank>_:[{_START}0-9](?:[{_CHARS}]|\.+(?=[{_CHARS}]))*)",
            rf"(?P<name>(?:{_PREFIX})?:(?:{_LOCAL})?)",
            r"(?P<tag>@[A-Za-z]+(?:-[A-Za-z0-9]+)*(?:--[A-Za-z]+)?)",
            r"(?P<number>(?:\d+\.\d*|\.\d+|\d+)[eE][+-]?\d+|\d+\.\d+|\.\d+|\d+)",
            rf"(?P<word>[{_BASE}][{_START}0-9]*)",
            r"(?P<punct><<\(|\)>>|<<|>>|\{\||\|\}|\^\^|&&|\|\||!=|<=|>=|[-+*/^|!=<>(){}\[\].,;~?])",
            r"(?P<other>.)",
        )
    ),
    re.DOTALL,
)


class Token(NamedTuple):
    """One token: what it is, its text, and where it stands (offsets in characters)."""

    kind: TokenKind
    text: str
    start: int
    end: int

    def is_word(self, *words: str) -> bool:
        """Say whether the token is one of the keywords, given in capitals."""
        return self.kind == "word" and self.text.upper() in words


def tokenize(text: str) -> tuple[Token, ...]:
    """Split a query into tokens; white space and comments are left out.

    Examples:
        >>> [t.text for t in tokenize('SELECT ?x { ?x ex:a.b "}" } # }')]
        ['SELECT', '?x', '{', '?x', 'ex:a.b', '"}"', '}']
    """
    return tuple(_tokens(text))


def _tokens(text: str) -> Iterator[Token]:
    for match in _PATTERN.finditer(text):
        kind = match.lastgroup
        if kind != "space":
            yield Token(kind, match[0], match.start(), match.end())  # type: ignore[arg-type]


def position(text: str, offset: int) -> tuple[int, int]:
    r"""Return line and column, both from 1, of an offset.

    Examples:
        >>> position("ab\ncd", 4)
        (2, 2)
    """
    before = text[:offset]
    return before.count("\n") + 1, offset - before.rfind("\n")
