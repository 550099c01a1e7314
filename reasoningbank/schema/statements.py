"""The statements of a query: triple patterns and steps of paths, each with its context."""

from __future__ import annotations

import itertools
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from rdflib.term import Identifier, Literal, URIRef, Variable

from reasoningbank.schema.lookups import read_condition, read_literal
from reasoningbank.sparql.terms import RDF_TYPE, absolute
from reasoningbank.sparql.tokens import AGGREGATES, Token, closing, split_at, tokenize
from reasoningbank.sparql.tree import Clause, Group, QueryTree, projection, read_query

#: A regular expression that is one plain text from end to end.
_WHOLE = re.compile(r"\^([^\W\d_](?:[^\W_]|[ '-])*)\$")


@dataclass(frozen=True)
class Statement:
    """One triple pattern, or one step of a path; blank nodes and its inner nodes are variables."""

    subject: Identifier
    predicate: Identifier  #: An IRI, or a variable
    object: Identifier
    #: The names of the innermost GRAPH and SERVICE; None outside.
    graph: Identifier | None = None
    service: Identifier | None = None
    #: The branches of UNIONs and alternatives that it is in: (which, which side).
    branch: tuple[tuple[int, int], ...] = ()
    skippable: bool = False  #: Whether it is a step that may be taken zero times (``*``, ``?``)
    negated: tuple[int, ...] = ()  #: The MINUS and NOT EXISTS that it is in
    #: The subquery it is in that returns one row (an aggregate without groups); 0 outside.
    alone: int = 0

    @property
    def is_type(self) -> bool:
        return str(self.predicate) == RDF_TYPE

    def meets(self, other: Statement) -> bool:
        """Return whether one solution can come from both: not from two sides of a UNION."""
        sides = dict(self.branch)
        return all(sides.get(which, side) == side for which, side in other.branch)


@dataclass(frozen=True)
class Statements:
    """The statements of a query, in written order."""

    statements: tuple[Statement, ...] = ()
    dataset: tuple[str, ...] = ()  #: The IRIs of FROM and FROM NAMED
    #: Texts that each variable is compared with as a whole, by FILTER, BIND or VALUES.
    texts: Mapping[Identifier, Collection[str]] = field(default_factory=dict)
    #: Variables that occur together in one expression, or in one VALUES.
    related: tuple[frozenset[Identifier], ...] = ()


@lru_cache(maxsize=1024)
def read_statements(query: str) -> Statements:
    """Return the statements of a query that declares its prefixes."""
    tree = read_query(query)
    walk = _Walk(tree)
    for group in (tree.where, *tree.others):
        if group is not None:
            walk.group(group, _Place())
    if tree.form == "SELECT":
        walk.projection(tree.body[1:], _Place())
    if tree.values is not None:
        walk.values(walk.tokens(tree.values), _Place())
    names = (absolute(t.text, tree.declared) for t in tokenize(tree.dataset))
    return Statements(
        tuple(walk.statements), tuple(filter(None, names)), dict(walk.texts), tuple(walk.related)
    )


@dataclass(frozen=True)
class _Place:
    graph: Identifier | None = None
    service: Identifier | None = None
    branch: tuple[tuple[int, int], ...] = ()
    #: Variables that the enclosing query sees, and the number of this subquery; None at the top.
    seen: frozenset[str] | None = None
    scope: int = 0
    negated: tuple[int, ...] = ()
    alone: int = 0

    def variable(self, name: str) -> Variable:
        hidden = self.seen is not None and name not in self.seen
        return Variable(f"{name}~{self.scope}" if hidden else name)


