"""A literal as a query writes it, and the forms in which data may hold the same text."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

import pyoxigraph
from pyoxigraph import Literal, NamedNode

from reasoningbank.sparql import Term, full
from reasoningbank.sparql.tokens import tokenize

__all__ = ["Written", "read_literal", "variants"]

_XSD = "http://www.w3.org/2001/XMLSchema#"
_NUMBERS = ("integer", "int", "decimal", "double", "float")
_INTEGER = re.compile(r"[+-]?\d+")
_REAL = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


@dataclass(frozen=True)
class Written:
    """The text of a literal in a query, without language and datatype."""

    text: str

    @property
    def spaced(self) -> bool:
        """Whether it is several words."""
        return " " in self.text.strip()

    @property
    def number(self) -> bool:
        """Whether it is a number."""
        return _REAL.fullmatch(self.text) is not None


def read_literal(written: str) -> Written | None:
    r"""Read a literal of a query; None for other terms.

    Examples:
        >>> read_literal('"a\\tb"@en'), read_literal("12"), read_literal("?x")
        (Written(text='a\tb'), Written(text='12'), None)
    """
    tokens = tokenize(written)
    if not tokens or not (
        tokens[0].kind in ("string", "number")
        or tokens[0].text in ("true", "false")
        or (tokens[0].text in ("+", "-") and len(tokens) > 1)
    ):
        return None
    if tokens[0].kind != "string":
        return Written(written)
    return Written(_unquoted(tokens[0].text))


def _unquoted(string: str) -> str:
    # The engine's own parser knows all escapes.
    solutions = pyoxigraph.Store().query(f"SELECT ({string} AS ?x) {{}}")
    assert isinstance(solutions, pyoxigraph.QuerySolutions), "a SELECT yields solutions"
    value = next(iter(solutions))["x"]
    assert isinstance(value, Literal), "a string yields a literal"
    return value.value


def variants(literal: Written, seen: Iterable[Term | None] = ()) -> list[str]:
    """Return the literals with the same text, upper or lower case, that data may hold.

    They are in the form of N-Triples, so that each can be looked up exactly.

    Args:
        literal: What the query writes.
        seen: Values from the data, whose languages and datatypes are tried as well.

    Examples:
        >>> variants(Written("Oak"), [Literal("Kiefer", language="de")])
        ['"Oak"', '"Oak"@de', '"Oak"@en', '"oak"', '"oak"@de', '"oak"@en', '"OAK"', ...]
    """
    text = literal.text
    found = [Literal(text)]
    known = [term for term in seen if isinstance(term, Literal)]
    languages = {term.language: None for term in known if term.language} | {"en": None}
    for case in (text, text.capitalize(), text.lower(), text.upper(), text.title()):
        found += [Literal(case), *(Literal(case, language=tag) for tag in languages)]
    found += [Literal(text, datatype=t.datatype) for t in known if not t.language]
    if _INTEGER.fullmatch(text):
        found += [Literal(text, datatype=NamedNode(_XSD + name)) for name in _NUMBERS]
    elif _REAL.fullmatch(text):
        found += [Literal(text, datatype=NamedNode(_XSD + name)) for name in _NUMBERS[2:]]
    return list(dict.fromkeys(full(term) for term in found))
