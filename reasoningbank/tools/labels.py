"""Find resources by label: with the engine's text search, else among the labels one can look at.

Whole labels are looked up in the endpoint's index. Parts of labels are searched among as many
labels as one bounded look may visit: all of a small store, the first of a large one.
"""

from __future__ import annotations

import contextlib
import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from pyoxigraph import Literal, NamedNode

from reasoningbank.errors import EndpointError, QueryError
from reasoningbank.schema.profile import EndpointProfile, FirstAnswer, Way, brief, first_answer
from reasoningbank.sparql import Term, iri, string_literal
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


class LabelMatch(NamedTuple):
    """A resource, the label it was found by, and the property of that label."""

    uri: Term
    label: Term
    property: Term


Matches = FirstAnswer[tuple[LabelMatch, ...]]


class TextSearch(NamedTuple):
    """One engine's text search."""

    engine: str
    pattern: Callable[[Sequence[str], str], str]


class _Examined(NamedTuple):
    """Languages of some labels, the most used first, and a property and word to search for."""

    tags: tuple[str, ...] = _USUAL
    property: str = ""
    word: str = ""


def find(profile: EndpointProfile, text: str) -> Matches:
    """Find resources whose label contains a text, ignoring case."""
    return LabelSearch(profile, text).find()


def plain(text: str) -> str:
    """Return a text without control characters and doubled spaces."""
    spaced = (" " if unicodedata.category(char) in _NO_TEXT else char for char in text)
    return " ".join("".join(spaced).split())


def rank(found: Iterable[LabelMatch], text: str) -> tuple[LabelMatch, ...]:
    """Order by fit: the whole label, its beginning, a whole word, anywhere; shorter first."""
    wanted = text.lower()

    def fit(match: LabelMatch) -> tuple[int, int, str]:
        label = match.label.value.lower() if isinstance(match.label, Literal) else ""
        fits = (label == wanted, label.startswith(wanted), wanted in label.split(), wanted in label)
        return [*fits, True].index(True), len(label), label

    return tuple(sorted(dict.fromkeys(found), key=fit))


