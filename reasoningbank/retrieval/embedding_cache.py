"""Vectors of passages kept on disk by content, shared by all processes of a user."""

from __future__ import annotations

import hashlib
import os
import sqlite3
import threading
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from reasoningbank.cache import cache_dir, open_database

__all__ = ["cached_vectors"]

# Losing the last entries in a power cut costs some milliseconds each, syncing more.
_TABLE = """
PRAGMA synchronous=OFF;
CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, vector BLOB NOT NULL) WITHOUT ROWID;
"""
#: As stored: little-endian, so that a cache can be carried elsewhere.
_STORED = np.dtype("<f4")
#: SQLite takes so many values in a statement, always.
_AT_ONCE = 900


def cached_vectors(
    name: str, texts: Sequence[str], embed: Callable[[list[str]], NDArray[np.float32]]
) -> NDArray[np.float32]:
    """Return the vectors of texts; each text is embedded once a model, then read from disk.

    A bank made anew from a snapshot, as every resumed run makes one, embeds nothing again. Where
    the cache cannot be read or written, every text is embedded.

    Args:
        name: Name of the model, with its version and what else tells it from others.
        texts: Any number of texts.
        embed: Embeds texts, a row each.

    Returns:
        A row for each text.
    """
    keys = [hashlib.sha256(f"{name}\0{text}".encode("utf-8", "replace")).digest() for text in texts]
    kept = _opened(cache_dir(), os.getpid())
    found = kept.get(keys)
    if len({len(vector) for vector in found.values()}) > 1:
        found = {}
    missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in found}
    if missing:
        rows = embed(list(missing.values()))
        if found and len(rows[0]) != len(next(iter(found.values()))):
            # A model of that name had vectors of another length.
            found, missing = {}, dict(zip(keys, texts, strict=True))
            rows = embed(list(missing.values()))
        made = dict(zip(missing, rows, strict=True))
        kept.put(made)
        found |= made
    return np.stack([found[key] for key in keys])


class _VectorCache:
    def __init__(self, path: Path) -> None:
        self._lock = threading.Lock()
        self._database: sqlite3.Connection | None = None
        try:
            self._database = open_database(path, _TABLE, timeout_s=2.0)
        except (OSError, sqlite3.Error):
            self._database = None

    def get(self, keys: Sequence[bytes]) -> dict[bytes, NDArray[np.float32]]:
        found: dict[bytes, NDArray[np.float32]] = {}
        with self._lock:
            if self._database is None:
                return found
            try:
                for at in range(0, len(keys), _AT_ONCE):
                    some = keys[at : at + _AT_ONCE]
                    marks = ",".join("?" * len(some))
                    rows = self._database.execute(
                        f"SELECT key, vector FROM vectors WHERE key IN ({marks})", some
                    )
                    found.update((k, np.frombuffer(v, _STORED)) for k, v in rows if not len(v) % 4)
            except sqlite3.Error:
                return {}
        return found

    def put(self, vectors: dict[bytes, NDArray[np.float32]]) -> None:
        rows = [(key, vector.astype(_STORED).tobytes()) for key, vector in vectors.items()]
        with self._lock:
            if self._database is None:
                return
            try:
                self._database.execute("BEGIN IMMEDIATE")
                self._database.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?)", rows)
                self._database.execute("COMMIT")
            except sqlite3.Error:
                if self._database.in_transaction:
                    self._database.execute("ROLLBACK")


@cache
def _opened(folder: Path, _pid: int) -> _VectorCache:
    # A connection must not cross a fork, hence one a process.
    return _VectorCache(folder / "embeddings.sqlite")
