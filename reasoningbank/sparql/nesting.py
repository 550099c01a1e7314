"""How deep an update and RDF may nest: beyond it, Oxigraph's parsers end the whole process.

Queries are checked by `outline`, which counts triples as well; an update may insert thousands.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from reasoningbank.errors import QueryError
from reasoningbank.sparql.outline import MOST_CHAIN, MOST_DEPTH
from reasoningbank.sparql.tokens import Token

__all__ = ["check_nesting", "check_terms"]

#: Strings, IRIs and comments are passed over; what is left opens or closes a triple term.
_TERMS = re.compile(
    rb'"""(?:"{0,2}(?:[^"\\]|\\.))*"""|"(?:[^"\\\n]|\\.)*"|<[^<>"\s]*>|\#[^\n]*|<<|>>', re.DOTALL
)
_OBJECTS = re.compile(rb'"(?:[^"\\]|\\.)*"|[{}]', re.DOTALL)

_OPEN, _CLOSE = frozenset("{(["), frozenset("})]")
_OPERATORS = frozenset("/|+-*^!") | {"&&", "||"}
_BLOCKS = ("UNION", "OPTIONAL", "MINUS", "FILTER", "BIND")


def check_nesting(tokens: Iterable[Token]) -> None:
    """Refuse an update whose brackets nest too deeply, or that chains too many operators.

    Args:
        tokens: The tokens of the update.

    Raises:
        QueryError: More than `MOST_DEPTH` brackets stand in one another, or more than `MOST_CHAIN`
            operators in one expression or blocks in one operation.

    Examples:
        >>> from reasoningbank.sparql.tokens import tokenize
        >>> check_nesting(tokenize("INSERT DATA { " + "<a:a> <a:p> -1 , -2 . " * 1000 + "}"))
        >>> check_nesting(tokenize("DELETE {} WHERE " + "{" * 200 + "}" * 200))
        Traceback (most recent call last):
        ...
        reasoningbank.errors.QueryError: the update is nested too deeply, ...
    """
    depth = rounds = operators = blocks = 0
    for token in tokens:
        if token.kind == "punct":
            depth += (token.text in _OPEN) - (token.text in _CLOSE)
            rounds += (token.text == "(") - (token.text == ")")
            operators += token.text in _OPERATORS
            if token.text in (".", ";", ",") and rounds <= 0:
                operators = 0
            if token.text == ";" and depth <= 0:
                blocks = 0
        blocks += token.is_word(*_BLOCKS)
        if depth > MOST_DEPTH or operators > MOST_CHAIN or blocks > MOST_CHAIN:
            raise QueryError(
                "the update is nested too deeply, or chains too many patterns and operators",
                hint="simplify it, or send several updates",
            )


def check_terms(data: bytes) -> None:
    """Refuse RDF or results in which triple terms nest too deeply.

    Args:
        data: A document or a result, in any of the formats that are read here.

    Raises:
        ValueError: More than `MOST_DEPTH` stand in one another.

    Examples:
        >>> check_terms(b"<a:a> <a:b> <<( <a:a> <a:b> 'c' )>> . " * 1000)
        >>> check_terms(b"<a:a> <a:b> " + b"<<( <a:a> <a:b> " * 101)
        Traceback (most recent call last):
        ...
        ValueError: its triple terms nest more than 100 deep
    """
    # Each term in JSON takes two objects, and the row and its result stand around all.
    written = [(b"<<", _TERMS, b"<<", b">>", 1), (b'"triple"', _OBJECTS, b"{", b"}", 2)]
    for sign, pattern, opens, closes, each in written:
        if data.count(sign) <= MOST_DEPTH:
            continue
        depth = 0
        for found in pattern.finditer(data):
            depth += (found[0] == opens) - (found[0] == closes and depth > 0)
            if depth > MOST_DEPTH * each:
                raise ValueError(f"its triple terms nest more than {MOST_DEPTH} deep")
