"""Find resources by identifier and by label: with the engine's text search, else by a bounded look.

Whole labels are looked up in the endpoint's index. Parts of labels are searched among as many
labels as one bounded look may visit: all of a small store, the first of a large one.
"""

from __future__ import annotations

import contextlib
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple
from urllib.parse import urljoin

from pyoxigraph import Literal, NamedNode

from reasoningbank.errors import EndpointError, QueryError
from reasoningbank.schema import local_name
from reasoningbank.schema.sampling import EndpointProfile, FirstAnswer, Way, brief, first_answer
from reasoningbank.sparql import Term, iri, string_literal, to_iri, values
from reasoningbank.sparql.terms import full

#: Labels of each property that are looked at where even the bounded look times out.
FEW = 1_000
#: Candidates fetched for ranking, and hits asked of an engine that wants a number.
CANDIDATES = 300
#: IRIs that an identifier may stand for.
MOST_IDENTIFIED = 100
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
#: Values of these are about a thing, and so are longer labels than this; others name it.
_ABOUT = re.compile(r"(?i)(?:title|comment|definition|description|abstract|note)$")
_MOST_NAME = 100
_LOCAL_NAME = re.compile(r"[\w.~+-]+")
#: Two letters of a kind of thing, and a number.
_CODE = re.compile(r"([A-Za-z])([A-Za-z])-0*(\d+)")
_POSSESSIVE = re.compile(r"['’]s\b")


class LabelMatch(NamedTuple):
    """A resource with a label and its property, what it is, and whose.

    An owner is given for a node that only holds names: the resource that it belongs to.
    """

    uri: Term
    label: Term | None = None
    property: Term | None = None
    class_: Term | None = None
    owner: Term | None = None
    owner_property: Term | None = None


Matches = FirstAnswer[tuple[LabelMatch, ...]]


class TextSearch(NamedTuple):
    """One engine's text search: how it writes the words to search for, and the pattern."""

    engine: str
    wanted: Callable[[Sequence[str]], str]
    template: str

    def pattern(self, words: Sequence[str], label: str) -> str:
        """Return the pattern that finds labels with all the words."""
        return self.template.format(label=iri(label), wanted=string_literal(self.wanted(words)))


class _Examined(NamedTuple):
    """Languages of some labels, the most used first, and a property and word to search for."""

    tags: tuple[str, ...]
    property: str
    word: str


def unquoted(text: str) -> str:
    """Return what is inside the quotation marks with which agents are shown a text."""
    quoted = len(text) > 2 and text[0] in "\"'" and text[-1] == text[0]
    return text[1:-1] if quoted else text


def find(profile: EndpointProfile, text: str, most: int) -> Matches:
    """Find resources by identifier or label, ignoring case; say what the first `most` are."""
    search = LabelSearch(profile, unquoted(text))
    identified = search.identified()
    found = search.find()
    seen = {match.uri for match in identified}
    matches = (*identified, *(match for match in found.value if match.uri not in seen))
    via = f"identifiers, {found.via}" if identified else found.via
    return FirstAnswer((*search.explained(matches[:most]), *matches[most:]), via, found.notes)


def plain(text: str) -> str:
    """Return a text without control characters and doubled spaces."""
    spaced = (" " if unicodedata.category(char) in _NO_TEXT else char for char in text)
    return " ".join("".join(spaced).split())


def words_of(text: str) -> tuple[str, ...]:
    """Return the words of a text: letters and digits only, so no syntax of any dialect."""
    return tuple(re.findall(r"[^\W_]+", text))


def rank(
    found: Iterable[LabelMatch], text: str, names: Sequence[str] = ()
) -> tuple[LabelMatch, ...]:
    """Order by fit: the whole label, names before texts, its beginning, a whole word, anywhere.

    Of those that fit alike, the shorter come first, then those of an earlier property of `names`.
    """
    wanted = _folded(text)
    place = {name: at for at, name in enumerate(names)}

    def fit(match: LabelMatch) -> tuple[object, ...]:
        value = match.label.value if isinstance(match.label, Literal) else ""
        property_ = str(getattr(match.property, "value", ""))
        label = _folded(value)
        about = len(value) > _MOST_NAME or bool(_ABOUT.search(local_name(property_)))
        fits = (label.startswith(wanted), f" {wanted} " in f" {label} ", wanted in label, True)
        return label != wanted, about, fits.index(True), len(value), place.get(property_, 0), value

    kept: dict[tuple[Term, str], LabelMatch] = {}
    for match in sorted(dict.fromkeys(found), key=fit):
        kept.setdefault((match.uri, _folded(str(getattr(match.label, "value", "")))), match)
    return tuple(kept.values())


