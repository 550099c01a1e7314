"""rdflib's SPARQL parser, one query at a time.

The parser keeps state in its grammar: two threads in it at once leave it broken for the rest of
the process, so that no query parses any more.
"""

from __future__ import annotations

import functools
import threading

from rdflib.plugins.sparql.algebra import translateQuery, translateUpdate
from rdflib.plugins.sparql.parser import parseQuery, parseUpdate
from rdflib.plugins.sparql.sparql import Query

__all__ = ["parse_algebra", "parse_once", "parse_update"]

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


def parse_update(text: str) -> None:
    """Parse an update, which tells whether it is one; safe from any thread.

    Raises:
        Exception: As rdflib raises them.
    """
    with _lock:
        translateUpdate(parseUpdate(text))


@functools.lru_cache(maxsize=256)
def parse_once(text: str) -> Query:
    """Return what `parse_algebra` returns, parsed only once; nobody may change it.

    A query that an agent submits is one that it ran: preparing it again, for the judge and for
    each further trial that writes it, would take 8 to 50 ms of processor time each.

    Raises:
        Exception: As `parse_algebra`; a failure is not remembered.
    """
    return parse_algebra(text)
