"""What a run gives to its operations: the web behind a runtime, and the evaluation around them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from rdflib import Graph

from reasoningbank.algebra.scope import Scope
from reasoningbank.algebra.values import Table, Value

__all__ = ["Block", "Evaluation", "LimitsOf", "Node", "RuntimeOf", "SentTo"]


class LimitsOf(Protocol):
    """The budgets of a run; None is no limit."""

    @property
    def requests(self) -> int | None:
        """HTTP requests; the runtime counts them."""

    @property
    def rows(self) -> int | None:
        """Items that all ForEach and Filter of a run go through; the evaluation counts them."""

    @property
    def seconds(self) -> float | None:
        """Wall time; the runtime ends its requests by it, the evaluation ends between steps."""

    @property
    def depth(self) -> int | None:
        """Operations inside one another; the evaluation counts them."""


class SentTo(Protocol):
    """How a write ended."""

    @property
    def status(self) -> int:
        """The HTTP status."""

    @property
    def url(self) -> str:
        """The document that was written."""


class RuntimeOf(Protocol):
    """One object a run: whatever reaches out of the process goes through it.

    Graphs that it returns hold blank nodes of their own (`graph_from_quads` sees to that).
    """

    @property
    def limits(self) -> LimitsOf:
        """The budgets of the run."""

    def get(self, url: str) -> Graph:
        """Return the graph of a document."""

    def send(self, method: Literal["PUT", "POST", "PATCH"], url: str, body: Graph | str) -> SentTo:
        """Write a document; refused where the run does not allow it."""

    def select(self, endpoint: str, query: str) -> Table:
        """Return the rows of a SELECT, as a stream."""

    def graph(self, endpoint: str, query: str) -> Graph:
        """Return the graph of a CONSTRUCT or DESCRIBE."""

    def ask(self, endpoint: str, query: str) -> bool:
        """Return the answer of an ASK."""

    def compose(self, question: str, endpoint: str, names: frozenset[str]) -> str:
        """Return a query that answers a question and projects the names.

        The endpoint is empty where the program does not tell it.
        """

    def uuid(self, place: str) -> str:
        """Return a random UUID; a run that is resumed gets the same ones again."""


class Node(Protocol):
    """A part of a validated program: what yields a value in a scope."""

    @property
    def path(self) -> str:
        """The JSON path of the part."""

    def value(self, run: Evaluation) -> Value:
        """Return what it yields."""


@dataclass(frozen=True)
class Block:
    """Operations that an operation runs by itself: one, or several in order.

    Attributes:
        path: The JSON path.
        nodes: The operations.
        single: Whether one operation stands there, not a list.
    """

    path: str
    nodes: tuple[Node, ...]
    single: bool


class Evaluation(Protocol):
    """An operation while it runs: where it stands, in which scope, by which runtime."""

    @property
    def runtime(self) -> RuntimeOf:
        """What reaches out of the process."""

    @property
    def path(self) -> str:
        """The JSON path of the operation."""

    @property
    def scope(self) -> Scope:
        """Its row and variables."""

    @property
    def names(self) -> frozenset[str]:
        """Row variables that the program reads of the rows this operation's result leads to."""

    @property
    def endpoint(self) -> str:
        """The endpoint that the operation's result is sent to; empty where there is none."""

    @property
    def base(self) -> str | None:
        """The address that relative IRIs of JSON-LD are relative to."""

    def call(self, call: Any) -> Value:
        """Run a call with its arguments evaluated (`nodes.Call`)."""

    def block(self, block: Block, scope: Scope) -> Value:
        """Run a block in a scope of its own, and return its result, kept."""

    def counted(self, items: Iterable[Value]) -> Iterator[Value]:
        """Go through items, each counted against the run's budgets."""
