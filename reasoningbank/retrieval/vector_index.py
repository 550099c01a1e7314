"""What keeps vectors and compares them with a query: one protocol, and indexes by name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from types import MappingProxyType
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from reasoningbank.errors import UsageError
from reasoningbank.retrieval.faiss_table import FaissTable
from reasoningbank.retrieval.vectors import VectorTable

__all__ = ["DEFAULT_INDEX", "INDEXES", "VectorIndex", "open_index"]

DEFAULT_INDEX = "numpy"


class VectorIndex(Protocol):
    """Rows of length 1 by number. One thread at a time comes in."""

    def __len__(self) -> int: ...

    def __contains__(self, key: int) -> bool: ...

    def put(self, keys: Sequence[int], vectors: NDArray[np.floating]) -> None:
        """Put vectors in, each under its number; what was there under it is replaced."""
        ...

    def drop(self, keys: Iterable[int]) -> None:
        """Take vectors out; numbers that are not there don't matter."""
        ...

    def cosines(self, query: NDArray[np.float32]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return all numbers in ascending order, and the cosine of each with the query."""
        ...


INDEXES: MappingProxyType[str, type[VectorTable] | type[FaissTable]] = MappingProxyType(
    {DEFAULT_INDEX: VectorTable, "faiss": FaissTable}
)


def open_index(name: str = DEFAULT_INDEX) -> VectorIndex:
    """Return an empty index.

    Args:
        name: ``numpy``, all rows compared at once, or ``faiss``, the same by FAISS.

    Raises:
        UsageError: There is no such index.
        SetupError: Its package is missing.

    Examples:
        >>> index = open_index()
        >>> index.put([3], np.eye(1, 2, dtype=np.float32))
        >>> index.cosines(np.array([1, 0], dtype=np.float32))
        (array([3]), array([1.]))
    """
    if name not in INDEXES:
        hint = f"choose {' or '.join(INDEXES)}"
        raise UsageError(f"unknown index of vectors {name!r}", hint=hint)
    return INDEXES[name]()
