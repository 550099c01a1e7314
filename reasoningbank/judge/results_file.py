"""Results and graphs read from files, so that two of them can be compared by hand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from pyoxigraph import (
    QueryBoolean,
    QueryResultsFormat,
    RdfFormat,
    parse,
    parse_query_results,
)

from reasoningbank.errors import UsageError
from reasoningbank.judge.answer import Answer, term_text, triple_texts
from reasoningbank.judge.compare import Comparison, compare

__all__ = ["compare_files", "read_answer"]

_RESULTS = {
    ".srj": QueryResultsFormat.JSON,
    ".json": QueryResultsFormat.JSON,
    ".srx": QueryResultsFormat.XML,
    ".xml": QueryResultsFormat.XML,
    ".tsv": QueryResultsFormat.TSV,
}
_GRAPHS = {
    ".ttl": RdfFormat.TURTLE,
    ".nt": RdfFormat.N_TRIPLES,
    ".rdf": RdfFormat.RDF_XML,
    ".jsonld": RdfFormat.JSON_LD,
}


def compare_files(
    gold: Path,
    predicted: Path,
    *,
    bag: bool = False,
    ordered: bool = False,
    lenient: bool = False,
) -> Comparison:
    """Compare two files of results or two graphs; see `compare`.

    Raises:
        UsageError: If a file cannot be read.
    """
    return compare(
        read_answer(gold), read_answer(predicted), bag=bag, ordered=ordered, lenient=lenient
    )


def read_answer(path: Path) -> Answer:
    """Read a file of SPARQL results (.srj, .srx, .tsv) or a graph (.ttl, .nt, .rdf, .jsonld).

    Args:
        path: The file; its ending says what it holds.

    Returns:
        The answer in it.

    Raises:
        UsageError: If it is missing, of another kind, or not well-formed.
    """
    suffix = path.suffix.lower()
    read: Callable[[bytes], Answer]
    if suffix in _RESULTS:
        read = _results_reader(_RESULTS[suffix])
    elif suffix in _GRAPHS:
        read = _graph_reader(_GRAPHS[suffix])
    elif suffix == ".csv":
        raise UsageError(
            "CSV does not tell an IRI from a string", where=str(path), hint="use .srj, .srx or .tsv"
        )
    else:
        raise UsageError(
            f"unknown kind of file '{suffix}'",
            where=str(path),
            hint=f"use one of {', '.join([*_RESULTS, *_GRAPHS])}",
        )
    try:
        return read(path.read_bytes())
    except (OSError, SyntaxError, ValueError) as error:
        what = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise UsageError(what, where=str(path)) from error


def _results_reader(format_: QueryResultsFormat) -> Callable[[bytes], Answer]:
    def read(data: bytes) -> Answer:
        found = parse_query_results(data, format_)
        if isinstance(found, QueryBoolean):
            return Answer.of_boolean(bool(found))
        rows = [[None if term is None else term_text(term) for term in row] for row in found]
        return Answer.of_rows([v.value for v in found.variables], rows)

    return read


def _graph_reader(format_: RdfFormat) -> Callable[[bytes], Answer]:
    def read(data: bytes) -> Answer:
        quads = parse(data, format_, without_named_graphs=True)
        return Answer.of_triples(triple_texts(quad) for quad in quads)

    return read
