"""Whether the cells of a column are terms, as faithful SPARQL TSV writes them.

A regular expression over every cell takes most of the time in which a large result is read. So
the two commonest kinds of column are proved whole, by counting and placing the characters that
delimit their terms: those that hold IRIs alone, and those whose literals are all of one type or
language and hold no escapes.
"""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["first_bad_cell"]

# Wider than the grammar: public stores hold IRIs with spaces, and language tags such as `en_US`.
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
    """Return the number of the first cell that is no term; null is unbound, and no defect.

    Args:
        column: Strings; none of them holds a tab, or a line break.

    Examples:
        >>> first_bad_cell(pa.array(["<http://e/a>", None, '"x"@en', "1.5e3", "_:b"])) is None
        True
        >>> first_bad_cell(pa.array(["<http://e/a>", None, "Baum"]))
        2
    """
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
    # Two in each cell, the first at its start.
    if len(quotes) != 2 * len(column) or (quotes[::2] != starts).any():
        return False
    end = column[0].as_py().encode()[quotes[1] :]
    return bool(_LITERAL_END.fullmatch(end) and pc.all(pc.ends_with(column, end)).as_py())


def _bytes(column: pa.Array) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the bytes of all cells in a row, and where each starts and ends in them."""
    _, offsets, data = column.buffers()
    at = np.frombuffer(offsets, np.int32)[column.offset : column.offset + len(column) + 1]
    return np.frombuffer(data, np.uint8)[at[0] : at[-1]], at[:-1] - at[0], at[1:] - at[0]
