"""What every tool return obeys: caps on rows and characters, source, and how to get the rest."""

from __future__ import annotations

import json
import reprlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

from reasoningbank import sparql
from reasoningbank.errors import ReasoningBankError, ToolError
from reasoningbank.refs import Ref
from reasoningbank.sparql.terms import cut

#: Characters of one return, of one uncut value, and of what an agent gave, repeated in an error.
MAX_CHARS, FULL_CHARS, REPEATED_CHARS = 6_000, 5_000, 60
#: Characters of all notes of one return; in a listing, of the note on what was left out.
NOTES_CHARS, LEFT_OUT_CHARS = 1_500, 250
#: Characters of the names of columns: of one in a row, of one in a note, of all in the stats.
NAME_CHARS, NOTED_CHARS, COLUMNS_CHARS = 200, 60, 3_500

#: The tools of memory, which an arm with `show = "tools"` has besides.
MEMORY_TOOL_NAMES = ("memory_search", "memory_get")

T = TypeVar("T")


@dataclass(frozen=True)
class Cap:
    """How many items a tool returns at most, and the parameter that says so."""

    most: int
    parameter: str = "limit"


#: Hard caps of the tools; the defaults are those of their signatures.
CAPS = {
    "sparql_classes": Cap(100),
    "sparql_properties": Cap(100),
    "sparql_find": Cap(50),
    "sparql_peek": Cap(20, "n"),
    "sparql_slice": Cap(50, "length"),
    "sparql_describe": Cap(50),
    "sparql_sample": Cap(50, "n"),
    "endpoints_list": Cap(50),
    "data_graphs": Cap(50),
    "service_desc_graphs": Cap(50),
    "service_desc_features": Cap(50),
    "service_desc_sample": Cap(20, "n"),
    "memory_search": Cap(20),
}


class Handle(Ref, dict[str, Any]):
    """A `Ref` that is also a dict, since sandboxes pass results on as JSON."""

    def __init__(self, ref: Ref) -> None:
        Ref.__init__(self, ref.key, ref.dtype, ref.rows, ref.sz, ref.source)
        dict.__init__(self, asdict(ref))


class Rows(list[dict[str, Any]]):
    """A bounded list of rows, one dict of compact values per row.

    Attributes:
        source: Name of the endpoint the rows come from.
        total: Rows behind the handle.
        truncated: Whether rows or characters were left out.
        note: How to get the rest; empty if nothing is missing.

    Examples:
        >>> rows = Rows([{"n": 1}], source="UniProt", total=3, truncated=True, note="2 more")
        >>> rows
        [{'n': 1}]
        (2 more)
        >>> rows == [{"n": 1}], rows.total
        (True, 3)
    """

    def __init__(
        self,
        items: Iterable[dict[str, Any]] = (),
        *,
        source: str = "",
        total: int = 0,
        truncated: bool = False,
        note: str = "",
    ) -> None:
        super().__init__(items)
        self.source = source
        self.total = total
        self.truncated = truncated
        self.note = note

    def __repr__(self) -> str:
        shown = super().__repr__()
        return f"{shown}\n({self.note})" if self.note else shown


def tool_error(error: ReasoningBankError, hint: str = "", what: str = "") -> ToolError:
    """Return an error as that of a tool, with its code and fields."""
    fields, hint = dict(error.fields), hint or error.hint
    return ToolError(what or error.what, where=error.where, hint=hint, code=error.code, **fields)


def brief_repr(value: object) -> str:
    """Return what an agent gave, as an error or a note repeats it: at most 60 characters."""
    try:
        return reprlib.repr(value)[:REPEATED_CHARS]
    except ValueError:  # Python writes no number of more than 4,300 digits.
        return "a number of too many digits"


def bounded_limit(tool: str, limit: int, most: int | None = None) -> tuple[int, str]:
    """Return the limit a call gets and, if it was lowered, a note that says so."""
    name = CAPS[tool].parameter if tool in CAPS else "limit"
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
        what = f"the {name} of {tool} is {brief_repr(limit)}, not a positive whole number"
        raise ToolError(what, hint="give a number from 1", code="bad-limit", tool=tool)
    most = CAPS[tool].most if most is None else most
    if limit > most:
        return most, f"{name} lowered from {brief_repr(limit)} to {most}, the maximum of {tool}"
    return limit, ""


def size_of(value: object) -> int:
    """Return the characters of a value as JSON."""
    return len(json.dumps(value, ensure_ascii=False, default=str))


def fit(items: Iterable[T], max_chars: int = MAX_CHARS, *, least: int = 1) -> list[T]:
    """Return the leading items that fit in `max_chars` of JSON, but at least `least`."""
    used = 0
    kept: list[T] = []
    for item in items:
        used += size_of(item) + 2
        if len(kept) >= least and used > max_chars:
            break
        kept.append(item)
    return kept


def some(
    items: Sequence[T], max_chars: int, more: str, notes: list[str], most: int | None = None
) -> list[T]:
    """Return the leading items, at most `most`, that fit; note how many more there are, of what."""
    kept = fit(items[:most], max_chars, least=0)
    if left := len(items) - len(kept):
        notes.append(f"{left} more {more}")
    return kept


def noted(shown: dict[str, Any], notes: Iterable[str]) -> dict[str, Any]:
    """Return a tool's return with its notes, if there are any."""
    text = "; ".join(note for note in notes if note)
    return shown | ({"note": cut(text, NOTES_CHARS)} if text else {})


