"""Formats of results and RDF documents: TSV, JSON, XML, RDF, and what engines break in them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
from pyoxigraph import Quad, QueryResultsFormat, RdfFormat, Triple, parse, parse_query_results

from reasoningbank.http import Reply
from reasoningbank.sparql.results import GRAPH_COLUMNS, GraphResult, TableResult, chars_of, columns
from reasoningbank.sparql.terms import full, term_text
from reasoningbank.sparql.tokens import MOST_DEPTH
from reasoningbank.spill import GrowingTable, Spool

_MESSAGE_CHARS = 400
MESSAGE_BYTES = 64 * 1024
#: A longer first line is not a header.
HEADER_BYTES = 16 * 1024 * 1024
_SCHEMA = pa.schema([(name, pa.string()) for name in GRAPH_COLUMNS])
#: Each column has a cost, regardless of the number of rows.
MOST_COLUMNS = 1_000
#: The one variable of the table with which Virtuoso answers an ASK.
_ASKED = "__ASK_RETVAL"


class Broken(Exception):  # noqa: N818 - mapped by the client
    """The engine stopped within its answer and wrote a message into it."""


class Unfaithful(Exception):  # noqa: N818
    """The body is not the format it claims to be."""


def read_table(body: bytes, media_type: str, *, cut: bool, max_rows: int) -> TableResult:
    """Read SPARQL JSON or XML results into string columns."""
    names: tuple[str, ...] = ()
    rows: list[list[str | None]] = []
    solutions: Any = None
    try:
        kind = _results_format(body, media_type)
        check_document(body, xml=kind == QueryResultsFormat.XML)
        solutions = parse_query_results(body, kind)
        if not hasattr(solutions, "variables"):
            raise Unfaithful("a boolean came in answer to a SELECT")
        names = tuple(variable.value for variable in solutions.variables)
        check_columns(names)
        for solution in solutions:
            if len(rows) == max_rows:
                cut = True
                break
            rows.append([None if term is None else full(term) for term in solution])
    except (SyntaxError, MemoryError) as error:
        # MemoryError: from the parser, for a single value of more than 16 MiB.
        if not cut:
            return _read_loose_json(body, error, max_rows)
    except (AttributeError, ValueError, TypeError) as error:
        raise Unfaithful(f"not the results of a SELECT: {error}") from error
    finally:
        # An error keeps this frame, perhaps in another thread; only this one may drop them.
        solutions = None
    return TableResult(columns(names, rows), len(rows), cut)


def check_columns(names: Sequence[str]) -> None:
    if len(names) > MOST_COLUMNS:
        raise Broken(f"it has {len(names):,} columns, more than {MOST_COLUMNS:,}")
    if len(set(names)) < len(names):
        raise Unfaithful("two columns of it have the same name")


def _read_loose_json(body: bytes, reason: Exception, max_rows: int) -> TableResult:
    """Read JSON results with terms that RDF does not allow, as public stores have them."""
    try:
        results = json.loads(body)
    except ValueError:
        raise Broken(_tail(body) or str(reason)) from reason
    try:
        names = results["head"]["vars"]
        bindings = results["results"]["bindings"]
        check_columns(names)
        rows = [
            [term_text(row[name]) if name in row else None for name in names]
            for row in bindings[:max_rows]
        ]
    except (KeyError, TypeError, ValueError) as error:
        raise Unfaithful(f"not SPARQL JSON results: {reason}") from error
    return TableResult(columns(names, rows), len(rows), len(bindings) > max_rows)


def _results_format(body: bytes, media_type: str) -> QueryResultsFormat:
    if not body.strip():
        raise Unfaithful("nothing in it")
    if "json" in media_type or body.lstrip()[:1] == b"{":
        return QueryResultsFormat.JSON
    if "xml" not in media_type and body.lstrip()[:1] != b"<":
        raise Unfaithful(f"results in an unknown format: {media_type or 'none named'}")
    return QueryResultsFormat.XML


def read_tsv(spool: Spool, *, cut: bool, max_rows: int) -> TableResult:
    """Read SPARQL TSV block by block into string columns, which go to disk if they are many."""
    spool.file.seek(0)
    head = spool.file.readline(HEADER_BYTES)
    whole = head.endswith(b"\n")
    if cut and not whole:
        return TableResult(columns((), ()), 0, True)
    try:
        names = _header(head)
    except Unfaithful:
        if not whole:
            raise Broken(head[:MESSAGE_BYTES].decode("utf-8", "replace")) from None
        raise
    if not whole:
        raise Unfaithful("nothing after the header")
    n_rows = n_chars = 0
    with GrowingTable(pa.schema([(name, pa.string()) for name in names])) as growing:
        for block in spool.blocks(cut=cut):
            table, n, odd = _read_block(block, names)
            if odd is not None:
                message = b"\n".join(block.split(b"\n")[odd:]) + spool.file.read(MESSAGE_BYTES)
                raise Broken(message.decode("utf-8", "replace"))
            kept = table.slice(0, max(0, max_rows - n_rows))
            n_rows += n
            n_chars += chars_of(kept)
            growing.add(kept)
            if n_rows > max_rows:
                break
        truncated = cut or n_rows > max_rows
        return TableResult(growing.finish(), min(n_rows, max_rows), truncated, n_chars=n_chars)


def _header(head: bytes) -> list[str]:
    try:
        text = head.removeprefix(b"\xef\xbb\xbf").rstrip(b"\r\n").decode()
    except UnicodeDecodeError as error:
        raise Unfaithful(f"not UTF-8: {error.reason}") from error
    names = text.split("\t") if text else []
    if not all(re.fullmatch(r"[?$]\w+", name) for name in names):
        raise Unfaithful(f"not a header of SPARQL TSV: {text[:100]!r}")
    check_columns(names)
    return [name[1:] for name in names]


def _read_block(block: bytes, names: Sequence[str]) -> tuple[pa.Table, int, int | None]:
    """Return string columns, the number of rows, and the index of the first malformed row."""
    if not names:
        lines = block.split(b"\n")
        odd_line = next((at for at, line in enumerate(lines) if line.strip()), None)
        return columns((), ()), block.count(b"\n"), odd_line
    odd: list[int] = []

    def skip(row: Any) -> str:
        odd.append(row.number - 1)
        return "skip"

    try:
        table = pa.csv.read_csv(
            pa.BufferReader(block),
            # One block, so that each column is one array.
            pa.csv.ReadOptions(
                column_names=list(names), use_threads=False, block_size=len(block) + 1
            ),
            pa.csv.ParseOptions(
                delimiter="\t",
                quote_char=False,
                ignore_empty_lines=False,
                invalid_row_handler=skip,
            ),
            pa.csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()),
                strings_can_be_null=True,
                null_values=[""],
            ),
        )
    except pa.ArrowInvalid as error:
        try:
            block.decode()
        except UnicodeDecodeError as undecodable:
            raise Unfaithful(f"not UTF-8: {undecodable.reason}") from error
        raise Unfaithful(f"not string columns: {error}") from error
    cells = (first_bad_cell(c.chunk(0)) for c in table.columns if c.num_chunks)
    # A row before one that was skipped has the same index in the table.
    return table, table.num_rows, min((at for at in (*cells, *odd) if at is not None), default=None)


# Wider than the grammar: public stores have IRIs with spaces, and language tags such as `en_US`.
_IRI = r"<[^<>\t\r\n]*>"
_STRING = r"\"(?:[^\"\\\n\r]|\\.)*\""
_SUFFIX = rf"(?:@[A-Za-z0-9_-]+|\^\^{_IRI})?"
#: A cell of faithful TSV (SPARQL 1.1 TSV results, 3.1; triple terms of SPARQL 1.2).
_CELL = (
    rf"^(?:{_IRI}|{_STRING}{_SUFFIX}|_:\S+"
    r"|[+-]?(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|true|false|<<.*>>)$"
)


def first_bad_cell(column: pa.Array) -> int | None:
    """Return the index of the first cell that is not a term; null is unbound and fine."""
    at: int = pc.index(pc.match_substring_regex(column, _CELL), False).as_py()
    return None if at < 0 else at


#: A bare word, or the value in JSON or XML, also where that is not quite well-formed.
_BOOLEAN = re.compile(
    rb'^\W*(true|false)\W*$|(?:boolean>|"boolean"\s*:)\s*"?(true|false|1|0)\b', re.IGNORECASE
)


def read_boolean(body: bytes) -> bool:
    """Read the answer of an ASK: JSON, XML, the bare word, or Virtuoso's table with one cell."""
    if said := _BOOLEAN.search(body):
        return (said[1] or said[2]).lower() in (b"true", b"1")
    try:
        table = read_table(body, "", cut=False, max_rows=1)
    except Unfaithful:
        if not body.strip():
            raise
        raise Broken(_tail(body) or "no boolean in the answer") from None
    if table.variables != (_ASKED,):
        raise Unfaithful("a table came in answer to an ASK")
    # Virtuoso's has one row with 1 for true, and no row for false.
    return any(getattr(cell, "value", "0") not in ("0", "false") for (cell,) in table.rows())


