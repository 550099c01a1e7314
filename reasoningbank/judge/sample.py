"""A few rows of an answer, for readers: bounded, and in an order that the engine cannot change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reasoningbank.judge.answer import Answer
from reasoningbank.judge.encoding import Ints
from reasoningbank.sparql.terms import cut

__all__ = ["MAX_ROWS", "MAX_TERM_CHARS", "Row", "Sample", "first_rows", "sample_of", "shown_rows"]

#: Rows shown of an answer.
MAX_ROWS = 10
#: Characters shown of a term.
MAX_TERM_CHARS = 300

#: A row of terms as SPARQL TSV writes them; None where a variable is unbound.
Row = tuple[str | None, ...]


@dataclass(frozen=True)
class Sample:
    """A few rows of an answer.

    Attributes:
        variables: Names of its columns; `subject`, `predicate` and `object` of a graph,
            `boolean` of a yes or no.
        rows: At most `MAX_ROWS` of its rows.
        n: How many it has.
    """

    variables: tuple[str, ...] = ()
    rows: tuple[Row, ...] = ()
    n: int = 0

    def to_json(self) -> dict[str, Any]:
        """Return the sample as JSON-able data."""
        rows = [list(row) for row in self.rows]
        return {"variables": list(self.variables), "rows": rows, "n": self.n}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Sample:
        """Read what `to_json` wrote."""
        rows = tuple(tuple(row) for row in data["rows"])
        return cls(tuple(data["variables"]), rows, int(data["n"]))


def sample_of(
    answer: Answer, *, bag: bool = False, ordered: bool = False, names: dict[str, str] | None = None
) -> Sample:
    """Show the first rows of an answer; it depends on nothing but the answer.

    Args:
        answer: The answer.
        bag: Whether repeated rows are shown and counted.
        ordered: Whether rows stay as they came, instead of being sorted.
        names: Names given to blank nodes so far; more are added.

    Examples:
        >>> answer = Answer.of_rows(["x"], [["<http://e/b>"], ["<http://e/a>"], ["<http://e/b>"]])
        >>> sample_of(answer)
        Sample(variables=('x',), rows=(('<http://e/a>',), ('<http://e/b>',)), n=2)
    """
    if answer.form == "boolean":
        return Sample(("boolean",), ((str(answer.value).lower(),),), 1)
    table, n = answer.table, answer.n_rows
    if not bag and table.num_columns:
        # Without threads the rows stay in the order in which each came first.
        table = table.group_by(table.column_names, use_threads=False).aggregate([])
        n = table.num_rows
    everything = np.arange(n, dtype=np.int64)
    chosen = everything[:MAX_ROWS] if ordered else first_rows(table, everything, MAX_ROWS)
    return Sample(answer.variables, shown_rows(table, chosen, names), n)


def first_rows(
    table: pa.Table, positions: Ints, most: int, columns: Sequence[int] | None = None
) -> Ints:
    """Return the first so many of some rows, sorted by the text of their terms.

    Args:
        table: Terms as SPARQL TSV writes them.
        positions: The rows to choose from.
        most: How many at most.
        columns: The columns to sort by, most important first; by default all as they stand.
    """
    by = range(table.num_columns) if columns is None else columns
    if not by:
        return positions[:most]
    rows = table.take(pa.array(positions))
    # The labels of blank nodes mean nothing.
    keys = [pc.if_else(pc.starts_with(rows.column(c), "_:"), "_:", rows.column(c)) for c in by]
    names = [str(at) for at in range(len(keys))]
    chosen = pc.select_k_unstable(
        pa.Table.from_arrays(keys, names=names),
        k=min(most, len(positions)),
        sort_keys=[(name, "ascending") for name in names],
    )
    first: Ints = positions[chosen.to_numpy().astype(np.int64)]
    return first


def shown_rows(
    table: pa.Table, positions: Ints, names: dict[str, str] | None = None
) -> tuple[Row, ...]:
    """Return rows for showing: long terms cut, blank nodes named in the order they come in.

    Args:
        table: Terms as SPARQL TSV writes them.
        positions: Which rows.
        names: Names given to blank nodes so far; more are added.
    """
    known: dict[str, str] = {} if names is None else names

    def shown(text: str | None) -> str | None:
        if text is None:
            return None
        if text.startswith("_:"):
            return known.setdefault(text, f"_:b{len(known)}")
        return cut(text, MAX_TERM_CHARS)

    columns = [column.to_pylist() for column in table.take(pa.array(positions)).columns]
    return tuple(tuple(shown(column[at]) for column in columns) for at in range(len(positions)))
