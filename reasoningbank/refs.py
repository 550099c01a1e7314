"""Handles: large values stay in a store; agents and tools exchange a small `Ref`.

Each trial has one store. It keeps tables in memory up to a limit, spills the rest to memory-mapped
Arrow files (so a slice of ten million rows costs as much as a slice of ten), and is released with
the trial.
"""

from __future__ import annotations

import dataclasses
import threading
from collections import Counter
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from reasoningbank.errors import ToolError
from reasoningbank.spill import is_on_disk, to_disk

#: Tables above this many bytes in total are spilled to disk.
MEMORY_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True)
class Ref:
    """A handle; its value stays in the store.

    Examples:
        >>> Ref("results_0", "results", 10, 412, "UniProt")
        Ref('results_0', 'results', 10 items from UniProt)
        >>> Ref("results_0", "results", 10, 412, "UniProt")["key"]
        'results_0'
    """

    key: str  #: Storage key, unique in its store
    dtype: str  #: Kind of value: ``'results'``, ``'graph'``, ``'registry'``, ``'service_desc'``
    rows: int  #: Number of items or triples
    sz: int  #: Size in characters of the whole content
    source: str  #: Its origin: the name of an endpoint or a corpus

    def __repr__(self) -> str:
        return f"Ref({self.key!r}, {self.dtype!r}, {self.rows} items from {self.source})"

    def __getitem__(self, name: str) -> Any:
        return vars(self)[name]


#: What a tool accepts for a handle: the handle, its key, or its form after a trip through JSON.
RefLike = Ref | str | Mapping[str, Any]


class RefStore(AbstractContextManager["RefStore"]):
    """Keeps the values of handles, bounded in memory, until it is closed; thread-safe.

    Args:
        memory_bytes: Bytes of Arrow tables kept in memory before the oldest are spilled.
        mark: Suffix of every key, to distinguish the keys of several stores.
    """

    def __init__(self, memory_bytes: int = MEMORY_BYTES, *, mark: str = "") -> None:
        self._memory_bytes = memory_bytes
        self._mark = mark
        self._kept: dict[str, tuple[Ref, Any]] = {}
        self._counts: Counter[str] = Counter()
        self._closed = False
        self._lock = threading.Lock()
        self._spilling = threading.Lock()

    def __exit__(self, *_: object) -> None:
        self.close()

    def __len__(self) -> int:
        return len(self._kept)

    def put(self, value: Any, *, dtype: str, rows: int, sz: int, source: str) -> Ref:
        """Store `value` under a new key; a dataclass with an Arrow `table` can be spilled."""
        with self._lock:
            ref = Ref(f"{dtype}_{self._counts[dtype]}{self._mark}", dtype, rows, sz, source)
            self._counts[dtype] += 1
            self._kept[ref.key] = ref, value
        self._spill()
        return ref

    def get(self, ref: RefLike, dtype: str | None = None) -> Any:
        """Return the value of a handle."""
        handle, value = self._found(ref)
        if dtype is not None and handle.dtype not in dtype.split("|"):
            wanted = dtype.replace("|", "' or '")
            what = f"{handle.key!r} is a handle of '{handle.dtype}', not of '{wanted}'"
            raise ToolError(what, hint=self._at_hand(dtype), code="wrong-handle", key=handle.key)
        return value

    def ref(self, ref: RefLike) -> Ref:
        """Return the stored handle for a handle, its key, or its JSON form."""
        return self._found(ref)[0]

    def _found(self, ref: RefLike) -> tuple[Ref, Any]:
        key = ref.get("key", "") if isinstance(ref, Mapping) else getattr(ref, "key", ref)
        if isinstance(key, str) and (kept := self._kept.get(key)) is not None:
            return kept
        shown, hint = repr(key if isinstance(key, str) else ref)[:80], self._at_hand()
        raise ToolError(f"unknown handle {shown}", hint=hint, code="unknown-handle", key=shown)

    @property
    def resident_bytes(self) -> int:
        """Bytes of Arrow tables held in memory."""
        return sum(self._sizes(on_disk=False).values())

    @property
    def spilled_bytes(self) -> int:
        """Bytes of Arrow tables held on disk."""
        return sum(self._sizes(on_disk=True).values())

    def close(self) -> None:
        """Drop all values; a file on disk is deleted with the last table that is read from it."""
        with self._lock:
            self._kept.clear()
            self._closed = True

    def _at_hand(self, dtype: str | None = None) -> str:
        if self._closed:
            return "all handles were released when their store was closed"
        wanted = dtype.split("|") if dtype else None
        refs = [ref for ref, _ in list(self._kept.values())]
        keys = [ref.key for ref in refs if wanted is None or ref.dtype in wanted]
        if not keys and self._mark:
            return "give the whole key as it was returned; handles that are not used are released"
        return f"handles at hand: {', '.join(keys[-10:])}" if keys else "no handles exist yet"

    def _sizes(self, *, on_disk: bool) -> dict[str, int]:
        """Return the bytes of the Arrow tables in memory or on disk, the oldest first."""
        with self._lock:
            tables = {key: getattr(value, "table", None) for key, (_, value) in self._kept.items()}
        return {
            key: table.get_total_buffer_size()
            for key, table in tables.items()
            if isinstance(table, pa.Table) and is_on_disk(table) == on_disk
        }

    def _spill(self) -> None:
        # Writing takes long: other threads get and put meanwhile, and one spills at a time.
        with self._spilling:
            while sum((sizes := self._sizes(on_disk=False)).values()) > self._memory_bytes:
                key = next(iter(sizes))
                kept = self._kept.get(key)
                if kept is None:  # the store was closed meanwhile
                    break
                ref, value = kept
                spilled = dataclasses.replace(value, table=to_disk(value.table))
                with self._lock:
                    if key in self._kept:
                        self._kept[key] = ref, spilled