def read_graph(spool: Spool, media_type: str, *, cut: bool, max_rows: int) -> GraphResult:
    """Read the distinct triples of a CONSTRUCT or DESCRIBE; N-Triples are read block by block."""
    known = RdfFormat.from_media_type(media_type) if media_type else None
    if known is None and media_type in ("text/plain", ""):
        known = RdfFormat.N_TRIPLES
    if known is None:
        raise Unfaithful(f"a graph in an unknown format: {media_type}")
    in_lines = known == RdfFormat.N_TRIPLES
    spool.file.seek(0)
    seen: set[bytes] = set()
    more = False
    n_chars = 0
    with GrowingTable(_SCHEMA) as growing:
        for block in spool.blocks(cut=cut) if in_lines else [spool.file.read()]:
            rows: list[list[str]] = []
            try:
                for quad in parse_rdf(block, known, lenient=True):
                    row = [full(part) for part in quad.triple]
                    digest = blake2b("\n".join(row).encode(), digest_size=16).digest()
                    if digest in seen:
                        continue
                    if more := len(seen) == max_rows:
                        break
                    seen.add(digest)
                    rows.append(row)
            except (SyntaxError, ValueError) as error:
                if in_lines or not cut:
                    body = block + spool.file.read(MESSAGE_BYTES)
                    # Broken off, or never a graph.
                    whole = body.rstrip().endswith((b".", b"}", b"]", b">"))
                    raise (Unfaithful if whole else Broken)(_tail(body) or str(error)) from error
            table = columns(GRAPH_COLUMNS, rows)
            n_chars += chars_of(table)
            growing.add(table)
            if more:
                break
        return GraphResult(growing.finish(), len(seen), cut or more, n_chars=n_chars)


