"""Results: Arrow columns of term texts, decoded into RDF terms only when they are read.

`AnswerCache` keeps those of public endpoints on disk, so that a repeated run sends no query twice.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, cast

import pyarrow as pa
import pyarrow.compute as pc
from pyoxigraph import QueryResultsFormat, Triple, parse_query_results

from reasoningbank.cache import DiskCache
from reasoningbank.sparql.terms import LONG, Term, read_term
from reasoningbank.spill import is_on_disk

GRAPH_COLUMNS = ("subject", "predicate", "object")


@dataclass(frozen=True)
class _Rows:
    #: A string column per variable: terms as SPARQL TSV writes them, null where unbound
    table: pa.Table = field(repr=False)
    n_rows: int  #: Also without columns, where Arrow counts none
    truncated: bool = False  #: Whether the endpoint had more rows than were read
    seconds: float = 0.0  #: Wall time of the request, retries included
    source: str = ""  #: Name of the endpoint
    #: The characters of all cells, counted on arrival: counting later reads all from disk.
    n_chars: int | None = field(default=None, repr=False, compare=False)

    @property
    def variables(self) -> tuple[str, ...]:
        """The names of the columns, without question marks."""
        return tuple(self.table.column_names)

    @property
    def chars(self) -> int:
        """Characters of all cells, as the endpoint wrote them."""
        return chars_of(self.table) if self.n_chars is None else self.n_chars

    def rows(self, start: int = 0, stop: int | None = None) -> list[tuple[Term | None, ...]]:
        """Decode the rows `start` to `stop`, as a slice does; all by default."""
        span = range(self.n_rows)[start:stop]
        return decode(self.table.slice(span.start, len(span)), len(span))


@dataclass(frozen=True)
class TableResult(_Rows):
    """The answer of a SELECT."""


@dataclass(frozen=True)
class GraphResult(_Rows):
    """The answer of a CONSTRUCT or DESCRIBE: distinct rows of subject, predicate and object."""

    def triples(self, start: int = 0, stop: int | None = None) -> list[Triple]:
        """Decode the triples `start` to `stop`, as a slice does; all by default."""
        return [Triple(*cast("Any", row)) for row in self.rows(start, stop)]


@dataclass(frozen=True)
class BooleanResult:
    value: bool
    seconds: float = 0.0
    source: str = ""

    n_rows: int = field(default=1, init=False)
    truncated: bool = field(default=False, init=False)


Result = TableResult | GraphResult | BooleanResult


def columns(variables: Sequence[str], rows: Sequence[Sequence[str | None]]) -> pa.Table:
    arrays = [pa.array([row[at] for row in rows], pa.string()) for at in range(len(variables))]
    return pa.table(arrays, names=list(variables))


def chars_of(table: pa.Table) -> int:
    """Return the characters of all cells."""
    return sum(pc.sum(pc.utf8_length(column)).as_py() or 0 for column in table.columns)


def decode(table: Any, n_rows: int) -> list[tuple[Term | None, ...]]:
    names = table.column_names
    if not names:
        return [()] * n_rows
    cells = [column.to_pylist() for column in table.columns]
    head = "\t".join(f"?c{at}" for at in range(len(names)))
    lines = ["\t".join(cell or "" for cell in row) for row in zip(*cells, strict=True)]
    text = "\n".join((head, *lines, "")).encode()
    if max(map(len, lines), default=0) <= LONG:
        try:
            # The solutions get no name: an error would keep it, and only this thread may drop them.
            return list(map(tuple, cast("Any", parse_query_results(text, QueryResultsFormat.TSV))))
        except SyntaxError:
            pass
    read = lru_cache(maxsize=None)(read_term)
    return [
        tuple(None if cell is None else read(cell) for cell in row)
        for row in zip(*cells, strict=True)
    ]


class AnswerCache:
    """Results by endpoint, query and bounds; equal content is stored once."""

    def __init__(self, disk: DiskCache) -> None:
        self._disk = disk

    def get(self, key: str, *, max_age_s: float, source: str = "") -> Result | None:
        """Return the result under a key, if it is younger than `max_age_s` seconds."""
        try:
            head: dict[str, Any] = json.loads(self._disk.get([key])[key])
            if head["at"] <= time.time() - max_age_s:
                return None
            body = self._disk.get([head["content"]])[head["content"]]
            if head["form"] == "boolean":
                return BooleanResult(body == b"1", source=source)
            kind = GraphResult if head["form"] == "graph" else TableResult
            table = pa.ipc.open_stream(body).read_all()
            return kind(table, head["n_rows"], head["truncated"], source=source)
        except (ValueError, KeyError, TypeError, OSError, pa.ArrowException):
            return None

    def put(self, key: str, result: Result) -> None:
        """Store a result under a key, unless it is too large for memory."""
        head: dict[str, Any] = {"at": time.time(), "form": "boolean"}
        if isinstance(result, BooleanResult):
            body = b"1" if result.value else b"0"
        elif is_on_disk(result.table):
            return
        else:
            form = "graph" if isinstance(result, GraphResult) else "table"
            head |= {"form": form, "n_rows": result.n_rows, "truncated": result.truncated}
            sink = pa.BufferOutputStream()
            options = pa.ipc.IpcWriteOptions(compression="zstd")
            with pa.ipc.new_stream(sink, result.table.schema, options=options) as writer:
                writer.write_table(result.table)
            body = sink.getvalue().to_pybytes()
        head["content"] = content = hashlib.sha256(body).hexdigest()
        known = self._disk.get([content])
        self._disk.put({key: json.dumps(head).encode(), **({} if known else {content: body})})

    @staticmethod
    def key_of(*parts: Any) -> str:
        """Return the key of a query as sent, with its address, headers and bounds."""
        return hashlib.sha256(json.dumps(parts).encode("utf-8", "surrogatepass")).hexdigest()
