"""Query features kept on disk by content hash, shared by all processes of a user."""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import threading
from functools import cache
from pathlib import Path
from typing import Any

from reasoningbank.cache import cache_dir, open_database

__all__ = ["FeatureCache"]

# Losing the last entries in a power cut costs 18 ms each, syncing more.
_TABLE = """
PRAGMA synchronous=OFF;
CREATE TABLE IF NOT EXISTS features (key TEXT PRIMARY KEY, value TEXT NOT NULL);
"""


class FeatureCache:
    """A small SQLite file; where it cannot be written, every look-up simply misses.

    Each value is kept with a hash of it, since features decide which tasks are drawn: one that
    was changed on the disk misses too. A broken file is set aside.

    Args:
        path: The file; its folder is made.

    Examples:
        >>> import tempfile
        >>> folder = tempfile.TemporaryDirectory()
        >>> kept = FeatureCache(Path(folder.name, "features.sqlite"))
        >>> kept.put("k", {"score": 3.0}); kept.get("k"), kept.get("other")
        ({'score': 3.0}, None)
        >>> kept.close(); folder.cleanup()
    """

    def __init__(self, path: Path) -> None:
        self._lock = threading.Lock()
        self._db: sqlite3.Connection | None = None
        try:
            self._db = open_database(path, _TABLE, timeout_s=2.0)
        except (OSError, sqlite3.Error):
            self._db = None

    @classmethod
    def default(cls) -> FeatureCache:
        """Return the cache of this user, under ``REASONINGBANK_CACHE`` if that is set."""
        return _opened(cache_dir(), os.getpid())

    def get(self, key: str) -> dict[str, Any] | None:
        """Return what is kept under a key."""
        row = self._run("SELECT value FROM features WHERE key = ?", (key,))
        digest, _, text = row[0].partition(" ") if row else ("", "", "")
        return json.loads(text) if text and digest == _digest(key, text) else None

    def put(self, key: str, value: dict[str, Any]) -> None:
        """Keep a JSON-able value under a key."""
        text = json.dumps(value)
        self._run(
            "INSERT OR REPLACE INTO features VALUES (?, ?)", (key, f"{_digest(key, text)} {text}")
        )

    def close(self) -> None:
        """Close the file; later look-ups miss."""
        with self._lock:
            if self._db is not None:
                self._db.close()
                self._db = None

    def _run(self, statement: str, values: tuple[str, ...]) -> tuple[str, ...] | None:
        with self._lock:
            if self._db is None:
                return None
            try:
                row: tuple[str, ...] | None = self._db.execute(statement, values).fetchone()
            except sqlite3.Error:
                return None
            return row


def _digest(key: str, text: str) -> str:
    return hashlib.sha256(f"{key} {text}".encode()).hexdigest()[:16]


@cache
def _opened(folder: Path, _pid: int) -> FeatureCache:
    # A connection must not cross a fork, hence one a process.
    return FeatureCache(folder / "query-features.sqlite")
