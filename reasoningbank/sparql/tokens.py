"""The tokens of a SPARQL text, so that queries are edited by the grammar and not by substring.

Follows the terminals of SPARQL 1.1 (section 19.8) with the additions of SPARQL 1.2. Codepoint
escapes outside of strings and IRIs are not expanded; they come out as ``other``.

``?a<1&&?b>2`` holds an IRI by the longest match that the specification asks for, and two
comparisons for parsers that read by context, Oxigraph's and rdflib's among them. Read otherwise
than by the engine, whole patterns can hide in what looks like a string. So `<` behind an operand
of an expression is an operator here, too: nothing else can stand there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

__all__ = ["Token", "TokenKind", "closing", "position", "tokenize"]

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
#: Of bounded length: where no colon comes, it is looked for at each word of the text.
_PREFIX = rf"[{_BASE}](?:[{_CHARS}]|\.+(?=[{_CHARS}])){{0,250}}"

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


#: Brackets of triple terms and of statements about triples.
_QUOTED = {"<<(": ")>>", "<<": ">>"}
_CLOSED_BY = {"{": "}", "[": "]", "(": ")", **_QUOTED}
#: Kinds of tokens that are a whole operand.
_OPERANDS = frozenset({"variable", "number", "string", "tag", "iri", "name", "blank"})


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
    at = 0
    places = _Places()
    while at < len(text):
        match = _PATTERN.match(text, at)
        assert match is not None, "any character is a token"
        kind = match.lastgroup
        at = match.end()
        if kind == "space":
            continue
        token = Token(kind, match[0], match.start(), at)  # type: ignore[arg-type]
        if (kind == "iri" or token.text in _QUOTED) and places.after_operand:
            at = token.start + (2 if token.text.startswith("<=") else 1)
            token = Token("punct", text[token.start : at], token.start, at)
        places.take(token)
        yield token


class _Places:
    """Knows, token by token, whether an operand of an expression has just ended."""

    def __init__(self) -> None:
        #: The open brackets: what closes each, and whether an expression is in it.
        self._open: list[tuple[str, bool]] = []
        self._last: tuple[Token | None, Token | None] = (None, None)
        #: Brackets that are open around the data of VALUES, from where it was named.
        self._values: int | None = None

    @property
    def after_operand(self) -> bool:
        """Whether the last token ends an operand of an expression."""
        last = self._last[1]
        if last is None or not self._open or not self._open[-1][1]:
            return False
        return last.kind in _OPERANDS or last.text in (")", "}") or last.is_word("TRUE", "FALSE")

    def take(self, token: Token) -> None:
        """Go on with a token."""
        if token.is_word("VALUES"):
            self._values = len(self._open)
        if token.text in _CLOSED_BY:
            expression = token.text == "(" and self._begins_expression()
            self._open.append((_CLOSED_BY[token.text], expression))
        elif self._open and self._open[-1][0] == token.text:
            self._open.pop()
            if token.text == "}" and len(self._open) == self._values:
                self._values = None
        self._last = (self._last[1], token)

    def _begins_expression(self) -> bool:
        """Tell whether a bracket is one of an expression: not of VALUES, a list or a path."""
        before, last = self._last
        if self._values is not None:
            return False
        if not self._open or self._open[-1][1] or last is None:
            return True
        if last.kind == "word":
            return last.text != "a"
        called = last.kind in ("name", "iri")
        return called and before is not None and before.is_word("FILTER", "HAVING", "BY")


def closing(tokens: Sequence[Token], at: int) -> int:
    """Return the place behind the bracket that closes the one at a place; the end if none does.

    Examples:
        >>> closing(tokenize("{ { ?s } } LIMIT 1"), 0)
        5
    """
    opens = tokens[at].text
    closes = _CLOSED_BY[opens]
    depth = 0
    for place in range(at, len(tokens)):
        depth += (tokens[place].text == opens) - (tokens[place].text == closes)
        if not depth:
            return place + 1
    return len(tokens)


def position(text: str, offset: int) -> tuple[int, int]:
    r"""Return line and column, both from 1, of an offset.

    Examples:
        >>> position("ab\ncd", 4)
        (2, 2)
    """
    before = text[:offset]
    return before.count("\n") + 1, offset - before.rfind("\n")


_COMMENT = re.compile(r"#[^\r\n]*")
_BLANK_LINES = re.compile(r"[ \t\r]*\n(?:[ \t\r]*\n)*")


def without_comments(query: str) -> str:
    """Return a query without its comments; strings and IRIs stay as they are.

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
