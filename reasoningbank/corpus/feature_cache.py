"""Query features kept on disk by content hash, shared by all processes of a user."""

from __future__ import annotations

import json
import os
import sqlite3
import threading
from functools import cache
from pathlib import Path
from typing import Any

from reasoningbank.cache import cache_dir

__all__ = ["FeatureCache"]

_TABLE = "CREATE TABLE IF NOT EXISTS features (key TEXT PRIMARY KEY, value TEXT NOT NULL)"


class FeatureCache:
    """A small SQLite file; where it cannot be written, every look-up simply misses.

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
            path.parent.mkdir(parents=True, exist_ok=True)
            self._db = sqlite3.connect(
                path, timeout=2.0, isolation_level=None, check_same_thread=False
            )
            # Losing the last entries in a power cut costs 18 ms each, syncing more.
            self._db.execute("PRAGMA synchronous=OFF")
            self._db.execute(_TABLE)
        except (OSError, sqlite3.Error):
            self._db = None

    @classmethod
    def default(cls) -> FeatureCache:
        """Return the cache of this user, under ``REASONINGBANK_CACHE`` if that is set."""
        return _opened(cache_dir(), os.getpid())

    def get(self, key: str) -> dict[str, Any] | None:
        """Return what is kept under a key."""
        row = self._run("SELECT value FROM features WHERE key = ?", (key,))
        return json.loads(row[0]) if row else None

    def put(self, key: str, value: dict[str, Any]) -> None:
        """Keep a JSON-able value under a key."""
        self._run("INSERT OR REPLACE INTO features VALUES (?, ?)", (key, json.dumps(value)))

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


@cache
def _opened(folder: Path, _pid: int) -> FeatureCache:
    # A connection must not cross a fork, hence one a process.
    return FeatureCache(folder / "query-features.sqlite")
