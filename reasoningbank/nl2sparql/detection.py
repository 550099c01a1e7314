"""Which patterns a question needs by a pack's rules, and a query shows by its names."""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import fmean
from typing import Any, NamedTuple

from rdflib.term import Identifier, Literal, URIRef, Variable

from reasoningbank.corpus import Pack, query_features
from reasoningbank.nl2sparql.hints import Pattern, PatternSet, QuerySign, load_patterns
from reasoningbank.nl2sparql.words import (
    FUNCTION_WORDS,
    LANGUAGES,
    QuestionToken,
    folded,
    read_tokens,
    spoken_languages,
    stem,
    stream,
)
from reasoningbank.schema import Statement, read_statements
from reasoningbank.sparql.query import parse_once
from reasoningbank.sparql.terms import absolute
from reasoningbank.sparql.tokens import tokenize, tokens_within
from reasoningbank.sparql.tree import read_query

#: Weights of the two kinds of rules; they combine as independent evidence does.
STRONG, WEAK = 0.8, 0.45
#: A pattern is detected from here: one strong rule, or two weak ones.
THRESHOLD = 0.6
#: Tokens of a question that are read.
MOST_TOKENS = 200
#: What ``...`` matches: lines of up to four tokens that are no negation.
_GAP = r"(?:.*\t\n){0,4}?"

#: The lists of a sign.
_LISTS = tuple(name for name in QuerySign.model_fields if name != "named")
#: Functions that look into a text.
_TEXT_FUNCTIONS = ("REGEX", "STRSTARTS", "STRENDS", "CONTAINS", "STRLEN", "SUBSTR")
_NEGATIONS = frozenset({"non", "senza", "ma", "not", "no", "without", "but", "nor"})
#: The score of each detected pattern, and what shows it.
_Scores = dict[str, tuple[float, tuple[str, ...]]]


@dataclass(frozen=True)
class Detected:
    """A pattern that a question needs."""

    pattern: str  #: Its name
    score: float  #: Confidence from 0 to 1
    #: The words of the question that show it, or the patterns it follows from
    because: tuple[str, ...] = ()


