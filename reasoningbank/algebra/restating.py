"""The result of a program as a query that returns it, so that it is judged as every answer is."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from rdflib import BNode, Literal
from rdflib.namespace import XSD

from reasoningbank.algebra.faults import ProgramError
from reasoningbank.algebra.inline_data import values_block
from reasoningbank.algebra.terms import to_sparql
from reasoningbank.algebra.values import Graph, Row, Stream, Table, Value, is_term, kept
from reasoningbank.sparql.syntax import MOST_CHARS

__all__ = ["as_query", "is_empty"]

#: The column of a lone value; several values of a row are numbered.
COLUMN = "value"
_NO_NAME = re.compile(r"[^A-Za-z0-9_]")


def as_query(result: Value, *, several: bool = False) -> str:
    """Return a SPARQL query that returns what a program returned: data in line, nothing asked.

    A table is a SELECT over VALUES, a graph a CONSTRUCT of its triples, a boolean an ASK. The list
    of a ForEach is a table where its entries are tables, rows or values: of a table all rows stand
    below one another, the values of an entry that is a list beside one another. Graphs are merged.
    Columns get other names where theirs are none of SPARQL's.

    Args:
        result: What `run_program` returned; a stream is read.
        several: Whether it is the list of what several operations yielded, each of which is a
            result by itself; they stand below one another.

    Raises:
        ProgramError: It is nothing, tables and graphs at once, holds blank nodes in a table, or is
            longer than a query may be.

    Examples:
        >>> print(as_query(Table(("x",), [{"x": Literal("a")}])))
        SELECT ?x WHERE { VALUES (?x) {
          ("a")
        } }
        >>> as_query(Literal(True)), as_query([None, Literal(False)], several=True)
        ('ASK {}', 'ASK { FILTER(false) }')
    """
    whole = kept(result)
    results = whole if several and isinstance(whole, list) else [whole]
    parts: list[Value] = [part for part in results if part is not None]
    alone = parts[0] if len(parts) == 1 else None
    if isinstance(alone, Literal) and alone.datatype == XSD.boolean:
        return "ASK {}" if alone.value else "ASK { FILTER(false) }"
    graphs = list(_graphs(parts))
    query = _construct(graphs) if graphs else _select(parts)
    if len(query) > MOST_CHARS:
        raise ProgramError("the result is longer than a query may be", hint="yield less")
    return query


def is_empty(result: Value) -> bool:
    """Tell whether a result that was read holds no row, no triple and no value.

    Examples:
        >>> is_empty([Table(("x",), []), None]), is_empty(Literal(False))
        (True, False)
    """
    if isinstance(result, list):
        return all(is_empty(entry) for entry in result)
    if isinstance(result, Table):
        return not any(True for _ in result.rows)
    return result is None or (isinstance(result, Graph) and not len(result))


def _select(parts: Sequence[Value]) -> str:
    rows = [row for part in parts for row in _rows(part)]
    names = dict.fromkeys((*_columns(parts), *(name for row in rows for name in row)))
    if not names:
        hint = "end it with the operation that yields the answer"
        raise ProgramError("the program yields nothing that could be an answer", hint=hint)
    known = _variables(names)
    # A row that binds nothing cannot be told from none at all.
    said = [{known[name]: term for name, term in row.items()} for row in rows if row]
    block = values_block(list(known.values()), said)
    return f"SELECT {' '.join(f'?{name}' for name in known.values())} WHERE {{ {block} }}"


def _variables(names: Iterable[str]) -> dict[str, str]:
    """Return a variable of SPARQL for each name, which may be any text."""
    known: dict[str, str] = {}
    for name in names:
        plain = made = _NO_NAME.sub("_", name) or COLUMN
        number = 1
        while made in known.values():
            number += 1
            made = f"{plain}_{number}"
        known[name] = made
    return known


def _graphs(value: Value) -> Iterator[Graph]:
    """Yield the graphs of a result that is made of graphs; none where it is made of rows."""
    if isinstance(value, Graph):
        yield value
    elif isinstance(value, list):
        entries = [entry for entry in value if not _is_nothing(entry)]
        inner = [list(_graphs(entry)) for entry in entries]
        if any(inner) and not all(inner):
            hint = "yield one of the two"
            raise ProgramError("the result is made of graphs and of other values", hint=hint)
        yield from (graph for one in inner for graph in one)


def _is_nothing(value: Value) -> bool:
    return value is None or (isinstance(value, list) and all(map(_is_nothing, value)))


def _construct(graphs: Sequence[Graph]) -> str:
    labels: defaultdict[BNode, str] = defaultdict(lambda: f"_:b{len(labels)}")
    lines = sorted({_triple(triple, labels) for graph in graphs for triple in graph})
    return "CONSTRUCT {\n" + "".join(lines) + "} WHERE {}"


def _triple(triple: Iterable[Any], labels: Mapping[BNode, str]) -> str:
    # In a template a label stands for one new blank node; graphs share none.
    parts = (labels[part] if isinstance(part, BNode) else to_sparql(part) for part in triple)
    return f"  {' '.join(parts)} .\n"


def _columns(value: Value) -> tuple[str, ...]:
    """Return the columns that a result says it has, with rows or without."""
    if isinstance(value, Table):
        return value.vars
    if isinstance(value, list):
        return tuple(dict.fromkeys(name for entry in value for name in _columns(entry)))
    return ()


def _rows(value: Value) -> Iterator[Row]:
    if value is None:
        return
    if isinstance(value, Table):
        yield from value.rows
    elif is_term(value):
        yield {COLUMN: value}  # type: ignore[dict-item]
    elif isinstance(value, list):
        leaves = list(_leaves(value))
        columns = _columns_beside(leaves)
        for leaf in leaves:
            if isinstance(leaf, list):
                yield {columns[at]: one for at, one in enumerate(leaf) if is_term(one)}
            else:
                yield from _rows(leaf)
    elif not isinstance(value, Graph | Stream):
        yield value  # type: ignore[misc]


def _leaves(entries: Iterable[Value]) -> Iterator[Value]:
    """Yield what stands below one another: of lists in lists those of values alone, whole."""
    for entry in entries:
        if isinstance(entry, list) and not _is_beside(entry):
            yield from _leaves(entry)
        else:
            yield entry


def _is_beside(entry: Sequence[Value]) -> bool:
    return all(one is None or is_term(one) for one in entry)


def _columns_beside(leaves: Iterable[Value]) -> dict[int, str]:
    """Return the column of each place in entries that hold values side by side.

    A place that is empty in every entry (a Variable yields nothing) is no column; one that is empty
    in some keeps its column there.
    """
    places = {
        at
        for leaf in leaves
        if isinstance(leaf, list)
        for at, one in enumerate(leaf)
        if one is not None
    }
    if len(places) == 1:
        return dict.fromkeys(places, COLUMN)
    return {at: f"{COLUMN}{number}" for number, at in enumerate(sorted(places), 1)}
