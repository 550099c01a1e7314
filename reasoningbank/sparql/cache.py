"""Answers of public endpoints, kept on disk so that a run that is repeated asks nobody twice."""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import threading
import time
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa

from reasoningbank.cache import open_database
from reasoningbank.errors import UsageError
from reasoningbank.sparql.results import BooleanResult, GraphResult, Result, TableResult
from reasoningbank.spill import is_on_disk

__all__ = ["AnswerCache", "open_cache"]

_TABLES = """
PRAGMA journal_mode=WAL;
CREATE TABLE IF NOT EXISTS answers (
    key TEXT PRIMARY KEY, said TEXT NOT NULL, content TEXT NOT NULL, at REAL NOT NULL);
CREATE TABLE IF NOT EXISTS contents (hash TEXT PRIMARY KEY, body BLOB NOT NULL);
"""


class AnswerCache:
    """Results by endpoint, query and bounds; equal content is stored once.

    A cache that another process has locked answers nothing and keeps nothing, and an answer that
    is not what was kept is no answer: then the endpoint is asked. A broken file is set aside.

    Args:
        file: The SQLite file; its folder is made.

    Raises:
        UsageError: The file cannot be opened as a cache.

    Examples:
        >>> import tempfile
        >>> folder = tempfile.TemporaryDirectory()
        >>> cache = AnswerCache(Path(folder.name, "answers.sqlite"))
        >>> cache.put("k", BooleanResult(True)); cache.get("k", max_age_s=60).value
        True
        >>> cache.get("other", max_age_s=60) is None, cache.get("k", max_age_s=0) is None
        (True, True)
        >>> cache.close(); folder.cleanup()
    """

    def __init__(self, file: Path) -> None:
        self._lock = threading.Lock()
        try:
            self._db = open_database(file, _TABLES, timeout_s=5.0)
        except (OSError, sqlite3.Error) as error:
            raise UsageError(
                f"the cache cannot be opened: {error}",
                where=str(file),
                hint="name a file that can be written, or set no cache",
            ) from None

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._db.close()

    def get(self, key: str, *, max_age_s: float, source: str = "") -> Result | None:
        """Return the result kept under a key, if it is younger than `max_age_s` seconds.

        Args:
            key: See `key_of`.
            max_age_s: Seconds after which a result is no longer taken.
            source: Whom the result is attributed to.
        """
        row = self._row(
            "SELECT said, body, hash FROM answers JOIN contents ON content = hash "
            "WHERE key = ? AND at > ?",
            (key, time.time() - max_age_s),
        )
        if row is None:
            return None
        try:
            said, body, content = row
            return _read(said, body, content, source)
        except (ValueError, KeyError, TypeError, OSError, pa.ArrowException):
            # Not what was written: a bad disk, or another program. The endpoint knows.
            return None

    def put(self, key: str, result: Result) -> None:
        """Keep a result under a key, unless it is too large for memory."""
        if not isinstance(result, BooleanResult) and is_on_disk(result.table):
            return
        said, body = _written(result)
        content = hashlib.sha256(body).hexdigest()
        try:
            with self._lock, self._db:
                self._db.execute("BEGIN")
                self._db.execute("INSERT OR REPLACE INTO contents VALUES (?, ?)", (content, body))
                self._db.execute(
                    "INSERT OR REPLACE INTO answers VALUES (?, ?, ?, ?)",
                    (key, json.dumps(said), content, time.time()),
                )
        except sqlite3.Error:
            return

    @staticmethod
    def key_of(
        address: str,
        query: str,
        form: str,
        rows: int,
        max_bytes: int,
        headers: Mapping[str, str] | None = None,
    ) -> str:
        """Return the key of a query as it is sent, with the bounds that its result has.

        What one credential may see is not for another: the headers are part of the key.
        """
        text = json.dumps([address, query, form, rows, max_bytes, sorted((headers or {}).items())])
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()

    def _row(self, sql: str, values: tuple[Any, ...]) -> tuple[Any, ...] | None:
        try:
            with self._lock:
                row: tuple[Any, ...] | None = self._db.execute(sql, values).fetchone()
                return row
        except sqlite3.Error:
            return None


def open_cache(file: Path) -> AnswerCache:
    """Return the cache that all clients of this process share for a file."""
    return _opened(file, os.getpid())


@lru_cache(maxsize=16)
def _opened(file: Path, _process: int) -> AnswerCache:
    # A connection does not survive a fork, so each process has its own.
    return AnswerCache(file)


def _written(result: Result) -> tuple[dict[str, Any], bytes]:
    if isinstance(result, BooleanResult):
        return {"form": "boolean"}, b"1" if result.value else b"0"
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_stream(sink, result.table.schema, options=options) as writer:
        writer.write_table(result.table)
    said = {
        "form": "graph" if isinstance(result, GraphResult) else "table",
        "n_rows": result.n_rows,
        "truncated": result.truncated,
    }
    return said, sink.getvalue().to_pybytes()


def _read(text: str, body: bytes, content: str, source: str) -> Result:
    said: dict[str, Any] = json.loads(text)
    if hashlib.sha256(body).hexdigest() != content:
        raise ValueError("the content is not what was kept")
    if said["form"] == "boolean":
        return BooleanResult(body == b"1", source=source)
    table = pa.ipc.open_stream(body).read_all()
    if said["n_rows"] != table.num_rows:
        raise ValueError("the number of rows is not what was kept")
    kind = GraphResult if said["form"] == "graph" else TableResult
    return kind(table, said["n_rows"], said["truncated"], source=source)