def _folded(text: str) -> str:
    return " ".join(words_of(_POSSESSIVE.sub("", text.casefold()))) or text.casefold()


def _owner(
    node: NamedNode, pointing: Sequence[tuple[Term, Term | None]], vocabulary: Iterable[str]
) -> tuple[Term | None, Term | None]:
    """Return whose part a node is, by its IRI, and the property that leads to it."""
    for owner, by in pointing:
        rest = node.value.removeprefix(owner.value) if isinstance(owner, NamedNode) else ""
        if rest != node.value and rest[:1] in ("#", "/", "_"):
            return owner, by
    base, mark, _ = node.value.rpartition("#")
    others = [one.value for one, _ in pointing if mark and isinstance(one, NamedNode)]
    if base + mark in vocabulary or not any(one.startswith(base + mark) for one in others):
        return None, None
    return NamedNode(base), None


class LabelSearch:
    """The search for one text, within the time that one call may take."""

    def __init__(self, profile: EndpointProfile, text: str) -> None:
        self.profile = profile
        self.text = text
        self.names: Sequence[str] = profile.config.label_properties
        self._ask = profile.ask()

    def identified(self) -> list[LabelMatch]:
        """Return the resources whose IRI or prefixed name the text is, in any known namespace."""
        config, meant = self.profile.config, dict[NamedNode, None]()
        with contextlib.suppress(QueryError):
            meant[to_iri(self.text, config.namespaces)] = None
        prefix, _, local = self.text.replace(" ", ":").rpartition(":")
        if not _LOCAL_NAME.fullmatch(local) or " " in prefix or "/" in prefix:
            local = ""
        spaces = {name.lower(): space for name, space in config.namespaces.items()}
        # `EC 2.7.1.20`, `chebi:15377`; a name alone, or a number (`keyword 26`), may be of any
        # namespace, and `MIM:104300` of one beside them: `…/mim/` beside `…/taxonomy/`.
        wanted = [spaces[prefix.lower()]] if prefix.lower() in spaces else []
        if not wanted and (" " not in self.text or local.isdecimal()):
            # A number is another thing in each namespace: `hsa:351` is no taxon.
            like = prefix.lower()[:3] if local.isdecimal() and " " not in self.text else ""
            known = config.prefixes.items()
            wanted += [space for name, space in known if like in f"{name} {space}".lower()]
            webs = [one for _, one in known if prefix.isalpha() and one.startswith("http")]
            wanted += dict.fromkeys(urljoin(one, f"../{prefix.lower()}/") for one in webs)
        names = dict.fromkeys((local, local.upper())) if local else ()
        meant |= dict.fromkeys(NamedNode(space + name) for space in wanted for name in names)
        if code := _CODE.fullmatch(self.text):
            # `KW-0026` is keyword 26, `DI-03959` disease 3959.
            kind = re.compile(rf"/{code[1]}[a-z]*{code[2]}[a-z]*/$", re.IGNORECASE)
            alike = filter(kind.search, config.prefixes.values())
            meant |= dict.fromkeys(NamedNode(space + code[3]) for space in alike)
        if not meant:
            return []
        patterns = map(self.profile.within, ("?uri ?p ?o", "?s ?q ?uri", "?x ?uri ?y"))
        used = " || ".join(f"EXISTS {{ {pattern} }}" for pattern in patterns)
        try:
            candidates = values("uri", islice(meant, MOST_IDENTIFIED))
            rows = self._ask(f"SELECT ?uri WHERE {{ {candidates} FILTER({used}) }}").rows()
            found = {uri: LabelMatch(uri) for (uri,) in rows if uri is not None}
            given = values("uri", found)
            named = self._matches(lambda name: f"{given} {self._labels(name)}") if found else []
        except (QueryError, EndpointError):
            return []
        place: dict[Term | None, int] = {NamedNode(p): at for at, p in enumerate(self.names)}
        for match in sorted(named, key=lambda match: -place[match.property]):
            found[match.uri] = match
        return list(found.values())

    def explained(self, matches: Sequence[LabelMatch]) -> Iterator[LabelMatch]:
        """Yield matches with their class and owner, as far as the endpoint says them in time."""
        within = self.profile.within
        branches = [
            f"{{ SELECT ({iri(one)} AS ?uri) {columns} WHERE {{ {within(body)} }} LIMIT {few} }}"
            for one in dict.fromkeys(match.uri for match in matches)
            if isinstance(one, NamedNode)
            for columns, body, few in (
                ("?class", f"{iri(one)} a ?class", 1),
                ("?owner ?by", f"?owner ?by {iri(one)}", 3),
            )
        ]
        query = f"SELECT ?uri ?class ?owner ?by WHERE {{\n{' UNION '.join(branches)}\n}}"
        rows: list[tuple[Term | None, ...]] = []
        with contextlib.suppress(QueryError, EndpointError):
            rows = self._ask(query).rows() if branches else []
        vocabulary = self.profile.config.namespaces.values()
        for match in matches:
            said = [row[1:] for row in rows if row[0] == match.uri]
            kind = next((kind for kind, *_ in said if kind is not None), None)
            pointing = [(owner, by) for _, owner, by in said if owner is not None]
            owner = by = None
            if isinstance(match.uri, NamedNode):
                owner, by = _owner(match.uri, pointing, vocabulary)
            yield match._replace(class_=kind, owner=owner, owner_property=by)

    def find(self) -> Matches:
        """Return the matches, the best first."""
        most = max(1, self.profile.look // max(1, len(self.names)))
        ways: list[Way[list[LabelMatch]]] = []
        # Ways that search everything: after another one whole labels are looked up as well.
        complete: set[str] = set()
        with contextlib.suppress(QueryError):
            counts = self._counts(most)
            self.names = [name for name, count in counts.items() if count]
            if not self.names:
                return FirstAnswer((), "all 0 labels", ("nothing here has a label property",))
            looked = f"{sum(min(count, most) for count in counts.values()):,} labels"
            if max(counts.values()) <= most:
                looked = f"all {looked}"
                complete.add(looked)
            else:
                looked = f"the first {looked}"
                ways += self._text_search_way()
                complete |= {way.name for way in ways}
            ways.append(Way(looked, lambda: self._by_part(most), "find: look"))
        few = f"the first {FEW * len(self.names):,} labels"
        ways.append(Way(few, lambda: self._by_part(FEW), "find: few"))
        failure: QueryError | EndpointError | None = None
        parts: FirstAnswer[list[LabelMatch]] | None = None
        try:
            parts = first_answer(ways, self.profile.given_up)
        except (QueryError, EndpointError) as error:
            failure = error
        if parts is not None and parts.via in complete:
            return self._ranked(parts.value, parts.via, *parts.notes)
        try:
            whole = self._whole()
        except (QueryError, EndpointError) as error:
            if parts is None:
                raise failure or error from error
            notes = (*parts.notes, f"whole labels: {brief(error)}")
            return self._ranked(parts.value, parts.via, *notes)
        if parts is None:
            note = "parts of labels were not searched: the endpoint takes too long"
            return self._ranked(whole, "whole labels", note)
        note = f"whole labels were searched everywhere, parts of labels only in {parts.via}"
        found = [*whole, *parts.value]
        return self._ranked(found, f"whole labels, {parts.via}", *parts.notes, note)

    def _ranked(self, found: Sequence[LabelMatch], via: str, *notes: str) -> Matches:
        if len(found) >= CANDIDATES:
            many = f"{CANDIDATES} labels or more contain this; give more of the name"
            notes = (*notes, many)
        return FirstAnswer(rank(found, self.text, self.names), via, notes)

    def _text_search_way(self) -> list[Way[list[LabelMatch]]]:
        words = words_of(_POSSESSIVE.sub("", self.text))
        with contextlib.suppress(QueryError, EndpointError):
            dialect = self.text_search() if words else None
            if dialect is not None:

                def search() -> list[LabelMatch] | None:
                    found = self._by_words(dialect, words)
                    # An engine does not send the best first.
                    return [*self._whole(), *found] if len(found) >= CANDIDATES else found or None

                return [Way(f"text search ({dialect.engine})", search)]
        return []

    def _whole(self) -> list[LabelMatch]:
        """Look the whole label up in the endpoint's index."""
        tags: Sequence[str] = _USUAL
        with contextlib.suppress(QueryError, EndpointError):
            tags = self._examine().tags
        terms = " ".join(
            full(Literal(spelling, language=tag)) if tag else string_literal(spelling)
            for spelling in spellings(self.text, _POSSESSIVE.sub("", self.text))
            for tag in tags[:MOST_LANGUAGES]
        )
        return self._matches(lambda name: f"VALUES ?label {{ {terms} }} {self._labels(name)}")

    # -- what is known of an endpoint's labels --------------------------------------------------

    def _counts(self, most: int) -> dict[str, int]:
        """Count the labels of each property, up to a bound and one more; once per endpoint."""

        def branch(name: str) -> str:
            return f"{{ SELECT (COUNT(*) AS ?n) WHERE {{ {self._some(name, '?uri', most + 1)} }} }}"

        def count() -> dict[str, int]:
            names = self.profile.config.label_properties
            rows = self._ask(_union(names, branch, "?property ?n")).rows() if names else []
            counts = {getattr(name, "value", ""): getattr(n, "value", 0) for name, n in rows}
            return {name: int(counts.get(name, 0)) for name in names}

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
            some = lambda name: self._some(name, "?uri ?label", EXAMINED)  # noqa: E731
            found = self._matches(some, limit="") if self.names else []
            labels = [(m.label, m.property) for m in found if isinstance(m.label, Literal)]
            tags = Counter(label.language or "" for label, _ in labels)
            word, name = "", ""
            for label, property_ in labels:
                longest = max(filter(str.isascii, words_of(label.value)), key=len, default="")
                if len(longest) > len(word):
                    word, name = longest, str(getattr(property_, "value", ""))
            every = dict.fromkeys((*(tag for tag, _ in tags.most_common()), *_USUAL))
            return _Examined(tuple(every), name, word)

        return self.profile.once("examined", look)

    # -- queries ----------------------------------------------------------------------------

    def _labels(self, name: str) -> str:
        return self.profile.within(f"?uri {iri(name)} ?label")

    def _some(self, name: str, columns: str, most: int) -> str:
        return f"{{ SELECT {columns} WHERE {{ {self._labels(name)} }} LIMIT {most} }}"

    def _by_part(self, most: int) -> list[LabelMatch]:
        """Find the shortest labels that have all words, among `most` labels of each property."""
        words = _POSSESSIVE.sub("", self.text.lower()).split()
        # A plural finds the singular.
        parts = (w[:-1] if len(w) > _WILDCARD_AFTER and w.endswith("s") else w for w in words)
        has = " && ".join(f"CONTAINS(LCASE(STR(?label)), {string_literal(w)})" for w in parts)
        return self._matches(
            lambda name: self._some(name, "?uri ?label", most),
            columns="DISTINCT ?uri ?label ?property",
            rest=f"  FILTER({has})\n",
            limit=f" ORDER BY STRLEN(STR(?label)) LIMIT {CANDIDATES}",
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
        at = list(map(result.variables.index, ("uri", "label", "property")))
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


def spellings(*texts: str) -> tuple[str, ...]:
    """Return names as given and in the usual capitalizations."""
    spelled: list[str] = []
    for text in texts:
        lower = text.lower()
        titled = " ".join(word[:1].upper() + word[1:] for word in lower.split(" "))
        spelled += (text, lower, lower[:1].upper() + lower[1:], titled, text.upper())
    return tuple(dict.fromkeys(spelled))


# -- engines' text search: a magic property, which other engines read as a pattern without matches


#: Where an engine's search takes beginnings of words, the last word is one.
_BIF, _BDS = "<bif:contains>", "http://www.bigdata.com/rdf/search#"
_JENA, _QLEVER = "<http://jena.apache.org/text#query>", "http://qlever.cs.uni-freiburg.de/"
_TRIPLE = "?uri {label} ?label ."


def _quoted(words: Sequence[str]) -> str:
    last = f"{words[-1]}*" if len(words[-1]) >= _WILDCARD_AFTER else words[-1]
    return " AND ".join(f"'{word}'" for word in (*words[:-1], last))


#: Virtuoso's dialect is tested on the engine itself; the others follow their engines' manuals and
#: are used only where they find an existing label.
DIALECTS = (
    TextSearch("Virtuoso", _quoted, f"{_TRIPLE} ?label {_BIF} {{wanted}} ."),
    TextSearch(
        "Blazegraph",
        lambda words: " ".join(words) + "*",
        f'?label <{_BDS}search> {{wanted}} . ?label <{_BDS}matchAllTerms> "true" . {_TRIPLE}',
    ),
    TextSearch(
        "Jena",
        lambda words: " AND ".join(words) + "*",
        f"?uri {_JENA} ({{label}} {{wanted}} {CANDIDATES}) . {_TRIPLE}",
    ),
    TextSearch(
        "QLever",
        lambda words: " ".join(words) + "*",
        f"?text <{_QLEVER}builtin-functions/contains-word> {{wanted}} . "
        f"?text <{_QLEVER}builtin-functions/contains-entity> ?label . {_TRIPLE}",
    ),
)
