"""The triple patterns of a query, and the query without one of them.

rdflib's algebra cannot be written back as SPARQL faithfully, so patterns are found in the
query's tokens: abbreviations with ``;`` and ``,`` are undone in the statement that loses a
pattern, and everything else stays as it was written.
Grammar: SPARQL 1.1 Query Language, rules 52 to 106.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from reasoningbank.errors import QueryError
from reasoningbank.sparql.tokens import Token, tokenize

__all__ = ["TriplePattern", "triple_patterns", "without_pattern"]


class TriplePattern(NamedTuple):
    """One triple pattern as it is written; its predicate may be a path."""

    subject: str
    predicate: str
    object: str

    def __str__(self) -> str:
        return f"{self.subject} {self.predicate} {self.object}"


class _Statement(NamedTuple):
    start: int
    end: int
    patterns: list[TriplePattern]


def triple_patterns(query: str) -> list[TriplePattern]:
    """Return the triple patterns of a query's WHERE clause, in written order.

    Args:
        query: A SELECT, ASK, CONSTRUCT or DESCRIBE query; subqueries, EXISTS and SERVICE
            are looked into, the template of CONSTRUCT is not.

    Raises:
        QueryError: The query is no SPARQL, or has a collection in a pattern.

    Examples:
        >>> for p in triple_patterns("ASK { ?p a up:Protein ; up:organism/up:rank ?r , ?q }"):
        ...     print(p)
        ?p a up:Protein
        ?p up:organism/up:rank ?r
        ?p up:organism/up:rank ?q
    """
    return [pattern for statement in _statements(query) for pattern in statement.patterns]


def without_pattern(query: str, index: int) -> str:
    """Return the query without its `index`-th triple pattern.

    Args:
        query: As for `triple_patterns`.
        index: A position in what `triple_patterns` returns.

    Raises:
        QueryError: As for `triple_patterns`, or there is no such pattern.

    Examples:
        >>> without_pattern("ASK { ?p a up:Protein ; up:mass 3 . FILTER(?p != 4) }", 0)
        'ASK { ?p up:mass 3 . FILTER(?p != 4) }'
    """
    left = index
    for statement in _statements(query):
        if 0 <= left < len(statement.patterns):
            rest = [p for i, p in enumerate(statement.patterns) if i != left]
            text = " ".join(f"{pattern} ." for pattern in rest)
            return query[: statement.start] + text + query[statement.end :]
        left -= len(statement.patterns)
    raise QueryError(f"the query has no triple pattern {index}")


def _statements(query: str) -> list[_Statement]:
    return _Reader(query).read()


class _Reader:
    """Walks the tokens of a query by its grammar, as far as triple patterns need it."""

    def __init__(self, query: str) -> None:
        self.query = query
        self.tokens = tokenize(query)
        self.at = 0
        self.fresh = 0
        self.statements: list[_Statement] = []

    def read(self) -> list[_Statement]:
        while self.at < len(self.tokens):
            if self._is("CONSTRUCT"):
                self.at += 1
                if self._text() == "{":
                    self._skip_braces()
            elif self._is("VALUES"):
                self._values()
            elif self._text() == "{":
                self._group()
            else:
                self.at += 1
        return self.statements

    # -- where we are ---------------------------------------------------------------------

    def _token(self) -> Token:
        if self.at >= len(self.tokens):
            raise QueryError("the query ends in the middle of a pattern")
        return self.tokens[self.at]

    def _text(self) -> str:
        return self.tokens[self.at].text if self.at < len(self.tokens) else ""

    def _is(self, *words: str) -> bool:
        return self.at < len(self.tokens) and self.tokens[self.at].is_word(*words)

    def _take(self, text: str) -> None:
        token = self._token()
        if token.text != text:
            raise QueryError(f"{token.text!r} stands at offset {token.start} where {text!r} should")
        self.at += 1

    def _span(self, read: Callable[[], None]) -> str:
        first = self._token()
        read()
        return self.query[first.start : self.tokens[self.at - 1].end]

    # -- graph patterns -------------------------------------------------------------------

    def _group(self) -> None:
        self._take("{")
        while self._text() != "}":
            if self._text() in ("{", "."):
                self._group() if self._text() == "{" else self._take(".")
            elif self._is("SELECT"):
                self._subselect()
            elif self._is("OPTIONAL", "MINUS", "UNION", "NOT", "EXISTS"):
                self.at += 1
            elif self._is("GRAPH", "SERVICE"):
                self.at += 1
                self.at += self._is("SILENT")
                self.at += 1
            elif self._is("FILTER", "BIND"):
                self.at += 1
                if not self._is("NOT", "EXISTS"):
                    self._expression()
            elif self._is("VALUES"):
                self._values()
            else:
                self._statement()
        self._take("}")

    def _subselect(self) -> None:
        while self._text() != "{":
            self._token()
            self._parentheses() if self._text() == "(" else self._step()
        self._group()
        while self._text() != "}":
            if self._is("VALUES"):
                self._values()
            elif self._text() == "(":
                self._parentheses()
            else:
                self._step()

    def _step(self) -> None:
        self._token()
        self.at += 1

    def _expression(self) -> None:
        if self._text() != "(":  # a function's name
            self._step()
        self._parentheses()

    def _parentheses(self) -> None:
        self._take("(")
        while self._text() != ")":
            if self._text() == "(":
                self._parentheses()
            elif self._text() == "{":  # EXISTS inside an expression
                self._group()
            else:
                self._step()
        self._take(")")

    def _values(self) -> None:
        while self._text() != "{":
            self._step()
        self._skip_braces()

    def _skip_braces(self) -> None:
        self._take("{")
        while self._text() != "}":
            self._skip_braces() if self._text() == "{" else self._step()
        self._take("}")

    # -- triples --------------------------------------------------------------------------

    def _statement(self) -> None:
        start = self._token().start
        patterns: list[TriplePattern] = []
        bracket = self._text() == "["
        subject = self._term(patterns)
        if not (bracket and self._text() in (".", "}")):
            self._properties(subject, patterns)
        if self._text() == ".":
            self.at += 1
        self.statements.append(_Statement(start, self.tokens[self.at - 1].end, patterns))

    def _properties(self, subject: str, patterns: list[TriplePattern]) -> None:
        while True:
            verb = self._span(self._verb)
            while True:
                # What hangs on a nested blank node comes behind the pattern that leads there.
                nested: list[TriplePattern] = []
                patterns.append(TriplePattern(subject, verb, self._term(nested)))
                patterns.extend(nested)
                if self._text() != ",":
                    break
                self.at += 1
            if self._text() != ";":
                return
            while self._text() == ";":
                self.at += 1
            if self._text() in (".", "}", "]"):
                return

    def _verb(self) -> None:
        if self._token().kind == "variable":
            self.at += 1
            return
        self._path()

    def _path(self) -> None:
        while True:
            while self._text() in ("^", "!"):
                self.at += 1
            if self._text() == "(":
                self.at += 1
                if self._text() != ")":
                    self._path()
                self._take(")")
            else:
                self._iri()
            if self._text() in ("?", "*", "+"):
                self.at += 1
            if self._text() not in ("/", "|"):
                return
            self.at += 1

    def _iri(self) -> None:
        token = self._token()
        if token.kind not in ("iri", "name") and token.text != "a":
            raise QueryError(f"{token.text!r} at offset {token.start} is no property")
        self.at += 1

    def _term(self, patterns: list[TriplePattern]) -> str:
        token = self._token()
        if token.text == "[":
            return self._bracket(patterns)
        if token.text == "(":
            raise QueryError("collections in triple patterns are not read")
        self.at += 1
        if token.text in ("+", "-") and self._token().kind == "number":
            self.at += 1
        elif token.kind == "string":
            if self._text() == "^^":
                self.at += 2
            elif self.at < len(self.tokens) and self._token().kind == "tag":
                self.at += 1
        elif token.kind not in ("iri", "name", "blank", "variable", "number") and (
            token.text not in ("true", "false")
        ):
            raise QueryError(f"{token.text!r} at offset {token.start} is no term")
        return self.query[token.start : self.tokens[self.at - 1].end]

    def _bracket(self, patterns: list[TriplePattern]) -> str:
        self._take("[")
        self.fresh += 1
        node = f"_:bracket{self.fresh}"
        if self._text() != "]":
            self._properties(node, patterns)
        self._take("]")
        return node
