"""Looking at what is behind a handle: rows for an agent, bounded, with what there is to say."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from reasoningbank.errors import ToolError
from reasoningbank.refs import Ref
from reasoningbank.sparql import (
    BooleanResult,
    GraphResult,
    PreparedQuery,
    Result,
    TableResult,
    Term,
    compact,
    full,
)
from reasoningbank.sparql.terms import cut
from reasoningbank.tools.bounds import MAX_CHARS, fit, told
from reasoningbank.tools.rows import Rows

__all__ = ["Asked", "bare_columns", "compact_row", "show_rows", "show_stats", "size_of"]

#: Characters of one value where the full form is wanted.
FULL_CHARS = 5_000
#: Characters of the names of columns: of one in a row, of one in a note, of all in the stats.
NAME_CHARS = 200
NOTED_CHARS = 60
COLUMNS_CHARS = 4_000
MORE = "the endpoint has more rows: raise limit or narrow the query"
MORE_THAN_MOST = (
    "the endpoint has more rows, and no limit gives them: narrow the query, or page with "
    "ORDER BY, LIMIT and OFFSET"
)


@dataclass
class Asked:
    """The query behind a handle, and what is to be said of its result.

    Attributes:
        prepared: The query.
        note: What was changed of it.
        found: Why it gave nothing, once somebody looked.
    """

    prepared: PreparedQuery
    note: str = ""
    found: tuple[str, ...] | None = field(default=None)


def show_stats(ref: Ref, result: Result, notes: list[str], *, most: int) -> dict[str, Any]:
    """Return what a handle holds: rows, size, columns, whether cut; `most` as in `show_rows`."""
    stats: dict[str, Any] = {"source": ref.source, "rows": ref.rows, "sz": ref.sz}
    if isinstance(result, BooleanResult):
        stats |= {"boolean": result.value, "truncated": False}
    else:
        columns = fit(result.variables, COLUMNS_CHARS, least=0)
        left_out = len(result.variables) - len(columns)
        stats |= {"cols": columns, "truncated": result.truncated or left_out > 0}
        if left_out:
            notes = [*notes, f"{left_out} more columns: SELECT fewer, or give them short names"]
        if result.truncated:
            notes = [*notes, _more(result, most)]
    return stats | ({"note": "; ".join(notes)} if notes else {})


def show_rows(
    ref: Ref,
    result: Result,
    start: int,
    end: int,
    notes: list[str],
    *,
    most: int,
    namespaces: Mapping[str, str],
    whole: bool = False,
) -> Rows:
    """Return the rows from `start` to `end` as an agent reads them.

    Args:
        ref: The handle.
        result: What it names.
        start: The first row.
        end: The row after the last.
        notes: What there is to say beforehand.
        most: Rows the endpoint gives at most; where it gave so many, no limit gives more.
        namespaces: Prefix → namespace, for prefixed names.
        whole: Whether terms are shown in full, as N-Triples writes them.

    Raises:
        ToolError: There are no rows from `start` on.
    """
    if isinstance(result, BooleanResult):
        return Rows([{"boolean": result.value}], source=ref.source, total=1, note="; ".join(notes))
    if start > result.n_rows or (start == result.n_rows and start > 0):
        raise ToolError(
            f"{ref.key} has {result.n_rows} rows, so none from {told(start)}",
            hint=f"slice from 0 to {result.n_rows}",
        )
    rows = result.rows(start, end)
    if whole:
        shown = [_full_row(result.variables, row) for row in rows]
    else:
        shown = [compact_row(result.variables, row, namespaces) for row in rows]
    items = fit(shown)
    left_out: list[str] = []
    if items:
        items[0], left_out = _narrow(items[0])
        if left_out:
            named = ", ".join(cut(name, NOTED_CHARS) for name in left_out[:10])
            notes = [*notes, f"columns left out, too long: {named}"]
    stop = start + len(items)
    rest = ref.rows - stop
    if rest > 0:
        notes = [*notes, f"{rest} more rows: sparql_slice({ref.key!r}, {stop}, {stop + 50})"]
    elif result.truncated:
        notes = [*notes, _more(result, most)]
    return Rows(
        items,
        source=ref.source,
        total=ref.rows,
        truncated=rest > 0 or bool(left_out) or result.truncated,
        note="; ".join(notes),
    )


def compact_row(
    columns: tuple[str, ...], row: tuple[Term | None, ...], namespaces: Mapping[str, str]
) -> dict[str, Any]:
    """Return a row of compact values."""
    return {name: compact(term, namespaces) for name, term in zip(columns, row, strict=True)}


def size_of(result: Result) -> int:
    """Return the characters of all cells, as the endpoint wrote them."""
    return len(str(result.value)) if isinstance(result, BooleanResult) else result.chars


def bare_columns(result: Result) -> bool:
    """Say whether a column has no value in any row, as a misspelt OPTIONAL leaves it."""
    if not isinstance(result, TableResult | GraphResult) or not result.n_rows:
        return False
    return any(column.null_count == result.n_rows for column in result.table.columns)


def _more(result: TableResult | GraphResult, most: int) -> str:
    return MORE if result.n_rows < most else MORE_THAN_MOST


def _full_row(columns: tuple[str, ...], row: tuple[Term | None, ...]) -> dict[str, Any]:
    return {
        name: None if term is None else _cut(full(term))
        for name, term in zip(columns, row, strict=True)
    }


def _cut(text: str) -> str:
    if len(text) <= FULL_CHARS:
        return text
    return f"{text[:FULL_CHARS]}… ({len(text)} characters; SUBSTR in a query gives the rest)"


def _narrow(row: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return the columns that fit in one return, and the others' names.

    The first is kept if only its value is too long, which is cut already, and not its name.
    """
    kept: dict[str, Any] = {}
    used = 0
    for name, value in row.items():
        size = len(json.dumps({name: value}, ensure_ascii=False))
        if used + size > MAX_CHARS and (kept or len(name) > NAME_CHARS):
            continue
        used += size
        kept[name] = value
    return kept, [name for name in row if name not in kept]
