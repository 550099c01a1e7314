"""Formats of results and RDF documents: JSON, XML, N-Triples and what engines break in them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import Any

import pyarrow as pa
from pyoxigraph import QueryResultsFormat, RdfFormat, Triple, parse, parse_query_results

from reasoningbank.http import Reply
from reasoningbank.sparql.results import GRAPH_COLUMNS, chars_of, columns
from reasoningbank.sparql.terms import full, term_text
from reasoningbank.sparql.tokens import check_terms
from reasoningbank.spill import GrowingTable

_MESSAGE_CHARS = 400
#: Each column has a cost, regardless of the number of rows.
MOST_COLUMNS = 1_000
#: The one variable of the table with which Virtuoso answers an ASK.
_ASKED = "__ASK_RETVAL"


class Broken(Exception):  # noqa: N818 - mapped by the client
    """The engine stopped within its answer and wrote a message into it."""


class Unfaithful(Exception):  # noqa: N818
    """The body is not the format it claims to be."""


def read_table(
    body: bytes, media_type: str, *, cut: bool, max_rows: int
) -> tuple[pa.Table, int, bool]:
    """Read SPARQL JSON or XML results into string columns."""
    names: tuple[str, ...] = ()
    rows: list[list[str | None]] = []
    solutions: Any = None
    try:
        check_terms(body)
        solutions = parse_query_results(body, _results_format(body, media_type))
        if not hasattr(solutions, "variables"):
            raise Unfaithful("a boolean came in answer to a SELECT")
        names = tuple(variable.value for variable in solutions.variables)
        check_columns(names)
        for solution in solutions:
            if len(rows) == max_rows:
                return columns(names, rows), len(rows), True
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
    return columns(names, rows), len(rows), cut


def check_columns(names: Sequence[str]) -> None:
    """Refuse a result with too many columns, or two of the same name."""
    if len(names) > MOST_COLUMNS:
        raise Broken(f"it has {len(names):,} columns, more than {MOST_COLUMNS:,}")
    if len(set(names)) < len(names):
        raise Unfaithful("two columns of it have the same name")


def _read_loose_json(body: bytes, reason: Exception, max_rows: int) -> tuple[pa.Table, int, bool]:
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
    return columns(names, rows), len(rows), len(bindings) > max_rows


def _results_format(body: bytes, media_type: str) -> QueryResultsFormat:
    if "json" in media_type or body.lstrip()[:1] == b"{":
        return QueryResultsFormat.JSON
    if "xml" in media_type or body.lstrip()[:1] == b"<":
        _check_entities(body)
        return QueryResultsFormat.XML
    raise Unfaithful(f"results in an unknown format: {media_type or 'none named'}")


def read_boolean(body: bytes) -> bool:
    """Read the answer of an ASK: JSON, XML, the bare word, or Virtuoso's table with one cell."""
    text = body.decode("utf-8", "replace").strip().lstrip("\ufeff")
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    try:
        found = json.loads(text)
        if "results" in found and "boolean" not in found:
            return _asked(found)
        value = found["boolean"]
    except (ValueError, KeyError, TypeError):
        tag = r"literal[^>]*" if f'"{_ASKED}"' in text else "boolean"
        said = re.search(rf"<{tag}>\s*(true|false|1|0)\s*</", text)
        if said is None:
            if f'"{_ASKED}"' in text and "</results>" in text:
                return False
            raise Broken(_tail(body) or "no boolean in the answer") from None
        return said[1] in ("true", "1")
    return value is True or str(value).lower() in ("true", "1")


def _asked(results: dict[str, Any]) -> bool:
    """Read Virtuoso's table: one row with 1 for true, no row for false."""
    if results["head"]["vars"] != [_ASKED]:
        raise Unfaithful("a table came in answer to an ASK")
    rows = results["results"]["bindings"]
    return bool(rows) and str(rows[0][_ASKED]["value"]) not in ("0", "false")


def read_graph(
    body: bytes, media_type: str, *, cut: bool, max_rows: int
) -> tuple[list[Triple], bool]:
    """Read the distinct triples of a CONSTRUCT or DESCRIBE, and whether there were more."""
    triples: dict[Triple, None] = {}
    try:
        check_terms(body)
        for triple in _parse_graph(body, media_type):
            if triple not in triples and len(triples) == max_rows:
                return list(triples), True
            triples[triple] = None
    except (SyntaxError, ValueError) as error:
        if not cut:
            raise _graph_failure(body, error) from error
    return list(triples), cut