def _tail(body: bytes) -> str:
    """Return what an engine wrote after its last well-formed output."""
    text = body[-4 * _MESSAGE_CHARS :].decode("utf-8", "replace")
    return re.split(r"[{}\[\]>]|\s\.\n", text)[-1].strip(" ,\n")[:_MESSAGE_CHARS]


# -- documents ----------------------------------------------------------------------------

#: Strings, IRIs and comments are skipped; the rest opens or closes a triple term.
_TERMS = re.compile(
    rb'"""(?:"{0,2}(?:[^"\\]|\\.))*"""|"(?:[^"\\\n]|\\.)*"|<[^<>"\s]*>|\#[^\n]*|<<|>>', re.DOTALL
)
_OBJECTS = re.compile(rb'"(?:[^"\\]|\\.)*"|[{}]', re.DOTALL)
_BEGUN = re.compile(rb"<!DOCTYPE", re.IGNORECASE)
_DECLARED = re.compile(rb"<!ENTITY\s+([^\s\"'>%]+)\s+(?:\"([^\"]*)\"|'([^']*)')", re.IGNORECASE)
#: Bytes that entities may add to a document.
MOST_ADDED = 16 * 1024 * 1024


def parse_rdf(data: bytes, kind: RdfFormat, **options: Any) -> Iterable[Quad]:
    """Parse RDF, which must be what a parser survives."""
    check_document(data, xml=kind == RdfFormat.RDF_XML)
    return parse(data, kind, **options)


