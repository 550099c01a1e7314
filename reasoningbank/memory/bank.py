"""A memory bank: items with their history, in one SQLite file, with hybrid retrieval."""

from __future__ import annotations

import difflib
import functools
import importlib.util
import itertools
import logging
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import astuple, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from reasoningbank.errors import ReasoningBankError, RecordError, UsageError
from reasoningbank.memory.item import DENSE_TEXT, Counters, ItemStatus, MemoryItem
from reasoningbank.memory.snapshot import Snapshot
from reasoningbank.memory.store import Action, Change, Store, undo
from reasoningbank.retrieval import (
    DEFAULT_INDEX,
    LARGE,
    WEIGHTS,
    Embedder,
    Match,
    Vectors,
    VectorTable,
    best_first,
    open_embedder,
    open_index,
)

logger = logging.getLogger(__name__)


class MemoryBank(AbstractContextManager["MemoryBank"]):
    """Items of procedural memory; every change is recorded and can be undone.

    Several threads may use one bank, and several processes one file.

    Args:
        path: The SQLite file, created if missing; None keeps the bank in memory.
        embedder: Turns texts into vectors; by default the bundled one, loaded when first needed.
            Vectors are stored in the file under the embedder's name.
        readonly: Leave the file unchanged; changing the bank is then an error.

    Raises:
        RecordError: If the file is damaged or not a memory bank, or empty and read-only.

    Examples:
        >>> bank = MemoryBank()
        >>> ids = bank.add([MemoryItem("Join by annotation", "Diseases", "Use it.", "success")])
        >>> bank.match("malattie di una proteina", 1)[0][0].title
        'Join by annotation'
        >>> bank.retire(ids[0][:6], reason="it hurts")
        >>> bank.items(), bank.undo().action, len(bank.items())
        ([], 'undo', 1)
    """

    def __init__(
        self,
        path: str | Path | None = None,
        embedder: Embedder | None = None,
        *,
        readonly: bool = False,
    ) -> None:
        self.path = None if path is None else Path(path)
        self._store = Store(self.path, readonly=readonly)
        self._index = BankIndex(self._store, embedder)

    @classmethod
    def from_snapshot(cls, snapshot: Snapshot, embedder: Embedder | None = None) -> MemoryBank:
        """Return a bank in memory with the items of a snapshot and a history of its own."""
        bank = cls(None, embedder)
        with bank._store.changing(f"snapshot {snapshot.hash}") as operation:
            for item in snapshot.items:
                operation.change("add", None, item)
        return bank

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; all changes are on disk already."""
        self._store.close()

    def add(self, items: Iterable[MemoryItem], *, reason: str = "") -> list[str]:
        """Add items, all or none; return their ids.

        If an item already exists, it gains the new evidence and counts and keeps its status: a
        retired item does not come back by being learned again.
        """
        given = list(items)
        with self._store.changing(reason) as operation:
            for item in given:
                before = self._store.item(item.id)
                if before is None:
                    operation.change("add", None, item)
                else:
                    operation.change("merge", before, _merged(before, item))
        self._embed(operation.first)
        return [item.id for item in given]

    def get(self, item_id: str) -> MemoryItem:
        """Return an item by its id, or by an unambiguous prefix of it.

        Raises:
            UsageError: If none or several match; the message names similar ids.
        """
        wanted = item_id.strip().lower()
        with self._store.reading():
            found = self._store.ids(wanted) if wanted else []
            if len(found) == 1 and (item := self._store.item(found[0])):
                return item
            every = self._store.ids()
        if found:
            named = ", ".join(found[:5]) + (" …" if len(found) > 5 else "")
            raise UsageError(
                f"{len(found)} items start with {item_id!r}",
                hint=f"give more digits: {named}",
                code="ambiguous-item",
                items=found[:5],
            )
        near = difflib.get_close_matches(wanted, every, n=3, cutoff=0.75)
        hint = "the list of the items shows their ids" if every else "the bank is empty"
        raise UsageError(
            f"there is no memory item {item_id!r}",
            hint=f"did you mean {', '.join(near)}?" if near else hint,
            code="unknown-item",
            item=item_id,
            near=near,
        )

    def items(self, *, status: ItemStatus | None = "active") -> list[MemoryItem]:
        """Return the items of a status, or all if None, by id."""
        return self._store.items("status = ? OR ? IS NULL ORDER BY id", status, status)

    def around(self, item_ids: Iterable[str], *, hurt: int) -> list[MemoryItem]:
        """Return the active items most like these, 1,000 for each, and those that did harm."""
        some = "SELECT id FROM items WHERE status = 'active' LIMIT ?"
        if len(self._store.rows(some, CANDIDATES + 1)) <= CANDIDATES:
            return self.items()
        found = {item.id: item for item in map(self.get, item_ids)}
        for item in list(found.values()):
            found |= {one.id: one for one, _ in self.match(item.dense_text, CANDIDATES)}
        count = "json_extract(iif(json_valid(item), item, '{}'), '$.counters.hurt')"
        found |= {item.id: item for item in self._store.items(f"{count} >= ?", hurt)}
        return [item for _, item in sorted(found.items()) if item.status == "active"]

    def match(
        self,
        query: str,
        k: int,
        *,
        keep: Callable[[MemoryItem], bool] | None = None,
        weights: tuple[float, float] = WEIGHTS,
    ) -> list[tuple[MemoryItem, Match]]:
        """Return the best active items for a query, best first; ties by id.

        Args:
            query: Any text, in any language; an empty one finds nothing.
            k: Maximum number of items.
            keep: Selects the items that may be returned.
            weights: Dense and lexical weight; only their ratio matters.
        """
        return self._index.match(query, k, weights, keep) if query.strip() and k > 0 else []

    def replace(
        self, old: Sequence[str], new: MemoryItem, *, reason: str, made_by: str = ""
    ) -> str:
        """Replace items by another one; return its id. The old items become superseded.

        If `new` has the id of one of `old`, that item is rewritten; if it exists besides, it gains
        the further evidence and counts. `made_by` is as in `Change`.

        Raises:
            UsageError: If an old item does not exist, or the new one is not active.
        """
        with self._store.changing(reason, made_by=made_by) as operation:
            replaced = [self.get(item_id) for item_id in old]
            others = [item for item in replaced if item.id != new.id]
            before = self._store.item(new.id)
            after = new if before is None or before in replaced else _merged(before, new)
            if others and after.status != "active":
                raise UsageError(
                    f"is {after.status}, so it cannot replace others",
                    where=f"item {new.id}",
                    hint="restore it first",
                    code="inactive-item",
                    item=new.id,
                )
            action: Action = "replace" if before in replaced else "merge"
            operation.change("add" if before is None else action, before, after)
            for item in others:
                gone = replace(item, status="superseded", superseded_by=new.id)
                operation.change("supersede", item, gone)
        self._embed(operation.first)
        return new.id

    def retire(self, item_id: str, *, reason: str, made_by: str = "") -> None:
        """Exclude an item from retrieval."""
        with self._store.changing(reason, made_by=made_by) as operation:
            item = self.get(item_id)
            operation.change("retire", item, replace(item, status="retired"))

    def restore(self, item_id: str, *, reason: str) -> None:
        """Make a retired or superseded item active again."""
        with self._store.changing(reason) as operation:
            item = self.get(item_id)
            operation.change("restore", item, replace(item, status="active", superseded_by=""))

    def count(self, item_ids: Iterable[str], counters: Counters, *, reason: str = "") -> None:
        """Add to the counts of items.

        Raises:
            UsageError: If one of them does not exist; then none is changed.
        """
        with self._store.changing(reason) as operation:
            for item in map(self.get, item_ids):
                operation.change("count", item, replace(item, counters=item.counters + counters))

    @contextmanager
    def holding(self) -> Iterator[None]:
        """Lock the bank for others while deciding on its items and changing them.

        Everything inside happens, or nothing; each change is an operation of its own.

        Examples:
            >>> bank = MemoryBank()
            >>> with bank.holding():
            ...     if not bank.items():
            ...         ids = bank.add([MemoryItem("Names", "", "Ask.", "seed")])
            >>> bank.last_change, len(bank.items())
            (1, 1)
        """
        with self._store.writing():
            first = self.last_change + 1
            yield
        self._embed(first)

    @property
    def last_change(self) -> int:
        """Number of the last change; 0 if there is none."""
        return self._store.last_change()

    def history(self, item_id: str | None = None, *, since: int = 0) -> list[Change]:
        """Return the changes after number `since`, oldest first: all, or those of one item.

        Raises:
            UsageError: If there never was such an item.
        """
        with self._store.reading():
            if item_id is None:
                return self._store.changes("number > ?", since)
            found = self._store.changes("item_id = ?", item_id.strip().lower())
            found = found or self._store.changes("item_id = ?", self.get(item_id).id)
            return [change for change in found if change.number > since]

    def reinstated_by(self, item_id: str) -> Change | None:
        """Return the change that made a superseded or retired item active again, if any."""
        # An item with many experiences has as many rows, and each holds the whole item; so only
        # the last change of its status is read.
        found = self._store.changes(
            "number = (SELECT max(number) FROM changes WHERE item_id = ? "
            "AND action NOT IN ('merge', 'count') "
            "AND json_extract(before, '$.status') IS NOT json_extract(after, '$.status'))",
            item_id,
        )
        back = (one for one in found if one.before and one.after and one.after.status == "active")
        return next(back, None)

    def undo(self, number: int | None = None) -> Change:
        """Undo a change, by default the last one, with its whole operation; return the first undo.

        The undo is a change itself and can be undone. Later changes to the same items are kept,
        unless they depend on what is undone.

        Raises:
            UsageError: If there is no such change, it was undone already, or a later change
                conflicts.
        """
        return undo(self._store, number)

    def snapshot(self) -> Snapshot:
        """Return all items of the bank, of every status."""
        return Snapshot.of(self.items(status=None))

    def _embed(self, first: int) -> None:
        """Embed what was changed from a number on; 0 if nothing was."""
        if self._store.in_transaction or not first:
            # Inside `holding`, which embeds at its end so that others do not wait for it.
            return
        try:
            self._index.embed(since=first - 1)
        except ReasoningBankError as error:
            # The items are stored; a search embeds whatever has no vector yet.
            logger.warning("items were added, but not embedded: %s", error)


def _merged(item: MemoryItem, other: MemoryItem) -> MemoryItem:
    """Return an item with the evidence of another of the same id, whichever came first."""
    merged = item.merged_with(other)
    if len(merged.origins) == len(item.origins):
        return replace(item, counters=merged.counters)
    origins = sorted(merged.origins, key=lambda one: (one.time, *astuple(one)))
    tags = item.tags if set(other.tags) <= set(item.tags) else sorted({*item.tags, *other.tags})
    return replace(merged, provenance=origins[0], evidence=tuple(origins[1:]), tags=tuple(tags))


class Imported(NamedTuple):
    """Ids of new items, of items that gained evidence or counts, and of unchanged ones."""

    added: tuple[str, ...]
    merged: tuple[str, ...]
    same: tuple[str, ...]


def import_items(bank: MemoryBank, items: Iterable[MemoryItem], *, reason: str) -> Imported:
    """Import items of another bank, all or none, as one change. Importing is idempotent."""
    found: dict[str, list[str]] = {"added": [], "merged": [], "same": []}
    changed: list[MemoryItem] = []
    items = list(items)  # before the bank is locked
    with bank.holding():
        for item in items:
            kind, mine = "added", bank._store.item(item.id)
            if mine is not None:
                # States of one item with common experiences share the trials of the lower count.
                known, given = set(mine.origins), set(item.origins)
                counters = item.counters - mine.counters if known & given else item.counters
                kind = "same" if given <= known and counters == Counters() else "merged"
                item = replace(item, tags=mine.tags, counters=counters)
            found[kind].append(item.id)
            if kind != "same":
                changed.append(item)
        bank.add(changed, reason=reason)
    return Imported(**{kind: tuple(ids) for kind, ids in found.items()})


# -- retrieval ---------------------------------------------------------------------------

#: The stored vectors. Half precision moves a cosine by less than 0.001.
STORED = np.dtype("<f2")
#: Vectors that are read, and texts that are embedded, at a time.
AT_ONCE = 2_000
#: The nearest, and the best by words, that are ranked together if the index is approximate.
CANDIDATES = 1_000


class BankIndex:
    """Ranks the active items of a bank; follows the changes of this and other processes."""

    def __init__(self, store: Store, embedder: Embedder | None) -> None:
        self._store = store
        self._given = embedder
        self._lock = threading.RLock()
        self._table = VectorTable()
        self._ids: dict[int, str] = {}
        self._keys: dict[str, int] = {}
        self._unsaved: dict[str, Vectors] = {}
        self._seen = 0
        #: From so many items on, the table is made anew.
        self._room = LARGE

    @functools.cached_property
    def _embedder(self) -> Embedder:
        return self._given or open_embedder()

    def embed(self, since: int) -> None:
        """Embed and store the active items changed after a number that have no vector yet."""
        with self._lock:
            # It may take long to open, and nobody should wait for the store meanwhile.
            _ = self._embedder
            with self._store.reading() as database:
                rows = self._vectors(database, "items.id, vector IS NULL", since)
                missing = sorted(one for one, new in rows if new and one not in self._unsaved)
            for first in range(0, len(missing), AT_ONCE):
                items = map(self._store.item, missing[first : first + AT_ONCE])
                self._embed({item.id: item.dense_text for item in items if item})

    def _embed(self, missing: dict[str, str]) -> None:
        # Outside of any transaction, so that others may read and write meanwhile.
        vectors = self._embedder.passages(list(missing.values()))
        made = {one: v.astype(STORED) for one, v in zip(missing, vectors, strict=True)}
        try:
            with self._store.writing() as database:
                database.executemany(
                    "INSERT OR REPLACE INTO embeddings SELECT id, ?, ? FROM items WHERE id = ?",
                    [(self._model, v.tobytes(), one) for one, v in made.items()],
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
        vector = self._embedder.queries([query])[0]
        most = max(CANDIDATES, 4 * k)
        with self._up_to_date():
            words = self._store.words.scores(query)
            while True:
                cosines = self._table.candidates(vector, most, words)
                ranked = best_first(self._ids, cosines, words, weights)
                items = ((self._store.item(match.id), match) for match in ranked)
                found = ((i, m) for i, m in items if i and (keep is None or keep(i)))
                best = list(itertools.islice(found, k))
                # If an approximate index gave too few that may be kept, ask it for more.
                exact = len(cosines[0]) == len(self._table) or most > len(self._table)
                if len(best) == k or exact:
                    return best
                most *= 8

    @contextmanager
    def _up_to_date(self) -> Iterator[None]:
        """Hold a state of the bank that the index has followed."""
        while True:
            with self._lock, self._store.reading() as database:
                if self._follow(database):
                    yield
                    return
            self.embed(self._seen)

    def _follow(self, database: sqlite3.Connection) -> bool:
        """Load the changes since the last call; return False if an item has no vector yet."""
        last = self._store.last_change()
        if last == self._seen:
            return True
        (most,) = database.execute("SELECT coalesce(max(key), 0) FROM items").fetchone()
        if most >= self._room:
            # Made anew, of the kind that suits the size.
            self._table, self._seen = open_index("faiss" if _faiss() else DEFAULT_INDEX), 0
            self._keys, self._ids, self._room = {}, {}, max(LARGE, 4 * most)
        changed: set[int] = set()
        query = "SELECT DISTINCT item_id FROM changes WHERE number > ?"
        for (item_id,) in database.execute(query, (self._seen,)) if self._seen else ():
            if (key := self._keys.pop(item_id, None)) is not None:
                changed.add(key)
                del self._ids[key]
        self._table.drop(changed)
        cursor = self._vectors(database, "items.key, items.id, vector", self._seen)
        # In parts: all vectors as SQLite gives them are as large as half the matrix.
        while rows := cursor.fetchmany(AT_ONCE):
            vectors = [
                np.frombuffer(blob, dtype=STORED) if blob else self._unsaved.get(item_id)
                for _, item_id, blob in rows
            ]
            whole = [vector for vector in vectors if vector is not None]
            if len(whole) < len(rows):
                return False
            self._keys.update((item_id, key) for key, item_id, _ in rows)
            self._ids.update((key, item_id) for key, item_id, _ in rows)
            self._table.put([key for key, _, _ in rows], np.stack(whole))
            changed.update(key for key, _, _ in rows)
        self._store.words.forget(changed if self._seen else None)
        self._seen = last
        return True

    @property
    def _model(self) -> str:
        """The name of the model with the version of the text that it is given of an item."""
        return f"{self._embedder.name} ({DENSE_TEXT})"

    def _vectors(self, database: sqlite3.Connection, columns: str, since: int) -> sqlite3.Cursor:
        """Read the active items changed since a number; ``vector`` is the model's, if any."""
        changed = "AND items.id IN (SELECT item_id FROM changes WHERE number > :since)"
        size = self._embedder.dimensions * STORED.itemsize
        return database.execute(
            f"SELECT {columns} FROM items LEFT JOIN embeddings "
            "ON item_id = items.id AND embedder = :name AND length(vector) = :size "
            f"WHERE status = 'active' {changed if since else ''}",
            {"name": self._model, "size": size, "since": since},
        )


@functools.cache
def _faiss() -> bool:
    if importlib.util.find_spec("faiss"):
        return True
    logger.warning("a bank this large is searched faster with `pip install faiss-cpu`")
    return False
