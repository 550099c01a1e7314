"""A runtime without a network: documents in a dictionary, endpoints in Oxigraph's memory."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

import pyoxigraph
from rdflib import BNode, Graph

from reasoningbank.algebra import (
    QueryRequest,
    Row,
    Table,
    graph_from_quads,
    json_chunks,
    run_program,
)
from reasoningbank.algebra.terms import BlankNodes, from_oxigraph
from reasoningbank.errors import EndpointError

TURTLE = pyoxigraph.RdfFormat.TURTLE


@dataclass(frozen=True)
class Bounds:
    requests: int | None = None
    rows: int | None = None
    seconds: float | None = None
    depth: int | None = None


@dataclass(frozen=True)
class Ended:
    status: int
    url: str


@dataclass
class Memory:
    """Documents and endpoints; what was asked and written is in `log`."""

    documents: dict[str, str] = field(default_factory=dict)
    data: str = ""
    composer: Callable[[QueryRequest], str] | None = None
    limits: Bounds = field(default_factory=Bounds)
    log: list[str] = field(default_factory=list)
    written: dict[str, Graph] = field(default_factory=dict)
    updates: list[str] = field(default_factory=list)
    served: int = 0
    _uuids: Iterator[int] = field(default_factory=itertools.count)

    def __post_init__(self) -> None:
        self.store = pyoxigraph.Store()
        self.store.load(self.data.encode(), TURTLE)

    def get(self, url: str) -> Graph:
        self.log.append(f"GET {url}")
        if url not in self.documents:
            raise EndpointError("HTTP 404", where=url, hint="check the address")
        return graph_from_quads(pyoxigraph.parse(self.documents[url], TURTLE, base_iri=url))

    def send(
        self,
        method: Literal["PUT", "POST", "PATCH"],
        url: str,
        body: Graph | str,
        *,
        only_new: bool = False,
    ) -> Ended:
        if only_new and url in self.written:
            raise EndpointError("the document exists", where=url, code="write-refused")
        self.log.append(f"{method} {url}")
        if isinstance(body, str):
            self.updates.append(body)
        else:
            self.written[url] = body
        return Ended(200, url)

    def select(self, endpoint: str, query: str) -> Table:
        self.log.append(f"SELECT {endpoint}")
        found = self.store.query(query)
        assert isinstance(found, pyoxigraph.QuerySolutions)
        names = [variable.value for variable in found.variables]
        return Table(tuple(names), self._rows(found, names))

    def _rows(self, found: pyoxigraph.QuerySolutions, names: list[str]) -> Iterator[Row]:
        blanks = BlankNodes(BNode)
        for solution in found:
            self.served += 1
            terms = ((name, solution[name]) for name in names)
            yield {name: from_oxigraph(term, blanks) for name, term in terms if term is not None}

    def graph(self, endpoint: str, query: str) -> Graph:
        self.log.append(f"GRAPH {endpoint}")
        found = self.store.query(query)
        assert isinstance(found, pyoxigraph.QueryTriples)
        return graph_from_quads(found)

    def ask(self, endpoint: str, query: str) -> bool:
        self.log.append(f"ASK {endpoint}")
        return bool(self.store.query(query))

    def compose(self, request: QueryRequest) -> str:
        assert self.composer is not None
        return self.composer(request)

    def uuid(self, place: str) -> str:
        return f"00000000-0000-4000-8000-{next(self._uuids):012d}"


def op(name: str, /, **args: Any) -> dict[str, Any]:
    """Write a call."""
    return {"@op": name, **({"args": args} if args else {})}


def value(name: str) -> dict[str, Any]:
    """Write a Value."""
    return op("Value", name=name)


def uri(text: str) -> dict[str, str]:
    """Write a URI as results do."""
    return {"type": "uri", "value": text}


def text(words: str, lang: str = "", datatype: str = "") -> dict[str, str]:
    """Write a literal as results do."""
    made = {"type": "literal", "value": words, "xml:lang": lang, "datatype": datatype}
    return {key: part for key, part in made.items() if part or key == "value"}


def outcome(program: Any, runtime: Memory | None = None, **variables: Any) -> Any:
    """Run a program and return its result as JSON."""
    found = run_program(program, runtime or Memory(), variables)
    return json.loads("".join(json_chunks(found)))
