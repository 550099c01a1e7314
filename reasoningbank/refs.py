"""Handles: large things stay in a store, and what travels is a small `Ref`.

One store belongs to one trial. It keeps tables in memory up to a bound, spills the rest to
Arrow files that are memory-mapped (so a slice of ten million rows costs what a slice of ten
does), and is released with the trial. A table that came spilled already stays where it is.
"""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from reasoningbank.errors import ToolError
from reasoningbank.spill import is_on_disk, to_disk

__all__ = ["Ref", "RefLike", "RefStore"]

#: Tables above this many bytes in all leave memory for disk.
MEMORY_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True)
class Ref:
    """A handle: what it names stays in the store.

    Attributes:
        key: Storage key, unique in its store.
        dtype: What kind of thing: ``'results'``, ``'graph'``, ``'registry'``, ``'service_desc'``.
        rows: Number of items or triples.
        sz: Size in characters of the whole content.
        source: Whom it comes from: the name of an endpoint or a corpus.

    Examples:
        >>> Ref("results_0", "results", 10, 412, "UniProt")
        Ref('results_0', 'results', 10 items from UniProt)
        >>> Ref("results_0", "results", 10, 412, "UniProt")["key"]
        'results_0'
    """

    key: str
    dtype: str
    rows: int
    sz: int
    source: str

    def __repr__(self) -> str:
        return f"Ref({self.key!r}, {self.dtype!r}, {self.rows} items from {self.source})"

    def __getitem__(self, name: str) -> Any:
        if name not in {f.name for f in dataclasses.fields(self)}:
            raise KeyError(name)
        return getattr(self, name)


#: What a tool accepts for a handle: the handle, its key, or its form after a trip through JSON.
RefLike = Ref | str | Mapping[str, Any]


class RefStore:
    """Keeps what handles name, bounded in memory, until it is closed; threads may share it.

    Args:
        memory_bytes: Bytes of Arrow tables kept in memory before the oldest are spilled.
        mark: What every key ends with, where a key alone must tell its store from others.

    Examples:
        >>> with RefStore() as store:
        ...     ref = store.put({"a": 1}, dtype="registry", rows=1, sz=7, source="demo")
        ...     store.get(ref), store.get("registry_0"), store.get({"key": "registry_0"})
        ({'a': 1}, {'a': 1}, {'a': 1})
    """

    def __init__(self, memory_bytes: int = MEMORY_BYTES, *, mark: str = "") -> None:
        self._memory_bytes = memory_bytes
        self._mark = mark
        self._values: dict[str, Any] = {}
        self._refs: dict[str, Ref] = {}
        self._counts: dict[str, int] = {}
        self._resident: dict[str, int] = {}
        self._on_disk: dict[str, int] = {}
        self._lock = threading.Lock()
        self._spilling = threading.Lock()

    def __enter__(self) -> RefStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __len__(self) -> int:
        return len(self._values)

    def put(self, value: Any, *, dtype: str, rows: int, sz: int, source: str) -> Ref:
        """Store `value` under a new key and return its handle.

        A dataclass with an Arrow table in a field named `table` can be spilled to disk;
        any other value stays in memory.

        Raises:
            SetupError: Memory is full and the temporary folder cannot take more.
        """
        with self._lock:
            number = self._counts.get(dtype, 0)
            self._counts[dtype] = number + 1
            ref = Ref(f"{dtype}_{number}{self._mark}", dtype, rows, sz, source)
            self._values[ref.key] = value
            self._refs[ref.key] = ref
            table = getattr(value, "table", None)
            if isinstance(table, pa.Table):
                where = self._on_disk if is_on_disk(table) else self._resident
                where[ref.key] = table.get_total_buffer_size()
        self._spill()
        return ref

    def get(self, ref: RefLike, dtype: str | None = None) -> Any:
        """Return what `ref` names.

        Raises:
            ToolError: If no such handle exists here, or it is of another kind than `dtype`;
                the message names the handles at hand.
        """
        handle = self.ref(ref)
        if dtype is not None and handle.dtype not in dtype.split("|"):
            wanted = dtype.replace("|", "' or '")
            raise ToolError(
                f"{handle.key!r} is a handle of '{handle.dtype}', not of '{wanted}'",
                hint=self._at_hand(dtype),
            )
        with self._lock:
            if handle.key in self._values:
                return self._values[handle.key]
        raise ToolError(f"{handle.key!r} was released", hint="ask for it again")

    def ref(self, ref: RefLike) -> Ref:
        """Return the stored handle for a handle, its key, or its JSON form."""
        key = ref.get("key", "") if isinstance(ref, Mapping) else getattr(ref, "key", ref)
        if not isinstance(key, str) or key not in self._refs:
            shown = repr(key if isinstance(key, str) else ref)[:80]
            raise ToolError(f"unknown handle {shown}", hint=self._at_hand())
        return self._refs[key]

    @property
    def resident_bytes(self) -> int:
        """Bytes of Arrow tables held in memory."""
        with self._lock:
            return sum(self._resident.values())

    @property
    def spilled_bytes(self) -> int:
        """Bytes of Arrow tables held on disk."""
        with self._lock:
            return sum(self._on_disk.values())

    def close(self) -> None:
        """Forget every value and what was spilled; calling it again is harmless.

        A file on disk goes with the last table that is read from it.
        """
        with self._lock:
            for held in (self._values, self._refs, self._resident, self._on_disk):
                held.clear()

    def _at_hand(self, dtype: str | None = None) -> str:
        wanted = dtype.split("|") if dtype else None
        keys = [k for k, r in list(self._refs.items()) if wanted is None or r.dtype in wanted]
        return f"handles at hand: {', '.join(keys[-10:])}" if keys else "no handles exist yet"

    def _spill(self) -> None:
        # Writing takes long, so that others get and put meanwhile; one spills at a time.
        with self._spilling:
            while (oldest := self._over()) is not None:
                key, value = oldest
                spilled = dataclasses.replace(value, table=to_disk(value.table))
                with self._lock:
                    # Not if the store was closed meanwhile.
                    if self._values.get(key) is value:
                        self._values[key] = spilled
                        self._on_disk[key] = self._resident.pop(key)

    def _over(self) -> tuple[str, Any] | None:
        """Return the oldest table in memory if there is more than the bound."""
        with self._lock:
            if sum(self._resident.values()) <= self._memory_bytes:
                return None
            key = next(iter(self._resident))
            return key, self._values[key]
