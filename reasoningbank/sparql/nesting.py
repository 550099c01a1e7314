"""How deep an update may nest: beyond it, Oxigraph's parser ends the whole process.

Queries are checked by `outline`, which counts triples as well; an update may insert thousands.
"""

from __future__ import annotations

from collections.abc import Iterable

from reasoningbank.errors import QueryError
from reasoningbank.sparql.outline import MOST_CHAIN, MOST_DEPTH
from reasoningbank.sparql.tokens import Token

__all__ = ["check_nesting"]

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
                mend="simplify it, or send several updates",
            )
