"""Finding resources by name: by text search where offered, else among the labels one can look at.

Whole labels are looked up in the endpoint's index. Parts of labels are searched among as many
labels as one bounded look may visit: all of a small store, the first of a large one.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from pyoxigraph import Literal

from reasoningbank.errors import EndpointError, QueryError
from reasoningbank.sparql import TableResult, Term
from reasoningbank.tools.exploring import label_queries
from reasoningbank.tools.exploring.ladder import Found, Way, brief, climb
from reasoningbank.tools.exploring.survey import Ask, Survey
from reasoningbank.tools.exploring.text_search import words_of

__all__ = ["Match", "Matches", "find", "plain", "rank"]

#: Where not even the bounded look is answered in time, this many labels of each property.
FEW = 1_000
#: Control characters, and halves of characters.
_NO_TEXT = ("Cc", "Cs")


@dataclass(frozen=True)
class Match:
    """A resource, the label it was found by, and the property of that label."""

    uri: Term
    label: Term
    property: Term


@dataclass(frozen=True)
class Matches:
    """What was found.

    Attributes:
        matches: The best first.
        via: The way or ways that were gone.
        notes: What was not searched, and what could not be.
    """

    matches: tuple[Match, ...]
    via: str
    notes: tuple[str, ...] = ()


def find(survey: Survey, text: str) -> Matches:
    """Find resources whose label holds a text, upper and lower case alike.

    Args:
        survey: What is known of the endpoint.
        text: A part of a name; see `plain`.

    Raises:
        QueryError: `text` cannot be written into a query, or no way was answered.
        EndpointError: The endpoint is down.
    """
    ask = survey.ask()
    try:
        labels = survey.labels(ask)
    except QueryError:
        return _look_up(survey, ask, text, survey.config.label_properties, FEW, "")
    names = labels.properties
    if not names:
        return Matches((), "all 0 labels", ("nothing here has a label property",))
    if labels.complete:
        try:
            found = _matches(ask(label_queries.by_part(text, names, labels.most, survey.within)))
        except QueryError:
            return _look_up(survey, ask, text, names, FEW, "")
        return _best(survey, ask, text, names, found, f"all {labels.looked_at:,} labels")
    by_text = _by_text(survey, ask, text, names)
    if by_text is not None:
        return by_text
    looked = f"the first {labels.looked_at:,} labels"
    return _look_up(survey, ask, text, names, labels.most, looked)


def plain(text: str) -> str:
    """Return a text as it is searched for: without control characters and doubled spaces.

    Examples:
        >>> plain("  protein\\x00 \\n kinase ")
        'protein kinase'
    """
    spaced = (" " if unicodedata.category(char) in _NO_TEXT else char for char in text)
    return " ".join("".join(spaced).split())


def rank(found: Sequence[Match], text: str) -> tuple[Match, ...]:
    """Order by fit: the whole label, its beginning, a whole word, anywhere; shorter first."""
    wanted = text.lower()

    def fit(match: Match) -> tuple[int, int, str]:
        label = match.label.value.lower() if isinstance(match.label, Literal) else ""
        if label == wanted:
            place = 0
        elif label.startswith(wanted):
            place = 1
        elif wanted in label.split():
            place = 2
        else:
            place = 3 if wanted in label else 4
        return place, len(label), label

    return tuple(sorted(dict.fromkeys(found), key=fit))


def _by_text(survey: Survey, ask: Ask, text: str, names: tuple[str, ...]) -> Matches | None:
    """Search with the engine's own text search; None where it has none or finds nothing."""
    words = words_of(text)
    try:
        search = survey.text_search(ask) if words else None
        if search is None:
            return None
        found = _matches(ask(label_queries.by_text(search, words, names, survey.within)))
    except (QueryError, EndpointError):
        return None
    if not found:
        return None
    return _best(survey, ask, text, names, found, f"text search ({search.engine})")


def _best(
    survey: Survey,
    ask: Ask,
    text: str,
    names: tuple[str, ...],
    found: list[Match],
    via: str,
) -> Matches:
    """Rank what was found; where more was found than is fetched, the whole label is looked up."""
    if len(found) < label_queries.CANDIDATES:
        return Matches(rank(found, text), via)
    whole = _whole(survey, ask, text, names)
    note = f"more than {len(found)} labels hold this; give more of the name"
    return Matches(rank([*whole.value, *found], text), f"{whole.via}, {via}", (*whole.notes, note))


def _whole(survey: Survey, ask: Ask, text: str, names: tuple[str, ...]) -> Found[list[Match]]:
    """Look the whole label up; an endpoint that cannot even do that leaves a note."""
    try:
        languages = survey.languages(ask)
    except (QueryError, EndpointError):
        languages = ("", "en")
    try:
        found = _matches(ask(label_queries.exact(text, names, languages, survey.within)))
    except (QueryError, EndpointError) as error:
        return Found([], "no whole labels", (f"whole labels: {brief(error)}",))
    return Found(found, "whole labels")


def _look_up(
    survey: Survey, ask: Ask, text: str, names: tuple[str, ...], most: int, looked: str
) -> Matches:
    """Look up the whole label in the index, and the part among some labels."""
    whole = _whole(survey, ask, text, names)

    def part(of: int) -> list[Match]:
        return _matches(ask(label_queries.by_part(text, names, of, survey.within)))

    few = f"the first {FEW * len(names):,} labels"
    ways = [Way(looked, lambda: part(most), "find: look")] if looked else []
    ways.append(Way(few, lambda: part(FEW), "find: few"))
    try:
        parts = climb(ways, survey.given_up)
    except (QueryError, EndpointError):
        if whole.notes:
            raise
        parts = None
    if parts is None:
        note = "parts of labels were not searched: the endpoint takes too long"
        return Matches(rank(whole.value, text), whole.via, (note,))
    note = f"whole labels were looked up everywhere, parts of labels only in {parts.via}"
    found = rank([*whole.value, *parts.value], text)
    return Matches(found, f"{whole.via}, {parts.via}", (*whole.notes, *parts.notes, note))


def _matches(result: TableResult) -> list[Match]:
    at = [result.variables.index(name) for name in ("uri", "label", "property")]
    found = []
    for row in result.rows():
        uri, label, name = (row[i] for i in at)
        if uri is not None and label is not None and name is not None:
            found.append(Match(uri, label, name))
    return found