class PatternDetector:
    """Finds patterns by a pack's rules; several threads may use it.

    A rule's match inside a longer one does not count: *parte del discorso* is not a question about
    parts. Quoted words are entities: one that a rule matches as a whole is weak evidence.
    """

    def __init__(self, patterns: PatternSet) -> None:
        self._set = patterns
        rules = [("", 0.0, patterns.idle)]
        for one in patterns.patterns:
            rules += [(one.name, STRONG, one.strong), (one.name, WEAK, one.weak)]
        rules += [(one.of, STRONG, one.strong) for one in patterns.values if one.of]
        self._rules = [
            (name, weight, language, _expression(text, language))
            for name, weight, by_language in rules
            for language, texts in by_language.items()
            for text in texts
        ]
        #: Stems that are not entities: function words, and the pack's own.
        self._known = {
            language: {stem(word, language) for word in words}
            for language, words in FUNCTION_WORDS.items()
        }
        for by_language in (patterns.vocabulary, *(found for name, _, found in rules if name)):
            for language, texts in by_language.items():
                for part in " ".join(texts).split():
                    plain = part.strip("()").replace("=", "").split("|")
                    self._known[language] |= {stem(w, language) for w in plain if w.isalpha()}

    def detect(self, question: str) -> list[Detected]:
        """Return the patterns that a question needs, the most certain first."""
        # Offsets of tokens are those in the composed text.
        question = unicodedata.normalize("NFC", question)
        tokens = read_tokens(question, self._set.shapes)[:MOST_TOKENS]
        streams = {language: stream(tokens, language) for language in LANGUAGES}
        # The same words, matched by several rules or in both languages, are one piece of evidence.
        found: dict[tuple[str, frozenset[int]], float] = {}
        for name, weight, numbers in self._matches(tokens, spoken_languages(tokens)):
            found[name, numbers] = max(found.get((name, numbers), 0.0), weight)
        quoted: set[str] = set()
        for number, token in enumerate(tokens):
            if token.kind == "quoted":
                inside = read_tokens(token.text, self._set.shapes)
                whole = frozenset(range(len(inside)))
                matches = self._matches(inside, LANGUAGES)
                named = {name for name, _, numbers in matches if numbers == whole}
                for name in named - quoted:
                    found.setdefault((name, frozenset({number})), WEAK)
                quoted |= named
        matched = {numbers for _, numbers in found}
        scores: _Scores = {}
        for pattern in self._set.patterns:
            own = {
                numbers: weight
                for (name, numbers), weight in found.items()
                if name == pattern.name and not any(numbers < others for others in matched)
            }
            score = 1.0 - math.prod(1.0 - weight for weight in own.values())
            if score >= THRESHOLD:
                ends = [(tokens[min(numbers)].start, tokens[max(numbers)].end) for numbers in own]
                shown = dict.fromkeys(question[start:end] for start, end in ends)
                scores[pattern.name] = (score, tuple(shown))
        for pattern in self._set.patterns:
            if not scores.keys().isdisjoint(pattern.unless):
                scores.pop(pattern.name, None)
        known = frozenset().union(*matched)
        stems = {language: dict(words) for language, words in streams.items()}
        # A language's stream lacks its articles.
        unknown = tuple(
            token.text
            for number, token in enumerate(tokens)
            if token.kind == "word"
            and number not in known
            and all(number in own and own[number] not in self._known[language]
                    for language, own in stems.items())
        )  # fmt: skip
        self._add_consequences(scores, unknown)
        given = [
            Detected(name, round(scores[name][0], 3), scores[name][1])
            for name in self._set.names
            if name in scores
        ]
        return sorted(given, key=lambda one: -one.score)

    def _matches(
        self, tokens: Sequence[QuestionToken], languages: Collection[str]
    ) -> Iterator[tuple[str, float, frozenset[int]]]:
        """Yield the pattern and weight of each rule that matches, with the tokens it matches."""
        lines = {language: self._lines(tokens, language) for language in languages}
        for pattern, weight, language, rule in self._rules:
            text, numbers = lines.get(language, ("", {}))
            for start in numbers if rule.groups else ():
                if found := rule.match(text, start):
                    places = map(found.start, range(1, rule.groups + 1))
                    yield pattern, weight, frozenset(numbers[place] for place in places)

    def _lines(self, tokens: Sequence[QuestionToken], language: str) -> tuple[str, dict[int, int]]:
        """Return a line for each token, as rules read them, and the token by its line's start.

        A line has the stem or kind, the word, ``?`` if no rule knows it, ``-`` for a negation.
        """
        text, numbers = "", dict[int, int]()
        for number, stemmed in stream(tokens, language):
            numbers[len(text)] = number
            plain, is_word = folded(tokens[number].text), tokens[number].kind == "word"
            unknown = is_word and stemmed not in self._known[language] and len(plain) > 2
            negation = "-" if plain in _NEGATIONS else ""
            text += f"{stemmed}\t{plain if is_word else ''}\t{'?' if unknown else ''}\t{negation}\n"
        return text, numbers

    def _add_consequences(self, scores: _Scores, unknown: tuple[str, ...]) -> None:
        before = -1
        while before != len(scores):
            before = len(scores)
            for one in self._set.patterns:
                groups = [[name for name in group if name in scores] for group in one.joins]
                if groups and all(groups):
                    best = [max(group, key=lambda name: scores[name][0]) for group in groups]
                    least = min(scores[name][0] for name in best)
                    scores.setdefault(one.name, (least, tuple(best)))
                source = next((name for name in one.beside if name in scores), None)
                if source and unknown:
                    scores.setdefault(one.name, (scores[source][0], (source, *unknown)))
                if one.name in scores:
                    for name in one.implies:
                        scores.setdefault(name, (scores[one.name][0], (one.name,)))


