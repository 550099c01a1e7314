"""Responses and tables that outgrow memory: in files without a name, gone with their last reader.

A file without a name cannot be left behind, however the process ends. The files are in the system's
temporary folder (``TMPDIR`` moves it; if that folder is itself in memory, spilling saves nothing).
"""

from __future__ import annotations

import tempfile
import weakref
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import IO, Any

import pyarrow as pa

from reasoningbank.errors import SetupError

#: What is still growing stays in memory up to this many bytes.
MEMORY_BYTES = 32 * 1024 * 1024
#: Bytes that are read at once.
BLOCK_BYTES = 1024 * 1024

_mapped: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()


def is_on_disk(table: pa.Table) -> bool:
    """Return whether a table is mapped from disk, and so uses no memory of its own."""
    return _mapped.get(id(table)) is table


def to_disk(table: pa.Table) -> pa.Table:
    """Write a table to a file without a name and return it mapped from there."""
    with GrowingTable(table.schema, memory_bytes=0) as growing:
        growing.add(table)
        return growing.finish()


class GrowingTable(AbstractContextManager["GrowingTable"]):
    """A table that is built block by block: in memory while it is small, then on disk."""

    def __init__(self, schema: pa.Schema, *, memory_bytes: int | None = None) -> None:
        self._blocks: list[pa.Table] = []
        self._schema = schema
        self._left = MEMORY_BYTES if memory_bytes is None else memory_bytes
        self._file: IO[bytes] | None = None
        self._writer: Any = None

    def __exit__(self, *_: object) -> None:
        self._blocks = []
        self._writer = None
        if self._file is not None:
            # The rest of the buffer may find no space; nobody will read it.
            with suppress(OSError):
                self._file.close()

    def add(self, block: pa.Table) -> None:
        self._left -= block.nbytes
        self._blocks.append(block)
        if self._left >= 0:
            return
        with writing():
            if self._file is None:
                self._file = tempfile.TemporaryFile(prefix="reasoningbank-")  # noqa: SIM115
                self._writer = pa.ipc.new_file(pa.PythonFile(self._file, "w"), self._schema)
            for kept in self._blocks:
                self._writer.write_table(kept)
            self._blocks = []

    def finish(self) -> pa.Table:
        """Return the table; nothing can be added any more."""
        if self._file is None:
            return pa.concat_tables(self._blocks) if self._blocks else self._schema.empty_table()
        with writing():
            self._writer.close()
            self._file.flush()
            source = pa.memory_map(f"/dev/fd/{self._file.fileno()}")
            table = pa.ipc.open_file(source).read_all()
        _mapped[id(table)] = table
        return table


class Spool:
    """Takes the bytes of a response until it has enough lines; many bytes go to disk."""

    def __init__(self, most: float, *, distinct: bool = False) -> None:
        self.file = tempfile.SpooledTemporaryFile(MEMORY_BYTES, prefix="reasoningbank-")  # noqa: SIM115
        self._most = most
        self._count = 0
        self._seen: set[int] | None = set() if distinct else None
        self._rest = b""

    def feed(self, chunk: bytes) -> bool:
        """Take some bytes; return whether no more are wanted."""
        with writing():
            self.file.write(chunk)
        if self._seen is None:
            self._count += chunk.count(b"\n")
        else:
            *lines, self._rest = (self._rest + chunk).split(b"\n")
            self._seen.update(map(hash, lines))
            self._count = len(self._seen)
        return self._count > self._most

    def blocks(self, *, cut: bool) -> Iterator[bytes]:
        """Yield whole lines from the current position, the last one only if it was not `cut`."""
        while block := self.file.read(BLOCK_BYTES):
            block += self.file.readline()
            if whole := block[: block.rfind(b"\n") + 1] if cut else block:
                yield whole

    def close(self) -> None:
        self.file.close()


@contextmanager
def writing() -> Iterator[None]:
    """Report a full disk as what it is."""
    try:
        yield
    except OSError as error:
        what = f"a large result cannot be written to disk: {error.strerror or error}"
        hint = "free space there, or set TMPDIR to another folder"
        raise SetupError(what, where=tempfile.gettempdir(), hint=hint) from error
