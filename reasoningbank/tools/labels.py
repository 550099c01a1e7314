"""Find resources by label: with the engine's text search, else among the labels one can look at.

Whole labels are looked up in the endpoint's index. Parts of labels are searched among as many
labels as one bounded look may visit: all of a small store, the first of a large one.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from pyoxigraph import Literal, NamedNode

from reasoningbank.errors import EndpointError, QueryError
from reasoningbank.schema.profile import Ask, EndpointProfile, FirstAnswer, Way, brief, first_answer
from reasoningbank.sparql import TableResult, Term, iri, string_literal
from reasoningbank.sparql.terms import full

#: Labels of each property that are looked at where even the bounded look times out.
FEW = 1_000
#: Candidates fetched for ranking, and hits asked of an engine that wants a number.
CANDIDATES = 300
#: Labels of each property that are read for their languages.
EXAMINED = 500
#: Languages in which a whole label is looked up.
MOST_LANGUAGES = 8
#: Virtuoso takes a wildcard only after this many characters.
_WILDCARD_AFTER = 4
#: Language tags that labels are looked up with, seen or not.
_USUAL = ("", "en")
#: Control characters, and halves of characters.
_NO_TEXT = ("Cc", "Cs")


@dataclass(frozen=True)
class LabelMatch:
    """A resource, the label it was found by, and the property of that label."""

    uri: Term
    label: Term
    property: Term


@dataclass(frozen=True)
class LabelMatches:
    """What was found."""

    matches: tuple[LabelMatch, ...]
    via: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Labels:
    """The label properties that an endpoint uses."""

    counts: tuple[tuple[str, int], ...]
    most: int

    @property
    def complete(self) -> bool:
        """Whether a search looks at all labels."""
        return all(count <= self.most for _, count in self.counts)

    @property
    def looked_at(self) -> int:
        """Number of labels that a search looks at."""
        return sum(min(count, self.most) for _, count in self.counts)

    @property
    def properties(self) -> tuple[str, ...]:
        """The properties in use."""
        return tuple(name for name, count in self.counts if count)


@dataclass(frozen=True)
class TextSearch:
    """One engine's text search."""

    engine: str
    pattern: Callable[[Sequence[str], str], str]


def find(profile: EndpointProfile, text: str) -> LabelMatches:
    """Find resources whose label contains a text, ignoring case."""
    ask = profile.ask()
    try:
        labels = label_counts(profile, ask)
    except QueryError:
        return _look_up(profile, ask, text, profile.config.label_properties, FEW, "")
    names = labels.properties
    if not names:
        return LabelMatches((), "all 0 labels", ("nothing here has a label property",))
    if labels.complete:
        try:
            found = _by_part(profile, ask, text, names, labels.most)
        except QueryError:
            return _look_up(profile, ask, text, names, FEW, "")
        return _best(profile, ask, text, names, found, f"all {labels.looked_at:,} labels")
    by_text = _by_text(profile, ask, text, names)
    if by_text is not None:
        return by_text
    looked = f"the first {labels.looked_at:,} labels"
    return _look_up(profile, ask, text, names, labels.most, looked)


def plain(text: str) -> str:
    """Return a text without control characters and doubled spaces."""
    spaced = (" " if unicodedata.category(char) in _NO_TEXT else char for char in text)
    return " ".join("".join(spaced).split())


def rank(found: Iterable[LabelMatch], text: str) -> tuple[LabelMatch, ...]:
    """Order by fit: the whole label, its beginning, a whole word, anywhere; shorter first."""
    wanted = text.lower()

    def fit(match: LabelMatch) -> tuple[int, int, str]:
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


def _by_text(
    profile: EndpointProfile, ask: Ask, text: str, names: Sequence[str]
) -> LabelMatches | None:
    """Use the engine's text search; None if it has none or finds nothing."""
    words = words_of(text)
    try:
        search = text_search(profile, ask) if words else None
        if search is None:
            return None
        found = _matches(ask(_text_query(profile, search, words, names)))
    except (QueryError, EndpointError):
        return None
    if not found:
        return None
    return _best(profile, ask, text, names, found, f"text search ({search.engine})")


def _best(
    profile: EndpointProfile,
    ask: Ask,
    text: str,
    names: Sequence[str],
    found: list[LabelMatch],
    via: str,
) -> LabelMatches:
    """Rank what was found; look the whole label up where there is more than is fetched."""
    if len(found) < CANDIDATES:
        return LabelMatches(rank(found, text), via)
    whole = _whole(profile, ask, text, names)
    note = f"more than {len(found)} labels contain this; give more of the name"
    return LabelMatches(
        rank([*whole.value, *found], text), f"{whole.via}, {via}", (*whole.notes, note)
    )


