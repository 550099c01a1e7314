"""Vectors of texts, computed once a process: banks are opened anew at every step."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np

from reasoningbank.retrieval import Embedder, Vectors, open_embedder

__all__ = ["Remembered"]


class Remembered:
    """The embedder that comes with the harness, which remembers passages. Threads may share it.

    It is loaded when the first text is embedded.
    """

    def __init__(self) -> None:
        self._rows: dict[str, np.ndarray[tuple[int, ...], np.dtype[np.float32]]] = {}
        self._lock = threading.Lock()

    @property
    def name(self) -> str:
        """Name that stored vectors are kept under."""
        return self._model.name

    @property
    def dimensions(self) -> int:
        """Length of a vector."""
        return self._model.dimensions

    def queries(self, texts: Sequence[str]) -> Vectors:
        """Return one row of length 1 for each text that asks."""
        return self._model.queries(texts)

    def passages(self, texts: Sequence[str]) -> Vectors:
        """Return one row of length 1 for each text that is to be found."""
        if not texts:
            return self._model.passages(texts)
        with self._lock:
            new = [text for text in dict.fromkeys(texts) if text not in self._rows]
            if new:
                self._rows.update(zip(new, self._model.passages(new), strict=True))
            return np.stack([self._rows[text] for text in texts])

    @property
    def _model(self) -> Embedder:
        return open_embedder()
