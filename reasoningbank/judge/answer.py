"""An answer to compare: a table, a graph, or yes or no, without what fetching it took."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal as OneOf

import pyarrow as pa
from pyoxigraph import BlankNode, Literal, NamedNode, Quad, Triple

from reasoningbank.sparql import BooleanResult, GraphResult, TableResult

__all__ = ["Answer", "AnswerForm", "answer_of", "term_text", "triple_texts"]

AnswerForm = OneOf["table", "graph", "boolean"]

_TRIPLE = ("subject", "predicate", "object")


@dataclass(frozen=True)
class Answer:
    """What a query returned.

    Attributes:
        form: `table` for SELECT, `graph` for CONSTRUCT and DESCRIBE, `boolean` for ASK.
        table: String columns that hold terms as SPARQL TSV writes them, null where unbound;
            three columns for a graph, none for a boolean.
        n_rows: Rows or triples; 1 for a boolean. A table without columns can have rows.
        value: The answer of an ASK.
        truncated: Whether there was more than a cap allowed.
    """

    form: AnswerForm
    table: pa.Table
    n_rows: int
    value: bool = False
    truncated: bool = False

    @property
    def variables(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(self.table.column_names)

    @property
    def is_empty(self) -> bool:
        """Whether it says nothing: no row, or no cell that is bound. ASK is never empty."""
        if self.form == "boolean":
            return False
        columns = self.table.columns
        return self.n_rows == 0 or all(column.null_count == self.n_rows for column in columns)

    @classmethod
    def of_rows(cls, variables: Sequence[str], rows: Sequence[Sequence[str | None]]) -> Answer:
        """Make a table of TSV terms, row by row.

        Examples:
            >>> Answer.of_rows(["x", "n"], [["<http://e/a>", "1"], ["_:b", None]]).n_rows
            2
        """
        columns = [[row[i] for row in rows] for i in range(len(variables))]
        arrays = [pa.array(column, type=pa.string()) for column in columns]
        return cls("table", pa.Table.from_arrays(arrays, names=list(variables)), len(rows))

    @classmethod
    def of_triples(cls, triples: Iterable[Sequence[str]]) -> Answer:
        """Make a graph of triples, each of three terms as N-Triples writes them.

        A triple that is given twice is in the graph once.
        """
        graph = cls.of_rows(_TRIPLE, list(dict.fromkeys(tuple(triple) for triple in triples)))
        return cls("graph", graph.table, graph.n_rows)

    @classmethod
    def of_boolean(cls, value: bool) -> Answer:
        """Make the answer of an ASK."""
        return cls("boolean", pa.table({}), 1, value=value)


def term_text(term: NamedNode | BlankNode | Literal | Triple) -> str:
    """Write a term as SPARQL TSV does; the library leaves out the brackets of triple terms.

    Examples:
        >>> a = NamedNode("http://e/a")
        >>> term_text(Triple(a, a, Literal("x")))
        '<<( <http://e/a> <http://e/a> "x" )>>'
    """
    if isinstance(term, Triple):
        parts = (term.subject, term.predicate, term.object)
        return f"<<( {' '.join(term_text(part) for part in parts)} )>>"
    return str(term)


def triple_texts(triple: Triple | Quad) -> tuple[str, str, str]:
    """Write the three terms of a triple."""
    return term_text(triple.subject), term_text(triple.predicate), term_text(triple.object)


def answer_of(result: TableResult | GraphResult | BooleanResult) -> Answer:
    """Return the answer that an endpoint's result holds."""
    if isinstance(result, BooleanResult):
        return Answer.of_boolean(result.value)
    form: AnswerForm = "graph" if isinstance(result, GraphResult) else "table"
    return Answer(form, result.table, result.n_rows, truncated=result.truncated)
