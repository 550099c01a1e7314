"""The file of a bank: one SQLite database with items, their history, words and embeddings.

Every change is a row of the history, from which `undo` takes back a whole operation.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
import threading
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from reasoningbank.errors import ReasoningBankError, RecordError, UsageError
from reasoningbank.memory.item import MemoryItem, encodable
from reasoningbank.retrieval import WordIndex

#: "RBMB": distinguishes a bank from other databases.
APPLICATION = 0x52424D42
VERSION = 1
#: Seconds to wait for another process that writes.
WAIT_S = 30.0

#: The statements that create a bank.
TABLES = (
    *Path(__file__).with_name("bank.sql").read_text("utf-8").split(";")[:-1],
    WordIndex.SCHEMA,
    f"PRAGMA application_id = {APPLICATION}",
    f"PRAGMA user_version = {VERSION}",
)
_REBUILD = "rebuild it from a snapshot with `reasoningbank memory import`"


#: add: a new item. merge: further evidence for an item. replace: an item was rewritten.
#: supersede, retire, restore: a new status. count: outcomes of trials. undo: a change was undone.
Action = Literal["add", "merge", "replace", "supersede", "retire", "restore", "count", "undo"]


@dataclass(frozen=True)
class Change:
    """One row of a bank's history."""

    number: int  #: Position in the history, from 1
    time: str  #: ISO 8601 time in UTC
    action: Action
    item_id: str
    before: MemoryItem | None  #: The item before; None if it did not exist
    after: MemoryItem | None  #: The item after; None if it no longer exists
    reason: str  #: Why, in the caller's words
    operation: int  #: Number of the first change of the operation; its changes are undone together
    #: The part of the program that decided on the change, e.g. ``consolidation``; empty for a
    #: caller's own change.
    made_by: str = ""
    undoes: int = 0  #: The operation that an undo takes back; 0 for any other change


