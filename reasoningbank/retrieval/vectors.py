"""Vectors by number, compared with a query all at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["VectorTable"]

#: Decimals of a cosine: what is beyond them depends on the processor.
DECIMALS = 5


class VectorTable:
    """A growing matrix, a row of length 1 for each number.

    Comparing all of 100,000 rows takes some 20 ms, so there is no other index to keep.

    Examples:
        >>> table = VectorTable()
        >>> table.put([7, 9], np.eye(2, dtype=np.float32))
        >>> keys, cosines = table.cosines(np.array([0, 1], dtype=np.float32))
        >>> dict(zip(keys.tolist(), cosines.tolist()))
        {7: 0.0, 9: 1.0}
    """

    def __init__(self) -> None:
        self._matrix = np.zeros((0, 0), dtype=np.float32)
        self._keys = np.zeros(0, dtype=np.int64)
        self._rows: dict[int, int] = {}
        #: The rows in the order of their numbers; None after a change.
        self._order: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, key: int) -> bool:
        return key in self._rows

    def put(self, keys: Sequence[int], vectors: NDArray[np.floating]) -> None:
        """Put vectors in, each under its number; what was there under it is replaced."""
        if not len(keys):
            return
        self._order = None
        new = len(set(keys) - self._rows.keys())
        self._make_room(len(self._rows) + new, vectors.shape[1])
        rows = [self._rows.setdefault(key, len(self._rows)) for key in keys]
        self._matrix[rows] = vectors
        self._keys[rows] = keys

    def drop(self, keys: Iterable[int]) -> None:
        """Take vectors out; numbers that are not there don't matter."""
        for key in keys:
            row = self._rows.pop(key, None)
            if row is None:
                continue
            self._order = None
            last = len(self._rows)
            if row != last:
                self._matrix[row] = self._matrix[last]
                self._keys[row] = self._keys[last]
                self._rows[int(self._keys[row])] = row

    def cosines(self, query: NDArray[np.float32]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return all numbers in ascending order, and the cosine of each with the query."""
        count = len(self._rows)
        if not count:
            return np.zeros(0, dtype=np.int64), np.zeros(0)
        if self._order is None:
            self._order = np.argsort(self._keys[:count], kind="stable")
        # Row by row, in one thread: BLAS's threads wait for one another by spinning, and beside
        # a busy processor `@` took twice as long.
        cosines = np.vecdot(self._matrix[:count], query).astype(np.float64).round(DECIMALS)
        in_order: NDArray[np.float64] = cosines[self._order]
        return self._keys[self._order], in_order

    def _make_room(self, rows: int, dimensions: int) -> None:
        if rows <= len(self._keys) and self._matrix.shape[1] == dimensions:
            return
        held = len(self._rows)
        room = max(rows, 2 * held, 64)
        matrix = np.zeros((room, dimensions), dtype=np.float32)
        keys = np.zeros(room, dtype=np.int64)
        if held:
            matrix[:held] = self._matrix[:held]
            keys[:held] = self._keys[:held]
        self._matrix, self._keys = matrix, keys
