"""From the bytes of a response to a result; what engines break on the way is told apart here."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute
import pyarrow.csv
from pyoxigraph import QueryResultsFormat, RdfFormat, Triple, parse, parse_query_results

from reasoningbank.sparql.results import columns
from reasoningbank.sparql.terms import full
from reasoningbank.sparql.termtext import term_text

__all__ = ["Broken", "Unfaithful", "read_boolean", "read_graph", "read_table", "read_tsv"]

# Wider than the grammar: public stores hold IRIs with spaces, and language tags such as `en_US`.
_IRI = r"<[^<>\t\r\n]*>"
_STRING = r"\"(?:[^\"\\\n\r]|\\.)*\""
#: A cell of faithful TSV (SPARQL 1.1 TSV results, 3.1; triple terms of SPARQL 1.2).
_CELL = (
    rf"^(?:{_IRI}|{_STRING}(?:@[A-Za-z0-9_-]+|\^\^{_IRI})?|_:\S+"
    r"|[+-]?(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|true|false|<<.*>>)$"
)
_MESSAGE_CHARS = 400


class Broken(Exception):  # noqa: N818 - mapped by the client
    """The engine stopped in the middle of its answer and wrote a message into it."""


class Unfaithful(Exception):  # noqa: N818
    """The body is not the format it claims to be."""


def read_tsv(body: bytes, *, cut: bool, max_rows: int) -> tuple[pa.Table, int, bool]:
    """Read SPARQL TSV into string columns.

    Args:
        body: The bytes of the response.
        cut: Whether they end anywhere, because reading was stopped.
        max_rows: Most rows to keep.

    Returns:
        The table, its number of rows, and whether there were more.

    Raises:
        Broken: The engine's message stands in place of the rest of the rows.
        Unfaithful: It is no SPARQL TSV.
    """
    if cut:
        body = body[: body.rfind(b"\n") + 1]
    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Unfaithful(f"not UTF-8: {error.reason}") from error
    head, newline, rest = text.partition("\n")
    names = _names(head.rstrip("\r"))
    if not newline and not cut:
        raise Broken(head) if names is None else Unfaithful("nothing after the header")
    if names is None:
        raise Unfaithful(f"not a header of SPARQL TSV: {head[:100]!r}")
    if not names:
        if rest.strip():
            raise Broken(rest)
        n_rows = rest.count("\n")
        return columns((), ()), min(n_rows, max_rows), cut or n_rows > max_rows
    table = _csv(rest, names)
    truncated = cut or table.num_rows > max_rows
    return table.slice(0, max_rows), min(table.num_rows, max_rows), truncated


def _names(head: str) -> list[str] | None:
    if not head:
        return []
    names = head.split("\t")
    if all(re.fullmatch(r"[?$]\w+", name) for name in names):
        return [name[1:] for name in names]
    return None


def _csv(rest: str, names: Sequence[str]) -> pa.Table:
    if not rest:
        return columns(names, ())
    data = rest.encode()
    odd: list[int] = []

    def skip(row: Any) -> str:
        odd.append(row.number)
        return "skip"

    try:
        table = pa.csv.read_csv(
            io.BytesIO(data),
            read_options=pa.csv.ReadOptions(
                column_names=list(names), use_threads=False, block_size=len(data) + 1
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
    except pa.ArrowInvalid as error:
        raise Unfaithful(str(error)) from error
    bad = _first_bad_cell(table)
    # Rows that were skipped are numbered from 1 and not counted in the table.
    if odd and (bad is None or min(odd) - 1 <= bad):
        bad = min(odd) - 1
    if bad is not None:
        raise Broken("\n".join(rest.split("\n")[bad:]))
    return table


def _first_bad_cell(table: pa.Table) -> int | None:
    first: int | None = None
    for column in table.columns:
        good = pa.compute.match_substring_regex(column, _CELL)
        at = pa.compute.index(good, False).as_py()
        if at >= 0 and (first is None or at < first):
            first = at
    return first


def read_table(
    body: bytes, media_type: str, *, cut: bool, max_rows: int
) -> tuple[pa.Table, int, bool]:
    """Read SPARQL JSON or XML results; arguments, result and errors are those of `read_tsv`."""
    names: tuple[str, ...] = ()
    rows: list[list[str | None]] = []
    try:
        solutions: Any = parse_query_results(body, _results_format(body, media_type))
        names = tuple(variable.value for variable in solutions.variables)
        for solution in solutions:
            if len(rows) == max_rows:
                return columns(names, rows), len(rows), True
            rows.append([None if term is None else full(term) for term in solution])
    except SyntaxError as error:
        if not cut:
            return _read_loose_json(body, error, max_rows)
    except (AttributeError, ValueError, TypeError) as error:
        raise Unfaithful(f"not the results of a SELECT: {error}") from error
    return columns(names, rows), len(rows), cut


def _read_loose_json(body: bytes, reason: SyntaxError, max_rows: int) -> tuple[pa.Table, int, bool]:
    """Read JSON results with terms that RDF does not allow, as public stores hold them."""
    try:
        results = json.loads(body)
    except ValueError:
        raise Broken(_tail(body) or str(reason)) from reason
    try:
        names = results["head"]["vars"]
        bindings = results["results"]["bindings"]
        rows = [
            [term_text(row[name]) if name in row else None for name in names]
            for row in bindings[:max_rows]
        ]
    except (KeyError, TypeError, ValueError) as error:
        raise Unfaithful(f"not SPARQL JSON results: {reason}") from error
    return columns(names, rows), len(rows), len(bindings) > max_rows


def _results_format(body: bytes, media_type: str) -> QueryResultsFormat:
    if "json" in media_type or body.lstrip()[:1] == b"{":
        return QueryResultsFormat.JSON
    if "xml" in media_type or body.lstrip()[:1] == b"<":
        return QueryResultsFormat.XML
    raise Unfaithful(f"results in an unknown format: {media_type or 'none named'}")


def read_boolean(body: bytes) -> bool:
    """Read the answer of an ASK, in JSON, XML or as the bare word.

    Raises:
        Broken: The engine wrote a message instead.
    """
    text = body.decode("utf-8", "replace").strip().lstrip("\ufeff")
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    try:
        value = json.loads(text)["boolean"]
    except (ValueError, KeyError, TypeError):
        found = re.search(r"<boolean>\s*(true|false)\s*</boolean>", text)
        if found is None:
            raise Broken(_tail(body) or "no boolean in the answer") from None
        return found[1] == "true"
    return value is True or str(value).lower() in ("true", "1")


def read_graph(
    body: bytes, media_type: str, *, cut: bool, max_rows: int
) -> tuple[list[Triple], bool]:
    """Read the triples of a CONSTRUCT or DESCRIBE, without repetitions, and whether more came.

    Raises:
        Broken: The engine's message stands in place of the rest.
        Unfaithful: The format is not known.
    """
    triples: dict[Triple, None] = {}
    try:
        for triple in _parse_graph(body, media_type):
            if triple not in triples and len(triples) == max_rows:
                return list(triples), True
            triples[triple] = None
    except SyntaxError as error:
        if not cut:
            whole = body.rstrip().endswith((b".", b"}", b"]", b">"))
            raise (Unfaithful if whole else Broken)(_tail(body) or str(error)) from error
    return list(triples), cut


def _parse_graph(body: bytes, media_type: str) -> Iterable[Triple]:
    known = RdfFormat.from_media_type(media_type) if media_type else None
    if known is None and media_type in ("text/plain", ""):
        known = RdfFormat.N_TRIPLES
    if known is None:
        raise Unfaithful(f"a graph in an unknown format: {media_type}")
    for quad in parse(body, known, lenient=True):
        yield quad.triple


def _tail(body: bytes) -> str:
    """Return what an engine wrote after the last piece of well-formed output."""
    text = body[-4 * _MESSAGE_CHARS :].decode("utf-8", "replace")
    return re.split(r"[{}\[\]>]|\s\.\n", text)[-1].strip(" ,\n")[:_MESSAGE_CHARS]
