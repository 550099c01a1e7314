"""rdflib's SPARQL parser, one query at a time.

The parser keeps state in its grammar: two threads in it at once leave it broken for the rest of
the process, so that no query parses any more.
"""

from __future__ import annotations

import threading

from rdflib.plugins.sparql.algebra import translateQuery
from rdflib.plugins.sparql.parser import parseQuery
from rdflib.plugins.sparql.sparql import Query

__all__ = ["parse_algebra"]

_lock = threading.Lock()


def parse_algebra(text: str) -> Query:
    """Parse a query and translate it into the algebra; safe from any thread.

    Raises:
        Exception: As rdflib raises them: pyparsing's, and bare ones.

    Examples:
        >>> parse_algebra("ASK {}").algebra.name
        'AskQuery'
    """
    with _lock:
        return translateQuery(parseQuery(text))
