"""A validated program as a tree of nodes, each of which yields a value in an evaluation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from reasoningbank.algebra.coercion import told
from reasoningbank.algebra.contract import Block, Evaluation, Node
from reasoningbank.algebra.embedding import filled
from reasoningbank.algebra.faults import ProgramError, json_path
from reasoningbank.algebra.jsonld import graph_from_jsonld
from reasoningbank.algebra.operation import Operation
from reasoningbank.algebra.terms import Term
from reasoningbank.algebra.values import Value, is_term, kept

__all__ = ["Call", "Constant", "Document", "ListOf", "RowOf"]


@dataclass(frozen=True)
class Constant:
    """A value that stands in the program."""

    path: str
    content: Value

    def value(self, run: Evaluation) -> Value:
        """Return it."""
        return self.content


@dataclass(frozen=True)
class Call:
    """A call of an operation.

    Attributes:
        path: The JSON path of the call.
        kind: The operation.
        args: Its arguments: what yields them, or the block that the operation runs by itself.
        names: The row variables that its blocks read.
    """

    path: str
    kind: type[Operation]
    args: Mapping[str, Node | Block]
    names: frozenset[str] = frozenset()

    def value(self, run: Evaluation) -> Value:
        """Evaluate the arguments in their order, and run the operation with them."""
        return run.call(self)


@dataclass(frozen=True)
class ListOf:
    """A list whose members are evaluated in order."""

    path: str
    members: tuple[Node, ...]

    def value(self, run: Evaluation) -> Value:
        """Return the members."""
        return [kept(member.value(run)) for member in self.members]


@dataclass(frozen=True)
class RowOf:
    """A row whose terms are evaluated; what yields nothing is left unbound."""

    path: str
    members: Mapping[str, Node]

    def value(self, run: Evaluation) -> Value:
        """Return the row."""
        row: dict[str, Term] = {}
        for name, node in self.members.items():
            term = node.value(run)
            if is_term(term):
                row[name] = term  # type: ignore[assignment]
            elif term is not None:
                where = json_path(self.path, name)
                raise ProgramError(f"a row holds terms, not {told(term)}", where=where)
        return row


@dataclass(frozen=True)
class Document:
    """A JSON-LD document, in which operations may stand for values."""

    path: str
    template: Any = field(repr=False)

    def value(self, run: Evaluation) -> Value:
        """Evaluate its operations, and read it relative to where it will lie."""
        data = filled(self.template, self.path, lambda node, _: node.value(run))
        return graph_from_jsonld(data, base=run.base, path=self.path)
