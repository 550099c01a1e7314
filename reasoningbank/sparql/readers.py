"""From the body of a response to a result; what engines break on the way is told apart here."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa
from pyoxigraph import QueryResultsFormat, RdfFormat, Triple, parse, parse_query_results

from reasoningbank.sparql.entities import blows_up
from reasoningbank.sparql.results import columns
from reasoningbank.sparql.terms import full
from reasoningbank.sparql.termtext import term_text
from reasoningbank.sparql.tokens import check_terms

__all__ = ["Broken", "Unfaithful", "graph_failure", "read_boolean", "read_graph", "read_table"]

_MESSAGE_CHARS = 400
#: Each column costs, however few rows there are.
MOST_COLUMNS = 1_000
#: The one variable of the table with which Virtuoso answers an ASK.
_ASKED = "__ASK_RETVAL"


class Broken(Exception):  # noqa: N818 - mapped by the client
    """The engine stopped in the middle of its answer and wrote a message into it."""


class Unfaithful(Exception):  # noqa: N818
    """The body is not the format it claims to be."""


def read_table(
    body: bytes, media_type: str, *, cut: bool, max_rows: int
) -> tuple[pa.Table, int, bool]:
    """Read SPARQL JSON or XML results into string columns.

    Args:
        body: The bytes of the response.
        media_type: What they are said to be.
        cut: Whether they end anywhere, because reading was stopped.
        max_rows: Most rows to keep.

    Returns:
        The table, its number of rows, and whether there were more.

    Raises:
        Broken: The engine's message stands in place of the rest of the rows.
        Unfaithful: They are no results of a SELECT.
    """
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
        # MemoryError: the parser's, about a single value of more than 16 MiB.
        if not cut:
            return _read_loose_json(body, error, max_rows)
    except (AttributeError, ValueError, TypeError) as error:
        raise Unfaithful(f"not the results of a SELECT: {error}") from error
    finally:
        # An error keeps this frame, perhaps for another thread; these may be dropped in this alone.
        solutions = None
    return columns(names, rows), len(rows), cut


def check_columns(names: Sequence[str]) -> None:
    """Refuse a result that nobody can have asked for.

    Raises:
        Broken: It has more columns than are read.
        Unfaithful: Two columns have one name.
    """
    if len(names) > MOST_COLUMNS:
        raise Broken(f"it has {len(names):,} columns, more than {MOST_COLUMNS:,}")
    if len(set(names)) < len(names):
        raise Unfaithful("two columns of it have the same name")


def _read_loose_json(body: bytes, reason: Exception, max_rows: int) -> tuple[pa.Table, int, bool]:
    """Read JSON results with terms that RDF does not allow, as public stores hold them."""
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
    """Read the answer of an ASK: in JSON, XML, as the bare word, or as Virtuoso's table of one.

    Raises:
        Broken: The engine wrote a message instead.
        Unfaithful: It is a table of something else.
    """
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
    """Read Virtuoso's table: one row that holds 1 for true, none for false."""
    if results["head"]["vars"] != [_ASKED]:
        raise Unfaithful("a table came in answer to an ASK")
    rows = results["results"]["bindings"]
    return bool(rows) and str(rows[0][_ASKED]["value"]) not in ("0", "false")


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
        check_terms(body)
        for triple in _parse_graph(body, media_type):
            if triple not in triples and len(triples) == max_rows:
                return list(triples), True
            triples[triple] = None
    except (SyntaxError, ValueError) as error:
        if not cut:
            raise graph_failure(body, error) from error
    return list(triples), cut


def graph_failure(body: bytes, error: SyntaxError | ValueError) -> Broken | Unfaithful:
    """Return what is wrong with a body that is no graph: it was broken off, or never was one."""
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
        raise Unfaithful("its XML entities unfold to too much")


def _tail(body: bytes) -> str:
    """Return what an engine wrote after the last piece of well-formed output."""
    text = body[-4 * _MESSAGE_CHARS :].decode("utf-8", "replace")
    return re.split(r"[{}\[\]>]|\s\.\n", text)[-1].strip(" ,\n")[:_MESSAGE_CHARS]
