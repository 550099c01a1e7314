"""Having an engine parse a query without answering it.

pyoxigraph offers no parser of its own. A query over an empty store is answered at once where it
aggregates or asks, and a few VALUES multiply to hours that nothing ends. An update is parsed as a
whole before its first operation is carried out: the query becomes the second, behind one that
fails.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import takewhile
from typing import NamedTuple

import pyoxigraph

from reasoningbank.sparql.edits import Edit, apply_edits
from reasoningbank.sparql.outline import Outline
from reasoningbank.sparql.tokens import Token, closing

__all__ = ["FAILS", "NOWHERE", "Complaint", "complaint_of", "parsed_alone", "reaching_nobody"]

#: An operation that fails: nothing is loaded from there, so that an update ends here.
FAILS = "LOAD <urn:nowhere> ; "
#: The HTTP stack of Oxigraph refuses this port by itself: a SERVICE there reaches nobody.
NOWHERE = "<http://127.0.0.1:1/>"
_HEAD = f"{FAILS.rstrip()}\nINSERT"
_INSIDE = "{} WHERE { {"
#: What a DESCRIBE may name.
_NAMES = ("variable", "iri", "name")
#: Whatever is grouped, a constant can be selected.
_ANY = "SELECT (1 AS ?parsed_and_not_answered) "


class Complaint(NamedTuple):
    """What an engine says of a query that does not parse.

    Attributes:
        message: In its words.
        given: The text that it was given.
        edits: What leads from the query to that text.
    """

    message: str
    given: str
    edits: tuple[Edit, ...]


def complaint_of(
    query: str, shape: Outline, edits: Iterable[Edit] = (), *, base: str | None = None
) -> Complaint | None:
    """Let Oxigraph parse a query, and carry out nothing of it.

    Args:
        query: The query.
        shape: Its outline.
        edits: What is changed in it before; nothing at the word that names its form.
        base: What relative IRIs are relative to.

    Returns:
        What it says; None where the query parses.

    Examples:
        >>> from reasoningbank.sparql.outline import outline
        >>> query = "CONSTRUCT { ?s a ?t } { ?s ?p ?t "
        >>> found = complaint_of(f"{query}}} LIMIT 2", outline(f"{query}}} LIMIT 2"))
        >>> found is None, complaint_of(query, outline(query)).given.splitlines()[1]
        (True, 'INSERT { ?s a ?t } WHERE { {SELECT (1 AS ?parsed_and_not_answered)  { ?s ?p ?t')
    """
    if shape.form == "DESCRIBE":
        named = _described(shape)
        if not named or any(t.kind not in _NAMES and t.text != "*" for t in named):
            return Complaint("DESCRIBE names variables and IRIs, or *", query, ())
    made = (*edits, *_as_update(shape))
    text = apply_edits(query, made)
    told = parsed_alone(text, base)
    return None if told is None else Complaint(told, text, made)


def reaching_nobody(shape: Outline) -> list[Edit]:
    """Return edits that have every SERVICE of a query name `NOWHERE`."""
    return [Edit(target.start, target.end, NOWHERE) for target in shape.service_targets]


def parsed_alone(update: str, base: str | None = None) -> str | None:
    """Parse an update that begins with `FAILS`, so that nothing of it is carried out.

    Returns:
        What Oxigraph says against it; None where it parses.
    """
    try:
        pyoxigraph.Store().update(update, base_iri=base)
    except SyntaxError as error:
        return str(error)
    except (RuntimeError, ValueError, OSError):
        pass  # as it is meant to
    return None


def _as_update(shape: Outline) -> list[Edit]:
    form, *rest = shape.body
    end = Edit(shape.body[-1].end, shape.body[-1].end, "\n} }")
    group = next((at for at, token in enumerate(rest) if token.text == "{"), None)
    if shape.form == "SELECT":
        begin = Edit(form.start, form.end, f"{_HEAD} {_INSIDE}SELECT")
        return [begin, *_datasets(rest[:group]), end]
    if shape.form == "CONSTRUCT" and group == 0:
        closed = closing(rest, 0)
        after = Edit(rest[closed - 1].end, rest[closed - 1].end, f" WHERE {{ {{{_ANY}")
        begin = Edit(form.start, form.end, _HEAD)
        behind = rest[closed:]
        second = next((at for at, token in enumerate(behind) if token.text == "{"), None)
        return [begin, after, *_datasets(behind[:second]), end]
    if shape.form == "DESCRIBE":
        last = (form, *_described(shape))[-1]
        # No group at all need follow: any will do.
        empty = "" if group is not None else " {}"
        replaced = Edit(form.start, last.end, f"{_HEAD} {_INSIDE}{_ANY}{empty}")
        behind = [t for t in rest[:group] if t.start > last.end]
        return [replaced, *_datasets(behind), end]
    return [
        Edit(form.start, form.end, f"{_HEAD} {_INSIDE}{_ANY}"), *_datasets(rest[:group]), end
    ]  # fmt: skip


def _described(shape: Outline) -> list[Token]:
    """Return what a DESCRIBE names: the tokens before its group, its graphs and modifiers."""
    rest = shape.body[1:]
    return list(takewhile(lambda token: token.text != "{" and token.kind != "word", rest))


def _datasets(tokens: Sequence[Token]) -> list[Edit]:
    """Return edits that leave out FROM, which no inner query has."""
    found = []
    for at, token in enumerate(tokens):
        if token.is_word("FROM"):
            named = at + 1 < len(tokens) and tokens[at + 1].is_word("NAMED")
            last = tokens[min(at + 1 + named, len(tokens) - 1)]
            found.append(Edit(token.start, last.end, ""))
    return found
