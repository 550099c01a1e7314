"""The on-disk cache: where the package keeps what it fetches or computes once."""

from __future__ import annotations

import functools
import hashlib
import logging
import os
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from platformdirs import user_cache_path

from reasoningbank.errors import RecordError, UsageError

logger = logging.getLogger(__name__)

#: A database and the files that SQLite keeps beside it.
_PARTS = ("", "-wal", "-shm")
# Losing the last entries in a power cut is cheap; syncing each is not.
_TABLE = """
PRAGMA synchronous=OFF;
CREATE TABLE IF NOT EXISTS entries (key TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
SELECT 1 FROM entries LIMIT 1;
"""
#: SQLite always accepts this many values in a statement.
_AT_ONCE = 900
_DIGEST_BYTES = 8


def cache_dir() -> Path:
    """Return the cache folder: ``REASONINGBANK_CACHE``, or the user's cache."""
    chosen = os.environ.get("REASONINGBANK_CACHE")
    return Path(chosen).expanduser() if chosen else user_cache_path("reasoningbank")


@contextmanager
def writing(path: Path, hint: str = "", code: str = "") -> Iterator[None]:
    """Raise a `RecordError` if a file cannot be written in the block."""
    try:
        yield
    except OSError as error:
        what = f"cannot be written ({error.strerror or error})"
        hint = hint or "free space or choose another folder"
        raise RecordError(what, where=str(path), hint=hint, code=code) from error


def write_bytes_atomically(
    path: Path, data: bytes, *, durable: bool = True, hint: str = "", code: str = ""
) -> None:
    """Write a file whole or not at all, so that a reader sees the old file or the new one."""
    # `tempfile` would create a file that colleagues on a shared disk cannot read.
    # The name of the file may have the greatest length already.
    temporary = path.with_name(f".{path.name[:50]}.{os.getpid()}.{threading.get_ident()}.tmp")
    with writing(path, hint, code):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with temporary.open("wb") as file:
                file.write(data)
                if durable:
                    file.flush()
                    os.fsync(file.fileno())
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)


class DiskCache:
    """Bytes by key in a SQLite file, shared by all threads and processes of a user."""

    def __init__(self, file: Path, *, required: bool = False) -> None:
        self._lock = threading.Lock()
        self._file = file
        self._database: sqlite3.Connection | None = None
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            try:
                self._database = _opened(file)
            except sqlite3.DatabaseError as error:
                # A locked file, or one that is not ours to open, says nothing about its content.
                if isinstance(error, sqlite3.OperationalError):
                    raise
                self._database = _anew(file, error)
        except (OSError, sqlite3.Error) as error:
            if required:
                what = f"the cache cannot be opened: {error}"
                hint = "name a writable file, or set no cache"
                raise UsageError(what, where=str(file), hint=hint) from None
            logger.warning("%s: cannot be used as a cache (%s)", file, error)

    @staticmethod
    def of_user(name: str) -> DiskCache:
        """Return the cache called `name` in `cache_dir`, opened once per process."""
        return DiskCache.shared(cache_dir() / f"{name}.sqlite")

    @staticmethod
    def shared(file: Path, *, required: bool = False) -> DiskCache:
        """Return the cache of a file, opened once per process."""
        return _opened_cache(file, required, os.getpid())

    def get(self, keys: Iterable[str]) -> dict[str, bytes]:
        """Return the entries that exist."""
        wanted = list(keys)
        found: dict[str, bytes] = {}
        with self._using() as database:
            if database is None:
                return found
            for at in range(0, len(wanted), _AT_ONCE):
                some = wanted[at : at + _AT_ONCE]
                marks = ",".join("?" * len(some))
                sql = f"SELECT key, value FROM entries WHERE key IN ({marks})"
                found.update(database.execute(sql, some))
        return {
            key: kept[_DIGEST_BYTES:]
            for key, kept in found.items()
            if isinstance(kept, bytes)
            and kept[:_DIGEST_BYTES] == _digest(key, kept[_DIGEST_BYTES:])
        }

    def put(self, values: Mapping[str, bytes]) -> None:
        """Keep values under their keys, replacing what is there."""
        rows = [(key, _digest(key, value) + value) for key, value in values.items()]
        with self._using() as database:
            if database is not None:
                database.execute("BEGIN IMMEDIATE")
                database.executemany("INSERT OR REPLACE INTO entries VALUES (?, ?)", rows)
                database.execute("COMMIT")

    @contextmanager
    def _using(self) -> Iterator[sqlite3.Connection | None]:
        """Give up a damaged file, which is set aside when it is next opened."""
        with self._lock:
            try:
                yield self._database
            except sqlite3.OperationalError:
                # A locked or full file may serve the next time.
                if self._database is not None and self._database.in_transaction:
                    self._database.execute("ROLLBACK")
            except sqlite3.Error as error:
                logger.warning("%s: cannot be used as a cache (%s)", self._file, error)
                self._database = None

    def close(self) -> None:
        """Close the file; later look-ups find nothing."""
        with self._lock:
            if self._database is not None:
                self._database.close()
                self._database = None


def kept(name: str, key: str, make: Callable[[], str]) -> str:
    """Return a text from the user's cache called `name`; if it is not there, make it.

    It is kept unless it is empty: what failed here may succeed elsewhere.
    """
    cache = DiskCache.of_user(name)
    if (found := cache.get([key]).get(key)) is not None:
        return found.decode()
    if made := make():
        cache.put({key: made.encode()})
    return made


def _digest(key: str, value: bytes) -> bytes:
    return hashlib.sha256(key.encode() + b" " + value).digest()[:_DIGEST_BYTES]


@functools.cache
def _opened_cache(file: Path, required: bool, _pid: int) -> DiskCache:
    # A connection must not cross a fork, hence one per process.
    return DiskCache(file, required=required)


def _anew(file: Path, error: sqlite3.Error) -> sqlite3.Connection:
    """Set a damaged cache aside and open a new one; a file of another name may not be ours."""
    if file.suffix != ".sqlite":
        raise error
    aside = file.with_name(f"{file.name}.damaged")
    logger.warning("%s: %s; renamed to %s and started anew", file, error, aside.name)
    for part in _PARTS:
        damaged = file.with_name(file.name + part)
        if damaged.exists():
            damaged.replace(aside.with_name(aside.name + part))
    return _opened(file)


def _opened(file: Path) -> sqlite3.Connection:
    database = sqlite3.connect(file, timeout=2.0, isolation_level=None, check_same_thread=False)
    try:
        database.executescript(_TABLE)
    except sqlite3.Error:
        database.close()
        raise
    return database
