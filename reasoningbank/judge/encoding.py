"""Two results as integers, so that equal cells are equal numbers.

Cells are canonicalised once for each distinct text of a column, and both results share one
numbering; everything after this is arithmetic on arrays.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from reasoningbank.judge.answer import Answer
from reasoningbank.judge.canonical import UNBOUND, Blank, Value, canonical
from reasoningbank.judge.numeric import number_classes

__all__ = ["Encoded", "Ints", "encode", "pair_ids"]

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Encoded:
    """A result as integers; cells of both results with the same meaning share an id.

    Attributes:
        variables: Names of the columns.
        values: One array a column; the id of each cell. Blank nodes have the id of their shape.
        blanks: One array a column; the number of the blank node in each cell, -1 where there
            is none. Numbers mean nothing outside their own result.
        n_rows: How many rows; a result without columns can have some.
        places: The position of each row in the answer.
    """

    variables: tuple[str, ...]
    values: tuple[Ints, ...]
    blanks: tuple[Ints, ...]
    n_rows: int
    places: Ints

    @property
    def has_blanks(self) -> bool:
        """Whether any cell holds a blank node."""
        return any(bool((column >= 0).any()) for column in self.blanks)

    def take(self, rows: Ints) -> Encoded:
        """Return the rows at these positions, in this order."""
        return Encoded(
            self.variables,
            tuple(column[rows] for column in self.values),
            tuple(column[rows] for column in self.blanks),
            len(rows),
            self.places[rows],
        )

    def select(self, columns: tuple[int, ...]) -> Encoded:
        """Return these columns, in this order."""
        return Encoded(
            tuple(self.variables[c] for c in columns),
            tuple(self.values[c] for c in columns),
            tuple(self.blanks[c] for c in columns),
            self.n_rows,
            self.places,
        )

    def distinct(self) -> Encoded:
        """Return the result without repeated rows; the first of each stays, in place."""
        ids = np.zeros(self.n_rows, dtype=np.int64)
        for column in (*self.values, *self.blanks):
            ids = pair_ids(ids, column)
        return self.take(np.sort(np.unique(ids, return_index=True)[1]))


def pair_ids(first: Ints, second: Ints) -> Ints:
    """Number the pairs that stand side by side in two arrays.

    Examples:
        >>> pair_ids(np.array([0, 0, 1, 0]), np.array([5, -1, 5, 5])).tolist()
        [1, 0, 2, 1]
    """
    if not len(first):
        return first.astype(np.int64)
    low = second.min()
    keys = first * (second.max() - low + 1) + (second - low)
    return np.unique(keys, return_inverse=True)[1].astype(np.int64)


def encode(gold: Answer, predicted: Answer) -> tuple[Encoded, Encoded]:
    """Number the cells of two tables or graphs by what they mean.

    Args:
        gold: The right answer.
        predicted: The answer to compare with it.

    Returns:
        Both, with a shared numbering of values.
    """
    sides = [_texts(gold), _texts(predicted)]
    values: dict[str | None, Value] = {None: UNBOUND}
    for side in sides:
        for texts, _ in side:
            values.update((text, canonical(text)) for text in texts if text not in values)
    names = number_classes(
        (v for v in values.values() if isinstance(v, int)),
        (v for v in values.values() if isinstance(v, float)),
    )
    ids: dict[str, int] = {UNBOUND: 0}
    numbered: dict[str | None, int] = {}
    for text, value in values.items():
        if isinstance(value, Blank):
            key = value.shape
        else:
            key = value if isinstance(value, str) else names[value]
        numbered[text] = ids.setdefault(key, len(ids))
    return (
        _encoded(gold, sides[0], values, numbered),
        _encoded(predicted, sides[1], values, numbered),
    )


def _texts(answer: Answer) -> list[tuple[list[str | None], Ints]]:
    """Return the distinct cells of each column and, for each row, which of them it holds."""
    columns = []
    for column in answer.table.columns:
        encoded = column.combine_chunks().dictionary_encode(null_encoding="encode")
        if isinstance(encoded, pa.ChunkedArray):
            encoded = encoded.combine_chunks()
        indices = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        columns.append((encoded.dictionary.to_pylist(), indices))
    return columns


def _encoded(
    answer: Answer,
    columns: list[tuple[list[str | None], Ints]],
    values: dict[str | None, Value],
    numbered: dict[str | None, int],
) -> Encoded:
    labels: dict[str, int] = {}
    ids, blanks = [], []
    for texts, rows in columns:
        ids.append(np.array([numbered[text] for text in texts], dtype=np.int64)[rows])
        found = [values[text] for text in texts]
        marks = [
            labels.setdefault(v.label, len(labels)) if isinstance(v, Blank) else -1 for v in found
        ]
        blanks.append(np.array(marks, dtype=np.int64)[rows])
    places = np.arange(answer.n_rows, dtype=np.int64)
    return Encoded(answer.variables, tuple(ids), tuple(blanks), answer.n_rows, places)