class LabelSearch:
    """The search for one text, within the time that one call may take."""

    def __init__(self, profile: EndpointProfile, text: str) -> None:
        self.profile = profile
        self.text = text
        self.names: Sequence[str] = profile.config.label_properties
        self._ask = profile.ask()

    def find(self) -> Matches:
        """Return the matches, the best first."""
        most = max(1, self.profile.look // max(1, len(self.names)))
        try:
            counts = self._counts(most)
        except QueryError:
            return self._look_up(FEW, "")
        self.names = [name for name, count in counts.items() if count]
        if not self.names:
            return FirstAnswer((), "all 0 labels", ("nothing here has a label property",))
        looked = sum(min(count, most) for count in counts.values())
        if max(counts.values()) <= most:
            try:
                return self._best(self._by_part(most), f"all {looked:,} labels")
            except QueryError:
                return self._look_up(FEW, "")
        words = words_of(self.text)
        with contextlib.suppress(QueryError, EndpointError):
            dialect = self.text_search() if words else None
            if dialect is not None and (found := self._by_words(dialect, words)):
                return self._best(found, f"text search ({dialect.engine})")
        return self._look_up(most, f"the first {looked:,} labels")

    def _best(self, found: list[LabelMatch], via: str) -> Matches:
        """Rank what was found; look the whole label up where there is more than is fetched."""
        if len(found) < CANDIDATES:
            return FirstAnswer(rank(found, self.text), via)
        whole = self._whole()
        ranked = rank([*whole.value, *found], self.text)
        note = f"more than {len(found)} labels contain this; give more of the name"
        return FirstAnswer(ranked, f"{whole.via}, {via}", (*whole.notes, note))

    def _whole(self) -> FirstAnswer[list[LabelMatch]]:
        """Look the whole label up; an endpoint that cannot even do that leaves a note."""
        try:
            tags = self._examine().tags
        except (QueryError, EndpointError):
            tags = _USUAL
        terms = " ".join(
            full(Literal(spelling, language=tag)) if tag else string_literal(spelling)
            for spelling in spellings(self.text)
            for tag in tags[:MOST_LANGUAGES]
        )
        body = f"VALUES ?label {{ {terms} }} "
        try:
            found = self._matches(lambda name: body + self._labels(name))
        except (QueryError, EndpointError) as error:
            return FirstAnswer([], "no whole labels", (f"whole labels: {brief(error)}",))
        return FirstAnswer(found, "whole labels")

    def _look_up(self, most: int, looked: str) -> Matches:
        """Look the whole label up in the index, and the part among some labels."""
        whole = self._whole()
        few = f"the first {FEW * len(self.names):,} labels"
        ways = [Way(few, lambda: self._by_part(FEW), "find: few")]
        if looked:
            ways.insert(0, Way(looked, lambda: self._by_part(most), "find: look"))
        try:
            parts = first_answer(ways, self.profile.given_up)
        except (QueryError, EndpointError):
            if whole.notes:
                raise
            parts = None
        if parts is None:
            note = "parts of labels were not searched: the endpoint takes too long"
            return FirstAnswer(rank(whole.value, self.text), whole.via, (note,))
        note = f"whole labels were searched everywhere, parts of labels only in {parts.via}"
        ranked = rank([*whole.value, *parts.value], self.text)
        return FirstAnswer(ranked, f"{whole.via}, {parts.via}", (*whole.notes, *parts.notes, note))

    # -- what is known of an endpoint's labels --------------------------------------------------

    def _counts(self, most: int) -> dict[str, int]:
        """Count the labels of each property, up to a bound and one more; once per endpoint."""

        def branch(name: str) -> str:
            return f"{{ SELECT (COUNT(*) AS ?n) WHERE {{ {self._some(name, '?uri', most + 1)} }} }}"

        def count() -> dict[str, int]:
            names = self.profile.config.label_properties
            counts = dict.fromkeys(names, 0)
            query = _union(names, branch, "?property ?n")
            for name, n in self._ask(query).rows() if names else ():
                if isinstance(name, NamedNode) and isinstance(n, Literal):
                    counts[name.value] = int(n.value)
            return counts

        return self.profile.once(f"labels: {most}", count)

    def text_search(self) -> TextSearch | None:
        """Return the engine's text search, detected by searching for an existing label."""

        def detect() -> TextSearch | None:
            _, name, word = self._examine()
            for dialect in DIALECTS if word else ():
                try:
                    if self._by_words(dialect, (word,), (name,), 1):
                        return dialect
                except QueryError:
                    continue
            return None

        return self.profile.once("text_search", detect)

    def _examine(self) -> _Examined:
        def look() -> _Examined:
            names = self.names
            tags = dict.fromkeys(_USUAL, 0)
            best = ("", "")
            if not names:
                return _Examined()
            query = _union(
                names, lambda name: self._some(name, "?label", EXAMINED), "?property ?label"
            )
            for name, label in self._ask(query).rows():
                if not isinstance(label, Literal) or not isinstance(name, NamedNode):
                    continue
                tag = label.language or ""
                tags[tag] = tags.get(tag, 0) + 1
                ascii_words = (word for word in words_of(label.value) if word.isascii())
                longest = max(ascii_words, key=len, default="")
                if len(longest) > len(best[1]):
                    best = (name.value, longest)
            return _Examined(tuple(sorted(tags, key=lambda tag: (-tags[tag], tag))), *best)

        return self.profile.once("examined", look)

    # -- queries ----------------------------------------------------------------------------

    def _labels(self, name: str) -> str:
        return self.profile.within(f"?uri {iri(name)} ?label")

    def _some(self, name: str, columns: str, most: int) -> str:
        return f"{{ SELECT {columns} WHERE {{ {self._labels(name)} }} LIMIT {most} }}"

    def _by_part(self, most: int) -> list[LabelMatch]:
        """Find labels that contain the text, among `most` labels of each property."""
        wanted = string_literal(self.text.lower())
        return self._matches(
            lambda name: self._some(name, "?uri ?label", most),
            columns="DISTINCT ?uri ?label ?property",
            rest=f"  FILTER(CONTAINS(LCASE(STR(?label)), {wanted}))\n",
        )

    def _by_words(
        self,
        dialect: TextSearch,
        words: Sequence[str],
        names: Sequence[str] = (),
        most: int = CANDIDATES,
    ) -> list[LabelMatch]:
        """Find labels that have all the words, in the engine's own dialect."""

        def branch(name: str) -> str:
            return self.profile.within(dialect.pattern(words, name))

        return self._matches(branch, names, limit=f" LIMIT {most}")

    def _matches(
        self, branch: Callable[[str], str], names: Sequence[str] = (), **parts: str
    ) -> list[LabelMatch]:
        parts = {"limit": f" LIMIT {CANDIDATES}", **parts}
        result = self._ask(_union(names or self.names, branch, **parts))
        at = [result.variables.index(name) for name in LabelMatch._fields]
        found = []
        for row in result.rows():
            uri, label, name = (row[i] for i in at)
            if uri is not None and label is not None and name is not None:
                found.append(LabelMatch(uri, label, name))
        return found


def _union(
    names: Sequence[str],
    branch: Callable[[str], str],
    columns: str = "?uri ?label ?property",
    rest: str = "",
    limit: str = "",
) -> str:
    """Return a query with one branch for each label property."""
    branches = (f"{{ {branch(name)} BIND({iri(name)} AS ?property) }}" for name in names)
    return f"SELECT {columns} WHERE {{\n  {' UNION '.join(branches)}\n{rest}}}{limit}"


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
