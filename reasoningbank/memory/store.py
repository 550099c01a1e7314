"""The file of a bank: one SQLite database that anyone can open."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path

from reasoningbank.errors import RecordError, UsageError
from reasoningbank.retrieval import WordIndex

__all__ = ["Store"]

#: "RBMB": tells a bank from other people's databases.
APPLICATION = 0x52424D42
VERSION = 1
#: How long to wait for another process that writes.
WAIT_S = 30.0

TABLES = (
    """CREATE TABLE items (
        key INTEGER PRIMARY KEY AUTOINCREMENT,
        id TEXT NOT NULL UNIQUE,
        status TEXT NOT NULL,
        src TEXT NOT NULL,
        title TEXT NOT NULL,
        item TEXT NOT NULL -- the whole item as JSON
    )""",
    """CREATE TABLE changes (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        operation INTEGER NOT NULL, -- first number of what was changed together
        time TEXT NOT NULL,
        action TEXT NOT NULL,
        item_id TEXT NOT NULL,
        before TEXT, -- the whole item as JSON
        after TEXT,
        reason TEXT NOT NULL
    )""",
    "CREATE INDEX changes_of_item ON changes(item_id)",
    "CREATE INDEX changes_together ON changes(operation)",
    """CREATE TABLE embeddings (
        item_id TEXT NOT NULL,
        embedder TEXT NOT NULL,
        vector BLOB NOT NULL, -- little-endian float16, length 1
        PRIMARY KEY (item_id, embedder)
    ) WITHOUT ROWID""",
    WordIndex.schema("words"),
    f"PRAGMA application_id = {APPLICATION}",
    f"PRAGMA user_version = {VERSION}",
)


class Store:
    """A bank's database, open; for several threads, beside other processes.

    A change is written whole or not at all, also when the process is killed in the middle: that
    is SQLite's rollback journal, which leaves one file and can be read from a folder that nobody
    may write to.

    Args:
        path: The file, made where there is none; None keeps everything in memory.
        readonly: Whether the file is to stay as it is, whatever is asked for.

    Attributes:
        path: The file.
        readonly: Whether it stays as it is.
        words: The index of the active items' words.
        words_lost: Whether that index was lost, so that it has to be filled again; who only reads
            fills one of his own in memory.

    Raises:
        RecordError: The file is damaged, is no memory bank, or cannot be opened; or it is empty
            and to be read only.
    """

    def __init__(self, path: Path | None, *, readonly: bool = False) -> None:
        self.path = path
        self.readonly = readonly
        self._lock = threading.RLock()
        try:
            if path is not None and not readonly:
                path.parent.mkdir(parents=True, exist_ok=True)
            self._database = sqlite3.connect(
                # Not mode=ro: what a killed process left half done must be rolled back to be read.
                f"{path.absolute().as_uri()}?mode=rw" if path and readonly else path or ":memory:",
                timeout=WAIT_S,
                isolation_level=None,
                check_same_thread=False,
                uri=readonly,
            )
        except (OSError, sqlite3.Error) as error:
            raise self._failed(error) from error
        try:
            self._prepare()
        except BaseException:
            self._database.close()
            raise

    @contextlib.contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Hold one state of the bank while reading."""
        with self._transaction("BEGIN") as database:
            yield database

    @contextlib.contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Change the bank: all that is done inside, or nothing."""
        with self._transaction("BEGIN IMMEDIATE") as database:
            yield database

    @property
    def held(self) -> bool:
        """Whether the thread that asks is inside of a transaction."""
        with self._lock:
            return self._database.in_transaction

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._database.close()

    @contextlib.contextmanager
    def _transaction(self, begin: str) -> Iterator[sqlite3.Connection]:
        with self._lock:
            try:
                if self._database.in_transaction:
                    # Called while the same thread holds a state: it is part of that.
                    yield self._database
                    return
                self._database.execute(begin)
                try:
                    yield self._database
                    self._database.execute("COMMIT")
                except BaseException:
                    self.words.forget()
                    if self._database.in_transaction:
                        self._database.execute("ROLLBACK")
                    raise
            except sqlite3.Error as error:
                raise self._failed(error) from error
            except RecordError as error:
                where = error.where or str(self.path)
                raise RecordError(error.what, where=where, hint=error.hint) from error

    def _prepare(self) -> None:
        try:
            if not self._is_bank():
                if self.readonly and self.path is not None:
                    hint = "make it anew from a snapshot with `reasoningbank memory import`"
                    raise RecordError(
                        "is empty, so it is no memory bank", where=str(self.path), hint=hint
                    )
                self._database.execute("BEGIN IMMEDIATE")
                # Another process may have made it in between.
                if not self._is_bank():
                    for statement in TABLES:
                        self._database.execute(statement)
                self._database.execute("COMMIT")
            self.words_lost = self._lacks_words()
            place = self._database
            if self.readonly:
                self._database.execute("PRAGMA query_only = 1")
                if self.words_lost:
                    place = sqlite3.connect(
                        ":memory:", isolation_level=None, check_same_thread=False
                    )
            self.words = WordIndex(place, "words")
        except sqlite3.Error as error:
            raise self._failed(error) from error

    def _is_bank(self) -> bool:
        (application,) = self._database.execute("PRAGMA application_id").fetchone()
        (version,) = self._database.execute("PRAGMA user_version").fetchone()
        (tables,) = self._database.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if application == APPLICATION and version > VERSION:
            raise RecordError(
                f"was written by a newer version of the package (format {version})",
                where=str(self.path),
                hint="upgrade reasoningbank",
            )
        if application != APPLICATION and tables:
            raise RecordError(
                "is a database, but no memory bank", where=str(self.path), hint="name another file"
            )
        return bool(tables)

    def _lacks_words(self) -> bool:
        made = self._database.execute("SELECT 1 FROM sqlite_master WHERE name = 'words'")
        if made.fetchone() and self._database.execute("SELECT rowid FROM words LIMIT 1").fetchone():
            return False
        active = self._database.execute("SELECT 1 FROM items WHERE status = 'active' LIMIT 1")
        return active.fetchone() is not None

    def _failed(self, error: Exception) -> RecordError | UsageError:
        said = (str(error).splitlines() or [""])[0]
        where = str(self.path or "the bank in memory")
        if self.path is not None and self.path.is_dir():
            return UsageError("is a folder, not a memory bank", where=where, hint="name a file")
        if "not a database" in said:
            hint = "name another file; JSON lines are read by `reasoningbank memory import`"
            return RecordError("is no memory bank, or is damaged", where=where, hint=hint)
        if any(word in said for word in ("malformed", "corrupt", "vtable")):
            hint = "make it anew from a snapshot with `reasoningbank memory import`"
            return RecordError(f"the memory bank is damaged ({said})", where=where, hint=hint)
        if "locked" in said:
            hint = "try again when it is done"
            return RecordError("another process is writing to it", where=where, hint=hint)
        if "closed" in said:
            return UsageError("the memory bank was closed", where=where)
        hint = "check that the folder is there, may be written and has space"
        return RecordError(f"cannot be read or written ({said})", where=where, hint=hint)
