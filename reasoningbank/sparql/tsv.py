"""SPARQL TSV as a stream: what arrives becomes Arrow columns block by block.

Never more than a block of the response is held as bytes, and a table that outgrows memory goes
to disk while it arrives; so memory is bounded whatever the size of the result.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv

from reasoningbank.sparql.cells import first_bad_cell
from reasoningbank.sparql.readers import Broken, Unfaithful, check_columns
from reasoningbank.sparql.results import chars_of, columns
from reasoningbank.spill import GrowingTable

__all__ = ["TSVReader", "read_tsv"]

#: Bytes that are turned into columns at once.
BLOCK_BYTES = 1024 * 1024
MESSAGE_BYTES = 64 * 1024
_NEWLINE = ord("\n")
_BOM = b"\xef\xbb\xbf"


class TSVReader:
    """Takes the bytes of a response as they come; `finish` gives the table.

    Args:
        max_rows: Most rows to keep.

    Examples:
        >>> reader = TSVReader(max_rows=1)
        >>> [reader.feed(part) for part in (b"?x\\n1", b"0\\n", b"20\\n30\\n")]
        [False, False, True]
        >>> table, n_rows, more = reader.finish(cut=True)
        >>> table["x"].to_pylist(), n_rows, more, reader.n_chars
        (['10'], 1, True, 2)
    """

    def __init__(self, max_rows: int) -> None:
        self._max_rows = max_rows
        self._pending = bytearray()
        self._names: list[str] | None = None
        self._growing: GrowingTable | None = None
        self._lines = 0
        self._unread_line = False
        self._failure: Exception | None = None
        self._message: bytearray | None = None
        self.n_rows = 0
        self.n_chars = 0

    def feed(self, chunk: bytes) -> bool:
        """Take some bytes; returns whether no more are wanted."""
        if self._message is not None:
            self._message += chunk
            return len(self._message) >= MESSAGE_BYTES
        self._pending += chunk
        # Several times as fast as `bytes.count` where lines are short.
        if lines := int(np.count_nonzero(np.frombuffer(chunk, np.uint8) == _NEWLINE)):
            self._lines += lines
            self._unread_line = True
        # A header and one row more than wanted.
        enough = self._lines > self._max_rows + 1
        if self._unread_line and (enough or len(self._pending) >= BLOCK_BYTES):
            self._advance()
        return enough or self._failure is not None

    def finish(self, *, cut: bool) -> tuple[pa.Table, int, bool]:
        """Return the table, its number of rows, and whether there were more.

        Args:
            cut: Whether the bytes ended anywhere, because reading was stopped.

        Raises:
            Broken: The engine's message stands in place of the rest of the rows.
            Unfaithful: It is no SPARQL TSV.
            SetupError: The result is too large for memory and cannot be written to disk.
        """
        try:
            self._advance()
            unread = self._pending or self._names is None
            if unread and not cut and self._failure is None and self._message is None:
                self._last_line()
            if self._message is not None:
                raise Broken(self._message.decode("utf-8", "replace"))
            if self._failure is not None:
                raise self._failure
            table = columns((), ()) if self._growing is None else self._growing.finish()
            n_rows = min(self.n_rows, self._max_rows)
            return table, n_rows, cut or self.n_rows > self._max_rows
        finally:
            self.close()

    def close(self) -> None:
        """Give up what was read."""
        self._pending = bytearray()
        if self._growing is not None:
            self._growing.close()

    def _advance(self) -> None:
        """Read the whole lines that are pending."""
        end = self._pending.rfind(b"\n") + 1
        self._unread_line = False
        if not end or self._failure is not None or self._message is not None:
            return
        with memoryview(self._pending) as pending, pending[:end] as lines:
            block = bytes(lines)
        del self._pending[:end]
        if self._names is None:
            head, _, block = block.partition(b"\n")
            if not self._header(head):
                return
        self._rows(block)

    def _last_line(self) -> None:
        line = bytes(self._pending)
        if self._names is not None:
            self._rows(line)
        elif self._header(line):
            self._failure = Unfaithful("nothing after the header")
        else:
            self._message = bytearray(line)

    def _header(self, head: bytes) -> bool:
        try:
            text = head.removeprefix(_BOM).rstrip(b"\r").decode()
        except UnicodeDecodeError as error:
            self._failure = Unfaithful(f"not UTF-8: {error.reason}")
            return False
        names = text.split("\t") if text else []
        if not all(re.fullmatch(r"[?$]\w+", name) for name in names):
            self._failure = Unfaithful(f"not a header of SPARQL TSV: {text[:100]!r}")
            return False
        try:
            check_columns(names)
        except (Broken, Unfaithful) as error:
            self._failure = error
            return False
        self._names = [name[1:] for name in names]
        if names:
            schema = pa.schema([(name, pa.string()) for name in self._names])
            self._growing = GrowingTable(schema)
        return True

    def _rows(self, block: bytes) -> None:
        if self._growing is None:
            if block.strip():
                self._broken(block.lstrip())
            self.n_rows += block.count(b"\n")
            return
        if not block:
            return
        try:
            table, bad = _table(block, self._names or ())
        except pa.ArrowInvalid as error:
            self._failure = Unfaithful("not UTF-8" if "UTF8" in str(error) else str(error))
            self.close()
            return
        if bad is not None:
            self._broken(b"\n".join(block.split(b"\n")[bad:]))
            return
        kept = table.slice(0, max(0, self._max_rows - self.n_rows))
        self.n_rows += table.num_rows
        if kept.num_rows:
            self.n_chars += chars_of(kept, ascii_only=block.isascii())
            self._growing.add(kept)

    def _broken(self, message: bytes) -> None:
        self._message = bytearray(message + self._pending)
        self.close()


def read_tsv(body: bytes, *, cut: bool, max_rows: int) -> tuple[pa.Table, int, bool]:
    """Read SPARQL TSV that has arrived; arguments, result and errors are `TSVReader`'s."""
    reader = TSVReader(max_rows)
    reader.feed(body)
    return reader.finish(cut=cut)


def _table(block: bytes, names: Sequence[str]) -> tuple[pa.Table, int | None]:
    """Return string columns, and the number of the first row that is none."""
    odd: list[int] = []

    def skip(row: Any) -> str:
        odd.append(row.number)
        return "skip"

    try:
        table = _columns(block, names, None)
    except pa.ArrowInvalid:
        # Once more, now at a call for each row of another length, so that the first is found.
        table = _columns(block, names, skip)
    found = (first_bad_cell(column.chunk(0)) for column in table.columns if column.num_chunks)
    bad = min((at for at in found if at is not None), default=None)
    # Rows that were skipped are numbered from 1 and not counted in the table.
    if odd and (bad is None or min(odd) - 1 <= bad):
        bad = min(odd) - 1
    return table, bad


def _columns(block: bytes, names: Sequence[str], skip: Callable[[Any], str] | None) -> pa.Table:
    return pa.csv.read_csv(
        pa.BufferReader(block),
        read_options=pa.csv.ReadOptions(
            # One block, so that each column is one array.
            column_names=list(names),
            use_threads=False,
            block_size=len(block) + 1,
        ),
        parse_options=pa.csv.ParseOptions(
            delimiter="\t",
            quote_char=False,
            escape_char=False,
            newlines_in_values=False,
            ignore_empty_lines=False,
            invalid_row_handler=skip,
        ),
        convert_options=pa.csv.ConvertOptions(
            column_types={name: pa.string() for name in names},
            strings_can_be_null=True,
            null_values=[""],
        ),
    )