def _whole(
    profile: EndpointProfile, ask: Ask, text: str, names: Sequence[str]
) -> FirstAnswer[list[LabelMatch]]:
    """Look the whole label up; an endpoint that cannot even do that leaves a note."""
    try:
        tags = languages(profile, ask)
    except (QueryError, EndpointError):
        tags = _USUAL
    terms = " ".join(
        full(Literal(spelling, language=tag)) if tag else string_literal(spelling)
        for spelling in spellings(text)
        for tag in tags[:MOST_LANGUAGES]
    )
    body = f"VALUES ?label {{ {terms} }} "
    try:
        found = _matches(ask(_union(names, lambda name: body + _labels(profile, name))))
    except (QueryError, EndpointError) as error:
        return FirstAnswer([], "no whole labels", (f"whole labels: {brief(error)}",))
    return FirstAnswer(found, "whole labels")


def _look_up(
    profile: EndpointProfile, ask: Ask, text: str, names: Sequence[str], most: int, looked: str
) -> LabelMatches:
    """Look the whole label up in the index, and the part among some labels."""
    whole = _whole(profile, ask, text, names)

    def part(of: int) -> list[LabelMatch]:
        return _by_part(profile, ask, text, names, of)

    few = f"the first {FEW * len(names):,} labels"
    ways = [Way(looked, lambda: part(most), "find: look")] if looked else []
    ways.append(Way(few, lambda: part(FEW), "find: few"))
    try:
        parts = first_answer(ways, profile.given_up)
    except (QueryError, EndpointError):
        if whole.notes:
            raise
        parts = None
    if parts is None:
        note = "parts of labels were not searched: the endpoint takes too long"
        return LabelMatches(rank(whole.value, text), whole.via, (note,))
    note = f"whole labels were searched everywhere, parts of labels only in {parts.via}"
    found = rank([*whole.value, *parts.value], text)
    return LabelMatches(found, f"{whole.via}, {parts.via}", (*whole.notes, *parts.notes, note))


def _matches(result: TableResult) -> list[LabelMatch]:
    at = [result.variables.index(name) for name in ("uri", "label", "property")]
    found = []
    for row in result.rows():
        uri, label, name = (row[i] for i in at)
        if uri is not None and label is not None and name is not None:
            found.append(LabelMatch(uri, label, name))
    return found


# -- what is known of an endpoint's labels ----------------------------------------------------


