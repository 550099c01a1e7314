"""N-Triples as a stream: what arrives becomes Arrow columns block by block, each triple once."""

from __future__ import annotations

from hashlib import blake2b

import pyarrow as pa
from pyoxigraph import RdfFormat, parse

from reasoningbank.sparql.readers import graph_failure
from reasoningbank.sparql.results import GRAPH_COLUMNS, chars_of, columns
from reasoningbank.sparql.terms import full
from reasoningbank.sparql.tokens import check_terms
from reasoningbank.spill import GrowingTable

__all__ = ["NTriplesReader"]

BLOCK_BYTES = 1024 * 1024
MESSAGE_BYTES = 64 * 1024
_SCHEMA = pa.schema([(name, pa.string()) for name in GRAPH_COLUMNS])


class NTriplesReader:
    """Takes the bytes of a response as they come; `finish` gives the table.

    Of a triple that was seen only a digest of 16 bytes is kept, to know it again.

    Args:
        max_rows: Most triples to keep.

    Examples:
        >>> reader = NTriplesReader(max_rows=9)
        >>> line = b"<http://e/a> <http://e/b> _:c .\\n"
        >>> [reader.feed(part) for part in (line[:9], line[9:] + line)]
        [False, False]
        >>> table, n_rows, more = reader.finish(cut=False)
        >>> table["object"].to_pylist(), n_rows, more
        (['_:c'], 1, False)
    """

    def __init__(self, max_rows: int) -> None:
        self._max_rows = max_rows
        self._pending = bytearray()
        self._growing = GrowingTable(_SCHEMA)
        self._seen: set[bytes] = set()
        self._failure: SyntaxError | ValueError | None = None
        self._more = False
        self.n_chars = 0

    def feed(self, chunk: bytes) -> bool:
        """Take some bytes; returns whether no more are wanted."""
        self._pending += chunk
        if self._failure is not None:
            return len(self._pending) >= MESSAGE_BYTES
        if len(self._pending) >= BLOCK_BYTES and b"\n" in chunk:
            self._read(self._pending.rfind(b"\n") + 1)
        return self._more

    def finish(self, *, cut: bool) -> tuple[pa.Table, int, bool]:
        """Return the table, its number of triples, and whether there were more.

        Args:
            cut: Whether the bytes ended anywhere, because reading was stopped.

        Raises:
            Broken: The engine's message stands in place of the rest.
            Unfaithful: It is no N-Triples.
            SetupError: The graph is too large for memory and cannot be written to disk.
        """
        try:
            if self._failure is None and not self._more:
                self._read(self._pending.rfind(b"\n") + 1 if cut else len(self._pending))
            if self._failure is not None:
                raise graph_failure(bytes(self._pending), self._failure)
            return self._growing.finish(), len(self._seen), cut or self._more
        finally:
            self.close()

    def close(self) -> None:
        """Give up what was read."""
        self._pending = bytearray()
        self._growing.close()

    def _read(self, end: int) -> None:
        block = bytes(self._pending[:end])
        rows: list[list[str]] = []
        try:
            check_terms(block)
            for quad in parse(block, RdfFormat.N_TRIPLES, lenient=True):
                row = [full(part) for part in quad.triple]
                digest = blake2b("\n".join(row).encode(), digest_size=16).digest()
                if digest in self._seen:
                    continue
                if len(self._seen) == self._max_rows:
                    self._more = True
                    break
                self._seen.add(digest)
                rows.append(row)
        except (SyntaxError, ValueError) as error:
            # What stands there may be a message, so the bytes are kept.
            self._failure = error
            self._growing.close()
            return
        del self._pending[:end]
        if rows:
            table = columns(GRAPH_COLUMNS, rows)
            self.n_chars += chars_of(table)
            self._growing.add(table)
