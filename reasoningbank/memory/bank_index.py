"""Hybrid retrieval over the items of a bank's file."""

from __future__ import annotations

import logging
import sqlite3
import threading
from collections.abc import Callable, Mapping

import numpy as np

from reasoningbank.errors import RecordError
from reasoningbank.memory.item import MemoryItem
from reasoningbank.memory.store import Store
from reasoningbank.retrieval import (
    Embedder,
    Match,
    Vectors,
    VectorTable,
    best_first,
    open_embedder,
)

__all__ = ["BankIndex"]

logger = logging.getLogger(__name__)

#: The stored vectors. Half precision moves a cosine by less than 0.001.
STORED = np.dtype("<f2")


class BankIndex:
    """Ranks the active items of a bank; follows the changes of this and other processes."""

    def __init__(self, store: Store, embedder: Embedder | None) -> None:
        self._store = store
        self._embedder = embedder
        self._lock = threading.RLock()
        self._table = VectorTable()
        self._ids: dict[int, str] = {}
        self._keys: dict[str, int] = {}
        self._unsaved: dict[str, Vectors] = {}
        self._seen = 0

    def embed(self) -> None:
        """Embed and store the active items that have no vector yet, in batches."""
        with self._lock:
            embedder = self._opened()
            with self._store.reading() as database:
                rows = database.execute(
                    "SELECT id, item FROM items WHERE status = 'active' AND id NOT IN "
                    "(SELECT item_id FROM embeddings WHERE embedder = ? AND length(vector) = ?) "
                    "ORDER BY id",
                    (embedder.name, embedder.dimensions * STORED.itemsize),
                ).fetchall()
            missing = {
                one: self._store.parsed(text).dense_text
                for one, text in rows
                if one not in self._unsaved
            }
            if not missing:
                return
            # Outside of any transaction, so that others may read and write meanwhile.
            vectors = embedder.passages(list(missing.values()))
            made = {one: v.astype(STORED) for one, v in zip(missing, vectors, strict=True)}
            try:
                with self._store.writing() as database:
                    database.executemany(
                        "INSERT OR REPLACE INTO embeddings SELECT id, ?, ? FROM items WHERE id = ?",
                        [(embedder.name, v.tobytes(), one) for one, v in made.items()],
                    )
            except RecordError as error:
                # A read-only bank can still be searched.
                logger.info("the embeddings are kept in memory only: %s", error)
                self._unsaved.update(made)

    def match(
        self,
        query: str,
        k: int,
        weights: tuple[float, float],
        keep: Callable[[MemoryItem], bool] | None,
    ) -> list[tuple[MemoryItem, Match]]:
        """Return the best active items for a query, best first; ties by id."""
        embedder = self._opened()
        vector = embedder.queries([query])[0]
        while True:
            with self._lock, self._store.reading() as database:
                if self._follow(database, embedder):
                    found: list[tuple[MemoryItem, Match]] = []
                    scores = self._store.words.scores(query)
                    cosines = self._table.cosines(vector)
                    for match in best_first(self._ids, cosines, scores, weights):
                        item = self._store.item(match.id)
                        if item is not None and (keep is None or keep(item)):
                            found.append((item, match))
                            if len(found) == k:
                                break
                    return found
            self.embed()

    def _opened(self) -> Embedder:
        self._embedder = self._embedder or open_embedder()
        return self._embedder

    def _follow(self, database: sqlite3.Connection, embedder: Embedder) -> bool:
        """Load the changes since the last call; return False if an item has no vector yet."""
        last = self._store.last_change()
        if last == self._seen:
            return True
        changed = "SELECT item_id FROM changes WHERE number > ?"
        rows = database.execute(
            "SELECT items.key, items.id, vector FROM items LEFT JOIN embeddings "
            "ON item_id = items.id AND embedder = ? AND length(vector) = ? "
            f"WHERE status = 'active' AND items.id IN ({changed})",
            (embedder.name, embedder.dimensions * STORED.itemsize, self._seen),
        ).fetchall()
        vectors: Mapping[str, Vectors] = {
            item_id: np.frombuffer(blob, dtype=STORED) if blob else self._unsaved[item_id]
            for _, item_id, blob in rows
            if blob or item_id in self._unsaved
        }
        if len(vectors) < len(rows):
            return False
        for (item_id,) in database.execute(f"{changed} GROUP BY item_id", (self._seen,)):
            if (key := self._keys.pop(item_id, None)) is not None:
                self._table.drop([key])
                del self._ids[key]
        self._store.words.forget()
        self._keys.update((item_id, key) for key, item_id, _ in rows)
        self._ids.update((key, item_id) for key, item_id, _ in rows)
        if rows:
            self._table.put([key for key, _, _ in rows], np.stack(list(vectors.values())))
        self._seen = last
        return True
