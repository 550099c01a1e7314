"""The file of a bank: one SQLite database with items, their history, words and embeddings."""

from __future__ import annotations

import contextlib
import json
import logging
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from reasoningbank.errors import ReasoningBankError, RecordError, UsageError
from reasoningbank.memory.history import Action, Change
from reasoningbank.memory.item import ItemStatus, MemoryItem
from reasoningbank.retrieval import WordIndex

logger = logging.getLogger(__name__)

#: "RBMB": distinguishes a bank from other databases.
APPLICATION = 0x52424D42
VERSION = 1
#: Seconds to wait for another process that writes.
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
#: Added to older files when they are opened for writing. Operations without a row here were made
#: by a caller, or before the table existed.
_OPERATIONS = """CREATE TABLE IF NOT EXISTS operations (
    operation INTEGER PRIMARY KEY,
    made_by TEXT NOT NULL, -- the part of the program that decided on it
    undoes INTEGER NOT NULL -- the operation that it undoes, or 0
)"""
#: What files without that table say in the reason of a change.
_OLD_UNDO, _OLD_CONSOLIDATION = "undo of change ", "consolidation: "
_REBUILD = "rebuild it from a snapshot with `reasoningbank memory import`"


class Store:
    """A bank's open database, for several threads and beside other processes."""

    def __init__(self, path: Path | None, *, readonly: bool = False) -> None:
        self.path = path
        self.readonly = readonly
        self._lock = threading.RLock()
        try:
            if path is not None and not readonly:
                path.parent.mkdir(parents=True, exist_ok=True)
            self._database = sqlite3.connect(
                # Not mode=ro: a killed process's journal must be rolled back before reading.
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

    @property
    def _where(self) -> str:
        return str(self.path or "the bank in memory")

    # -- transactions ---------------------------------------------------------------------

    @contextlib.contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Hold one state of the bank while reading."""
        with self._transaction("BEGIN") as database:
            yield database

    @contextlib.contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Change the bank: everything done inside, or nothing."""
        with self._transaction("BEGIN IMMEDIATE") as database:
            yield database

    @property
    def in_transaction(self) -> bool:
        """Whether the calling thread is inside a transaction."""
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
                    # The same thread holds a state already; this call is part of it.
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
                if not error.where:
                    error.at(self._where)
                raise

    # -- rows -----------------------------------------------------------------------------

    def item(self, item_id: str) -> MemoryItem | None:
        """Return an item by its whole id."""
        rows = self._rows("SELECT item FROM items WHERE id = ?", item_id)
        return self.parsed(rows[0][0]) if rows else None

    def items(self, status: ItemStatus | None) -> list[MemoryItem]:
        """Return the items of a status, or all, by id."""
        query = "SELECT item FROM items WHERE status = ? OR ? IS NULL ORDER BY id"
        return [self.parsed(text) for (text,) in self._rows(query, status, status)]

    def ids(self, prefix: str = "") -> list[str]:
        """Return the ids that start with a prefix."""
        query = "SELECT id FROM items WHERE substr(id, 1, ?) = ? ORDER BY id"
        return [item_id for (item_id,) in self._rows(query, len(prefix), prefix)]

    def last_change(self) -> int:
        """Return the number of the last change; 0 if there is none."""
        return int(self._rows("SELECT coalesce(max(number), 0) FROM changes")[0][0])

    def changes(self, where: str, values: Sequence[Any]) -> list[Change]:
        """Return the changes that meet an SQL condition, oldest first."""
        with self.reading() as database:
            made_by, undoes, join = "''", "0", ""
            if self._has("operations"):
                made_by, undoes = "coalesce(made_by, '')", "coalesce(undoes, 0)"
                join = "LEFT JOIN operations ON operations.operation = changes.operation "
            rows = database.execute(
                "SELECT number, time, action, item_id, before, after, reason, changes.operation, "
                f"{made_by}, {undoes} FROM changes {join}WHERE {where} ORDER BY number",
                values,
            ).fetchall()
        return [self._change(*row) for row in rows]

    def undone(self) -> dict[int, int]:
        """Return, for each operation that is an undo, the operation that it undoes."""
        undos = self.changes("action = 'undo' AND changes.operation = number", ())
        return {one.number: one.undoes for one in undos if 0 < one.undoes < one.number}

    def reinstated_by(self, item_id: str) -> Change | None:
        """Return the change that made a superseded or retired item active again, if any."""
        # An item with many experiences has as many rows, and each holds the whole item; so read
        # only the status, and stop at the first change of it.
        with self.reading() as database:
            rows = database.execute(
                "SELECT number, json_extract(before, '$.status'), json_extract(after, '$.status') "
                "FROM changes WHERE item_id = ? AND action NOT IN ('merge', 'count') "
                "ORDER BY number DESC",
                (item_id,),
            )
            for number, was, became in rows:
                if was is None or became is None:
                    return None
                if was != became:
                    again = became == "active"
                    return self.changes("number = ?", (number,))[0] if again else None
        return None

    def successors(self) -> list[tuple[str, str]]:
        """Return the id of each superseded item with that of its successor."""
        return self._rows(
            "SELECT id, json_extract(item, '$.superseded_by') AS heir FROM items WHERE heir != ''"
        )

    def operation(self, reason: str, *, made_by: str = "", undoes: int = 0) -> BankOperation:
        """Start an operation inside a writing transaction."""
        return BankOperation(self, self._database, reason, made_by, undoes)

    def parsed(self, text: str) -> MemoryItem:
        """Return an item from its JSON text."""
        try:
            return MemoryItem.from_json(json.loads(text))
        except (ValueError, ReasoningBankError) as error:
            what = f"an item of the bank is damaged ({error})"
            raise RecordError(
                what, where=self._where, hint=_REBUILD, code="damaged-item"
            ) from error

    def _change(
        self,
        number: int,
        time: str,
        action: Action,
        item_id: str,
        before: str | None,
        after: str | None,
        reason: str,
        operation: int,
        made_by: str,
        undoes: int,
    ) -> Change:
        made_by, undoes = _cause(action, reason, made_by, undoes)
        states = (self._optional(before), self._optional(after))
        return Change(number, time, action, item_id, *states, reason, operation, made_by, undoes)

    def _optional(self, text: str | None) -> MemoryItem | None:
        return None if text is None else self.parsed(text)

    def _rows(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        with self.reading() as database:
            return database.execute(query, values).fetchall()

    # -- opening --------------------------------------------------------------------------

    def _prepare(self) -> None:
        try:
            if not self._is_bank():
                if self.readonly and self.path is not None:
                    what = "is empty, so it is not a memory bank"
                    raise RecordError(what, where=str(self.path), hint=_REBUILD, code="not-a-bank")
                self._database.execute("BEGIN IMMEDIATE")
                # Another process may have created it in between.
                if not self._is_bank():
                    for statement in TABLES:
                        self._database.execute(statement)
                self._database.execute("COMMIT")
            lost = self._lost_words()
            place = self._database
            if self.readonly:
                self._database.execute("PRAGMA query_only = 1")
                if lost:
                    place = sqlite3.connect(
                        ":memory:", isolation_level=None, check_same_thread=False
                    )
            self.words = WordIndex(place, "words")
            if lost:
                self._fill_words()
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
                code="newer-bank",
                version=version,
            )
        if application != APPLICATION and tables:
            raise RecordError(
                "is a database, but not a memory bank",
                where=str(self.path),
                hint="name another file",
                code="not-a-bank",
            )
        return bool(tables)

    def _has(self, table: str) -> bool:
        query = "SELECT 1 FROM sqlite_master WHERE name = ?"
        return self._database.execute(query, (table,)).fetchone() is not None

    def _lost_words(self) -> bool:
        first = "SELECT rowid FROM words LIMIT 1"
        if self._has("words") and self._database.execute(first).fetchone():
            return False
        active = self._database.execute("SELECT 1 FROM items WHERE status = 'active' LIMIT 1")
        return active.fetchone() is not None

    def _fill_words(self) -> None:
        """Rebuild the full-text index from the active items."""
        with self.reading() if self.readonly else self.writing() as database:
            rows = database.execute("SELECT key, item FROM items WHERE status = 'active'")
            # Two processes may do so at once: equal rows replace each other.
            self.words.add([(key, self.parsed(text).lexical_text) for key, text in rows])
        logger.warning("%s: the full-text index was lost, and has been rebuilt", self.path)

    def _failed(self, error: Exception) -> RecordError | UsageError:
        said = (str(error).splitlines() or [""])[0]
        name = getattr(error, "sqlite_errorname", None) or ""
        where = self._where
        if self.path is not None and self.path.is_dir():
            what = "is a folder, not a memory bank"
            return UsageError(what, where=where, hint="name a file", code="is-folder")
        if name == "SQLITE_NOTADB":
            hint = "name another file; JSON lines are read by `reasoningbank memory import`"
            what = "is not a memory bank, or is damaged"
            return RecordError(what, where=where, hint=hint, code="not-a-bank")
        if name.startswith("SQLITE_CORRUPT") or "vtable" in said:  # SQLite has no code for it
            what = f"the memory bank is damaged ({said})"
            return RecordError(what, where=where, hint=_REBUILD, code="damaged-bank")
        if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
            what, hint = "another process is writing to it", "try again when it is done"
            return RecordError(what, where=where, hint=hint, code="bank-busy")
        if isinstance(error, sqlite3.ProgrammingError) and not name:
            return UsageError("the memory bank was closed", where=where, code="bank-closed")
        hint = "check that the folder exists, is writable and has space"
        what = f"cannot be read or written ({said})"
        return RecordError(what, where=where, hint=hint, code="bank-unreadable", sqlite=name)


class BankOperation:
    """Changes that are made together in one transaction, and undone together."""

    def __init__(
        self, store: Store, database: sqlite3.Connection, reason: str, made_by: str, undoes: int
    ) -> None:
        self._store = store
        self._database = database
        self._reason = reason
        self._cause = (made_by, undoes)
        self._time = datetime.now(UTC).isoformat(timespec="seconds")
        self._first = 0
        self._touched: dict[int, MemoryItem | None] = {}

    def change(self, action: Action, before: MemoryItem | None, after: MemoryItem | None) -> None:
        """Set an item from one state to another and record it; equal states are no change."""
        if before == after:
            return
        item_id = after.id if after else before.id if before else ""
        numbered = self._database.execute(
            "INSERT INTO changes(operation, time, action, item_id, before, after, reason) "
            "VALUES (?, ?, ?, ?, ?, ?, ?)",
            (self._first, self._time, action, item_id, _json(before), _json(after), self._reason),
        )
        if not self._first:
            self._first = numbered.lastrowid or 0
            self._database.execute(
                "UPDATE changes SET operation = number WHERE number = ?", (self._first,)
            )
            if any(self._cause):
                self._database.execute(_OPERATIONS)
                self._database.execute(
                    "INSERT INTO operations VALUES (?, ?, ?)", (self._first, *self._cause)
                )
        if after is None:
            self._drop(item_id)
        else:
            self._save(after)

    def finish(self) -> Change | None:
        """Update the full-text index; return the first change, if there was any."""
        self._store.words.remove(self._touched)
        self._store.words.add(
            (key, item.lexical_text)
            for key, item in self._touched.items()
            if item is not None and item.status == "active"
        )
        if not self._first:
            return None
        return self._store.changes("number = ?", (self._first,))[0]

    def _save(self, item: MemoryItem) -> None:
        ((key,),) = self._database.execute(
            "INSERT INTO items(id, status, src, title, item) VALUES (?, ?, ?, ?, ?) "
            "ON CONFLICT(id) DO UPDATE SET status = excluded.status, item = excluded.item "
            "RETURNING key",
            (item.id, item.status, item.src, _plain(item.title), _json(item)),
        ).fetchall()
        self._touched[key] = item

    def _drop(self, item_id: str) -> None:
        rows = self._database.execute(
            "DELETE FROM items WHERE id = ? RETURNING key", (item_id,)
        ).fetchall()
        self._touched.update((key, None) for (key,) in rows)
        self._database.execute("DELETE FROM embeddings WHERE item_id = ?", (item_id,))


def _cause(action: Action, reason: str, made_by: str, undoes: int) -> tuple[str, int]:
    """Return who made a change and what it undoes; for older files from its reason."""
    if made_by or undoes:
        return made_by, undoes
    if action == "undo":
        of = reason.removeprefix(_OLD_UNDO)
        return "", int(of) if of.isdecimal() else 0
    return ("consolidation" if reason.startswith(_OLD_CONSOLIDATION) else ""), 0


def _json(item: MemoryItem | None) -> str | None:
    if item is None:
        return None
    text = json.dumps(item.to_json(), ensure_ascii=False)
    # Models write lone surrogates, which UTF-8 cannot encode.
    return text if _plain(text) == text else json.dumps(item.to_json())


def _plain(text: str) -> str:
    return text.encode("utf-8", "replace").decode()