def check_document(data: bytes, *, xml: bool) -> None:
    """Refuse RDF or results with triple terms nested too deeply for Oxigraph, or XML bombs."""
    if xml and _blows_up(data):
        raise ValueError("its XML entities expand to far more than was sent")
    # Each term in JSON takes two objects; the row and its result enclose all of them.
    written = [(b"<<", _TERMS, b"<<", b">>", 1), (b'"triple"', _OBJECTS, b"{", b"}", 2)]
    for sign, pattern, opens, closes, each in written:
        if data.count(sign) <= MOST_DEPTH:
            continue
        depth = 0
        for found in pattern.finditer(data):
            depth += (found[0] == opens) - (found[0] == closes and depth > 0)
            if depth > MOST_DEPTH * each:
                raise ValueError(f"its triple terms nest more than {MOST_DEPTH} deep")


def _blows_up(document: bytes) -> bool:
    """Return whether an XML document's entities are nested or expand to too much."""
    # Parsers differ in whether they accept these words in lower case.
    begun = _BEGUN.search(document)
    if begun is None:
        return False
    declared = _DECLARED.findall(document, begun.start())
    values = {name: double or single for name, double, single in declared}
    # References to characters (&#38;) count as nested: they can spell an entity's reference.
    if any(b"&" in value for value in values.values()):
        return True
    return sum(document.count(b"&%s;" % name) * len(v) for name, v in values.items()) > MOST_ADDED


ACCEPT = (
    "text/turtle, application/n-triples;q=0.9, application/rdf+xml;q=0.8, application/ld+json;q=0.7"
)
#: Some servers know this RDF format only, and send a page if others are named beside it.
ACCEPT_XML = "application/rdf+xml"


#: How documents in a format begin.
_BEGINNINGS = {
    RdfFormat.RDF_XML: (b"<?xml", b"<rdf:rdf", b"<!--"),
    RdfFormat.JSON_LD: (b"{", b"[{", b"[ {", b"[\n"),
    RdfFormat.TURTLE: (b"@prefix", b"@base", b"prefix ", b"base ", b"<http", b"_:", b"#"),
}


def document_triples(reply: Reply, base: str, most: int) -> tuple[list[Triple], str]:
    """Return the triples of a reply, and the reason if there are none."""
    if not 200 <= reply.status < 300:
        return [], f"HTTP {reply.status}"
    if reply.is_html:
        return [], "a web page came, not RDF"
    if not reply.body.strip():
        return [], "the answer is empty"
    declared = RdfFormat.from_media_type(reply.media_type) if reply.media_type else None
    complaint = f"the answer is {reply.media_type or 'of no declared type'}, not RDF"
    start = reply.body[:400].lstrip().lower()
    guessed = next((k for k, begins in _BEGINNINGS.items() if start.startswith(begins)), None)
    for kind in dict.fromkeys(k for k in (declared, guessed) if k is not None):
        triples: list[Triple] = []
        try:
            for quad in parse_rdf(reply.body, kind, base_iri=base):
                triples.append(quad.triple)
                if len(triples) >= most:
                    break
        except (SyntaxError, ValueError) as error:
            if not (triples and reply.cut):
                complaint = f"the description cannot be parsed: {error}"
                continue
        return list(dict.fromkeys(triples)), "" if triples else "the description is empty"
    return [], complaint
