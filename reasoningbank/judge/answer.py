"""An answer to compare: a table, a graph, or a boolean; from an endpoint's result or a file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import pyarrow as pa
from pyoxigraph import QueryBoolean, QueryResultsFormat, RdfFormat, parse, parse_query_results

from reasoningbank.errors import UsageError
from reasoningbank.sparql import BooleanResult, GraphResult, TableResult
from reasoningbank.sparql.results import columns
from reasoningbank.sparql.terms import full

AnswerForm = Literal["table", "graph", "boolean"]

#: Endings of the files that can be read: of results, then of graphs.
_KINDS = (".srj", ".json", ".srx", ".xml", ".tsv", ".ttl", ".nt", ".rdf", ".jsonld")


@dataclass(frozen=True)
class Answer:
    """What a query returned."""

    form: AnswerForm  #: `table` for SELECT, `graph` for CONSTRUCT and DESCRIBE, `boolean` for ASK
    #: String columns that hold terms as SPARQL TSV writes them, null where unbound; three columns
    #: for a graph, one for a boolean
    table: pa.Table
    n_rows: int  #: Rows or triples; 1 for a boolean. A table without columns can have rows.
    value: bool = False  #: The answer of an ASK
    truncated: bool = False  #: Whether there was more than a cap allowed

    @property
    def variables(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(self.table.column_names)

    @property
    def is_empty(self) -> bool:
        """Whether it has no row, or no bound cell. The answer of an ASK is never empty."""
        n_rows = self.n_rows
        return n_rows == 0 or all(column.null_count == n_rows for column in self.table.columns)

    @classmethod
    def of_rows(cls, variables: Sequence[str], rows: Sequence[Sequence[str | None]]) -> Answer:
        """Make a table of TSV terms, row by row; None is an unbound cell."""
        return cls("table", columns(variables, rows), len(rows))

    @classmethod
    def of_triples(cls, triples: Iterable[Sequence[str]]) -> Answer:
        """Make a graph of distinct triples, each of three terms as N-Triples writes them."""
        rows = list(dict.fromkeys(tuple(triple) for triple in triples))
        return replace(cls.of_rows(("subject", "predicate", "object"), rows), form="graph")

    @classmethod
    def of_boolean(cls, value: bool) -> Answer:
        """Make the answer of an ASK."""
        return cls("boolean", pa.table({"boolean": [str(value).lower()]}), 1, value=value)


def answer_of(result: TableResult | GraphResult | BooleanResult) -> Answer:
    """Return the answer that an endpoint's result holds."""
    if isinstance(result, BooleanResult):
        return Answer.of_boolean(result.value)
    form: AnswerForm = "graph" if isinstance(result, GraphResult) else "table"
    return Answer(form, result.table, result.n_rows, truncated=result.truncated)


def read_answer(path: Path) -> Answer:
    """Read a file of SPARQL results (.srj, .srx, .tsv) or a graph (.ttl, .nt, .rdf, .jsonld)."""
    suffix = path.suffix.lower()
    if suffix not in _KINDS:
        what = f"unknown kind of file '{suffix}'"
        hint = f"use one of {', '.join(_KINDS)}"
        if suffix == ".csv":
            what, hint = "CSV does not tell IRIs from strings", "use .srj, .srx or .tsv"
        raise UsageError(what, where=str(path), hint=hint, code="unknown-file-kind")
    try:
        data = path.read_bytes()
        kind = QueryResultsFormat.from_extension(suffix[1:])
        if kind is None:
            graph = RdfFormat.from_extension(suffix[1:])
            quads = parse(data, graph, without_named_graphs=True)
            return Answer.of_triples([full(term) for term in quad.triple] for quad in quads)
        found = parse_query_results(data, kind)
        if isinstance(found, QueryBoolean):
            return Answer.of_boolean(bool(found))
        rows = [[None if term is None else full(term) for term in row] for row in found]
        return Answer.of_rows([v.value for v in found.variables], rows)
    except (OSError, SyntaxError, ValueError) as error:
        what = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise UsageError(what, where=str(path)) from error
