"""A stand-in for an embedding model: a vector of hashed letters, made in microseconds."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


class HashedWords:
    """Texts that share pieces of words have near vectors; it counts what it was asked."""

    def __init__(self, name: str = "hashed-words", dimensions: int = 64) -> None:
        self.name = name
        self.dimensions = dimensions
        self.embedded: list[str] = []

    def queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return self._rows(texts)

    def passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.embedded += texts
        return self._rows(texts)

    def _rows(self, texts: Sequence[str]) -> NDArray[np.float32]:
        rows = np.full((len(texts), self.dimensions), 0.1, dtype=np.float32)
        for row, text in zip(rows, texts, strict=True):
            lowered = text.lower()
            for at in range(max(1, len(lowered) - 3)):
                piece = lowered[at : at + 4].encode("utf-8", "replace")
                place = int.from_bytes(hashlib.blake2b(piece, digest_size=4).digest())
                row[place % self.dimensions] += 1
        return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), dtype=np.float32)
