"""The two parsers of queries: rdflib's, for the algebra, and Oxigraph's, without evaluation.

rdflib's parser keeps state in its grammar: two threads in it at once break it for the rest of the
process, so it is used under a lock.

pyoxigraph offers no parser of its own, and evaluates at once what aggregates or asks: a few VALUES
multiply to hours that no timeout ends. So a query is parsed with groups that match nothing, and an
update, which is parsed as a whole before its first operation runs, behind one that fails.
"""

from __future__ import annotations

import functools
import logging
import re
import threading
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import pyoxigraph
from rdflib.plugins.sparql.algebra import translateQuery, translateUpdate
from rdflib.plugins.sparql.parser import parseQuery, parseUpdate
from rdflib.plugins.sparql.sparql import Query

from reasoningbank.sparql.tokens import Edit, apply_edits, closing, origin, position
from reasoningbank.sparql.tree import QueryTree

# rdflib logs a traceback for each ill-typed literal; without a handler that goes to stderr.
logging.getLogger("rdflib").addHandler(logging.NullHandler())

_lock = threading.Lock()


def parse_algebra(text: str) -> Query:
    """Parse a query with rdflib and translate it into the algebra; thread-safe."""
    with _lock:
        return translateQuery(parseQuery(text))


def parse_update(text: str) -> None:
    """Parse an update with rdflib, which raises if it is not one; thread-safe."""
    with _lock:
        translateUpdate(parseUpdate(text))


@functools.lru_cache(maxsize=256)
def parse_once(text: str) -> Query:
    """Return the cached result of `parse_algebra`, which callers must not change."""
    return parse_algebra(text)


#: An operation that fails: nothing is loaded from there, so an update ends here.
FAILS = "LOAD <urn:nowhere> ; "
_POSITION = re.compile(r"(?:\bat |\bline )(\d+)(?::|,? col(?:umn)? )(\d+)")


class Complaint(NamedTuple):
    """The error of Oxigraph's parser, and its offset in the query, None if it names no place."""

    message: str
    offset: int | None


def complaint_of(
    tree: QueryTree, edits: Iterable[Edit] = (), *, base: str | None = None
) -> Complaint | None:
    """Let Oxigraph parse a query with further edits, without evaluating any of it."""
    made = (*edits, *_hollow(tree))
    text = apply_edits(tree.text, made)
    try:
        pyoxigraph.Store().query(text, base_iri=base)
    except SyntaxError as error:
        message = " ".join(str(error).split())
        offset = offset_in(text, message)
        if offset is None:
            return Complaint(message, None)
        offset = min(len(tree.text), origin(made, offset))
        line, column = position(tree.text, offset)
        return Complaint(_POSITION.sub(f"at {line}:{column}", message, count=1), offset)
    except (RuntimeError, ValueError, OSError):
        pass  # it parses, and failed on the empty store
    return None


def offset_in(text: str, message: str) -> int | None:
    """Return the offset in a text of the line and column that a parser's message names."""
    found = _POSITION.search(message)
    lines = text.split("\n")
    if found is None or not 1 <= (line := int(found[1])) <= len(lines):
        return None
    return min(len(text), sum(len(before) + 1 for before in lines[: line - 1]) + int(found[2]) - 1)


def parsed_alone(update: str, base: str | None = None) -> str | None:
    """Parse an update that begins with `FAILS`, so that none of it runs."""
    try:
        pyoxigraph.Store().update(update, base_iri=base)
    except SyntaxError as error:
        return str(error)
    except (RuntimeError, ValueError, OSError):
        pass  # as intended
    return None


def _hollow(tree: QueryTree) -> Iterator[Edit]:
    """Yield edits after which the WHERE group and each EXISTS match nothing."""
    body = tree.body
    at = 1
    where = True
    if tree.form == "CONSTRUCT":
        # Without a template, the group is one, and takes triples only.
        where = body[1:2] != () and body[1].text == "{"
        at = closing(body, 1) if where else 1
    depth = 0
    for place in range(at, len(body)):
        token = body[place]
        depth += (token.text == "(") - (token.text == ")")
        exists = body[place - 1].is_word("EXISTS")
        if token.text != "{" or not (exists or (where and depth == 0)):
            continue
        where = where and exists
        end = closing(body, place)
        if body[end - 1].text == "}":
            yield Edit(token.end, token.end, " FILTER(false) {")
            yield Edit(body[end - 1].start, body[end - 1].start, "} ")