class _Walk:
    def __init__(self, tree: QueryTree) -> None:
        self.text = tree.text
        self.declared = tree.declared
        self.statements: list[Statement] = []
        self.texts: dict[Identifier, set[str]] = defaultdict(set)
        self.related: list[frozenset[Identifier]] = []
        self._numbers = itertools.count(1)
        self._steps = itertools.count(1)

    def tokens(self, clause: Clause) -> tuple[Token, ...]:
        return tokenize(self.text[clause.start : clause.end])

    def group(self, group: Group, place: _Place) -> None:
        for clause in group.clauses:
            self._clause(clause, place)

    def _clause(self, clause: Clause, place: _Place) -> None:
        for subject, predicate, object_ in clause.patterns:
            ends = self._term(subject, place), self._term(object_, place)
            self._path(ends[0], tokenize(predicate), ends[1], place, False)
        if clause.kind == "graph":
            place = replace(place, graph=self._term(clause.target, place))
        elif clause.kind == "service":
            place = replace(place, service=self._term(clause.target, place), graph=None)
        elif clause.kind == "minus":
            place = replace(place, negated=(*place.negated, next(self._numbers)))
        elif clause.kind == "subselect":
            place = self._subselect(clause, place)
        elif clause.kind == "values":
            self.values(self.tokens(clause), place)
        elif clause.kind in ("filter", "bind"):
            self._expression(clause, place)
            return
        number = next(self._numbers)
        for side, group in enumerate(clause.groups):
            inside = place
            if clause.kind == "union" and len(clause.groups) > 1:
                inside = replace(place, branch=(*place.branch, (number, side)))
            self.group(group, inside)

    def _subselect(self, clause: Clause, place: _Place) -> _Place:
        tokens = self.tokens(clause)
        begins = next(at for at, token in enumerate(tokens) if token.text == "{")
        head = tokens[:begins]
        inner = replace(place, scope=next(self._numbers))
        star, columns = projection(head)
        if not star:
            names = frozenset(columns)
            inner = replace(inner, seen=names if place.seen is None else names & place.seen)
        grouped = any(token.is_word("GROUP") for token in tokens[closing(tokens, begins) :])
        if any(token.is_word(*AGGREGATES) for token in head) and not grouped:
            inner = replace(inner, alone=inner.scope)
        self.projection(head[1:], inner)
        return inner

    def projection(self, tokens: Sequence[Token], place: _Place) -> None:
        """Relate the variables of each expression that is selected; aggregates relate none."""
        for part in parentheses(tokens):
            if not any(token.is_word(*AGGREGATES) or token.text == "{" for token in part):
                self._relate((t.text[1:] for t in part if t.kind == "variable"), place)

    def _term(self, written: str, place: _Place) -> Identifier:
        if written[:1] in "?$":
            return place.variable(written[1:])
        if written.startswith("_:"):
            return Variable(f"_{written[2:]}")
        name = absolute(written, self.declared)
        if name is not None:
            return URIRef(name)
        text = read_literal(written)
        return Literal(written if text is None else text)

    def _path(
        self,
        subject: Identifier,
        path: Sequence[Token],
        object_: Identifier,
        place: _Place,
        skippable: bool,
    ) -> None:
        sides = split_at(path, "|")
        if len(sides) > 1:
            number = next(self._numbers)
            for at, side in enumerate(sides):
                inside = replace(place, branch=(*place.branch, (number, at)))
                self._path(subject, side, object_, inside, skippable)
            return
        steps = split_at(path, "/")
        if len(steps) > 1:
            between = [Variable(f"step{next(self._steps)}") for _ in steps[1:]]
            for start, step, end in zip(
                [subject, *between], steps, [*between, object_], strict=True
            ):
                self._path(start, step, end, place, skippable)
            return
        if path[0].text == "^":
            self._path(object_, path[1:], subject, place, skippable)
        elif path[-1].text in ("*", "?", "+"):
            skippable = skippable or path[-1].text != "+"
            self._path(subject, path[:-1], object_, place, skippable)
        elif path[0].text == "(":
            self._path(subject, path[1:-1], object_, place, skippable)
        elif path[0].text != "!":
            predicate = self._term(path[0].text, place)
            context = place.graph, place.service, place.branch, skippable
            more = place.negated, place.alone
            self.statements.append(Statement(subject, predicate, object_, *context, *more))

    def _expression(self, clause: Clause, place: _Place) -> None:
        for group in clause.groups:
            before = [t for t in self.tokens(clause) if clause.start + t.end <= group.start]
            words = [t.text.upper() for t in before if t.text != "("]
            denied = words[-1:] == ["EXISTS"] and words[-2:-1] in (["NOT"], ["!"])
            number = (next(self._numbers),) if denied else ()
            self.group(group, replace(place, negated=(*place.negated, *number)))
        inside = [(g.start - clause.start, g.end - clause.start) for g in clause.groups]
        own = [t for t in self.tokens(clause) if not any(a <= t.start < b for a, b in inside)]
        self._relate((t.text[1:] for t in own if t.kind == "variable"), place)
        if clause.kind == "bind" and len(own) > 4 and own[2].kind == "string":
            if own[3].is_word("AS"):
                self.texts[place.variable(own[4].text[1:])].add(own[2].text)
            return
        for part in split_at(own[1:], "&&", nested=True):
            condition = read_condition(f"FILTER {' '.join(t.text for t in part)}")
            if condition is None:
                continue
            name, text, function = condition
            if not function or (function == "REGEX" and _WHOLE.fullmatch(text)):
                self.texts[place.variable(name)].add(text)

    def values(self, tokens: Sequence[Token], place: _Place) -> None:
        opening = next(at for at, token in enumerate(tokens) if token.text == "{")
        names = [token.text[1:] for token in tokens[:opening] if token.kind == "variable"]
        self._relate(names, place)
        cells = [t for t in tokens[opening:] if t.kind not in ("punct", "tag")]
        for at, token in enumerate(cells):
            if token.kind == "string" and names:
                self.texts[place.variable(names[at % len(names)])].add(token.text)

    def _relate(self, names: Iterable[str], place: _Place) -> None:
        self.related.append(frozenset(place.variable(name) for name in names))


def parentheses(tokens: Sequence[Token]) -> Iterator[Sequence[Token]]:
    """Yield the outermost parentheses with what is in them, up to the WHERE group."""
    at = 0
    while at < len(tokens) and tokens[at].text != "{":
        end = closing(tokens, at) if tokens[at].text == "(" else at + 1
        if tokens[at].text == "(":
            yield tokens[at:end]
        at = end
