"""Items and changes as rows of a bank's file."""

from __future__ import annotations

import json
import logging
import sqlite3
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from reasoningbank.errors import ReasoningBankError, RecordError
from reasoningbank.memory.changes import Action, Change
from reasoningbank.memory.item import ItemStatus, MemoryItem
from reasoningbank.memory.item_text import words_of
from reasoningbank.memory.store import Store

__all__ = [
    "Operation",
    "changes_of",
    "fill_words",
    "ids_like",
    "item_from",
    "item_of",
    "items_of",
    "put_back",
]

logger = logging.getLogger(__name__)


class Operation:
    """Changes that are made together, in one transaction, and undone together.

    Args:
        store: The bank's file.
        database: Its connection, in a transaction that writes.
        reason: Why they are made.
    """

    def __init__(self, store: Store, database: sqlite3.Connection, reason: str) -> None:
        self._store = store
        self._database = database
        self._reason = reason
        self._time = datetime.now(UTC).isoformat(timespec="seconds")
        self._first = 0
        self._touched: dict[int, MemoryItem | None] = {}

    def change(self, action: Action, before: MemoryItem | None, after: MemoryItem | None) -> None:
        """Set an item from one state to another, and write it down; no difference, no change."""
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
        if after is None:
            self._drop(item_id)
        else:
            self._save(after)

    def finish(self) -> Change | None:
        """Bring the word index up to date; return the first change, if there was any."""
        self._store.words.remove(self._touched)
        self._store.words.add(
            (key, words_of(item))
            for key, item in self._touched.items()
            if item is not None and item.status == "active"
        )
        if not self._first:
            return None
        return changes_of(self._database, "number = ?", (self._first,))[0]

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


def fill_words(store: Store) -> None:
    """Put the active items into the index of words, which was lost, and say so."""
    with store.reading() if store.readonly else store.writing() as database:
        rows = database.execute("SELECT key, item FROM items WHERE status = 'active'")
        # Two processes may do so at once: equal rows take each other's place.
        store.words.add([(key, words_of(item_from(text))) for key, text in rows])
    logger.warning("%s: the index of words was lost, and is made anew", store.path)


def item_of(database: sqlite3.Connection, item_id: str) -> MemoryItem | None:
    """Return an item by its whole id."""
    row = database.execute("SELECT item FROM items WHERE id = ?", (item_id,)).fetchone()
    return item_from(row[0]) if row else None


def items_of(database: sqlite3.Connection, status: ItemStatus | None) -> list[MemoryItem]:
    """Return the items of a status, or all, by id."""
    rows = database.execute(
        "SELECT item FROM items WHERE status = ? OR ? IS NULL ORDER BY id", (status, status)
    )
    return [item_from(text) for (text,) in rows]


def item_from(text: str) -> MemoryItem:
    """Return an item as the file keeps it.

    Raises:
        RecordError: It is damaged.
    """
    try:
        return MemoryItem.from_json(json.loads(text))
    except (ValueError, ReasoningBankError) as error:
        raise RecordError(
            f"an item of the bank is damaged ({error})",
            hint="make the bank anew from a snapshot with `reasoningbank memory import`",
        ) from error


def ids_like(database: sqlite3.Connection, prefix: str) -> list[str]:
    """Return the ids that begin so."""
    rows = database.execute(
        "SELECT id FROM items WHERE substr(id, 1, ?) = ? ORDER BY id", (len(prefix), prefix)
    )
    return [item_id for (item_id,) in rows]


def changes_of(database: sqlite3.Connection, where: str, values: Sequence[Any]) -> list[Change]:
    """Return the changes that meet a condition, oldest first."""
    rows = database.execute(
        "SELECT number, time, action, item_id, before, after, reason, operation FROM changes "
        f"WHERE {where} ORDER BY number",
        values,
    )
    return [
        Change(
            number, time, action, item_id, _optional(before), _optional(after), reason, operation
        )
        for number, time, action, item_id, before, after, reason, operation in rows
    ]


def put_back(database: sqlite3.Connection, item_id: str) -> str | None:
    """Return why an item is active again that had been put away; None if it is not so.

    Only as much of the history is read as is needed: one item of many experiences has as many
    rows, and each holds the whole item.
    """
    rows = database.execute(
        "SELECT json_extract(before, '$.status'), json_extract(after, '$.status'), reason "
        "FROM changes WHERE item_id = ? AND action NOT IN ('merge', 'count') ORDER BY number DESC",
        (item_id,),
    )
    for was, became, reason in rows:
        if was is None or became is None:
            return None
        if was != became:
            return str(reason) if became == "active" else None
    return None


def _json(item: MemoryItem | None) -> str | None:
    if item is None:
        return None
    text = json.dumps(item.to_json(), ensure_ascii=False)
    # Models write lone surrogates, which no file of text can hold as they are.
    return text if _plain(text) == text else json.dumps(item.to_json())


def _optional(text: str | None) -> MemoryItem | None:
    return None if text is None else item_from(text)


def _plain(text: str) -> str:
    return text.encode("utf-8", "replace").decode()
