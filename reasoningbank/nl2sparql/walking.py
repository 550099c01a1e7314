"""The statements of a query, each with where it stands: graph, service, branch, scope.

rdflib's algebra is walked, not the text, so strings, comments and layout play no role. Paths are
taken apart into steps, and a variable that a subquery keeps to itself gets a name of its own.
rdflib leaves the insides of SERVICE as parse trees: both vocabularies of nodes occur.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from rdflib.paths import AlternativePath, InvPath, MulPath, NegatedPath, Path, SequencePath
from rdflib.plugins.sparql.parserutils import CompValue
from rdflib.plugins.sparql.sparql import Query
from rdflib.term import BNode, Identifier, Literal, Variable

from reasoningbank.sparql.shape import triples_of

__all__ = ["Statement", "WalkedQuery", "walk_query"]

#: Functions that hold a variable against a text as a whole.
_EQUAL = ("=", "IN")
#: Nodes whose expression may join variables that share no triple pattern.
_EXPRESSIONS = ("Filter", "Extend", "Bind", "LeftJoin")
#: Nodes that say what is not so.
_NEGATIONS = ("Minus", "MinusGraphPattern", "Builtin_NOTEXISTS")
#: A regular expression that is one plain text from end to end.
_WHOLE = re.compile(r"\^([^\W\d_](?:[^\W_]|[ '-])*)\$")


@dataclass(frozen=True)
class Statement:
    """One triple pattern, or one step of a path.

    Attributes:
        subject: Term; blank nodes and inner variables of paths are variables.
        predicate: An IRI, or a variable.
        object: Term.
        graph: The name behind the innermost GRAPH; None outside.
        service: The name behind the innermost SERVICE; None outside.
        branch: The branches of UNIONs and alternatives that it stands in: (which, which side).
        skippable: Whether it is a step that may be taken no times (``*``, ``?``).
        negated: The MINUS and NOT EXISTS that it stands in.
        alone: The subquery that it stands in and that gives one row: an aggregate without groups;
            0 outside.
    """

    subject: Identifier
    predicate: Identifier
    object: Identifier
    graph: Identifier | None = None
    service: Identifier | None = None
    branch: tuple[tuple[int, int], ...] = ()
    skippable: bool = False
    negated: tuple[int, ...] = ()
    alone: int = 0

    def meets(self, other: Statement) -> bool:
        """Say whether one solution can come from both: they are in no two sides of a UNION."""
        sides = dict(self.branch)
        return all(sides.get(which, side) == side for which, side in other.branch)


@dataclass(frozen=True)
class WalkedQuery:
    """What a query says.

    Attributes:
        statements: In the order of the algebra.
        dataset: IRIs behind FROM and FROM NAMED.
        texts: Texts that each variable is held equal to, by FILTER, BIND or VALUES.
        related: Variables that stand together in one expression, or in one VALUES.
    """

    statements: tuple[Statement, ...] = ()
    dataset: tuple[str, ...] = ()
    texts: Mapping[Identifier, frozenset[str]] = field(default_factory=dict)
    related: tuple[frozenset[Identifier], ...] = ()


def walk_query(query: Query) -> WalkedQuery:
    """Return the statements of a parsed query.

    Args:
        query: As rdflib parses and translates it; it is not changed.

    Examples:
        >>> from reasoningbank.sparql.parsing import parse_algebra
        >>> walked = walk_query(parse_algebra("ASK { GRAPH <urn:g> { ?s ^<urn:p>/<urn:q> 'x' } }"))
        >>> [(str(s.subject), str(s.predicate), str(s.object), str(s.graph))
        ...  for s in walked.statements]
        [('step1', 'urn:p', 's', 'urn:g'), ('step1', 'urn:q', 'x', 'urn:g')]
    """
    walk = _Walk()
    walk.into(query.algebra, _Place())
    dataset = tuple(
        str(name)
        for clause in query.algebra.get("datasetClause") or ()
        for name in (clause.default, clause.named)
        if name is not None
    )
    return WalkedQuery(
        tuple(walk.statements),
        dataset,
        {name: frozenset(texts) for name, texts in walk.texts.items()},
        tuple(walk.related),
    )


@dataclass(frozen=True)
class _Place:
    graph: Identifier | None = None
    service: Identifier | None = None
    branch: tuple[tuple[int, int], ...] = ()
    #: Names that the enclosing query sees, and the number of this subquery; None at the top.
    seen: frozenset[str] | None = None
    scope: int = 0
    negated: tuple[int, ...] = ()
    alone: int = 0

    def name(self, term: Any) -> Any:
        if isinstance(term, BNode):
            return Variable(f"_{term}")
        hidden = self.seen is not None and str(term) not in self.seen
        if isinstance(term, Variable) and hidden:
            return Variable(f"{term}~{self.scope}")
        return term


class _Walk:
    def __init__(self) -> None:
        self.statements: list[Statement] = []
        self.texts: dict[Identifier, set[str]] = {}
        self.related: list[frozenset[Identifier]] = []
        self._numbers = itertools.count(1)
        self._steps = itertools.count(1)

    def into(self, node: Any, place: _Place) -> None:
        if isinstance(node, (list, tuple)):
            for item in node:
                self.into(item, place)
        if not isinstance(node, CompValue):
            return
        name = node.name
        if name in ("BGP", "TriplesBlock"):
            for subject, predicate, obj in triples_of(node):
                self._path(place.name(subject), predicate, place.name(obj), place)
        elif name == "Union":
            self._sides([node.p1, node.p2], place)
        elif name == "GroupOrUnionGraphPattern":
            self._sides(node.graph, place)
        elif name in ("Graph", "GraphGraphPattern"):
            inside = node.p if name == "Graph" else node.graph
            self.into(inside, replace(place, graph=place.name(node.term)))
        elif name == "ServiceGraphPattern":
            self.into(node.graph, replace(place, service=place.name(node.term), graph=None))
        elif name == "ToMultiSet" and node.p.name == "values":
            self._rows(node.p.res, place)
        elif name == "ToMultiSet":
            inner = self._inner(frozenset(map(str, _columns(node.p))), place)
            self.into(node.p, _one_row(inner) if _aggregates_all(node.p) else inner)
        elif name == "SubSelect":
            self.into([v for k, v in node.items() if k != "projection"], self._sub(node, place))
        elif name == "InlineData":
            self._inline(node, place)
        elif name in _NEGATIONS or _denied(node) is not None:
            self._negated(node, place)
        else:
            self._compared(node, place)
            if node.name in _EXPRESSIONS:
                own = [node.get("expr"), node.get("var")]
                self._relate(_all_variables(own), place)
            # Templates of CONSTRUCT say what is shown, not what must hold.
            self.into([v for k, v in node.items() if k not in ("_vars", "template", "PV")], place)

    def _negated(self, node: CompValue, place: _Place) -> None:
        if node.name == "Minus":
            self.into(node.p1, place)
        denied = node.p2 if node.name == "Minus" else (_denied(node) or node).graph
        self.into(denied, replace(place, negated=(*place.negated, next(self._numbers))))

    def _sides(self, sides: Any, place: _Place) -> None:
        number = next(self._numbers)
        for side, part in enumerate(sides):
            several = len(sides) > 1
            branch = (*place.branch, (number, side)) if several else place.branch
            self.into(part, replace(place, branch=branch))

    def _inner(self, projected: frozenset[str], place: _Place) -> _Place:
        seen = projected if place.seen is None else projected & place.seen
        return replace(place, seen=seen, scope=next(self._numbers))

    def _sub(self, node: CompValue, place: _Place) -> _Place:
        columns = node.projection
        if not columns:
            return place
        # rdflib's `get` returns the name of what is not there.
        names = (column.var or column.evar for column in columns)
        inner = self._inner(frozenset(str(name) for name in names if name is not None), place)
        alone = not node.groupby and any(_aggregates(column.expr) for column in columns)
        return _one_row(inner) if alone else inner

    # -- paths ----------------------------------------------------------------------------

    def _path(
        self, subject: Any, path: Any, obj: Any, place: _Place, *, skippable: bool = False
    ) -> None:
        if isinstance(path, SequencePath):
            stops = [
                subject,
                *(Variable(f"step{next(self._steps)}") for _ in path.args[1:]),
                obj,
            ]
            for start, step, end in zip(stops, path.args, stops[1:], strict=False):
                self._path(start, step, end, place, skippable=skippable)
        elif isinstance(path, InvPath):
            self._path(obj, path.arg, subject, place, skippable=skippable)
        elif isinstance(path, MulPath):
            skippable = skippable or path.mod in ("*", "?")
            self._path(subject, path.path, obj, place, skippable=skippable)
        elif isinstance(path, AlternativePath):
            number = next(self._numbers)
            for side, step in enumerate(path.args):
                inside = replace(place, branch=(*place.branch, (number, side)))
                self._path(subject, step, obj, inside, skippable=skippable)
        elif not isinstance(path, (NegatedPath, Path)):
            predicate = place.name(path)
            self.statements.append(
                Statement(
                    subject,
                    predicate,
                    obj,
                    place.graph,
                    place.service,
                    place.branch,
                    skippable,
                    place.negated,
                    place.alone,
                )
            )

    # -- what variables are held equal to --------------------------------------------------

    def _compared(self, node: CompValue, place: _Place) -> None:
        if node.name == "RelationalExpression" and node.op in _EQUAL:
            others = node.other if isinstance(node.other, list) else [node.other]
            sides = [node.expr, *others]
            texts = [str(s) for s in sides if isinstance(s, Literal) and _is_text(s)]
            for variable in (v for side in sides for v in _variables(side)):
                self._equal(place.name(variable), texts)
        elif node.name == "Builtin_REGEX" and isinstance(node.pattern, Literal):
            whole = _WHOLE.fullmatch(str(node.pattern))
            texts = [whole[1]] if whole else []
            for variable in _variables(node.text):
                self._equal(place.name(variable), texts)
        elif node.name in ("Bind", "Extend") and isinstance(node.get("expr"), Literal):
            self._equal(place.name(node.var), [str(node.expr)])

    def _relate(self, variables: Iterable[Any], place: _Place) -> None:
        self.related.append(frozenset(place.name(one) for one in variables))

    def _rows(self, rows: Any, place: _Place) -> None:
        self._relate({name for row in rows for name in row}, place)
        for row in rows:
            for variable, value in row.items():
                if isinstance(value, Literal):
                    self._equal(place.name(variable), [str(value)])

    def _inline(self, node: CompValue, place: _Place) -> None:
        variables = node.get("var") or []
        values = node.get("value") or []
        self._relate(variables, place)
        for number, value in enumerate(values):
            row = value if isinstance(value, (list, tuple)) else [value]
            names = (
                variables if len(row) == len(variables) else [variables[number % len(variables)]]
            )
            for variable, one in zip(names, row, strict=False):
                if isinstance(one, Literal):
                    self._equal(place.name(variable), [str(one)])

    def _equal(self, variable: Identifier, texts: list[str]) -> None:
        if texts:
            self.texts.setdefault(variable, set()).update(texts)


def _columns(node: CompValue) -> Iterable[Any]:
    """Return the columns of a subquery; DISTINCT and LIMIT stand around what knows them."""
    while node.PV is None and isinstance(node.p, CompValue):
        node = node.p
    return node.PV or ()


def _one_row(place: _Place) -> _Place:
    return replace(place, alone=place.scope)


def _aggregates_all(node: Any) -> bool:
    """Say whether a subquery aggregates without groups; then it gives one row."""
    while isinstance(node, CompValue) and node.name != "Group":
        node = node.get("p") if node.name not in ("Join", "Union", "BGP") else None
    return isinstance(node, CompValue) and node.expr is None


def _aggregates(expression: Any) -> bool:
    if isinstance(expression, CompValue):
        own = expression.name.startswith("Aggregate_")
        return own or any(map(_aggregates, expression.values()))
    return isinstance(expression, (list, tuple)) and any(map(_aggregates, expression))


def _denied(node: CompValue) -> CompValue | None:
    """Return the EXISTS that is denied, ``!EXISTS { … }``."""
    inner = node.get("expr") if node.name == "UnaryNot" else None
    exists = isinstance(inner, CompValue) and inner.name == "Builtin_EXISTS"
    return inner if exists else None


def _is_text(literal: Literal) -> bool:
    return literal.datatype is None or str(literal.datatype).endswith("#string")


def _variables(expression: Any) -> Iterator[Variable]:
    """Yield the variables of an expression that is a variable, or a function of it."""
    if isinstance(expression, Variable):
        yield expression
    elif isinstance(expression, CompValue) and expression.name in (
        "Builtin_STR",
        "Builtin_LCASE",
        "Builtin_UCASE",
    ):
        yield from _variables(expression.arg)


def _all_variables(node: Any) -> Iterator[Variable]:
    if isinstance(node, Variable):
        yield node
    elif isinstance(node, CompValue):
        yield from _all_variables(list(node.values()))
    elif isinstance(node, (list, tuple, set)):
        for item in node:
            yield from _all_variables(item)
