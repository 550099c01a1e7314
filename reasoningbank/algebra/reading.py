"""Reading the values that stand in a program: terms, rows, tables, lists, JSON-LD."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rdflib import Graph, Literal, URIRef

from reasoningbank.algebra.arguments import YIELDED, Kind
from reasoningbank.algebra.coercion import MismatchError
from reasoningbank.algebra.contract import Node
from reasoningbank.algebra.embedding import filled
from reasoningbank.algebra.faults import ProgramError, json_path
from reasoningbank.algebra.jsonld import PREFIXES, graph_from_jsonld
from reasoningbank.algebra.jsonld_check import check_jsonld
from reasoningbank.algebra.nodes import Call, Constant, Document, ListOf, RowOf
from reasoningbank.algebra.terms import is_term_json
from reasoningbank.algebra.values import (
    Value,
    from_json,
    is_results_json,
    is_row_json,
    table_from_json,
)

__all__ = ["Reader"]

#: Stands for addresses that only a run tells, while a document is checked.
_SOMEWHERE = "http://address.invalid/"


class Reader:
    """Reads JSON that is no operation itself, though it may hold some.

    Args:
        call: Reads an operation at a path.
        based: Whether relative IRIs will have something to be relative to.
    """

    def __init__(self, call: Callable[[Any, str], Node], based: bool) -> None:
        self._call = call
        self._based = based

    def read(self, data: Any, wanted: Kind, path: str) -> Node:
        """Read what stands for an argument of a kind.

        Raises:
            ProgramError: It is not of the kind.
        """
        if data is None:
            raise ProgramError(f"expected {wanted.expected}, got null", where=path)
        if wanted.reading == "graph":
            return self._document(data, wanted, path)
        if wanted.reading == "list":
            return self._members(data, wanted, path)
        if wanted.reading == "constant" and not isinstance(data, str):
            raise ProgramError(f"expected {wanted.expected}", where=path, hint="write a string")
        node = self.value(data, path)
        if isinstance(node, Constant):
            _fit(node.content, wanted, path)
        elif isinstance(node, ListOf | RowOf | Document):
            _of_form(node, wanted, path)
        return node

    def value(self, data: Any, path: str) -> Node:
        """Read a value of whatever form."""
        if isinstance(data, Mapping) and "@op" in data:
            return self._call(data, path)
        if isinstance(data, list) and (_holds_operations(data) or _holds_documents(data)):
            members = (self.value(item, json_path(path, at)) for at, item in enumerate(data))
            return ListOf(path, tuple(members))
        if not _holds_operations(data):
            if isinstance(data, Mapping) and not _is_plain(data):
                return self._checked(data, path)
            return Constant(path, from_json(data, path))
        if is_results_json(data):
            rows = data["results"]["bindings"]
            if not isinstance(rows, list):
                table_from_json(data, path)
            where = json_path(json_path(path, "results"), "bindings")
            return self.value(rows, where)
        if _is_row(data):
            members_of = {
                name: self.value(member, json_path(path, name)) for name, member in data.items()
            }
            return RowOf(path, members_of)
        return self._checked(data, path)

    def _document(self, data: Any, wanted: Kind, path: str) -> Node:
        if isinstance(data, str | bool | int | float) or is_term_json(data):
            _fit(from_json(data, path), wanted, path)
        return self._checked(data, path)

    def _checked(self, data: Any, path: str) -> Node:
        template = self._template(data, path)
        trial = filled(template, path, _stand_in)
        base = _SOMEWHERE if self._based else None
        check_jsonld(trial, path, base, PREFIXES)
        graph_from_jsonld(trial, base=base, path=path)
        return Document(path, template)

    def _template(self, data: Any, path: str) -> Any:
        if isinstance(data, list):
            return [self._template(item, json_path(path, at)) for at, item in enumerate(data)]
        if not isinstance(data, Mapping):
            return data
        if "@op" in data:
            return self._call(data, path)
        return {key: self._template(member, json_path(path, key)) for key, member in data.items()}

    def _members(self, data: Any, wanted: Kind, path: str) -> Node:
        if not isinstance(data, list) or wanted.of is None:
            raise ProgramError(f"expected {wanted.expected}", where=path)
        members = []
        for at, item in enumerate(data):
            where = json_path(path, at)
            if isinstance(item, Mapping) and "@op" in item:
                node = self._call(item, where)
                takes = wanted.of.takes | ({"list"} if wanted.of.reading == "graph" else set())
                if isinstance(node, Call) and node.kind.yields not in takes:
                    got = f"{node.kind.op} yields {YIELDED[node.kind.yields]}"
                    raise ProgramError(f"expected {wanted.of.expected}, but {got}", where=where)
                members.append(node)
            else:
                members.append(self.read(item, wanted.of, where))
        return ListOf(path, tuple(members))


def _fit(content: Value, wanted: Kind, path: str) -> None:
    try:
        wanted.coerce(content)
    except MismatchError as error:
        what, _, hint = str(error).partition("; ")
        raise ProgramError(what, where=path, hint=hint) from None


def _of_form(node: Node, wanted: Kind, path: str) -> None:
    form = {ListOf: "list", RowOf: "row", Document: "graph"}[type(node)]
    if form not in wanted.takes:
        raise ProgramError(f"expected {wanted.expected}, got a {form}", where=path)


def _holds_operations(data: Any) -> bool:
    if isinstance(data, list):
        return any(_holds_operations(item) for item in data)
    if isinstance(data, Mapping):
        return "@op" in data or any(_holds_operations(member) for member in data.values())
    return False


def _holds_documents(data: Any) -> bool:
    if isinstance(data, list):
        return any(_holds_documents(item) for item in data)
    return isinstance(data, Mapping) and not _is_plain(data)


def _is_plain(data: Mapping[str, Any]) -> bool:
    return is_term_json(data) or is_results_json(data) or is_row_json(data)


def _is_row(data: Mapping[str, Any]) -> bool:
    """Say whether an object with operations in it is a row: variable → term or operation."""
    return all(
        not key.startswith("@")
        and ":" not in key
        and isinstance(member, Mapping)
        and ("@op" in member or is_term_json(member))
        for key, member in data.items()
    )


def _stand_in(node: Node, key: str) -> Value:
    if key in ("@language", "@direction"):
        return Literal("en" if key == "@language" else "ltr")
    if isinstance(node, Call) and node.kind.yields == "graph":
        return Graph()
    if isinstance(node, Call) and node.kind.yields in ("nothing", "row", "table"):
        what = f"what {node.kind.op} yields cannot stand in JSON-LD"
        raise ProgramError(what, where=node.path, hint="use Value or Str")
    return URIRef(_SOMEWHERE)