@lru_cache(maxsize=32)
def detector_of(pack: Pack) -> PatternDetector:
    return PatternDetector(load_patterns(pack))


@lru_cache(maxsize=32)
def value_detector_of(pack: Pack) -> PatternDetector:
    """Return what finds the values of a pack, such as single emotions, in a question."""
    patterns = load_patterns(pack)
    return PatternDetector(patterns.model_copy(update={"patterns": patterns.values, "values": ()}))


def _expression(rule: str, language: str) -> re.Pattern[str]:
    """Return a rule as an expression over lines of tokens; its groups are what it matches."""
    parts: list[str] = []
    for word in rule.split():
        if word == "...":
            parts.append(_GAP)
            continue
        context = word.startswith("(") and word.endswith(")")
        ways: list[str] = []
        for choice in (word[1:-1] if context else word).split("|"):
            if choice == "<word>":
                ways.append(r"[^\t]*\t[^\t]*\t\?")
            elif choice.startswith("<") and choice.endswith(">"):
                ways.append(re.escape(choice) + r"\t\t")
            elif choice.startswith("="):
                ways.append(rf"[^\t]*\t{re.escape(folded(choice[1:]))}\t")
            elif choice.endswith("*"):
                ways.append(rf"[^\t]*\t{re.escape(folded(choice[:-1]))}")
            else:
                # Like the question's own words: joined prepositions as their base.
                stems = (stemmed for _, stemmed in stream(read_tokens(choice), language))
                ways += (re.escape(stemmed) + r"\t[^\t]" for stemmed in stems)
        if ways:
            parts.append(f"({'?:' if context else ''}{'|'.join(ways)}).*\n")
    return re.compile("".join(parts))


# -- queries ------------------------------------------------------------------------------


class Seen(NamedTuple):
    """The names in a query by the lists of `QuerySign`, its statements, and filtered variables."""

    names: Mapping[str, frozenset[str]]
    statements: tuple[Statement, ...]
    texts: Collection[Identifier]


@lru_cache(maxsize=4096)
def seen_in(sparql: str) -> Seen | None:
    """Return what signs are compared with; None if the query does not parse."""
    try:
        # First, since it refuses what would take rdflib minutes.
        walked = read_statements(sparql)
        parse_once(sparql)
    except Exception:  # rdflib raises pyparsing's errors and bare ones
        return None
    own = walked.statements
    ends = [term for s in own for term in (s.subject, s.object) if isinstance(term, URIRef)]
    tokens, declared = tokenize(sparql), read_query(sparql).declared
    names = [n for t in tokens if t.kind in ("iri", "name") and (n := absolute(t.text, declared))]
    inside = tokens_within(tokens, _TEXT_FUNCTIONS, "()")
    filtered = {token.text[1:] for token in inside if token.kind == "variable"}
    # A variable stands for any name.
    graphs = ["?" if isinstance(s.graph, Variable) else s.graph for s in own if s.graph is not None]
    found: dict[str, Iterable[Any]] = {
        "properties": ("?" if isinstance(s.predicate, Variable) else s.predicate for s in own),
        "along": names,
        "namespaces": ends,
        "classes": (s.object for s in own if s.is_type),
        "names": names,
        "graphs": (*graphs, *walked.dataset),
        "services": (s.service for s in own if s.service is not None),
        "features": query_features(sparql).features,
        "filtered": (s.predicate for s in own if str(s.object).split("~")[0] in filtered),
        "texts": (token.text.strip("\"'").lower() for token in tokens if token.kind == "string"),
    }
    listed = {name: frozenset(map(str, values)) for name, values in found.items()}
    return Seen(listed, own, walked.texts.keys())


