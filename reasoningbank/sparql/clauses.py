"""The graph patterns of a query as it is written: its groups, their clauses, their triples.

rdflib's algebra cannot be written back as SPARQL faithfully, so whoever takes a query apart reads
this tree, whose parts know where they stand in the text. Abbreviations with ``;``, ``,`` and
``[]`` are undone in the triple patterns.
Grammar: SPARQL 1.1 Query Language, rules 52 to 106.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal, NamedTuple

from reasoningbank.errors import QueryError
from reasoningbank.sparql.tokens import Token, tokenize

__all__ = ["Clause", "ClauseKind", "Group", "TriplePattern", "WrittenQuery", "read_clauses"]

ClauseKind = Literal[
    "triples", "filter", "bind", "values", "optional", "minus", "union", "graph", "service",
    "subselect",
]  # fmt: skip


class TriplePattern(NamedTuple):
    """One triple pattern as it is written; its predicate may be a path."""

    subject: str
    predicate: str
    object: str

    def __str__(self) -> str:
        return f"{self.subject} {self.predicate} {self.object}"


@dataclass(frozen=True)
class Clause:
    """One clause of a group.

    Attributes:
        kind: What it is; a group by itself is a ``union`` of one.
        start: Offset of its first character.
        end: Offset behind its last one; a statement's final period belongs to it.
        patterns: The triple patterns of a statement.
        groups: The groups it holds, those of EXISTS in an expression included.
        target: The name or variable of GRAPH and SERVICE, as written.
    """

    kind: ClauseKind
    start: int
    end: int
    patterns: tuple[TriplePattern, ...] = ()
    groups: tuple[Group, ...] = ()
    target: str = ""


@dataclass(frozen=True)
class Group:
    """What stands between two braces, which `start` and `end` enclose."""

    start: int
    end: int
    clauses: tuple[Clause, ...] = ()

    def walk(self) -> Iterator[Clause]:
        """Yield its clauses and those of the groups within, in written order."""
        for clause in self.clauses:
            yield clause
            for group in clause.groups:
                yield from group.walk()


@dataclass(frozen=True)
class WrittenQuery:
    """A query taken apart.

    Attributes:
        text: The whole query.
        where: Its WHERE group; None for a DESCRIBE without one.
        dataset: Its FROM and FROM NAMED clauses, as one text.
        values: The VALUES clause at its end; None where there is none.
        others: Groups outside of WHERE: EXISTS in the projection, HAVING or ORDER BY.
    """

    text: str = field(repr=False)
    where: Group | None = None
    dataset: str = ""
    values: Clause | None = None
    others: tuple[Group, ...] = ()

    def statements(self) -> list[Clause]:
        """Return the clauses that hold triple patterns, in written order."""
        groups = (*self.others, *((self.where,) if self.where else ()))
        ordered = sorted(groups, key=lambda group: group.start)
        return [c for group in ordered for c in group.walk() if c.kind == "triples"]


@lru_cache(maxsize=64)
def read_clauses(query: str) -> WrittenQuery:
    """Take a query apart.

    Args:
        query: A SELECT, ASK, CONSTRUCT or DESCRIBE query that parses.

    Raises:
        QueryError: The query is no SPARQL 1.1, or has a collection in a pattern.

    Examples:
        >>> found = read_clauses("ASK { ?p a up:Protein ; up:mass 3 . FILTER(?p != 4) }")
        >>> [clause.kind for clause in found.where.clauses]
        ['triples', 'filter']
        >>> [str(pattern) for pattern in found.where.clauses[0].patterns]
        ['?p a up:Protein', '?p up:mass 3']
    """
    return _Reader(query).read()


class _Reader:
    """Walks the tokens of a query by its grammar, as far as graph patterns need it."""

    def __init__(self, query: str) -> None:
        self.query = query
        self.tokens = tokenize(query)
        self.at = 0
        self.fresh = 0

    def read(self) -> WrittenQuery:
        where: Group | None = None
        dataset: list[str] = []
        values: Clause | None = None
        others: list[Group] = []
        while self.at < len(self.tokens):
            if self._is("CONSTRUCT"):
                self.at += 1
                if self._text() == "{":
                    self._skip_braces()
            elif self._is("FROM"):
                dataset.append(self._span(self._from))
            elif self._is("VALUES"):
                values = self._values()
            elif self._text() == "(":
                others += self._parentheses()
            elif self._text() == "{":
                group = self._group()
                if where is None:
                    where = group
                else:
                    others.append(group)
            else:
                self.at += 1
        return WrittenQuery(self.query, where, " ".join(dataset), values, tuple(others))

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

    def _step(self) -> None:
        self._token()
        self.at += 1

    def _end(self) -> int:
        return self.tokens[self.at - 1].end

    def _span(self, read: Callable[[], object]) -> str:
        first = self._token()
        read()
        return self.query[first.start : self._end()]

    def _from(self) -> None:
        self.at += 1
        self.at += self._is("NAMED")
        self._step()

    # -- graph patterns -------------------------------------------------------------------

    def _group(self) -> Group:
        start = self._token().start
        self._take("{")
        clauses: list[Clause] = []
        while self._text() != "}":
            if self._text() == ".":
                self.at += 1
            else:
                clauses.append(self._clause())
        self._take("}")
        return Group(start, self._end(), tuple(clauses))

    def _clause(self) -> Clause:
        start = self._token().start
        if self._text() == "{":
            return self._union(start)
        if self._is("SELECT"):
            return self._subselect(start)
        if self._is("OPTIONAL", "MINUS"):
            kind: ClauseKind = "optional" if self._is("OPTIONAL") else "minus"
            self.at += 1
            group = self._group()
            return Clause(kind, start, self._end(), groups=(group,))
        if self._is("GRAPH", "SERVICE"):
            kind = "graph" if self._is("GRAPH") else "service"
            self.at += 1
            self.at += self._is("SILENT")
            target = self._span(self._step)
            group = self._group()
            return Clause(kind, start, self._end(), groups=(group,), target=target)
        if self._is("FILTER", "BIND"):
            kind = "filter" if self._is("FILTER") else "bind"
            self.at += 1
            groups = self._condition()
            return Clause(kind, start, self._end(), groups=tuple(groups))
        if self._is("VALUES"):
            return self._values()
        return self._statement()

    def _union(self, start: int) -> Clause:
        groups = [self._group()]
        while self._is("UNION"):
            self.at += 1
            groups.append(self._group())
        return Clause("union", start, self._end(), groups=tuple(groups))

    def _subselect(self, start: int) -> Clause:
        groups: list[Group] = []
        while self._text() != "{":
            groups += self._parentheses() if self._text() == "(" else self._skip()
        groups.append(self._group())
        while self._text() != "}":
            if self._is("VALUES"):
                self._values()
            else:
                groups += self._parentheses() if self._text() == "(" else self._skip()
        return Clause("subselect", start, self._end(), groups=tuple(groups))

    def _skip(self) -> list[Group]:
        self._step()
        return []

    def _condition(self) -> list[Group]:
        self.at += self._is("NOT")
        if self._is("EXISTS"):
            self.at += 1
            return [self._group()]
        if self._text() != "(":  # a function's name
            self._step()
        return self._parentheses()

    def _parentheses(self) -> list[Group]:
        self._take("(")
        groups: list[Group] = []
        while self._text() != ")":
            if self._text() == "(":
                groups += self._parentheses()
            elif self._text() == "{":  # EXISTS inside an expression
                groups.append(self._group())
            else:
                self._step()
        self._take(")")
        return groups

    def _values(self) -> Clause:
        start = self._token().start
        while self._text() != "{":
            self._step()
        self._skip_braces()
        return Clause("values", start, self._end())

    def _skip_braces(self) -> None:
        self._take("{")
        while self._text() != "}":
            self._skip_braces() if self._text() == "{" else self._step()
        self._take("}")

    # -- triples --------------------------------------------------------------------------

    def _statement(self) -> Clause:
        start = self._token().start
        patterns: list[TriplePattern] = []
        bracket = self._text() == "["
        subject = self._term(patterns)
        if not (bracket and self._text() in (".", "}")):
            self._properties(subject, patterns)
        if self._text() == ".":
            self.at += 1
        return Clause("triples", start, self._end(), tuple(patterns))

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
        return self.query[token.start : self._end()]

    def _bracket(self, patterns: list[TriplePattern]) -> str:
        self._take("[")
        self.fresh += 1
        node = f"_:bracket{self.fresh}"
        if self._text() != "]":
            self._properties(node, patterns)
        self._take("]")
        return node
