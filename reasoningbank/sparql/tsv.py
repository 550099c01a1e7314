"""SPARQL TSV as a stream: what arrives becomes Arrow columns block by block.

At most one block of the response is held as bytes, and a table that outgrows memory goes to disk
while it arrives, so memory is bounded for any size of result.

A regular expression over every cell takes most of the time in which a large result is read. So
the two most common kinds of column are checked as a whole, by counting and locating their
delimiters: those that hold only IRIs, and those whose literals all have one type or language and
no escapes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from reasoningbank.sparql.formats import Broken, Unfaithful, check_columns
from reasoningbank.sparql.results import chars_of, columns
from reasoningbank.spill import GrowingTable

#: Bytes that are converted at once.
BLOCK_BYTES = 1024 * 1024
MESSAGE_BYTES = 64 * 1024
_NEWLINE = ord("\n")
_BOM = b"\xef\xbb\xbf"


class TSVReader:
    """Takes the bytes of a response as they arrive; `finish` returns the table."""

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
        """Take some bytes; return whether no more are wanted."""
        if self._message is not None:
            self._message += chunk
            return len(self._message) >= MESSAGE_BYTES
        self._pending += chunk
        # Several times as fast as `bytes.count` for short lines.
        if lines := int(np.count_nonzero(np.frombuffer(chunk, np.uint8) == _NEWLINE)):
            self._lines += lines
            self._unread_line = True
        # A header and one row more than wanted.
        enough = self._lines > self._max_rows + 1
        if self._unread_line and (enough or len(self._pending) >= BLOCK_BYTES):
            self._advance()
        return enough or self._failure is not None

    def finish(self, *, cut: bool) -> tuple[pa.Table, int, bool]:
        """Return the table, its number of rows, and whether there were more."""
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
        """Discard what was read."""
        self._pending = bytearray()
        if self._growing is not None:
            self._growing.close()

    def _advance(self) -> None:
        """Read the complete pending lines."""
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
            self._failure = Unfaithful(_reason(block, error))
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


def _reason(block: bytes, error: pa.ArrowInvalid) -> str:
    try:
        block.decode()
    except UnicodeDecodeError as undecodable:
        return f"not UTF-8: {undecodable.reason}"
    return f"not string columns: {error}"


def _table(block: bytes, names: Sequence[str]) -> tuple[pa.Table, int | None]:
    """Return string columns, and the index of the first row that is malformed."""
    odd: list[int] = []

    def skip(row: Any) -> str:
        odd.append(row.number)
        return "skip"

    try:
        table = _columns(block, names, None)
    except pa.ArrowInvalid:
        # Again, with a call for each row of another length, to find the first one.
        table = _columns(block, names, skip)
    found = (first_bad_cell(column.chunk(0)) for column in table.columns if column.num_chunks)
    bad = min((at for at in found if at is not None), default=None)
    # Skipped rows are numbered from 1 and not in the table.
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


# Wider than the grammar: public stores have IRIs with spaces, and language tags such as `en_US`.
_IRI = r"<[^<>\t\r\n]*>"
_STRING = r"\"(?:[^\"\\\n\r]|\\.)*\""
_SUFFIX = rf"(?:@[A-Za-z0-9_-]+|\^\^{_IRI})?"
#: A cell of faithful TSV (SPARQL 1.1 TSV results, 3.1; triple terms of SPARQL 1.2).
_CELL = (
    rf"^(?:{_IRI}|{_STRING}{_SUFFIX}|_:\S+"
    r"|[+-]?(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|true|false|<<.*>>)$"
)
_LITERAL_END = re.compile(rf"\"{_SUFFIX}".encode())
_OPEN, _CLOSE, _QUOTE, _ESCAPE = b'<>"\\'


def first_bad_cell(column: pa.Array) -> int | None:
    """Return the index of the first cell that is not a term; null is unbound and fine."""
    bound = column.drop_null() if column.null_count else column
    if not len(bound) or _all_iris(bound) or _all_alike(bound):
        return None
    at: int = pc.index(pc.match_substring_regex(column, _CELL), False).as_py()
    return None if at < 0 else at


def _all_iris(column: pa.Array) -> bool:
    text, starts, ends = _bytes(column)
    if (starts == ends).any() or text[0] != _OPEN:
        return False
    opening, closing = np.count_nonzero(text == _OPEN), np.count_nonzero(text == _CLOSE)
    if opening != len(column) or closing != len(column):
        return False
    return bool((text[starts] == _OPEN).all() and (text[ends - 1] == _CLOSE).all())


def _all_alike(column: pa.Array) -> bool:
    text, starts, _ = _bytes(column)
    if not len(text) or text[0] != _QUOTE or (text == _ESCAPE).any():
        return False
    quotes = np.flatnonzero(text == _QUOTE)
    # Two per cell, the first at its start.
    if len(quotes) != 2 * len(column) or (quotes[::2] != starts).any():
        return False
    end = column[0].as_py().encode()[quotes[1] :]
    return bool(_LITERAL_END.fullmatch(end) and pc.all(pc.ends_with(column, end)).as_py())


def _bytes(column: pa.Array) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the bytes of all cells, and the start and end of each cell."""
    _, offsets, data = column.buffers()
    at = np.frombuffer(offsets, np.int32)[column.offset : column.offset + len(column) + 1]
    return np.frombuffer(data, np.uint8)[at[0] : at[-1]], at[:-1] - at[0], at[1:] - at[0]
