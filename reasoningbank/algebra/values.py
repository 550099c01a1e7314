"""Values of programs: terms, rows, tables, graphs and lists, written as JSON, and converted.

Each ``as_*`` function converts a value to what an operation takes, or raises ProgramError.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, Union

from rdflib import XSD, BNode, Graph, Literal, URIRef

from reasoningbank.algebra.terms import (
    ProgramError,
    Term,
    graph_to_jsonld,
    is_absolute,
    refuse_prefixed,
    term_to_json,
)

#: Rows of a ForEach that may be processed at the same time.
MOST_WORKERS = 16
#: Variable → term; an unbound variable is absent.
Row: TypeAlias = Mapping[str, Term]


@dataclass(frozen=True)
class Table:
    """The result of a SELECT; its rows may be a stream, which can be read once (see `kept`)."""

    vars: tuple[str, ...]
    rows: Iterable[Row]


@dataclass(frozen=True)
class Stream:
    """A list whose items are computed one by one and can be read once: the result of a ForEach.

    `columns` are the variables that rows may have; None if unknown.
    """

    items: Iterable[Value]
    columns: tuple[str, ...] | None = None


class RowList(list[Any]):
    """Rows in memory with their columns, which are known even without a row."""

    def __init__(self, rows: Iterable[Any], columns: tuple[str, ...]) -> None:
        super().__init__(rows)
        self.columns = columns


# The quotes keep the recursion lazy; Union, since `|` between strings is not a type at run time.
Value: TypeAlias = Union[Term, Row, Table, Graph, Sequence["Value"], Stream, None]  # noqa: UP007


def kept(value: Value) -> Value:
    """Return a value that can be read more than once: streams are read into memory."""
    if isinstance(value, Table):
        return value if isinstance(value.rows, list) else Table(value.vars, list(value.rows))
    if isinstance(value, Stream):
        items = [kept(item) for item in value.items]
        return items if value.columns is None else RowList(items, value.columns)
    return value


def describe_value(value: object) -> str:
    """Describe a value in an error message."""
    if value is None:
        return "nothing (an unbound variable?)"
    if isinstance(value, Literal):
        text = value.n3() if len(value) <= 60 else Literal(value[:60] + "…").n3()
        return f"the literal {text}"
    if isinstance(value, URIRef):
        return f"the URI {value}"
    return "a blank node" if isinstance(value, BNode) else f"a {form_of(value) or 'list'}"


def form_of(value: object) -> str:
    """Return the form of a value that is not a term; empty if it has none."""
    forms = ((list, "list"), (Table, "table"), (Graph, "graph"), (Mapping, "row"))
    return next((form for kind, form in forms if isinstance(value, kind)), "")


def names_in(rows: Iterable[Row], first: Iterable[str] = ()) -> tuple[str, ...]:
    """Return the variables of rows, after those that are given."""
    return tuple(dict.fromkeys([*first, *(name for row in rows for name in row)]))


def to_json(value: Value) -> Any:
    """Write a value as JSON.

    A term becomes its lexical value, a table SPARQL results, a row a binding, a graph JSON-LD.
    """
    if value is None:
        return None
    if isinstance(value, Term):
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
    return [to_json(item) for item in (value.items if isinstance(value, Stream) else value)]


def json_chunks(value: Value) -> Iterator[str]:
    """Write a value as JSON text piece by piece, so that a stream is never in memory as a whole."""
    if isinstance(value, Stream):
        yield "["
        for number, item in enumerate(value.items):
            yield ",\n" if number else ""
            yield from json_chunks(item)
        yield "]"
    elif isinstance(value, Table):
        yield f'{{"head": {{"vars": {json_text(list(value.vars))}}}, "results": {{"bindings": ['
        for number, row in enumerate(value.rows):
            yield ",\n" if number else ""
            yield json_text(_binding(row, value.vars))
        yield "]}}"
    else:
        yield json_text(to_json(value))


def json_text(data: Any) -> str:
    return json.dumps(data, ensure_ascii=False)


def _binding(row: Row, names: Sequence[str]) -> dict[str, dict[str, str]]:
    return {name: term_to_json(row[name]) for name in names if name in row}


def _mismatch(expected: str, value: object, hint: str = "") -> ProgramError:
    what = f"expected {expected}, got {describe_value(value)}"
    return ProgramError(what, hint=hint, code="wrong-type", expected=expected)


def as_text(value: Any) -> Literal:
    if isinstance(value, Literal):
        return value
    if isinstance(value, URIRef):
        return Literal(str(value))
    if isinstance(value, BNode):
        raise ProgramError("a blank node has no text", code="blank-node")
    raise _mismatch("a string", value)


def as_plain(value: Any) -> str:
    return str(as_text(value))


def as_string(value: Any) -> Literal:
    if isinstance(value, URIRef):
        raise _mismatch("a string", value, "take its text with Str")
    return as_text(value)


def as_uri(value: Any) -> URIRef:
    text = as_plain(value)
    if not is_absolute(text):
        hint = "resolve it against a base (ResolveURI)"
        raise ProgramError(f"{text!r} is not an absolute URI", hint=hint, code="relative-iri")
    refuse_prefixed(text)
    return URIRef(text)


def as_url(value: Any) -> str:
    text = as_plain(value)
    if not is_absolute(text):
        asked = "?query=" in text
        hint = "query an endpoint with SELECT" if asked else "write it in full, percent-encoded"
        raise ProgramError(f"{text!r} is not a URL", hint=hint, code="bad-url")
    scheme, _, rest = text.partition("://")
    if scheme.lower() not in ("http", "https") or not rest.strip("/"):
        raise ProgramError(f"{text!r} is not an http or https address", code="bad-url")
    return text


def as_binding(value: Any) -> Term | Row:
    if isinstance(value, Mapping | Term):
        return value
    raise _mismatch("an RDF term or a row", value)


def as_graph(value: Any) -> Graph:
    if isinstance(value, Graph):
        return value
    address = isinstance(value, URIRef) or (isinstance(value, Literal) and is_absolute(str(value)))
    raise _mismatch("a graph", value, hint="fetch it with GET" if address else "")


def as_stream(value: Any) -> Stream:
    if isinstance(value, Stream):
        return value
    if isinstance(value, Table):
        return Stream(value.rows, value.vars)
    if isinstance(value, RowList):
        return Stream(value, value.columns)
    if isinstance(value, Mapping):
        return Stream([value], tuple(value))
    if isinstance(value, Sequence) and not isinstance(value, str):
        rows = len(value) > 0 and all(isinstance(member, Mapping) for member in value)
        return Stream(value, names_in(value) if rows else None)
    hint = "query its parts with SELECT" if isinstance(value, Graph) else "use SELECT"
    raise _mismatch("a table or a list", value, hint)


def as_sequence(value: Any) -> Stream | Row:
    if isinstance(value, Mapping):
        return value
    items = as_stream(value)
    return items if items.columns is not None else as_stream(list(items.items))


def as_table(value: Any) -> Table:
    items = as_stream(value)
    if items.columns is not None:
        return Table(items.columns, items.items)  # type: ignore[arg-type]
    rows: list[Row] = []
    for member in items.items:
        if isinstance(member, Table):
            rows += member.rows  # the results of writes, one table each
        elif isinstance(member, Mapping):
            rows.append(member)
        else:
            raise _mismatch("rows", member)
    return Table(names_in(rows), rows)


def as_list(convert: Callable[[Any], Any], expected: str, flat: bool, value: Any) -> list[Any]:
    """Return a value as a list of converted members; `flat` flattens lists in it."""
    if not isinstance(value, Stream | Sequence) or isinstance(value, str):
        raise _mismatch(expected, value)
    members = value.items if isinstance(value, Stream) else value
    return [convert(member) for member in (flattened(members) if flat else members)]


def flattened(values: Iterable[Value]) -> Iterator[Value]:
    """Yield values and the members of lists in them, at any depth."""
    for value in values:
        if isinstance(value, Stream):
            yield from flattened(value.items)
        elif isinstance(value, Sequence) and not isinstance(value, str):
            yield from flattened(value)
        else:
            yield value


def as_name(value: Any) -> str:
    text = as_plain(value)
    if not text.strip("$?"):
        raise ProgramError("the name is empty", code="bad-name")
    return text


def as_position(value: Any) -> Literal:
    if isinstance(value, Literal) and value.datatype in (None, XSD.string, XSD.integer):
        return value
    raise _mismatch("a whole number or an expression", value)


def as_flag(value: Any) -> bool:
    if isinstance(value, Literal) and isinstance(value.value, bool):
        return value.value
    raise _mismatch("true or false", value)


def as_workers(value: Any) -> int:
    text = as_plain(value)
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= MOST_WORKERS:
        raise _mismatch(f"a number from 1 to {MOST_WORKERS}", value)
    return int(text)