class Store:
    """A bank's open database, for several threads and beside other processes."""

    def __init__(self, path: Path | None, *, readonly: bool = False) -> None:
        self.path = path
        self.readonly = readonly
        self._where = str(path or "the bank in memory")
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
        except BaseException as error:
            self._database.close()
            if isinstance(error, sqlite3.Error):
                raise self._failed(error) from error
            raise

    # -- transactions ---------------------------------------------------------------------

    def reading(self) -> AbstractContextManager[sqlite3.Connection]:
        """Hold one state of the bank while reading."""
        return self._transaction("BEGIN")

    def writing(self) -> AbstractContextManager[sqlite3.Connection]:
        """Change the bank: everything done inside, or nothing."""
        return self._transaction("BEGIN IMMEDIATE")

    @property
    def in_transaction(self) -> bool:
        with self._lock:
            return self._database.in_transaction

    def close(self) -> None:
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

    @contextlib.contextmanager
    def changing(
        self, reason: str, *, made_by: str = "", undoes: int = 0
    ) -> Iterator[BankOperation]:
        """Make changes in one transaction, which are undone together."""
        with self.writing() as database:
            operation = BankOperation(database, reason, made_by, undoes)
            yield operation
            self.words.remove(operation.touched)
            self.words.add(
                (key, item.lexical_text)
                for key, item in operation.touched.items()
                if item is not None and item.status == "active"
            )

    # -- rows -----------------------------------------------------------------------------

    def item(self, item_id: str) -> MemoryItem | None:
        return next(iter(self.items("id = ?", item_id)), None)

    def items(self, where: str, *values: Any) -> list[MemoryItem]:
        rows = self.rows(f"SELECT item FROM items WHERE {where}", *values)
        return [self.parsed(text) for (text,) in rows]

    def ids(self, prefix: str = "") -> list[str]:
        # They are hexadecimal.
        query = "SELECT id FROM items WHERE id BETWEEN ? AND ? ORDER BY id"
        return [item_id for (item_id,) in self.rows(query, prefix, f"{prefix}g")]

    def last_change(self) -> int:
        """Return the number of the last change; 0 if there is none."""
        return int(self.rows("SELECT coalesce(max(number), 0) FROM changes")[0][0])

    def changes(self, where: str, *values: Any) -> list[Change]:
        """Return the changes that meet an SQL condition, oldest first."""
        rows = self.rows(
            "SELECT number, time, action, item_id, before, after, reason, changes.operation, "
            "coalesce(made_by, ''), coalesce(undoes, 0) FROM changes "
            "LEFT JOIN operations ON operations.operation = changes.operation "
            f"WHERE {where} ORDER BY number",
            *values,
        )
        found = []
        for number, time, action, item_id, before, after, *rest in rows:
            was, is_now = (None if text is None else self.parsed(text) for text in (before, after))
            found.append(Change(number, time, action, item_id, was, is_now, *rest))
        return found

    def parsed(self, text: str) -> MemoryItem:
        try:
            return MemoryItem.from_json(json.loads(text))
        except (ValueError, ReasoningBankError) as error:
            what = f"an item of the bank is damaged ({error})"
            raise self._error("damaged-item", what, _REBUILD) from error

    def rows(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        with self.reading() as database:
            return database.execute(query, values).fetchall()

    # -- opening --------------------------------------------------------------------------

    def _prepare(self) -> None:
        database = self._database
        if not self._is_bank():
            if self.readonly and self.path is not None:
                raise self._error("not-a-bank", "is empty, so it is not a memory bank", _REBUILD)
            database.execute("BEGIN IMMEDIATE")
            # Another process may have created it in between.
            if not self._is_bank():
                for statement in TABLES:
                    database.execute(statement)
            database.execute("COMMIT")
        self.words = WordIndex(database)
        if self.readonly:
            database.execute("PRAGMA query_only = 1")

    def _is_bank(self) -> bool:
        """Return whether the file is a bank; False if it is empty."""
        application, version, tables = self._database.execute(
            "SELECT application_id, user_version, (SELECT count(*) FROM sqlite_master) "
            "FROM pragma_application_id, pragma_user_version"
        ).fetchone()
        if application == APPLICATION and version > VERSION:
            what = f"was written by a newer version of the package (format {version})"
            raise self._error("newer-bank", what, "upgrade reasoningbank", version=version)
        if application != APPLICATION and tables:
            what, hint = "is a database, but not a memory bank", "name another file"
            raise self._error("not-a-bank", what, hint)
        return bool(tables)

    def _error(self, code: str, what: str, hint: str, **fields: object) -> RecordError:
        return RecordError(what, where=self._where, hint=hint, code=code, **fields)

    def _failed(self, error: Exception) -> RecordError | UsageError:
        said = (str(error).splitlines() or [""])[0]
        name = getattr(error, "sqlite_errorname", None) or ""
        if self.path is not None and self.path.is_dir():
            what = "is a folder, not a memory bank"
            return UsageError(what, where=self._where, hint="name a file", code="is-folder")
        if isinstance(error, sqlite3.ProgrammingError) and not name:
            return UsageError("the memory bank was closed", where=self._where, code="bank-closed")
        if name == "SQLITE_NOTADB":
            hint = "name another file; JSON lines are read by `reasoningbank memory import`"
            return self._error("not-a-bank", "is not a memory bank, or is damaged", hint)
        if name.startswith("SQLITE_CORRUPT") or "vtable" in said:  # SQLite has no code for it
            return self._error("damaged-bank", f"the memory bank is damaged ({said})", _REBUILD)
        if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
            what = "another process is writing to it"
            return self._error("bank-busy", what, "try again when it is done")
        what = f"cannot be read or written ({said})"
        hint = "check that the folder exists, is writable and has space"
        return self._error("bank-unreadable", what, hint, sqlite=name)


@dataclass
class BankOperation:
    """Changes made in one transaction, from number `first`, and undone together."""

    database: sqlite3.Connection
    reason: str
    made_by: str
    undoes: int
    first: int = 0
    touched: dict[int, MemoryItem | None] = field(default_factory=dict)
    time: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))

    def change(self, action: Action, before: MemoryItem | None, after: MemoryItem | None) -> None:
        """Set an item from one state to another and record it; equal states are no change."""
        if before == after:
            return
        execute = self.database.execute
        item_id = after.id if after else before.id if before else ""
        states = [None if one is None else one.json_text() for one in (before, after)]
        numbered = execute(
            "INSERT INTO changes(operation, time, action, item_id, before, after, reason) "
            "VALUES (?, ?, ?, ?, ?, ?, ?)",
            (self.first, self.time, action, item_id, *states, self.reason),
        )
        if not self.first:
            self.first = numbered.lastrowid or 0
            execute("UPDATE changes SET operation = number WHERE number = ?", (self.first,))
            if self.made_by or self.undoes:
                cause = (self.first, self.made_by, self.undoes)
                execute("INSERT INTO operations VALUES (?, ?, ?)", cause)
        if after is None:
            rows = execute("DELETE FROM items WHERE id = ? RETURNING key", (item_id,)).fetchall()
            execute("DELETE FROM embeddings WHERE item_id = ?", (item_id,))
        else:
            rows = execute(
                "INSERT INTO items(id, status, src, title, item) VALUES (?, ?, ?, ?, ?) "
                "ON CONFLICT(id) DO UPDATE SET status = excluded.status, item = excluded.item "
                "RETURNING key",
                (item_id, after.status, after.src, encodable(after.title), states[1]),
            ).fetchall()
        self.touched.update((key, after) for (key,) in rows)