def label_counts(profile: EndpointProfile, ask: Ask) -> Labels:
    """Count the labels, up to a bound for each property; once per endpoint."""

    def count() -> Labels:
        names = profile.config.label_properties
        if not names:
            return Labels((), profile.look)
        most = max(1, profile.look // len(names))
        query = _union(
            names,
            lambda name: (
                "{ SELECT (COUNT(*) AS ?n) WHERE { "
                f"{_some(profile, name, '?uri', most + 1)} }} }}"
            ),
            "?property ?n",
        )
        counts = dict.fromkeys(names, 0)
        for name, n in ask(query).rows():
            if isinstance(name, NamedNode) and isinstance(n, Literal):
                counts[name.value] = int(n.value)
        return Labels(tuple(counts.items()), most)

    return profile.once("labels", count)


def languages(profile: EndpointProfile, ask: Ask) -> tuple[str, ...]:
    """Return the language tags of labels, the most used first; ``''`` means no tag."""
    return _examine(profile, ask)[0]


def text_search(profile: EndpointProfile, ask: Ask) -> TextSearch | None:
    """Return the engine's text search, detected by searching for an existing label."""

    def detect() -> TextSearch | None:
        _, name, word = _examine(profile, ask)
        for dialect in DIALECTS if word else ():
            try:
                if ask(_text_query(profile, dialect, (word,), (name,), most=1)).n_rows:
                    return dialect
            except QueryError:
                continue
        return None

    return profile.once("text_search", detect)


def _examine(profile: EndpointProfile, ask: Ask) -> tuple[tuple[str, ...], str, str]:
    """Read some labels: their languages, and one property and word to search for."""

    def look() -> tuple[tuple[str, ...], str, str]:
        try:
            names = label_counts(profile, ask).properties
        except QueryError:
            names = profile.config.label_properties
        tags = dict.fromkeys(_USUAL, 0)
        best = ("", "")
        if not names:
            return _USUAL, *best
        query = _union(names, lambda n: _some(profile, n, "?label", EXAMINED), "?property ?label")
        for name, label in ask(query).rows():
            if not isinstance(label, Literal) or not isinstance(name, NamedNode):
                continue
            tag = label.language or ""
            tags[tag] = tags.get(tag, 0) + 1
            longest = max((w for w in words_of(label.value) if w.isascii()), key=len, default="")
            if len(longest) > len(best[1]):
                best = (name.value, longest)
        return tuple(sorted(tags, key=lambda tag: (-tags[tag], tag))), *best

    return profile.once("examined", look)


# -- queries --------------------------------------------------------------------------------


def _labels(profile: EndpointProfile, name: str) -> str:
    return profile.within(f"?uri {iri(name)} ?label")


def _some(profile: EndpointProfile, name: str, columns: str, most: int) -> str:
    return f"{{ SELECT {columns} WHERE {{ {_labels(profile, name)} }} LIMIT {most} }}"


def _union(
    names: Sequence[str],
    branch: Callable[[str], str],
    columns: str = "?uri ?label ?property",
    rest: str = "",
    most: int = CANDIDATES,
) -> str:
    """Return a query with one branch for each label property."""
    branches = (f"{{ {branch(name)} BIND({iri(name)} AS ?property) }}" for name in names)
    limit = f" LIMIT {most}" if "?uri" in columns else ""
    return f"SELECT {columns} WHERE {{\n  {' UNION '.join(branches)}\n{rest}}}{limit}"


def _by_part(
    profile: EndpointProfile, ask: Ask, text: str, names: Sequence[str], most: int
) -> list[LabelMatch]:
    """Find labels that contain `text`, among `most` labels of each property."""
    condition = f"  FILTER(CONTAINS(LCASE(STR(?label)), {string_literal(text.lower())}))\n"
    return _matches(
        ask(
            _union(
                names,
                lambda name: _some(profile, name, "?uri ?label", most),
                "DISTINCT ?uri ?label ?property",
                condition,
            )
        )
    )


def _text_query(
    profile: EndpointProfile,
    dialect: TextSearch,
    words: Sequence[str],
    names: Sequence[str],
    most: int = CANDIDATES,
) -> str:
    """Return a query for labels that have all the words, in the engine's own dialect."""
    return _union(names, lambda name: profile.within(dialect.pattern(words, name)), most=most)


def spellings(text: str) -> tuple[str, ...]:
    """Return a name as given and in the usual capitalizations."""
    lower = text.lower()
    titled = " ".join(word[:1].upper() + word[1:] for word in lower.split(" "))
    capital = lower[:1].upper() + lower[1:]
    return tuple(dict.fromkeys((text, lower, capital, titled, text.upper())))


def words_of(text: str) -> tuple[str, ...]:
    """Return the words of a text: letters and digits only, so no syntax of any dialect."""
    return tuple(re.findall(r"[^\W_]+", text))


# -- engines' text search: a magic property, which other engines read as a pattern without matches


def _virtuoso(words: Sequence[str], label: str) -> str:
    *whole, last = words
    start = f"{last}*" if len(last) >= _WILDCARD_AFTER else last
    wanted = " AND ".join(f"'{word}'" for word in (*whole, start))
    return f"?uri {iri(label)} ?label . ?label <bif:contains> {string_literal(wanted)} ."


def _blazegraph(words: Sequence[str], label: str) -> str:
    bds = "http://www.bigdata.com/rdf/search#"
    wanted = string_literal(" ".join(words) + "*")
    return (
        f'?label <{bds}search> {wanted} . ?label <{bds}matchAllTerms> "true" . '
        f"?uri {iri(label)} ?label ."
    )


def _jena(words: Sequence[str], label: str) -> str:
    wanted = string_literal(" AND ".join((*words[:-1], words[-1] + "*")))
    query = f"<http://jena.apache.org/text#query> ({iri(label)} {wanted} {CANDIDATES})"
    return f"?uri {query} . ?uri {iri(label)} ?label ."


def _qlever(words: Sequence[str], label: str) -> str:
    ql = "http://qlever.cs.uni-freiburg.de/builtin-functions/"
    wanted = string_literal(" ".join((*words[:-1], words[-1] + "*")))
    return (
        f"?text <{ql}contains-word> {wanted} . ?text <{ql}contains-entity> ?label . "
        f"?uri {iri(label)} ?label ."
    )


#: Virtuoso's dialect is tested on the engine itself; the others follow their engines' manuals and
#: are used only where they find an existing label.
DIALECTS = (
    TextSearch("Virtuoso", _virtuoso),
    TextSearch("Blazegraph", _blazegraph),
    TextSearch("Jena", _jena),
    TextSearch("QLever", _qlever),
)