def listing(
    shown: dict[str, Any],
    name: str,
    items: Sequence[Any],
    notes: Iterable[str],
    *,
    limit: int,
    left_out: Callable[[int], str],
) -> dict[str, Any]:
    """Return a return with at most `limit` items, as many as fit, and its notes.

    `left_out` says from the number of the items how to get those that are not among them.
    """
    head = noted(shown, notes)
    kept = fit(items[:limit], MAX_CHARS - LEFT_OUT_CHARS - size_of(head), least=0)
    cut_off = len(kept) < len(items)
    listed = {**shown, "count": len(kept), name: kept, "truncated": cut_off}
    return noted(listed, [left_out(len(kept)) if cut_off else "", *notes])


def page(
    tool: str,
    ref: Ref,
    name: str,
    items: Sequence[Any],
    limit: int,
    start: int,
    empty: str,
    **extra: Any,
) -> dict[str, Any]:
    """Return some of the items behind a handle; a note names the call for the rest."""
    limit, lowered = bounded_limit(tool, limit)
    if isinstance(start, bool) or not isinstance(start, int) or start < 0:
        what, hint = f"the start of {tool} is {brief_repr(start)}", "give a whole number from 0"
        raise ToolError(what, hint=hint, code="bad-start", tool=tool)
    if start and start >= len(items):
        what = f"{ref.key} has only {len(items)} {name}, and the start is {brief_repr(start)}"
        raise ToolError(what, hint="give a smaller start", code="bad-start", tool=tool)

    def left_out(shown: int) -> str:
        call = f'{tool}("{ref.key}", {CAPS[tool].parameter}={CAPS[tool].most}'
        # What is too long for one return is passed over.
        return f"{len(items) - start - shown} more: {call}, start={start + max(1, shown)})"

    head = {"source": ref.source, **extra, "total": len(items)}
    notes = [lowered, "" if items else empty]
    return listing(head, name, items[start:], notes, limit=limit, left_out=left_out)


# -- what is behind a handle of a query -------------------------------------------------------


def show_stats(
    ref: Ref, result: sparql.Result, notes: Iterable[str], *, most: int | None
) -> dict[str, Any]:
    """Return the rows, size and columns of a handle, and whether it was cut.

    `most` is what a higher limit may give; None where none gives more.
    """
    stats: dict[str, Any] = {"source": ref.source, "rows": ref.rows, "sz": ref.sz}
    if isinstance(result, sparql.BooleanResult):
        return noted(stats | {"boolean": result.value, "truncated": False}, notes)
    left: list[str] = []
    how = "columns: SELECT fewer, or give them short names"
    stats["cols"] = some(result.variables, COLUMNS_CHARS, how, left)
    stats["truncated"] = result.truncated or bool(left)
    return noted(stats, [_more(result, most), *left, *notes])


def show_rows(
    ref: Ref,
    result: sparql.Result,
    start: int,
    end: int,
    notes: Iterable[str],
    *,
    most: int | None,
    namespaces: Mapping[str, str],
    whole: bool = False,
) -> Rows:
    """Return the rows from `start` to `end`, compact or, if `whole`, as N-Triples writes them."""
    said = "; ".join(filter(None, notes))
    if isinstance(result, sparql.BooleanResult):
        return Rows([{"boolean": result.value}], source=ref.source, total=1, note=said)
    if start and start >= result.n_rows:
        raise ToolError(
            f"{ref.key} has only {result.n_rows} rows, and the slice starts at {brief_repr(start)}",
            hint=f"slice from 0 to {result.n_rows}",
            code="bad-slice",
            rows=result.n_rows,
        )

    def show(term: sparql.Term | None) -> Any:
        return _uncut(term) if whole else sparql.compact(term, namespaces)

    rows = (
        {name: show(term) for name, term in zip(result.variables, row, strict=True)}
        for row in result.rows(start, end)
    )
    said = cut(said, NOTES_CHARS)
    items = fit(rows, MAX_CHARS - len(said) - LEFT_OUT_CHARS)
    left_out: list[str] = []
    if items:
        items[0], left_out = _narrow(items[0])
    named = ", ".join(cut(name, NOTED_CHARS) for name in left_out[:10])
    stop = start + len(items)
    rest = ref.rows - stop
    following = f"{rest} more rows: sparql_slice({ref.key!r}, {stop}, {stop + 50})"
    more = following if rest > 0 else _more(result, most)
    missing = f"columns left out, too long: {named}" if left_out else ""
    return Rows(
        items,
        source=ref.source,
        total=ref.rows,
        truncated=rest > 0 or bool(left_out) or result.truncated,
        note="; ".join(filter(None, (more, missing, said))),
    )


def _more(result: sparql.TableResult | sparql.GraphResult, most: int | None) -> str:
    if not result.truncated or most is None:
        return ""
    if result.n_rows < most:
        return f"the endpoint has more rows: sparql_query(query, limit={most}) gives up to {most:,}"
    return (
        f"the endpoint has more rows than {most:,}, the maximum of sparql_query: narrow the "
        "query, or page with ORDER BY, LIMIT and OFFSET"
    )


def _uncut(term: sparql.Term | None) -> str | None:
    text = None if term is None else sparql.full(term)
    if text is None or len(text) <= FULL_CHARS:
        return text
    return f"{text[:FULL_CHARS]}… ({len(text)} characters; SUBSTR in a query gives the rest)"


def _narrow(row: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return the columns that fit in one return, and the others' names."""
    kept: dict[str, Any] = {}
    used = 0
    for name, value in row.items():
        size = len(json.dumps({name: value}, ensure_ascii=False))
        if used + size > MAX_CHARS and (kept or len(name) > NAME_CHARS):
            continue
        used += size
        kept[name] = value
    return kept, [name for name in row if name not in kept]
