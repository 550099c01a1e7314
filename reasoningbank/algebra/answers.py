"""The result of a program as a SPARQL query that returns it, so it is judged as any answer is."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from rdflib import BNode, Graph, Literal
from rdflib.namespace import XSD

from reasoningbank.algebra.queries import values_block
from reasoningbank.algebra.terms import ProgramError, to_sparql
from reasoningbank.algebra.values import Row, Table, Value, is_term, kept
from reasoningbank.sparql.syntax import MOST_CHARS

#: The column of a single value; several values of a row are numbered.
COLUMN = "value"
_NO_NAME = re.compile(r"[^A-Za-z0-9_]")


def as_query(result: Value, *, several: bool = False) -> str:
    """Return a SPARQL query that returns a program's result as inline data.

    A table is a SELECT over VALUES, a graph a CONSTRUCT of its triples, a boolean an ASK. The list
    of a ForEach is a table if its entries are tables, rows or values: rows of tables follow one
    another, the values of a list are the columns of one row. Graphs are merged. Columns are renamed
    if SPARQL does not allow their names.

    Args:
        result: What `run_program` returned; a stream is read.
        several: Whether it is the list of the results of several operations, each of which is a
            result by itself; they follow one another.

    Raises:
        ProgramError: If it is nothing, mixes tables and graphs, holds blank nodes in a table, or is
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
    single = parts[0] if len(parts) == 1 else None
    if isinstance(single, Literal) and single.datatype == XSD.boolean:
        return "ASK {}" if single.value else "ASK { FILTER(false) }"
    graphs = list(_graphs(parts))
    query = _construct(graphs) if graphs else _select(parts)
    if len(query) > MOST_CHARS:
        what = "the result is longer than a query may be"
        raise ProgramError(what, hint="return less", code="too-many-rows")
    return query


def is_empty(result: Value) -> bool:
    """Return whether a result in memory holds no row, no triple and no value.

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
        raise ProgramError("the program yields no answer", hint=hint, code="no-answer")
    known: dict[str, str] = {}
    for name in names:
        plain = made = _NO_NAME.sub("_", name) or COLUMN
        number = 1
        while made in known.values():
            number += 1
            made = f"{plain}_{number}"
        known[name] = made
    # A row that binds nothing is the same as no row.
    bound = [{known[name]: term for name, term in row.items()} for row in rows if row]
    block = values_block(list(known.values()), bound)
    return f"SELECT {' '.join(f'?{name}' for name in known.values())} WHERE {{ {block} }}"


def _graphs(value: Value) -> Iterator[Graph]:
    """Yield the graphs of a result that consists of graphs; none if it consists of rows."""
    if isinstance(value, Graph):
        yield value
    elif isinstance(value, list):
        inner = [list(_graphs(entry)) for entry in value if not _is_nothing(entry)]
        if any(inner) and not all(inner):
            what = "the result mixes graphs with other values"
            raise ProgramError(what, hint="yield one of the two", code="mixed-results")
        yield from (graph for one in inner for graph in one)


def _is_nothing(value: Value) -> bool:
    return value is None or (isinstance(value, list) and all(map(_is_nothing, value)))


def _construct(graphs: Sequence[Graph]) -> str:
    # In a template a label is one new blank node; graphs share none.
    labels: defaultdict[BNode, str] = defaultdict(lambda: f"_:b{len(labels)}")

    def written(part: Any) -> str:
        return labels[part] if isinstance(part, BNode) else to_sparql(part)

    lines = {f"  {' '.join(map(written, triple))} .\n" for graph in graphs for triple in graph}
    return "CONSTRUCT {\n" + "".join(sorted(lines)) + "} WHERE {}"


def _columns(value: Value) -> tuple[str, ...]:
    """Return the declared columns of a result, with rows or without."""
    if isinstance(value, Table):
        return value.vars
    if isinstance(value, list):
        return tuple(dict.fromkeys(name for entry in value for name in _columns(entry)))
    return ()


def _rows(value: Value) -> Iterator[Row]:
    if isinstance(value, Table):
        yield from value.rows
    elif is_term(value):
        yield {COLUMN: value}  # type: ignore[dict-item]
    elif isinstance(value, list):
        leaves = list(_leaves(value))
        columns = _value_columns(leaves)
        for leaf in leaves:
            if isinstance(leaf, list):
                yield {columns[at]: one for at, one in enumerate(leaf) if is_term(one)}
            else:
                yield from _rows(leaf)
    elif isinstance(value, Mapping):
        yield value


def _leaves(entries: Iterable[Value]) -> Iterator[Value]:
    """Flatten nested lists, except lists of values, which are one row each."""
    for entry in entries:
        if isinstance(entry, list) and not all(one is None or is_term(one) for one in entry):
            yield from _leaves(entry)
        else:
            yield entry


def _value_columns(leaves: Iterable[Value]) -> dict[int, str]:
    """Return the column of each position in rows that are lists of values."""
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
