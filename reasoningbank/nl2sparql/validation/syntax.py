"""Whether a query is SPARQL: rdflib's parser and Oxigraph's must both accept it."""

from __future__ import annotations

from reasoningbank.corpus import Pack, load_pack
from reasoningbank.errors import QueryError
from reasoningbank.nl2sparql.patterns import DEFAULT_PACK, namespaces_of
from reasoningbank.nl2sparql.problems import Problem, Validation
from reasoningbank.sparql import STANDARD_PREFIXES, prepare

__all__ = ["validate_syntax"]


def validate_syntax(sparql: str, pack: Pack | str | None = DEFAULT_PACK) -> Validation:
    """Check that a query parses, and names no unknown prefix.

    Args:
        sparql: A query; an update is none.
        pack: The pack or its name, whose prefixes need not be declared; None for the standard
            ones alone.

    Returns:
        The first problem, with line, column and the likely mend. What only one of the two parsers
        takes is noted, or is a problem where it is Oxigraph that rejects it.

    Raises:
        UsageError: No such pack.

    Examples:
        >>> validate_syntax("SELECT ?s { ?s ?p ?o }").ok
        True
        >>> print(validate_syntax("SELECT ?s { ?s ?p ?o").problems[0])
        line 1, column 19: the query cannot be parsed near ... add the '}' that closes ...
    """
    found = load_pack(pack) if isinstance(pack, str) else pack
    namespaces = namespaces_of(found) if found else STANDARD_PREFIXES
    try:
        prepared = prepare(sparql, prefixes=namespaces)
    except QueryError as error:
        return Validation((Problem.of_error("syntax", "syntax-error", error),))
    if prepared.parsed is None:
        # `prepare` has it from Oxigraph that it parses.
        return Validation(notes=("rdflib cannot read it, Oxigraph can: it goes beyond SPARQL 1.1",))
    complaint = prepared.complaint()
    if complaint is None:
        return Validation()
    return Validation((Problem.of_error("syntax", "rejected", complaint),))
