"""Vectors by number in a FAISS index; the package is imported when one is asked for."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reasoningbank.errors import SetupError
from reasoningbank.retrieval.vectors import DECIMALS

__all__ = ["FaissTable"]


class FaissTable:
    """A flat index over inner products (Johnson et al., arXiv:1702.08734), as `VectorTable` is one.

    It is exact, so that both give the same ranking.

    Raises:
        SetupError: The package is missing.
    """

    def __init__(self) -> None:
        try:
            faiss: Any = importlib.import_module("faiss")
        except ImportError as error:
            raise SetupError(
                "the package faiss-cpu is not installed",
                where="index faiss",
                hint="pip install faiss-cpu",
            ) from error
        self._faiss = faiss
        self._index: Any = None
        self._keys: set[int] = set()

    def __len__(self) -> int:
        return len(self._keys)

    def __contains__(self, key: int) -> bool:
        return key in self._keys

    def put(self, keys: Sequence[int], vectors: NDArray[np.floating]) -> None:
        """Put vectors in, each under its number; what was there under it is replaced."""
        rows = dict(zip(keys, vectors, strict=True))
        if not rows:
            return
        self.drop(rows)
        if self._index is None:
            flat = self._faiss.IndexFlatIP(vectors.shape[1])
            self._index = self._faiss.IndexIDMap2(flat)
        matrix = np.stack(list(rows.values())).astype(np.float32)
        self._index.add_with_ids(matrix, np.array(list(rows), dtype=np.int64))
        self._keys.update(rows)

    def drop(self, keys: Iterable[int]) -> None:
        """Take vectors out; numbers that are not there don't matter."""
        known = self._keys.intersection(keys)
        if known:
            self._index.remove_ids(np.array(sorted(known), dtype=np.int64))
            self._keys -= known

    def cosines(self, query: NDArray[np.float32]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return all numbers in ascending order, and the cosine of each with the query."""
        if not self._keys:
            return np.zeros(0, dtype=np.int64), np.zeros(0)
        asked = np.ascontiguousarray(query, dtype=np.float32)[np.newaxis]
        found, keys = self._index.search(asked, len(self._keys))
        order = np.argsort(keys[0])
        in_order: NDArray[np.float64] = found[0][order].astype(np.float64).round(DECIMALS)
        return keys[0][order], in_order
