"""Tables on disk: Arrow files without a name, memory-mapped, deleted with their last reader.

A file without a name cannot be left behind, however the process ends: the system frees its space
when its last mapping is released. The files are in the system's temporary folder (``TMPDIR`` moves
it; if that folder is itself in memory, spilling saves nothing).
"""

from __future__ import annotations

import tempfile
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO, Any

import pyarrow as pa

from reasoningbank.errors import SetupError

#: A table that is still growing stays in memory up to this many bytes.
MEMORY_BYTES = 32 * 1024 * 1024

_mapped: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()


def is_on_disk(table: pa.Table) -> bool:
    """Return whether a table is mapped from disk, and so uses no memory of its own."""
    return _mapped.get(id(table)) is table


def to_disk(table: pa.Table) -> pa.Table:
    """Write a table to a file without a name and return it mapped from there."""
    growing = GrowingTable(table.schema, memory_bytes=0)
    with growing:
        growing.add(table)
        return growing.finish()


class GrowingTable:
    """A table that is built block by block: in memory while it is small, then on disk."""

    def __init__(self, schema: pa.Schema, *, memory_bytes: int = MEMORY_BYTES) -> None:
        self._schema = schema
        self._memory_bytes = memory_bytes
        self._blocks: list[pa.Table] = []
        self._bytes = 0
        self._file: IO[bytes] | None = None
        self._writer: Any = None

    def __enter__(self) -> GrowingTable:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def add(self, block: pa.Table) -> None:
        """Add rows."""
        if self._writer is None:
            self._blocks.append(block)
            self._bytes += block.nbytes
            if self._bytes <= self._memory_bytes:
                return
        with _reported():
            if self._writer is None:
                self._file = tempfile.TemporaryFile(prefix="reasoningbank-")  # noqa: SIM115
                self._writer = pa.ipc.new_file(pa.PythonFile(self._file, "w"), self._schema)
                for kept in self._blocks:
                    self._writer.write_table(kept)
                self._blocks = []
            else:
                self._writer.write_table(block)

    def finish(self) -> pa.Table:
        """Return the table; nothing can be added any more."""
        if self._file is None:
            return pa.concat_tables(self._blocks) if self._blocks else self._schema.empty_table()
        with _reported():
            self._writer.close()
            self._file.flush()
            source = pa.memory_map(f"/dev/fd/{self._file.fileno()}")
            table = pa.ipc.open_file(source).read_all()
        self.close()
        _mapped[id(table)] = table
        return table

    def close(self) -> None:
        """Give up what was not finished; calling it again is harmless."""
        self._blocks = []
        self._writer = None
        if self._file is not None:
            # The rest of the buffer may find no space; nobody will read it.
            with suppress(OSError):
                self._file.close()
            self._file = None


@contextmanager
def _reported() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise SetupError(
            f"a large result cannot be written to disk: {error.strerror or error}",
            where=tempfile.gettempdir(),
            hint="free space there, or set TMPDIR to another folder",
        ) from error
