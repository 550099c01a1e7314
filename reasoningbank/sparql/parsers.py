"""The two parsers of queries: rdflib's, for the algebra, and Oxigraph's, without evaluation.

rdflib's parser keeps state in its grammar: two threads in it at once break it for the rest of the
process, so it is used under a lock.

pyoxigraph offers no parser of its own. A query over an empty store is evaluated at once if it
aggregates or asks, and a few VALUES multiply to hours that no timeout ends. An update is parsed as
a whole before its first operation runs: so the query becomes the second operation, after one that
fails.
"""

from __future__ import annotations

import functools
import logging
import threading
from collections.abc import Iterable, Sequence
from itertools import takewhile
from typing import NamedTuple

import pyoxigraph
from rdflib.plugins.sparql.algebra import translateQuery, translateUpdate
from rdflib.plugins.sparql.parser import parseQuery, parseUpdate
from rdflib.plugins.sparql.sparql import Query

from reasoningbank.sparql.tokens import Edit, Token, apply_edits, closing
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
#: Oxigraph's HTTP stack refuses this port by itself: a SERVICE there reaches nobody.
NOWHERE = "<http://127.0.0.1:1/>"
_HEAD = f"{FAILS.rstrip()}\nINSERT"
_INSIDE = "{} WHERE { {"
#: Kinds of tokens that a DESCRIBE may name.
_NAMES = ("variable", "iri", "name")
#: A constant can be selected under any GROUP BY.
_ANY = "SELECT (1 AS ?parsed_and_not_answered) "


class Complaint(NamedTuple):
    """The error of an engine's parser."""

    message: str
    given: str
    edits: tuple[Edit, ...]


def complaint_of(
    query: str, tree: QueryTree, edits: Iterable[Edit] = (), *, base: str | None = None
) -> Complaint | None:
    """Let Oxigraph parse a query without evaluating any of it."""
    if tree.form == "DESCRIBE":
        named = _described(tree)
        if not named or any(t.kind not in _NAMES and t.text != "*" for t in named):
            return Complaint("DESCRIBE names variables and IRIs, or *", query, ())
    made = (*edits, *_as_update(tree))
    text = apply_edits(query, made)
    message = parsed_alone(text, base)
    return None if message is None else Complaint(message, text, made)


def reaching_nobody(tree: QueryTree) -> list[Edit]:
    """Return edits that replace every SERVICE address of a query by `NOWHERE`."""
    return [Edit(target.start, target.end, NOWHERE) for target in tree.service_targets]


def parsed_alone(update: str, base: str | None = None) -> str | None:
    """Parse an update that begins with `FAILS`, so that none of it runs."""
    try:
        pyoxigraph.Store().update(update, base_iri=base)
    except SyntaxError as error:
        return str(error)
    except (RuntimeError, ValueError, OSError):
        pass  # as intended
    return None


def _as_update(tree: QueryTree) -> list[Edit]:
    form, *rest = tree.body
    end = Edit(tree.body[-1].end, tree.body[-1].end, "\n} }")
    group = next((at for at, token in enumerate(rest) if token.text == "{"), None)
    if tree.form == "SELECT":
        begin = Edit(form.start, form.end, f"{_HEAD} {_INSIDE}SELECT")
        return [begin, *_datasets(rest[:group]), end]
    if tree.form == "CONSTRUCT" and group == 0:
        closed = closing(rest, 0)
        after = Edit(rest[closed - 1].end, rest[closed - 1].end, f" WHERE {{ {{{_ANY}")
        begin = Edit(form.start, form.end, _HEAD)
        behind = rest[closed:]
        second = next((at for at, token in enumerate(behind) if token.text == "{"), None)
        return [begin, after, *_datasets(behind[:second]), end]
    if tree.form == "DESCRIBE":
        last = (form, *_described(tree))[-1]
        # A DESCRIBE needs no group; any will do.
        empty = "" if group is not None else " {}"
        replaced = Edit(form.start, last.end, f"{_HEAD} {_INSIDE}{_ANY}{empty}")
        behind = [t for t in rest[:group] if t.start > last.end]
        return [replaced, *_datasets(behind), end]
    begin = Edit(form.start, form.end, f"{_HEAD} {_INSIDE}{_ANY}")
    return [begin, *_datasets(rest[:group]), end]


def _described(tree: QueryTree) -> list[Token]:
    """Return what a DESCRIBE names: the tokens before its group, its graphs and modifiers."""
    rest = tree.body[1:]
    return list(takewhile(lambda token: token.text != "{" and token.kind != "word", rest))


def _datasets(tokens: Sequence[Token]) -> list[Edit]:
    """Return edits that remove FROM, which an inner query cannot have."""
    found = []
    for at, token in enumerate(tokens):
        if token.is_word("FROM"):
            named = at + 1 < len(tokens) and tokens[at + 1].is_word("NAMED")
            last = tokens[min(at + 1 + named, len(tokens) - 1)]
            found.append(Edit(token.start, last.end, ""))
    return found
