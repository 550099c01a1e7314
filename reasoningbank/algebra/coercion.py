"""What a value has to be where an argument stands, and what an operation is given of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rdflib import XSD, BNode, Graph, Literal, URIRef

from reasoningbank.algebra.contract import Block
from reasoningbank.algebra.terms import Term, is_absolute
from reasoningbank.algebra.values import Row, RowList, Stream, Table, Value

__all__ = [
    "MOST_WORKERS",
    "Items",
    "MismatchError",
    "as_binding",
    "as_block",
    "as_graph",
    "as_graphs",
    "as_items",
    "as_name",
    "as_names",
    "as_plain",
    "as_position",
    "as_sequence",
    "as_table",
    "as_text",
    "as_texts",
    "as_uri",
    "as_url",
    "as_workers",
    "told",
]

#: Rows of a ForEach that may be worked on at the same time.
MOST_WORKERS = 16


class MismatchError(ValueError):
    """A value is not of the kind; the message says what it is and what would do."""


def told(value: object) -> str:
    """Name a value for an error.

    Examples:
        >>> told(Literal("Aarhus", lang="da")), told(URIRef("http://e/a")), told(None)
        ('the literal "Aarhus"@da', 'the URI http://e/a', 'nothing (an unbound variable?)')
    """
    if value is None:
        return "nothing (an unbound variable?)"
    if isinstance(value, Literal):
        text = value.n3() if len(value) <= 60 else Literal(value[:60] + "…").n3()
        return f"the literal {text}"
    if isinstance(value, URIRef):
        return f"the URI {value}"
    if isinstance(value, BNode):
        return "a blank node"
    if isinstance(value, Graph):
        return "a graph"
    if isinstance(value, Table):
        return "a table"
    if isinstance(value, Mapping):
        return "a row"
    return "a list"


def as_text(value: Any) -> Literal:
    """Return a value as a literal: of a URI, its text."""
    if isinstance(value, Literal):
        return value
    if isinstance(value, URIRef):
        return Literal(str(value))
    if isinstance(value, BNode):
        raise MismatchError("a blank node has no text")
    raise MismatchError(f"expected a string, got {told(value)}")


def as_uri(value: Any) -> URIRef:
    """Return a value as an absolute IRI."""
    text = str(as_text(value))
    if not is_absolute(text):
        raise MismatchError(f"{text!r} is no absolute URI; resolve it against a base (ResolveURI)")
    return URIRef(text)


def as_url(value: Any) -> str:
    """Return a value as an http or https address."""
    text = str(as_text(value))
    if not is_absolute(text):
        asked = "?query=" in text
        hint = "ask an endpoint with SELECT" if asked else "write it in full, percent-encoded"
        raise MismatchError(f"{text!r} is no URL; {hint}")
    scheme, _, rest = text.partition("://")
    if scheme.lower() not in ("http", "https") or not rest.strip("/"):
        raise MismatchError(f"{text!r} is no http or https address")
    return text


def as_plain(value: Any) -> str:
    """Return a value as a string."""
    return str(as_text(value))


def as_binding(value: Any) -> Term | Row:
    """Return a value as a term or a row."""
    if isinstance(value, Mapping):
        return value
    if isinstance(value, URIRef | Literal | BNode):
        return value
    raise MismatchError(f"expected an RDF term or a row, got {told(value)}")


def as_graph(value: Any) -> Graph:
    """Return a value as a graph."""
    if isinstance(value, Graph):
        return value
    if isinstance(value, URIRef):
        raise MismatchError(f"expected a graph, got the URI {value}; fetch it with GET")
    if isinstance(value, Literal) and is_absolute(str(value)):
        raise MismatchError(f"expected a graph, got the address {value}; fetch it with GET")
    raise MismatchError(f"expected a graph, got {told(value)}")


@dataclass(frozen=True)
class Items:
    """A sequence to go through: its members, and the columns where they are rows of a table."""

    members: Iterable[Value]
    columns: tuple[str, ...] | None = None


def as_items(value: Any) -> Items:
    """Return a value as a sequence to go through.

    Raises:
        MismatchError: It is none.
    """
    if isinstance(value, Table):
        return Items(value.rows, value.vars)
    if isinstance(value, Stream):
        return Items(value.items, value.columns)
    if isinstance(value, RowList):
        return Items(value, value.columns)
    if isinstance(value, Mapping):
        return Items([value], tuple(value))
    if isinstance(value, Sequence) and not isinstance(value, str):
        rows = [member for member in value if isinstance(member, Mapping)]
        if rows and len(rows) == len(value):
            return Items(value, tuple(dict.fromkeys(name for row in rows for name in row)))
        return Items(value)
    hint = "ask for its parts with SELECT" if isinstance(value, Graph) else "use SELECT"
    raise MismatchError(f"expected a table or a list, got {told(value)}; {hint}")


def as_sequence(value: Any) -> Table | Row | list[Value]:
    """Return a value as a table, a row, or a list."""
    if isinstance(value, Table | Mapping):
        return value
    items = as_items(value)
    if isinstance(value, Stream | RowList) and items.columns is not None:
        return Table(items.columns, items.members)  # type: ignore[arg-type]
    return list(items.members)


def as_table(value: Any) -> Table:
    """Return a value as a table; the results of writes are put together."""
    items = as_items(value)
    if items.columns is not None:
        return Table(items.columns, items.members)  # type: ignore[arg-type]
    rows: list[Row] = []
    for member in items.members:
        if isinstance(member, Table):
            rows += member.rows  # the results of writes, one table each
        elif isinstance(member, Mapping):
            rows.append(member)
        else:
            raise MismatchError(f"expected rows, got {told(member)} among them")
    return Table(tuple(dict.fromkeys(name for row in rows for name in row)), rows)


def _members(value: Any, what: str) -> list[Value]:
    if isinstance(value, Stream):
        return list(value.items)
    if isinstance(value, Sequence) and not isinstance(value, str):
        return list(value)
    raise MismatchError(f"expected a list of {what}, got {told(value)}")


def _flat(values: Iterable[Value]) -> Iterable[Value]:
    for value in values:
        if isinstance(value, Stream):
            yield from _flat(value.items)
        elif isinstance(value, Sequence) and not isinstance(value, str):
            yield from _flat(value)
        else:
            yield value


def as_texts(value: Any) -> list[Literal]:
    """Return a value as literals."""
    return [as_text(member) for member in _members(value, "strings")]


def as_graphs(value: Any) -> list[Graph]:
    """Return a value as graphs, lists in lists included."""
    return [as_graph(member) for member in _flat(_members(value, "graphs"))]


def as_names(value: Any) -> list[str]:
    """Return a value as names."""
    return [as_name(member) for member in _members(value, "names")]


def as_name(value: Any) -> str:
    """Return a value as a name."""
    text = as_plain(value)
    if not text.strip("$?"):
        raise MismatchError("the name is empty")
    return text


def as_position(value: Any) -> Literal:
    """Return a value as a literal that is a position or an expression."""
    if isinstance(value, Literal) and value.datatype in (None, XSD.string, XSD.integer):
        return value
    raise MismatchError(f"expected a whole number or an expression, got {told(value)}")


def as_workers(value: Any) -> int:
    """Return a value as a number of workers."""
    if isinstance(value, int) and not isinstance(value, Literal):
        return value
    text = str(as_text(value))
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= MOST_WORKERS:
        raise MismatchError(f"expected a number from 1 to {MOST_WORKERS}, got {told(value)}")
    return int(text)


def as_block(value: Any) -> Block:
    """Return a value as a block."""
    if isinstance(value, Block):
        return value
    raise MismatchError("expected an operation or a list of operations")
