"""The kinds of arguments: what may stand there, what it becomes, and how a schema tells it.

An operation's fields are annotated with them (``url: Url``). One kind serves four readers: the
check before the run (`takes`, `reading`), pydantic (`coerce`), the JSON Schema (`forms`), and the
documentation with the agent's prompt (`name`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any
from typing import Literal as OneOf

from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema
from rdflib import Graph, Literal, URIRef

from reasoningbank.algebra import coercion
from reasoningbank.algebra.coercion import Items
from reasoningbank.algebra.contract import Block as BlockOf
from reasoningbank.algebra.terms import Term
from reasoningbank.algebra.values import Row, Table, kept

__all__ = [
    "YIELDED",
    "Anything",
    "Block",
    "Concurrency",
    "Form",
    "GraphLike",
    "Graphs",
    "Items",
    "Kind",
    "Name",
    "Names",
    "PlainText",
    "Position",
    "Query",
    "RowOrTerm",
    "Rows",
    "RowsOrRow",
    "TableLike",
    "Text",
    "Texts",
    "Uri",
    "Url",
    "Yield",
]

#: What an operation yields. `any` is known at run time only.
Yield = OneOf["text", "uri", "term", "row", "table", "graph", "list", "nothing", "any"]
#: How that is told.
YIELDED: Mapping[Yield, str] = {
    "text": "a string",
    "uri": "a URI",
    "term": "an RDF term",
    "row": "a row",
    "table": "a table",
    "graph": "a graph",
    "list": "a list",
    "nothing": "nothing",
    "any": "a value",
}
#: What may stand for an argument beside an operation.
Form = OneOf["string", "number", "boolean", "count", "term", "row", "results", "graph", "list"]


@dataclass(frozen=True)
class Kind:
    """A kind of argument; as an annotation's metadata it is pydantic's validator too.

    Attributes:
        name: What it is called in signatures.
        expected: What it is called in errors.
        takes: The operations, by what they yield, that may stand there.
        coerce: Turns a value into what the operation is given.
        forms: What else may stand there; `schema` has a JSON Schema for each.
        reading: How JSON that is no operation is read: as a value of any form, as a graph
            (JSON-LD), as the members of a list, as a literal constant, or not at all (a block).
        of: The kind of the members, where they have one.
    """

    name: str
    expected: str
    takes: frozenset[Yield]
    coerce: Callable[[Any], Any]
    forms: tuple[Form, ...]
    reading: OneOf["value", "graph", "list", "constant", "block"] = "value"
    of: Kind | None = None

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        """Let pydantic validate by `coerce`."""
        return core_schema.no_info_plain_validator_function(self.coerce)


def _yields(*names: Yield) -> frozenset[Yield]:
    return frozenset(names)


_TERMS = _yields("text", "uri", "term", "any")
_LISTS = _yields("list", "any")
_SEQUENCES = _yields("list", "table", "row", "any")
_EVERYTHING = _TERMS | _SEQUENCES | _yields("graph")
_TEXT = Kind("str", "a string", _TERMS, coercion.as_text, ("string", "term"))
_GRAPH = Kind(
    "Graph", "a graph (JSON-LD)", _yields("graph", "any"), coercion.as_graph, ("graph",), "graph"
)
_NAME = Kind("str", "a name", frozenset(), coercion.as_name, ("string",), "constant")

#: A string; of a term, its text with its language.
Text = Annotated[Literal, _TEXT]
#: A string without more.
PlainText = Annotated[str, Kind("str", "a string", _TERMS, coercion.as_plain, ("string",))]
#: A query or an update.
Query = Annotated[str, Kind("Query", "a SPARQL text", _TERMS, coercion.as_plain, ("string",))]
#: An absolute IRI.
Uri = Annotated[URIRef, Kind("URI", "a URI", _TERMS, coercion.as_uri, ("string", "term"))]
#: An address that can be fetched.
Url = Annotated[str, Kind("URL", "a URL", _TERMS, coercion.as_url, ("string", "term"))]
#: A term, or a whole row of them.
RowOrTerm = Annotated[
    Term | Row,
    Kind(
        "Term | Row",
        "an RDF term or a row",
        _TERMS | _yields("row"),
        coercion.as_binding,
        ("string", "number", "boolean", "term", "row"),
    ),
]
GraphLike = Annotated[Graph, _GRAPH]
Graphs = Annotated[
    list[Graph],
    Kind("List[Graph]", "a list of graphs", _LISTS, coercion.as_graphs, ("list",), "list", _GRAPH),
]
Texts = Annotated[
    list[Literal],
    Kind("List[str]", "a list of strings", _LISTS, coercion.as_texts, ("list",), "list", _TEXT),
]
#: What can be gone through: a table, results without ``head``, bindings, any list.
Rows = Annotated[
    Items,
    Kind("Table | List", "a table or a list", _SEQUENCES, coercion.as_items, ("results", "list")),
]
#: Rows only.
TableLike = Annotated[
    Table, Kind("Table", "a table", _SEQUENCES, coercion.as_table, ("results", "list"))
]
RowsOrRow = Annotated[
    Any,
    Kind(
        "Table | List | Row", "a table, a list or a row", _SEQUENCES, coercion.as_sequence,
        ("results", "list", "row"),
    ),
]  # fmt: skip
Anything = Annotated[
    Any,
    Kind(
        "any", "a value", _EVERYTHING, kept,
        ("string", "number", "boolean", "term", "row", "results", "graph", "list"),
    ),
]  # fmt: skip
#: A name, written in the program itself.
Name = Annotated[str, _NAME]
Names = Annotated[
    list[str],
    Kind("List[str]", "a list of names", frozenset(), coercion.as_names, ("list",), "list", _NAME),
]
#: A whole number, or an expression.
Position = Annotated[
    Literal,
    Kind(
        "int | str", "a whole number or an expression", _TERMS, coercion.as_position,
        ("string", "count"),
    ),
]  # fmt: skip
#: How many at the same time.
Concurrency = Annotated[int, Kind("int", "a number", frozenset(), coercion.as_workers, ("count",))]
#: One operation, or several in order, that are run by the operation itself.
Block = Annotated[
    BlockOf,
    Kind(
        "Operation | List[Operation]", "an operation or a list of operations", frozenset(),
        coercion.as_block, (), "block",
    ),
]  # fmt: skip