def is_shown(pattern: Pattern, seen: Seen, *, loosely: bool = False) -> bool:
    """Return whether a query shows a sign; loosely, in any direction, a variable for any name."""
    return any(
        (loosely and sign.properties and "?" in seen.names["properties"])
        or (loosely and sign.graphs and "?" in seen.names["graphs"])
        or (_lists_match(sign, seen) and (loosely or not sign.named or _is_directed(sign, seen)))
        for sign in pattern.signs
    )


def patterns_of_query(sparql: str, patterns: PatternSet) -> tuple[str, ...]:
    """Return the patterns that a query's names and features show; none if it does not parse."""
    seen = seen_in(sparql)
    if seen is None:
        return ()
    given = {one.name for one in patterns.patterns if is_shown(one, seen)}
    for pattern in patterns.patterns:
        if pattern.name in given:
            given.update(pattern.implies)
    return tuple(name for name in patterns.names if name in given)


def _lists_match(sign: QuerySign, seen: Seen) -> bool:
    wanted = {name: names for name in _LISTS if (names := getattr(sign, name))}
    return bool(wanted) and all(
        any(one.startswith(tuple(names)) for one in seen.names[name])
        if name == "namespaces"
        else not names.isdisjoint(seen.names[name])
        for name, names in wanted.items()
    )


def _is_directed(sign: QuerySign, seen: Seen) -> bool:
    """Return whether the sign's end is the named one, or no relation has one named end."""
    found = set()
    links = [s for s in seen.statements if str(s.predicate) not in sign.properties]
    for one in seen.statements:
        if str(one.predicate) in sign.properties:
            subject, object_ = (is_named(e, links, seen.texts) for e in (one.subject, one.object))
            if subject != object_:
                found.add("subject" if subject else "object")
    return not found or sign.named in found


def is_named(term: Identifier, links: Sequence[Statement], texts: Collection[Identifier]) -> bool:
    """Return whether a term is, or is joined to, something that a query names."""
    at_once = isinstance(term, URIRef) or term in texts
    ends = (end for _, end in walk_links(term, links, both=True))
    return at_once or any(end in texts or isinstance(end, Literal) for end in ends)


def walk_links(
    start: Identifier, links: Sequence[Statement], *, both: bool = False
) -> Iterator[tuple[Statement, Identifier]]:
    """Yield each link that variables join to a term, with its far end; backwards too if `both`."""
    reached = [start]
    for here in reached:
        for link in links:
            ends = [(link.subject, link.object), (link.object, link.subject)]
            for near, far in ends if both else ends[:1]:
                if near == here:
                    yield link, far
                    if isinstance(far, Variable) and far not in reached:
                        reached.append(far)


# -- evaluation ---------------------------------------------------------------------------


@dataclass(frozen=True)
class PatternReport:
    """How a detector did on labelled questions; 1 where there is nothing to count."""

    exact: float  #: Share of questions with exactly the needed patterns
    precision: float  #: That of all patterns together
    recall: float  #: Likewise
    f1: float  #: Their harmonic mean
    macro_f1: float  #: Mean of the patterns' F1


def pattern_report(
    pairs: Iterable[tuple[Collection[str], Collection[str]]],
) -> PatternReport:
    """Compare detected patterns with the needed ones, given as one pair a question."""
    sets = [(set(detected), set(needed)) for detected, needed in pairs]
    right = Counter(name for given, gold in sets for name in given & gold)
    detected = Counter(name for given, _ in sets for name in given)
    needed = Counter(name for _, gold in sets for name in gold)

    def share(part: float, whole: float) -> float:
        return part / whole if whole else 1.0

    def f1(right: int, detected: int, needed: int) -> float:
        return share(right, (detected + needed) / 2)

    whole = right.total(), detected.total(), needed.total()
    each = [f1(right[name], detected[name], needed[name]) for name in detected | needed]
    return PatternReport(
        exact=fmean(given == gold for given, gold in sets) if sets else 1.0,
        precision=share(whole[0], whole[1]),
        recall=share(whole[0], whole[2]),
        f1=f1(*whole),
        macro_f1=fmean(each) if each else 1.0,
    )
