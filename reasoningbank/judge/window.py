"""LIMIT, OFFSET and ORDER BY of a gold query: which answers they leave equally right.

A query with a LIMIT returns one of many right answers wherever its ORDER BY does not decide,
and a query without ORDER BY decides nothing. So the gold is computed without its LIMIT, and
an answer is right when it takes the right number of rows from each group of rows that the
ORDER BY leaves tied. Without ORDER BY all rows are one such group.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import NamedTuple

from reasoningbank.sparql.tokens import Token, tokenize

__all__ = ["Modifiers", "Window", "read_modifiers"]


@dataclass(frozen=True)
class Window:
    """What the outermost modifiers of the gold leave open.

    Attributes:
        start: OFFSET, in rows.
        length: LIMIT, in rows; None where there is none.
        keys: The variables that the rows are sorted by, most important first; empty where
            nothing sorts them, None where they are sorted by something that is no column,
            so that every row has its own place.
    """

    start: int = 0
    length: int | None = None
    keys: tuple[str, ...] | None = None

    @property
    def is_slice(self) -> bool:
        """Whether rows are left out."""
        return self.start > 0 or self.length is not None

    def size(self, n_rows: int) -> int:
        """Return how many of `n_rows` rows are inside.

        Examples:
            >>> Window(start=8, length=5).size(10)
            2
        """
        left = max(0, n_rows - self.start)
        return left if self.length is None else min(self.length, left)


class Modifiers(NamedTuple):
    """The outermost solution modifiers of a query.

    Attributes:
        window: OFFSET, LIMIT and sort keys, as written.
        unsliced: The query without OFFSET and LIMIT.
    """

    window: Window
    unsliced: str


def read_modifiers(query: str) -> Modifiers:
    """Read the modifiers of the outermost level; those of subqueries are left alone.

    The words are found by the grammar's terminals and by depth, not by searching the text:
    LIMIT in a comment, a string, an IRI, a name or a subquery is not one of them.

    Args:
        query: SPARQL text of any form.

    Returns:
        The modifiers, and the query without OFFSET and LIMIT.

    Examples:
        >>> found = read_modifiers("SELECT ?x { ?x ?p ?limit } ORDER BY DESC(?x) LIMIT 3 # LIMIT 9")
        >>> found.window
        Window(start=0, length=3, keys=('x',))
        >>> found.unsliced
        'SELECT ?x { ?x ?p ?limit } ORDER BY DESC(?x)  # LIMIT 9'
    """
    outer = _outermost(tokenize(query))
    start, length = 0, None
    unsliced = query
    for word, number in reversed(list(pairwise(outer))):
        if word.is_word("LIMIT", "OFFSET") and number.kind == "number":
            unsliced = unsliced[: word.start] + unsliced[number.end :]
            if word.is_word("LIMIT"):
                length = int(number.text)
            else:
                start = int(number.text)
    return Modifiers(Window(start, length, _sort_keys(outer)), unsliced)


def _outermost(tokens: Sequence[Token]) -> list[Token]:
    """Return the tokens outside all braces; parentheses stay."""
    depth = 0
    outer = []
    for token in tokens:
        # No other token has this text: a string carries its quotes.
        if token.text == "{":
            depth += 1
        elif token.text == "}":
            depth -= 1
        elif depth == 0:
            outer.append(token)
    return outer


def _sort_keys(outer: Sequence[Token]) -> tuple[str, ...] | None:
    """Return the variables of ORDER BY; None where any of its conditions is more than one."""
    begin = next(
        (i for i, (a, b) in enumerate(pairwise(outer)) if a.is_word("ORDER") and b.is_word("BY")),
        None,
    )
    if begin is None:
        return ()
    keys = []
    rest = iter(outer[begin + 2 :])
    for token in rest:
        if token.is_word("LIMIT", "OFFSET", "VALUES"):
            break
        if token.is_word("ASC", "DESC"):
            condition = list(islice(rest, 3))
            if [t.text for t in condition[::2]] != ["(", ")"]:
                return None
            token = condition[1]
        elif token.text == "(":
            condition = list(islice(rest, 2))
            if len(condition) < 2 or condition[1].text != ")":
                return None
            token = condition[0]
        if token.kind != "variable":
            return None
        keys.append(token.text[1:])
    return tuple(keys)
