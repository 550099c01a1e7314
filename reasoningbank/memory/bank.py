"""A memory bank: items with their history, in one SQLite file, found by meaning and by words."""

from __future__ import annotations

import difflib
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import astuple, replace
from pathlib import Path
from types import TracebackType

from reasoningbank.errors import ReasoningBankError, UsageError
from reasoningbank.memory.changes import Change
from reasoningbank.memory.item import Counters, ItemStatus, MemoryItem
from reasoningbank.memory.snapshot import Snapshot
from reasoningbank.memory.store import Store
from reasoningbank.memory.store_index import StoreIndex
from reasoningbank.memory.store_rows import (
    Operation,
    changes_of,
    fill_words,
    ids_like,
    item_of,
    items_of,
    put_back,
)
from reasoningbank.memory.undoing import undo
from reasoningbank.retrieval import WEIGHTS, Embedder, Match

__all__ = ["MemoryBank"]

logger = logging.getLogger(__name__)


class MemoryBank:
    """Items of procedural memory; every change is a row of the history and can be undone.

    Several threads may use one bank, and several processes one file.

    Args:
        path: The SQLite file, made where there is none; None keeps the bank in memory.
        embedder: What turns texts into vectors; by default the one of the package, loaded when it
            is first needed. Vectors are kept in the file by the embedder's name.
        readonly: Whether the file is to stay as it is; changing the bank is then an error.

    Raises:
        RecordError: The file is damaged, or no memory bank; or it is empty and to be read only.

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
        path: Path | None = None,
        embedder: Embedder | None = None,
        *,
        readonly: bool = False,
    ) -> None:
        self.path = path
        self._store = Store(path, readonly=readonly)
        if self._store.words_lost:
            try:
                fill_words(self._store)
            except BaseException:
                self.close()
                raise
        self._index = StoreIndex(self._store, embedder)

    @classmethod
    def from_snapshot(
        cls, snapshot: Snapshot, path: Path | None = None, embedder: Embedder | None = None
    ) -> MemoryBank:
        """Return a bank that holds what a snapshot holds, with a history of its own.

        Raises:
            UsageError: There is a bank with items at that path.
        """
        bank = cls(path, embedder)
        try:
            with bank._changing(f"snapshot {snapshot.hash}") as operation:
                if bank.items(status=None):
                    hint = "add the items, or name a new file"
                    raise UsageError("holds items already", where=str(path), hint=hint)
                for item in snapshot.items:
                    operation.change("add", None, item)
        except BaseException:
            bank.close()
            raise
        return bank

    def __enter__(self) -> MemoryBank:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; what was changed is on the disk already."""
        self._store.close()

    def add(self, items: Iterable[MemoryItem], *, reason: str = "") -> list[str]:
        """Put items in, all or none; return their ids.

        An item that is there already takes over the further evidence and the counts, and keeps
        its status: what was retired does not come back by being learned again.
        """
        given = list(items)
        with self._changing(reason) as operation:
            for item in given:
                before = self._found(item.id)
                if before is None:
                    operation.change("add", None, item)
                else:
                    operation.change("merge", before, _merged(before, item))
        self._embed()
        return [item.id for item in given]

    def get(self, item_id: str) -> MemoryItem:
        """Return an item by its id, or by the beginning of it if no other begins so.

        Raises:
            UsageError: There is none, or several; the message names ids that are near.
        """
        wanted = item_id.strip().lower()
        with self._store.reading() as database:
            item = item_of(database, wanted)
            found = ids_like(database, wanted) if wanted and item is None else []
            if len(found) == 1:
                item = item_of(database, found[0])
            every = ids_like(database, "") if item is None else []
        if item is not None:
            return item
        if found:
            named = ", ".join(found[:5]) + (" …" if len(found) > 5 else "")
            raise UsageError(
                f"{len(found)} items begin with {item_id!r}", hint=f"say more: {named}"
            )
        near = difflib.get_close_matches(wanted, every, n=3, cutoff=0.75)
        hint = "the list of the items shows their ids" if every else "the bank is empty"
        if near:
            hint = f"is it one of {', '.join(near)}?"
        raise UsageError(f"there is no memory item {item_id!r}", hint=hint)

    def items(self, *, status: ItemStatus | None = "active") -> list[MemoryItem]:
        """Return the items of a status, or with None all, by id."""
        with self._store.reading() as database:
            return items_of(database, status)

    def match(
        self,
        query: str,
        k: int,
        *,
        keep: Callable[[MemoryItem], bool] | None = None,
        weights: tuple[float, float] = WEIGHTS,
    ) -> list[tuple[MemoryItem, Match]]:
        """Return the best active items for a query, best first; equals by id.

        Args:
            query: Any text, in any language; an empty one finds nothing.
            k: How many at most.
            keep: Which items may be returned.
            weights: Weight of meaning and of words; only their proportion counts.
        """
        if not query.strip() or k < 1:
            return []
        return self._index.match(query, k, weights, keep)

    def replace(self, old: Sequence[str], new: MemoryItem, *, reason: str) -> str:
        """Let an item take the place of others, which become superseded; return its id.

        If it is itself one of the others, it becomes what `new` says; if it is there besides, it
        takes over the further evidence and the counts.

        Raises:
            UsageError: One of the others is not there, or the item itself is not active.
        """
        with self._changing(reason) as operation:
            replaced = [self.get(item_id) for item_id in old]
            others = [item for item in replaced if item.id != new.id]
            before = self._found(new.id)
            after = new if before is None or before in replaced else _merged(before, new)
            if others and after.status != "active":
                what = f"is {after.status}, so it cannot take the place of others"
                raise UsageError(what, where=f"item {new.id}", hint="restore it first")
            if before is None:
                operation.change("add", None, after)
            else:
                operation.change("replace" if before in replaced else "merge", before, after)
            for item in others:
                gone = replace(item, status="superseded", superseded_by=new.id)
                operation.change("supersede", item, gone)
        self._embed()
        return new.id

    def retire(self, item_id: str, *, reason: str) -> None:
        """Keep an item from being retrieved."""
        with self._changing(reason) as operation:
            item = self.get(item_id)
            operation.change("retire", item, replace(item, status="retired"))

    def restore(self, item_id: str, *, reason: str) -> None:
        """Let an item that was retired or superseded be retrieved again."""
        with self._changing(reason) as operation:
            item = self.get(item_id)
            operation.change("restore", item, replace(item, status="active", superseded_by=""))

    def count(self, item_ids: Iterable[str], counters: Counters, *, reason: str = "") -> None:
        """Add to the counts of items.

        Raises:
            UsageError: One of them is not there; none is counted then.
        """
        with self._changing(reason) as operation:
            for item_id in item_ids:
                item = self.get(item_id)
                operation.change("count", item, replace(item, counters=item.counters + counters))

    @contextmanager
    def holding(self) -> Iterator[None]:
        """Keep all others from changing the bank while one decides on its items and changes them.

        All that is done inside is done, or nothing; each change is an operation of its own.

        Examples:
            >>> bank = MemoryBank()
            >>> with bank.holding():
            ...     if not bank.items():
            ...         ids = bank.add([MemoryItem("Names", "", "Ask.", "seed")])
            >>> bank.last_change, len(bank.items())
            (1, 1)
        """
        with self._store.writing():
            yield
        self._embed()

    @property
    def last_change(self) -> int:
        """Number of the last change; 0 where nothing was changed yet."""
        with self._store.reading() as database:
            ((last,),) = database.execute("SELECT coalesce(max(number), 0) FROM changes").fetchall()
            return int(last)

    def history(self, item_id: str | None = None, *, since: int = 0) -> list[Change]:
        """Return what was changed, oldest first: everything, or of one item.

        Args:
            item_id: The item.
            since: Only changes of higher numbers.

        Raises:
            UsageError: There never was such an item.
        """
        with self._store.reading() as database:
            if item_id is None:
                return changes_of(database, "number > ?", (since,))
            found = changes_of(database, "item_id = ?", (item_id.strip().lower(),))
            found = found or changes_of(database, "item_id = ?", (self.get(item_id).id,))
            return [change for change in found if change.number > since]

    def put_back(self, item_id: str) -> str | None:
        """Return why an item is active again that had been put away; None if it is not so."""
        with self._store.reading() as database:
            return put_back(database, item_id)

    def undo(self, number: int | None = None) -> Change:
        """Take back the last change, or the one of that number, with all that was done with it.

        That is a change itself: undone in turn, it is as before. What later changes did to the
        same items stays, as far as it does not rest on what is taken back.

        Returns:
            The first of the changes that take it back.

        Raises:
            UsageError: There is no such change, it was taken back already, or a later one stands
                in its way.
        """
        with self._store.writing() as database:
            return undo(self._store, database, number)

    def snapshot(self) -> Snapshot:
        """Return all that the bank holds, items of every status."""
        return Snapshot.of(self.items(status=None))

    @contextmanager
    def _changing(self, reason: str) -> Iterator[Operation]:
        with self._store.writing() as database:
            operation = Operation(self._store, database, reason)
            yield operation
            operation.finish()

    def _found(self, item_id: str) -> MemoryItem | None:
        with self._store.reading() as database:
            return item_of(database, item_id)

    def _embed(self) -> None:
        if self._store.held:
            # Others wait; whoever holds the bank embeds when he is done.
            return
        try:
            self._index.embed()
        except ReasoningBankError as error:
            # The items are in; a search embeds what has no vector yet.
            logger.warning("items were added, but not embedded: %s", error)


def _merged(item: MemoryItem, other: MemoryItem) -> MemoryItem:
    """Return an item with what another of the same id adds, whichever of them came first."""
    merged = item.merged_with(other)
    if len(merged.origins) == len(item.origins):
        return replace(item, counters=merged.counters)
    origins = sorted(merged.origins, key=lambda one: (one.time, *astuple(one)))
    tags = item.tags if set(other.tags) <= set(item.tags) else sorted({*item.tags, *other.tags})
    return replace(merged, provenance=origins[0], evidence=tuple(origins[1:]), tags=tuple(tags))
