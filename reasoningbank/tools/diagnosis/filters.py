"""The common kinds of FILTER: a variable compared with, or searched for, a text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from reasoningbank.sparql.tokens import Token, tokenize
from reasoningbank.tools.diagnosis.literals import read_literal

__all__ = ["Condition", "read_condition"]

_SEARCHES = ("CONTAINS", "STRSTARTS", "STRENDS", "REGEX")


@dataclass(frozen=True)
class Condition:
    """A condition on one variable.

    Attributes:
        variable: Its name, without the question mark.
        text: The text it is compared with.
        function: The function that searches for it; empty where the whole value is compared.
    """

    variable: str
    text: str
    function: str = ""


def read_condition(written: str) -> Condition | None:
    """Read a FILTER that compares a variable with a text; None for other ones.

    Examples:
        >>> read_condition('FILTER(?name = "Oak")')
        Condition(variable='name', text='Oak', function='')
        >>> read_condition('FILTER(CONTAINS(LCASE(?name), "oak"))').function
        'CONTAINS'
        >>> read_condition("FILTER(?a < ?b)")
    """
    tokens = [t for t in tokenize(written) if t.text not in ("(", ")")][1:]
    search = bool(tokens) and tokens[0].is_word(*_SEARCHES)
    variables = [t for t in tokens if t.kind == "variable"]
    strings = [t for t in tokens if t.kind == "string"]
    if len({t.text for t in variables}) != 1 or not strings or _is_complex(tokens):
        return None
    literal = read_literal(strings[0].text)
    if literal is None or not literal.text:
        return None
    if not search and not any(t.text == "=" or t.is_word("IN") for t in tokens):
        return None
    return Condition(variables[0].text[1:], literal.text, tokens[0].text.upper() if search else "")


def _is_complex(tokens: Sequence[Token]) -> bool:
    if any(t.text in ("&&", "||", "!", "!=", "<", ">", "<=", ">=") for t in tokens):
        return True
    return any(t.is_word("NOT", "EXISTS") for t in tokens)
