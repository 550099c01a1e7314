"""Conditions on rows, written as in SPARQL's FILTER and decided by Oxigraph."""

from __future__ import annotations

import pyoxigraph
from rdflib import BNode

from reasoningbank.algebra.faults import ProgramError
from reasoningbank.algebra.terms import to_sparql
from reasoningbank.algebra.values import Row
from reasoningbank.sparql import STANDARD_PREFIXES
from reasoningbank.sparql.tokens import tokenize
from reasoningbank.sparql.tree import outline

__all__ = ["Condition"]

_OPEN = {")": "(", "]": "["}


class Condition:
    """An expression of SPARQL that holds for a row or not; an error in it means it does not.

    Args:
        text: The expression: variables, functions, operators; no patterns (EXISTS).

    Attributes:
        names: The variables in it, without question marks.

    Raises:
        ProgramError: It is no expression.
        QueryError: It nests too deeply.

    Examples:
        >>> from rdflib import Literal
        >>> condition = Condition("?population > 100000 && BOUND(?name)")
        >>> condition.holds({"population": Literal(285273), "name": Literal("Aarhus")})
        True
        >>> condition.holds({"population": Literal(285273)})
        False
    """

    def __init__(self, text: str) -> None:
        # Read where it stands: by itself, `?a<1&&?b>2` would be an IRI between two numbers.
        whole = f"ASK {{ FILTER({text}\n) }}"
        begin = whole.index(text, whole.index("("))
        tokens = [t for t in tokenize(whole) if begin <= t.start < begin + len(text)]
        depth: list[str] = []
        for token in tokens:
            if token.kind == "other" or token.text in ("{", "}", ";"):
                raise ProgramError(f"{token.text!r} does not belong into a condition")
            if token.text in _OPEN.values():
                depth.append(token.text)
            elif token.text in _OPEN and (not depth or depth.pop() != _OPEN[token.text]):
                raise ProgramError(f"a bracket of the condition {text!r} closes nothing")
        # One that nests too deeply would end the whole process.
        outline(whole)
        self.names = tuple(dict.fromkeys(t.text[1:] for t in tokens if t.kind == "variable"))
        used = {t.text.partition(":")[0] for t in tokens if t.kind == "name"}
        known = ((name, space) for name, space in STANDARD_PREFIXES.items() if name in used)
        self._head = "".join(f"PREFIX {name}: <{space}> " for name, space in known)
        self._text = text
        self._store = pyoxigraph.Store()
        try:
            self._ask({})
        except SyntaxError as error:
            told = str(error).partition(": ")[2] or str(error)
            hint = "write it as in FILTER, e.g. ?population > 100000"
            raise ProgramError(f"{text!r} is no condition: {told}", hint=hint) from None

    def holds(self, row: Row) -> bool:
        """Say whether it holds for a row."""
        return self._ask(row)

    def _ask(self, row: Row) -> bool:
        binds = []
        for name in self.names:
            term = row.get(name)
            if isinstance(term, BNode):
                binds.append(f"BIND(BNODE() AS ?{name}) ")
            elif term is not None:
                binds.append(f"VALUES ?{name} {{ {to_sparql(term)} }} ")
        # A new line, so that a comment in the text ends there.
        query = f"{self._head}ASK {{ {''.join(binds)} FILTER({self._text}\n) }}"
        return bool(self._store.query(query))
