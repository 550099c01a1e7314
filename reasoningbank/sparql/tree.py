"""The tree of a query as written: prologue, form, columns, groups, clauses, triple patterns.

Every part has its position in the text, so a query is taken apart and edited faithfully; rdflib's
algebra cannot be written back as SPARQL. Abbreviations with ``;``, ``,`` and ``[]`` are expanded
in the triple patterns. Grammar: SPARQL 1.1 Query Language, rules 52 to 106.

`outline` reads what limits and allowed addresses need, also of what rdflib cannot parse;
`read_query` reads the patterns as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Literal, NamedTuple, cast

from reasoningbank.errors import QueryError
from reasoningbank.sparql.syntax import empty_query, syntax_error
from reasoningbank.sparql.tokens import (
    FORMS,
    UPDATE_WORDS,
    Token,
    check_query_size,
    closing,
    prologue,
    tokenize,
)

Form = Literal["SELECT", "ASK", "CONSTRUCT", "DESCRIBE"]
ClauseKind = Literal[
    "triples", "filter", "bind", "values", "optional", "minus", "union", "graph", "service",
    "subselect",
]  # fmt: skip

_BLOCKS = ("OPTIONAL", "MINUS", "GRAPH", "SERVICE", "FILTER", "BIND")
#: Digits of a LIMIT.
MOST_DIGITS = 18


class TriplePattern(NamedTuple):
    """One triple pattern as written; its predicate may be a path."""

    subject: str
    predicate: str
    object: str

    def __str__(self) -> str:
        return f"{self.subject} {self.predicate} {self.object}"


@dataclass(frozen=True)
class Clause:
    """One clause of a group, from offset `start` to `end`; a final period belongs to it.

    A group by itself is a ``union`` of one. `groups` includes those of EXISTS in an expression;
    `target` is the name or variable of GRAPH and SERVICE, as written.
    """

    kind: ClauseKind
    start: int
    end: int
    patterns: tuple[TriplePattern, ...] = ()
    groups: tuple[Group, ...] = ()
    target: str = ""


@dataclass(frozen=True)
class Group:
    """A group in braces, from offset `start` to `end`."""

    start: int
    end: int
    clauses: tuple[Clause, ...] = ()

    def walk(self, *, services: bool = True) -> Iterator[Clause]:
        """Yield its clauses and those of the groups within, in written order."""
        for clause in self.clauses:
            yield clause
            for group in clause.groups if services or clause.kind != "service" else ():
                yield from group.walk(services=services)


@dataclass(frozen=True)
class Limit:
    """The LIMIT of the outermost level: its number and position, or where to insert one."""

    start: int
    end: int
    value: int | None = None


class _Patterns(NamedTuple):
    where: Group | None
    dataset: str
    values: Clause | None
    others: tuple[Group, ...]

    @property
    def groups(self) -> tuple[Group, ...]:
        groups = [group for group in (*self.others, self.where) if group is not None]
        return tuple(sorted(groups, key=lambda group: group.start))


@dataclass(frozen=True)
class QueryTree:
    """A parsed query.

    The fields come from its tokens alone; the properties raise `QueryError` where the patterns
    cannot be read: syntax beyond SPARQL 1.1, or a collection.
    """

    text: str = field(repr=False)
    form: Form
    body: tuple[Token, ...] = field(repr=False)  #: The tokens after the prologue
    limit: Limit
    prefix_at: int = 0  #: The offset for further PREFIX lines
    declared: Mapping[str, str] = field(default_factory=dict)
    projected: tuple[str, ...] = ()  #: The columns that the outermost SELECT names
    star: bool = False  #: Whether that is ``*``
    service_targets: tuple[Token, ...] = ()  #: The token after each SERVICE

    @cached_property
    def _patterns(self) -> _Patterns:
        return _Reader(self.text, self.body).read()

    @property
    def where(self) -> Group | None:
        """Its WHERE group; None for a DESCRIBE without one."""
        return self._patterns.where

    @property
    def dataset(self) -> str:
        """Its FROM and FROM NAMED clauses, as one text."""
        return self._patterns.dataset

    @property
    def values(self) -> Clause | None:
        """The VALUES clause at its end; None if there is none."""
        return self._patterns.values

    @property
    def others(self) -> tuple[Group, ...]:
        """Groups outside WHERE: EXISTS in the projection, HAVING or ORDER BY."""
        return self._patterns.others

    def statements(self, *, services: bool = True) -> list[Clause]:
        """Return the clauses that hold triple patterns, in written order."""
        every = (c for group in self._patterns.groups for c in group.walk(services=services))
        return [clause for clause in every if clause.kind == "triples"]

    def triple_patterns(self, *, services: bool = True) -> list[TriplePattern]:
        """Return all triple patterns, in written order; the template of CONSTRUCT is left out.

        Without `services`, those that another endpoint answers are left out too.
        """
        return [p for clause in self.statements(services=services) for p in clause.patterns]


@lru_cache(maxsize=256)
def outline(query: str) -> QueryTree:
    """Parse a query as far as its tokens reach; its patterns are read when they are asked for."""
    tokens = tokenize(query)
    declared, start = prologue(tokens)
    body = tokens[start:]
    form = _form(query, body)
    odd = next((token for token in body if token.kind == "other"), None)
    if odd is not None:
        raise syntax_error(query, odd.start, "")
    outer = check_query_size(body)
    star, projected = projection(body)
    return QueryTree(
        query,
        form,
        body,
        _limit(query, outer),
        tokens[0].start,
        declared,
        projected if form == "SELECT" else (),
        star,
        tuple(_targets(body)),
    )


def read_query(query: str) -> QueryTree:
    """Parse a query and its patterns."""
    tree = outline(query)
    _ = tree.where
    return tree


def _form(query: str, body: Sequence[Token]) -> Form:
    if not body:
        raise empty_query()
    first = body[0]
    if first.is_word(*UPDATE_WORDS):
        what = f"{first.text.upper()} is an update, and only queries are allowed"
        hint = "ask with SELECT, ASK, CONSTRUCT or DESCRIBE"
        raise syntax_error(query, first.start, what, hint=hint, code="update-refused")
    if not first.is_word(*FORMS):
        raise syntax_error(query, first.start, "")
    return cast(Form, first.text.upper())


def projection(body: Sequence[Token]) -> tuple[bool, tuple[str, ...]]:
    """Return whether a SELECT is of ``*``, and otherwise the columns that it names."""
    names: list[str] = []
    depth = 0
    for before, token in pairwise(body):
        if token.text == "{" or token.is_word("WHERE", "FROM"):
            break
        depth += (token.text == "(") - (token.text == ")")
        named = depth == 0 or (depth == 1 and before.is_word("AS"))
        if token.kind == "variable" and named:
            names.append(token.text[1:])
        elif token.text == "*" and depth == 0:
            return True, ()
    return False, tuple(names)


def _targets(body: Sequence[Token]) -> list[Token]:
    targets = []
    for at, token in enumerate(body):
        if token.is_word("SERVICE"):
            following = [t for t in body[at + 1 : at + 3] if not t.is_word("SILENT")][:1]
            targets += [t for t in following if t.kind in ("iri", "name", "variable")]
    return targets


def _limit(query: str, outer: Sequence[Token]) -> Limit:
    closed = next((at for at, token in enumerate(outer) if token.text == "}"), len(outer) - 1)
    end = outer[-1].end
    for at in range(closed + 1, len(outer)):
        token = outer[at]
        if token.is_word("LIMIT") and at + 1 < len(outer) and outer[at + 1].kind == "number":
            number = outer[at + 1]
            if not number.text.isdigit() or len(number.text) > MOST_DIGITS:
                what = f"LIMIT takes a whole number of at most {MOST_DIGITS} digits"
                raise syntax_error(query, number.start, what)
            return Limit(number.start, number.end, int(number.text))
        if token.is_word("VALUES"):
            end = outer[at - 1].end
            break
    return Limit(end, end)


def _unreadable(token: Token, what: str) -> QueryError:
    return QueryError(f"{what}, got {token.text!r} at offset {token.start}", code="unreadable")


class _Reader:
    """Reads the groups of a query from its tokens by the grammar, as far as patterns need it."""

    def __init__(self, query: str, tokens: Sequence[Token]) -> None:
        self.query = query
        self.tokens = tokens
        self.at = 0
        self.fresh = 0

    def read(self, stop: str = "") -> _Patterns:
        """Read a query or subquery up to its end, or to the bracket `stop`."""
        where: Group | None = None
        dataset: list[str] = []
        values: Clause | None = None
        others: list[Group] = []
        while self._text() != stop:
            start = self._token().start
            if self._skip("CONSTRUCT"):
                if self._text() == "{":
                    self.at = closing(self.tokens, self.at)
            elif self._skip("FROM"):
                self._skip("NAMED")
                self._step()
                dataset.append(self.query[start : self._end()])
            elif self._text().upper() == "VALUES":
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
                self._step()
        return _Patterns(where, " ".join(dataset), values, tuple(others))

    def _token(self) -> Token:
        if self.at >= len(self.tokens):
            raise QueryError("the query ends in the middle of a pattern", code="unreadable")
        return self.tokens[self.at]

    def _text(self) -> str:
        return self.tokens[self.at].text if self.at < len(self.tokens) else ""

    def _skip(self, *texts: str) -> bool:
        """Step over the next token if it is one of these, given in capitals."""
        found = self._text().upper() in texts
        self.at += found
        return found

    def _step(self) -> Token:
        token = self._token()
        self.at += 1
        return token

    def _take(self, text: str) -> None:
        token = self._step()
        if token.text != text:
            raise _unreadable(token, f"expected {text!r}")

    def _end(self) -> int:
        return self.tokens[self.at - 1].end

    def _span(self, read: Callable[[], object]) -> str:
        first = self._token()
        read()
        return self.query[first.start : self._end()]

    def _group(self) -> Group:
        start = self._token().start
        self._take("{")
        clauses: list[Clause] = []
        while self._text() != "}":
            if not self._skip("."):
                clauses.append(self._clause())
        self._take("}")
        return Group(start, self._end(), tuple(clauses))

    def _clause(self) -> Clause:
        start = self._token().start
        word = self._text().upper()
        if word == "{":
            union = [self._group()]
            while self._skip("UNION"):
                union.append(self._group())
            return Clause("union", start, self._end(), groups=tuple(union))
        if word == "SELECT":
            inner = self.read("}")
            return Clause("subselect", start, self._end(), groups=inner.groups)
        if word == "VALUES":
            return self._values()
        if word not in _BLOCKS:
            return self._statement()
        kind = cast(ClauseKind, word.lower())
        self.at += 1
        target = ""
        if kind in ("graph", "service"):
            self._skip("SILENT")
            target = self._span(self._step)
        groups = self._condition() if kind in ("filter", "bind") else [self._group()]
        return Clause(kind, start, self._end(), groups=tuple(groups), target=target)

    def _condition(self) -> list[Group]:
        self._skip("NOT")
        if self._skip("EXISTS"):
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
        self.at = closing(self.tokens, self.at)
        return Clause("values", start, self._end())

    def _statement(self) -> Clause:
        start = self._token().start
        patterns: list[TriplePattern] = []
        bracket = self._text() == "["
        subject = self._term(patterns)
        if not (bracket and self._text() in (".", "}")):
            self._properties(subject, patterns)
        self._skip(".")
        return Clause("triples", start, self._end(), tuple(patterns))

    def _properties(self, subject: str, patterns: list[TriplePattern]) -> None:
        while True:
            variable = self._token().kind == "variable"
            verb = self._span(self._step if variable else self._path)
            while True:
                # What belongs to a nested blank node follows the pattern that leads to it.
                nested: list[TriplePattern] = []
                patterns.append(TriplePattern(subject, verb, self._term(nested)))
                patterns.extend(nested)
                if not self._skip(","):
                    break
            if self._text() != ";":
                return
            while self._skip(";"):
                pass
            if self._text() in (".", "}", "]"):
                return

    def _path(self) -> None:
        while True:
            while self._skip("^", "!"):
                pass
            if self._skip("("):
                if self._text() != ")":
                    self._path()
                self._take(")")
            else:
                token = self._step()
                if token.kind not in ("iri", "name") and token.text != "a":
                    raise _unreadable(token, "expected a property")
            self._skip("?", "*", "+")
            if not self._skip("/", "|"):
                return

    def _term(self, patterns: list[TriplePattern]) -> str:
        token = self._token()
        if token.text == "[":
            return self._bracket(patterns)
        if token.text == "(":
            raise QueryError("collections in triple patterns are not supported", code="unreadable")
        self.at += 1
        if token.text in ("+", "-") and self._token().kind == "number":
            self.at += 1
        elif token.kind == "string":
            if self._skip("^^"):
                self._step()
            elif self.at < len(self.tokens) and self._token().kind == "tag":
                self.at += 1
        elif token.kind not in ("iri", "name", "blank", "variable", "number") and (
            token.text not in ("true", "false")
        ):
            raise _unreadable(token, "expected a term")
        return self.query[token.start : self._end()]

    def _bracket(self, patterns: list[TriplePattern]) -> str:
        self._take("[")
        self.fresh += 1
        node = f"_:bracket{self.fresh}"
        if self._text() != "]":
            self._properties(node, patterns)
        self._take("]")
        return node