# -- undoing ------------------------------------------------------------------------------


def undo(store: Store, number: int | None) -> Change:
    with store.writing():
        rows = store.changes(
            "changes.operation = (SELECT operation FROM changes WHERE number = "
            "coalesce(?, (SELECT max(number) FROM changes)))",
            number,
        )
        if not rows:
            none = "nothing was changed yet" if number is None else f"there is no change {number}"
            hint = "the history shows the changes and their numbers"
            raise UsageError(none, hint=hint, code="no-change")
        first = rows[0].number
        _check_in_effect(store, first)
        with store.changing(f"undo of change {first}", undoes=first) as operation:
            for change in reversed(rows):
                now = store.item(change.item_id)
                operation.change("undo", now, _reverted(change, now))
            _check_successors(store, rows)
        if not operation.first:
            # Later changes already did what the undo would do.
            what = f"change {first} is undone already"
            raise UsageError(what, code="undone-already", change=first)
        return store.changes("number = ?", operation.first)[0]


def _reverted(change: Change, now: MemoryItem | None) -> MemoryItem | None:
    """Return an item as it would be without a change, with the effects of later changes."""
    before, after = change.before, change.after
    if before is None or after is None:
        # The whole item was added or removed; later counts and evidence go with it.
        if (now is None) != (after is None):
            raise _later(change)
        return before
    if now is None:
        raise _later(change)
    origins = before.origins
    if now.origins != after.origins:
        was_from, became_from = Counter(before.origins), Counter(after.origins)
        added, gone = became_from - was_from, was_from - became_from
        kept = [one for one in now.origins if one not in added]
        origins = (*kept, *(one for one in gone if one not in kept))
    if not origins:
        raise _later(change)
    undone: dict[str, Any] = {
        "counters": (now.counters + before.counters) - after.counters,
        "provenance": origins[0],
        "evidence": origins[1:],
    }
    for name in {f.name for f in fields(MemoryItem)} - undone.keys():
        was, became, current = (getattr(item, name) for item in (before, after, now))
        if was != became:
            if current != became:
                raise _later(change)
            undone[name] = was
    return replace(now, **undone)


def _later(change: Change, why: str = "") -> UsageError:
    why = why or f"item {change.item_id} was changed since"
    return UsageError(
        f"change {change.number} cannot be undone: {why}",
        hint="undo the later change first (history shows it)",
        code="later-change",
        change=change.number,
        item=change.item_id,
    )


def _check_in_effect(store: Store, number: int) -> None:
    """Refuse to undo an operation twice, since counts would be subtracted twice."""
    # Undoing an undo puts its operation into effect again, and so on: each undo of a chain does or
    # reverts the root operation, and the last one says whether that is in effect.
    chain: dict[int, tuple[int, bool]] = {}
    last: dict[int, tuple[int, bool]] = {}
    undos = "SELECT operation, undoes FROM operations WHERE undoes > 0 ORDER BY operation"
    for undo_number, undone in store.rows(undos):
        root, forward = chain.get(undone, (undone, True))
        chain[undo_number] = root, not forward
        last[root] = undo_number, not forward
    root, forward = chain.get(number, (number, True))
    by, in_effect = last.get(root, (root, True))
    if forward != in_effect:
        raise UsageError(
            f"change {number} cannot be undone again: change {by} undid it",
            hint=f"undo change {by} to reinstate it",
            code="undone-already",
            change=number,
            by=by,
        )


def _check_successors(store: Store, rows: Iterable[Change]) -> None:
    """Refuse to remove an item that others were superseded by."""
    gone = {one.item_id: one for one in rows if store.item(one.item_id) is None}
    if not gone:
        return
    query = "SELECT id, json_extract(item, '$.superseded_by') AS heir FROM items WHERE heir != ''"
    for item_id, heir in store.rows(query):
        if heir in gone:
            change = replace(gone[heir], item_id=item_id)
            raise _later(change, f"item {item_id} was superseded by {heir}")
