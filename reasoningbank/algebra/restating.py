"""The result of a program as a query that returns it, so that it is judged as every answer is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from rdflib import BNode, Literal
from rdflib.namespace import XSD

from reasoningbank.algebra.faults import ProgramError
from reasoningbank.algebra.inline_data import values_block
from reasoningbank.algebra.terms import to_sparql
from reasoningbank.algebra.values import Graph, Row, Stream, Table, Value, is_term, kept

__all__ = ["as_query", "is_empty"]

#: The column of a lone value; several values of a row are numbered.
COLUMN = "value"


def as_query(result: Value) -> str:
    """Return a SPARQL query that returns what a program returned: data in line, nothing asked.

    A table is a SELECT over VALUES, a graph a CONSTRUCT of its triples, a boolean an ASK. The list
    of a ForEach is a table where its entries are tables, rows or values: of a table all rows stand
    below one another, the values of an entry that is a list beside one another. Graphs are merged.

    Args:
        result: What `run_program` returned; a stream is read.

    Raises:
        ProgramError: It is nothing, tables and graphs at once, holds blank nodes in a table, or is
            longer than a query may be.

    Examples:
        >>> print(as_query(Table(("x",), [{"x": Literal("a")}])))
        SELECT ?x WHERE { VALUES (?x) {
          ("a")
        } }
        >>> as_query(Literal(True))
        'ASK {}'
    """
    whole = kept(result)
    if isinstance(whole, Literal) and whole.datatype == XSD.boolean:
        return "ASK {}" if whole.value else "ASK { FILTER(false) }"
    graphs = list(_graphs(whole))
    if graphs:
        return _construct(graphs)
    rows = list(_rows(whole))
    names = list(dict.fromkeys((*_columns(whole), *(name for row in rows for name in row))))
    if not names:
        mend = "end it with the operation that yields the answer"
        raise ProgramError("the program yields nothing that could be an answer", mend=mend)
    # A row that binds nothing cannot be told from none at all.
    block = values_block(names, [row for row in rows if row])
    return f"SELECT {' '.join(f'?{name}' for name in names)} WHERE {{ {block} }}"


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


def _graphs(value: Value) -> Iterator[Graph]:
    """Yield the graphs of a result that is made of graphs; none where it is made of rows."""
    if isinstance(value, Graph):
        yield value
    elif isinstance(value, list):
        entries = [entry for entry in value if entry is not None]
        inner = [list(_graphs(entry)) for entry in entries]
        if any(inner) and not all(inner):
            mend = "yield one of the two"
            raise ProgramError("the result is made of graphs and of other values", mend=mend)
        yield from (graph for one in inner for graph in one)


def _construct(graphs: Sequence[Graph]) -> str:
    lines = sorted({_triple(triple) for graph in graphs for triple in graph})
    return "CONSTRUCT {\n" + "".join(lines) + "} WHERE {}"


def _triple(triple: Iterable[Any]) -> str:
    # In a template a label stands for one new blank node; graphs share none.
    parts = (f"_:{part}" if isinstance(part, BNode) else to_sparql(part) for part in triple)
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
        for entry in value:
            yield from _entry(entry)
    elif not isinstance(value, Graph | Stream):
        yield value  # type: ignore[misc]


def _entry(entry: Value) -> Iterator[Row]:
    """Yield the rows of one entry of a list: values side by side, whatever else below."""
    if not isinstance(entry, list):
        yield from _rows(entry)
        return
    said = [one for one in entry if one is not None]
    if len(said) > 1 and all(is_term(one) for one in said):
        yield {f"{COLUMN}{at}": one for at, one in enumerate(said, 1)}
    else:
        for one in said:
            yield from _entry(one)
