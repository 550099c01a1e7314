"""Values of the algebra: terms, rows, tables, graphs and sequences, and their JSON forms."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, Union

from rdflib import BNode, Graph, Literal, URIRef

from reasoningbank.algebra.faults import ProgramError, at_path, json_path
from reasoningbank.algebra.jsonld import graph_from_jsonld, graph_to_jsonld
from reasoningbank.algebra.terms import (
    Term,
    is_term_json,
    scalar,
    term_from_json,
    term_to_json,
)

__all__ = [
    "Graph",
    "Row",
    "RowList",
    "Stream",
    "Table",
    "Term",
    "Value",
    "from_json",
    "is_results_json",
    "is_row_json",
    "is_term",
    "json_chunks",
    "kept",
    "row_from_json",
    "table_from_json",
    "to_json",
]

#: Variable → term; an unbound variable is absent.
Row: TypeAlias = Mapping[str, Term]


@dataclass(frozen=True)
class Table:
    """The answer of a SELECT.

    Attributes:
        vars: Its columns in order, without question marks.
        rows: Its rows. They may be a stream, which can be read once: `kept` keeps them.

    Examples:
        >>> table = Table(("x",), iter([{"x": URIRef("http://e/a")}]))
        >>> kept = table.kept()
        >>> len(list(kept.rows)), len(list(kept.rows))
        (1, 1)
    """

    vars: tuple[str, ...]
    rows: Iterable[Row]

    def kept(self) -> Table:
        """Return the same table with its rows in memory."""
        return self if isinstance(self.rows, list) else Table(self.vars, list(self.rows))


@dataclass(frozen=True)
class Stream:
    """A list whose items come one by one and can be read once: the results of a ForEach.

    Attributes:
        items: The items.
        columns: Of rows, the variables that they may have; None where nobody knows.
    """

    items: Iterable[Value]
    columns: tuple[str, ...] | None = None


class RowList(list[Any]):
    """Rows in memory that know which variables they may have, also where there is none.

    Attributes:
        columns: The variables.
    """

    def __init__(self, rows: Iterable[Any], columns: tuple[str, ...]) -> None:
        super().__init__(rows)
        self.columns = columns


# The quotes keep the recursion lazy; Union, since `|` between strings is no type at run time.
Value: TypeAlias = Union[Term, Row, Table, Graph, Sequence["Value"], Stream, None]  # noqa: UP007


def is_term(value: object) -> bool:
    """Say whether a value is a term."""
    return isinstance(value, URIRef | Literal | BNode)


def kept(value: Value) -> Value:
    """Return a value that can be read more than once: streams are read into memory."""
    if isinstance(value, Table):
        return value.kept()
    if isinstance(value, Stream):
        items = [kept(item) for item in value.items]
        return items if value.columns is None else RowList(items, value.columns)
    return value


def is_results_json(data: object) -> bool:
    """Say whether JSON data is meant as SPARQL results, with or without ``head``."""
    return (
        isinstance(data, Mapping)
        and isinstance(data.get("results"), Mapping)
        and "bindings" in data["results"]
    )


def is_row_json(data: object) -> bool:
    """Say whether JSON data is meant as one row: every member is a term."""
    return isinstance(data, Mapping) and all(is_term_json(term) for term in data.values())


def row_from_json(data: Mapping[str, Any], path: str = "$") -> dict[str, Term]:
    """Read one binding of SPARQL results.

    Raises:
        ProgramError: A member is no term.
    """
    row: dict[str, Term] = {}
    for name, term in data.items():
        if not isinstance(term, Mapping):
            hint = 'write {"type": "literal", "value": "…"}'
            raise ProgramError("expected an RDF term", where=json_path(path, name), hint=hint)
        row[name] = term_from_json(term, json_path(path, name))
    return row


def table_from_json(data: Mapping[str, Any], path: str = "$") -> Table:
    """Read SPARQL results in JSON; without ``head`` the columns are those that are bound.

    Raises:
        ProgramError: It is no such document.

    Examples:
        >>> table_from_json({"results": {"bindings": [{"n": {"type": "bnode", "value": "b"}}]}})
        Table(vars=('n',), rows=[{'n': rdflib.term.BNode('b')}])
    """
    bindings = data["results"]["bindings"]
    if not isinstance(bindings, list):
        where = at_path(path, "results", "bindings")
        raise ProgramError("expected a list of bindings", where=where)
    rows: list[Row] = []
    for number, binding in enumerate(bindings):
        where = at_path(path, "results", "bindings", number)
        if not isinstance(binding, Mapping):
            raise ProgramError("expected a binding: variable → term", where=where)
        rows.append(row_from_json(binding, where))
    head = data.get("head", {})
    named = head.get("vars", []) if isinstance(head, Mapping) else None
    if not isinstance(named, list) or not all(isinstance(name, str) for name in named):
        raise ProgramError("expected a list of names", where=at_path(path, "head", "vars"))
    return Table(tuple(dict.fromkeys([*named, *(name for row in rows for name in row)])), rows)


def from_json(data: Any, path: str = "$", base: str | None = None) -> Value:
    """Read a value that holds no operations: whatever form of a term, table, row or graph.

    Args:
        data: JSON data. Scalars are literals; ``null`` is nothing; an object is a term, SPARQL
            results or a row where it has their form, and JSON-LD otherwise.
        path: Where it stands, for errors.
        base: What relative IRIs of JSON-LD are relative to.

    Raises:
        ProgramError: It is none of these.

    Examples:
        >>> from_json({"type": "uri", "value": "http://e/a"})
        rdflib.term.URIRef('http://e/a')
        >>> len(from_json({"@id": "http://e/a", "http://e/p": [1, 2]}))
        2
    """
    if data is None:
        return None
    if isinstance(data, str | bool | int | float):
        return scalar(data)
    if isinstance(data, list):
        return [from_json(item, json_path(path, at), base) for at, item in enumerate(data)]
    if not isinstance(data, Mapping):
        raise ProgramError(f"{type(data).__name__} is no JSON", where=path)
    if is_term_json(data):
        return term_from_json(data, path)
    if is_results_json(data):
        return table_from_json(data, path)
    if is_row_json(data):
        return row_from_json(data, path)
    return graph_from_jsonld(data, base=base, path=path)


def to_json(value: Value) -> Any:
    """Write a value as JSON: a term by itself as its lexical value, a table as SPARQL results,
    a row as a binding, a graph as JSON-LD, nothing as ``null``.

    Examples:
        >>> to_json([Literal("x", lang="en"), {"a": URIRef("http://e/a")}, None])
        ['x', {'a': {'type': 'uri', 'value': 'http://e/a'}}, None]
    """
    if value is None:
        return None
    if isinstance(value, URIRef | Literal | BNode):
        return str(value)
    if isinstance(value, Graph):
        return graph_to_jsonld(value)
    if isinstance(value, Table):
        return {
            "head": {"vars": list(value.vars)},
            "results": {"bindings": [_binding(row, value.vars) for row in value.rows]},
        }
    if isinstance(value, Mapping):
        return _binding(value, tuple(value))
    items = value.items if isinstance(value, Stream) else value
    return [to_json(item) for item in items]


def json_chunks(value: Value) -> Iterator[str]:
    """Write a value as JSON text piece by piece, so that a stream never lies in memory.

    Examples:
        >>> "".join(json_chunks(Stream(iter([Literal("a"), Literal("b")]))))
        '["a",\\n"b"]'
    """
    if isinstance(value, Stream):
        yield "["
        for number, item in enumerate(value.items):
            yield ",\n" if number else ""
            yield from json_chunks(item)
        yield "]"
    elif isinstance(value, Table):
        yield f'{{"head": {{"vars": {_text(list(value.vars))}}}, "results": {{"bindings": ['
        for number, row in enumerate(value.rows):
            yield ",\n" if number else ""
            yield _text(_binding(row, value.vars))
        yield "]}}"
    else:
        yield _text(to_json(value))


def _text(data: Any) -> str:
    return json.dumps(data, ensure_ascii=False)


def _binding(row: Row, names: Sequence[str]) -> dict[str, dict[str, str]]:
    return {name: term_to_json(row[name]) for name in names if name in row}