def _graph_failure(body: bytes, error: SyntaxError | ValueError) -> Broken | Unfaithful:
    """Return the error for a body that is not a graph: broken off, or never a graph."""
    whole = body.rstrip().endswith((b".", b"}", b"]", b">"))
    return (Unfaithful if whole else Broken)(_tail(body) or str(error))


def _parse_graph(body: bytes, media_type: str) -> Iterable[Triple]:
    known = RdfFormat.from_media_type(media_type) if media_type else None
    if known is None and media_type in ("text/plain", ""):
        known = RdfFormat.N_TRIPLES
    if known is None:
        raise Unfaithful(f"a graph in an unknown format: {media_type}")
    if known == RdfFormat.RDF_XML:
        _check_entities(body)
    for quad in parse(body, known, lenient=True):
        yield quad.triple


def _check_entities(document: bytes) -> None:
    if blows_up(document):
        raise Unfaithful("its XML entities expand to too much")


def _tail(body: bytes) -> str:
    """Return what an engine wrote after its last well-formed output."""
    text = body[-4 * _MESSAGE_CHARS :].decode("utf-8", "replace")
    return re.split(r"[{}\[\]>]|\s\.\n", text)[-1].strip(" ,\n")[:_MESSAGE_CHARS]


# -- N-Triples as a stream ----------------------------------------------------------------

BLOCK_BYTES = 1024 * 1024
MESSAGE_BYTES = 64 * 1024
_SCHEMA = pa.schema([(name, pa.string()) for name in GRAPH_COLUMNS])


class NTriplesReader:
    """Turns N-Triples into Arrow columns block by block while they arrive, each triple once."""

    def __init__(self, max_rows: int) -> None:
        self._max_rows = max_rows
        self._pending = bytearray()
        self._growing = GrowingTable(_SCHEMA)
        self._seen: set[bytes] = set()
        self._failure: SyntaxError | ValueError | None = None
        self._more = False
        self.n_chars = 0

    def feed(self, chunk: bytes) -> bool:
        """Take some bytes; return whether no more are wanted."""
        self._pending += chunk
        if self._failure is not None:
            return len(self._pending) >= MESSAGE_BYTES
        if len(self._pending) >= BLOCK_BYTES and b"\n" in chunk:
            self._read(self._pending.rfind(b"\n") + 1)
        return self._more

    def finish(self, *, cut: bool) -> tuple[pa.Table, int, bool]:
        """Return the table, its number of triples, and whether there were more."""
        try:
            if self._failure is None and not self._more:
                self._read(self._pending.rfind(b"\n") + 1 if cut else len(self._pending))
            if self._failure is not None:
                raise _graph_failure(bytes(self._pending), self._failure)
            return self._growing.finish(), len(self._seen), cut or self._more
        finally:
            self.close()

    def close(self) -> None:
        """Discard what was read."""
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
            # The rest may be a message, so the bytes are kept.
            self._failure = error
            self._growing.close()
            return
        del self._pending[:end]
        if rows:
            table = columns(GRAPH_COLUMNS, rows)
            self.n_chars += chars_of(table)
            self._growing.add(table)


# -- documents ----------------------------------------------------------------------------

_BEGUN = re.compile(rb"<!DOCTYPE", re.IGNORECASE)
_DECLARED = re.compile(rb"<!ENTITY\s+([^\s\"'>%]+)\s+(?:\"([^\"]*)\"|'([^']*)')", re.IGNORECASE)
#: Bytes that entities may add to a document.
MOST_ADDED = 16 * 1024 * 1024


def blows_up(document: bytes) -> bool:
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
    if blows_up(reply.body):
        return [], "the answer is XML whose entities expand to far more than was sent"
    for kind in dict.fromkeys(k for k in (declared, _guess(reply.body)) if k is not None):
        triples: list[Triple] = []
        try:
            check_terms(reply.body)
            for quad in parse(reply.body, kind, base_iri=base):
                triples.append(quad.triple)
                if len(triples) >= most:
                    break
        except (SyntaxError, ValueError) as error:
            if not (triples and reply.cut):
                complaint = f"the description cannot be parsed: {error}"
                continue
        return list(dict.fromkeys(triples)), "" if triples else "the description is empty"
    return [], complaint


def _guess(body: bytes) -> RdfFormat | None:
    start = body[:400].lstrip().lower()
    if start.startswith((b"<?xml", b"<rdf:rdf", b"<!--")):
        return RdfFormat.RDF_XML
    if start.startswith((b"{", b"[{", b"[ {", b"[\n")):
        return RdfFormat.JSON_LD
    if start.startswith((b"@prefix", b"@base", b"prefix ", b"base ", b"<http", b"_:", b"#")):
        return RdfFormat.TURTLE
    return None
