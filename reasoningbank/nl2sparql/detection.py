"""Which patterns a question needs: by a pack's rules, or by labelled questions; how often right."""

from __future__ import annotations

import math
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from reasoningbank.errors import UsageError
from reasoningbank.nl2sparql.patterns import PatternSet
from reasoningbank.nl2sparql.words import (
    FUNCTION_WORDS,
    LANGUAGES,
    QuestionToken,
    folded,
    masked,
    read_tokens,
    spoken_languages,
    stem,
    stream,
)
from reasoningbank.retrieval import Embedder, Vectors, open_embedder

#: Weights of the two kinds of rules; they combine as independent evidence does.
STRONG, WEAK = 0.8, 0.45
#: A pattern is detected from here: one strong rule, or two weak ones.
THRESHOLD = 0.6
#: Tokens of a question that are read.
MOST_TOKENS = 200
#: Most tokens that ``...`` matches.
GAP = 4

_NEGATIONS = frozenset({"non", "senza", "ma", "not", "no", "without", "but", "nor"})


@dataclass(frozen=True)
class Detected:
    """A pattern that a question needs.

    Attributes:
        pattern: Its name.
        score: Confidence from 0 to 1.
        because: The words of the question that show it, or the patterns it follows from.
    """

    pattern: str
    score: float
    because: tuple[str, ...] = ()


class Detector(Protocol):
    """Detects the patterns of a question."""

    def detect(self, question: str) -> list[Detected]:
        """Return the patterns that a question needs, the most certain first."""
        ...


class PatternDetector:
    """Finds patterns by a pack's rules; several threads may use it.

    A rule's match inside a longer one does not count: *parte del discorso* is not a question about
    parts. Quoted words are entities and show nothing.

    Args:
        patterns: The rules.

    Examples:
        >>> from reasoningbank.nl2sparql.patterns import Pattern
        >>> rules = Pattern(name="EMOTION", strong={"it": ("emozione",), "en": ("emotion",)})
        >>> detector = PatternDetector(PatternSet(patterns=(rules,)))
        >>> [(d.pattern, d.because) for d in detector.detect("Le parole e l'emozione espressa")]
        [('EMOTION', ('emozione',))]
        >>> detector.detect('What does "emotion" mean?')
        []
    """

    def __init__(self, patterns: PatternSet) -> None:
        self._set = patterns
        self._rules = tuple(
            _Rule(pattern.name, language, weight, read_rule(text, language))
            for pattern in patterns.patterns
            for weight, rules in ((STRONG, pattern.strong), (WEAK, pattern.weak))
            for language, texts in rules.items()
            for text in texts
        ) + tuple(
            _Rule("", language, 0.0, read_rule(text, language))
            for language, texts in patterns.idle.items()
            for text in texts
        )
        self._known = {language: self._known_words(language) for language in LANGUAGES}

    def detect(self, question: str) -> list[Detected]:
        """Return the patterns that a question needs, the most certain first.

        Args:
            question: A question in Italian, English, or both.
        """
        # Offsets of tokens are those in the composed text.
        question = unicodedata.normalize("NFC", question)
        tokens = read_tokens(question, self._set.shapes)[:MOST_TOKENS]
        streams = {language: stream(tokens, language) for language in LANGUAGES}
        spoken = spoken_languages(tokens)
        found = [
            _Match(rule.pattern, rule.weight, frozenset(words[place][0] for place in places))
            for rule in self._rules
            if rule.language in spoken
            for words in (streams[rule.language],)
            for start in range(len(words))
            if (places := self._match(rule, rule.parts, words, tokens, start))
        ]
        whole = [one for one in found if not any(one.tokens < other.tokens for other in found)]
        scores: dict[str, tuple[float, tuple[str, ...]]] = {}
        for pattern in self._set.patterns:
            own = [one for one in whole if one.pattern == pattern.name]
            score = _together(own)
            if score >= THRESHOLD:
                shown = dict.fromkeys(_text(question, tokens, one.tokens) for one in own)
                scores[pattern.name] = (score, tuple(shown))
        for pattern in self._set.patterns:
            if pattern.name in scores and any(name in scores for name in pattern.unless):
                del scores[pattern.name]
        self._add_consequences(scores, self._unknown(tokens, streams, found))
        order = {name: number for number, name in enumerate(self._set.names)}
        given = [Detected(name, round(score, 3), why) for name, (score, why) in scores.items()]
        return sorted(given, key=lambda one: (-one.score, order[one.pattern]))

    def _match(
        self,
        rule: _Rule,
        parts: Sequence[_Part],
        words: Sequence[tuple[int, str]],
        tokens: Sequence[QuestionToken],
        at: int,
    ) -> tuple[int, ...] | None:
        """Return the positions that parts of a rule match from `at` on, without those of gaps."""
        if not parts:
            return ()
        first, rest = parts[0], parts[1:]
        if first.gap:
            for place in range(at, min(at + GAP, len(words) - 1) + 1):
                found = self._match(rule, rest, words, tokens, place)
                if found is not None or folded(tokens[words[place][0]].text) in _NEGATIONS:
                    return found
            return None
        if at >= len(words):
            return None
        number, word = words[at]
        if not first.fits(word, tokens[number], self._known[rule.language]):
            return None
        found = self._match(rule, rest, words, tokens, at + 1)
        return found if found is None or first.context else (at, *found)

    def _unknown(
        self,
        tokens: Sequence[QuestionToken],
        streams: Mapping[str, list[tuple[int, str]]],
        found: Sequence[_Match],
    ) -> tuple[str, ...]:
        """Return the content words that neither a rule nor the pack's vocabulary knows."""
        known = {number for one in found for number in one.tokens}
        for language, words in streams.items():
            known.update(number for number, word in words if word in self._known[language])
        left = {n: t for n, t in enumerate(tokens) if t.kind == "word" and n not in known}
        # A language's stream lacks its articles.
        return tuple(
            token.text
            for number, token in left.items()
            if all(any(number == n for n, _ in words) for words in streams.values())
        )

    def _add_consequences(
        self, scores: dict[str, tuple[float, tuple[str, ...]]], unknown: tuple[str, ...]
    ) -> None:
        before = -1
        while before != len(scores):
            before = len(scores)
            for pattern in self._set.patterns:
                if pattern.name not in scores and pattern.joins:
                    sources = [[n for n in group if n in scores] for group in pattern.joins]
                    if all(sources):
                        best = [max(group, key=lambda n: scores[n][0]) for group in sources]
                        least = min(scores[name][0] for name in best)
                        scores[pattern.name] = (least, tuple(best))
                source = next((name for name in pattern.beside if name in scores), None)
                if pattern.name not in scores and source and unknown:
                    scores[pattern.name] = (scores[source][0], (source, *unknown))
                if pattern.name in scores:
                    for name in pattern.implies:
                        scores.setdefault(name, (scores[pattern.name][0], (pattern.name,)))

    def _known_words(self, language: str) -> frozenset[str]:
        """Return the stems that are not entities: function words, and the pack's own."""
        words: set[str] = {stem(word, language) for word in FUNCTION_WORDS[language]}
        texts = list(self._set.vocabulary.get(language, ()))
        for pattern in self._set.patterns:
            for rules in (pattern.strong, pattern.weak):
                texts += rules.get(language, ())
        for text in texts:
            for part in text.split():
                plain = part.strip("()").replace("=", "").split("|")
                words.update(stem(word, language) for word in plain if word.isalpha())
        return frozenset(words)


@dataclass(frozen=True)
class _Part:
    """One position of a rule: stems, exact words, beginnings, or kinds of tokens that match."""

    stems: Collection[str] = ()
    exact: Collection[str] = ()
    begins: tuple[str, ...] = ()
    kinds: Collection[str] = ()
    gap: bool = False
    context: bool = False

    def fits(self, word: str, token: QuestionToken, known: frozenset[str]) -> bool:
        if token.kind != "word":
            return word in self.kinds
        plain = folded(token.text)
        return (
            word in self.stems
            or plain in self.exact
            or plain.startswith(self.begins)
            or ("<word>" in self.kinds and word not in known and len(plain) > 2)
        )


@dataclass(frozen=True)
class _Rule:
    pattern: str
    language: str
    weight: float
    parts: tuple[_Part, ...]


@dataclass(frozen=True)
class _Match:
    pattern: str
    weight: float
    tokens: frozenset[int]


@lru_cache(maxsize=4096)
def read_rule(text: str, language: str) -> tuple[_Part, ...]:
    """Return the parts of a rule as a pack writes it."""
    parts: list[_Part] = []
    for word in text.split():
        if word == "...":
            parts.append(_Part(gap=True))
            continue
        context = word.startswith("(") and word.endswith(")")
        written = word[1:-1] if context else word
        stems: set[str] = set()
        exact: set[str] = set()
        begins: set[str] = set()
        kinds: set[str] = set()
        for choice in written.split("|"):
            if choice.startswith("<") and choice.endswith(">"):
                kinds.add(choice)
            elif choice.startswith("="):
                exact.add(folded(choice[1:]))
            elif choice.endswith("*"):
                begins.add(folded(choice[:-1]))
            else:
                # Like the question's own words: joined prepositions as their base.
                stems.update(stemmed for _, stemmed in stream(read_tokens(choice), language))
        if stems or exact or begins or kinds:
            parts.append(_Part(stems, exact, tuple(begins), kinds, context=context))
    return tuple(parts)


def _together(matches: Sequence[_Match]) -> float:
    # The same words, matched by several rules or in both languages, are one piece of evidence.
    best: dict[frozenset[int], float] = {}
    for one in matches:
        best[one.tokens] = max(best.get(one.tokens, 0.0), one.weight)
    return 1.0 - math.prod(1.0 - weight for weight in best.values())


def _text(question: str, tokens: Sequence[QuestionToken], numbers: frozenset[int]) -> str:
    return question[tokens[min(numbers)].start : tokens[max(numbers)].end]


@dataclass(frozen=True)
class Rate:
    """Counts of one pattern, or of all patterns.

    Attributes:
        right: Detected and needed.
        wrong: Detected but not needed.
        missed: Needed but not detected.
    """

    right: int = 0
    wrong: int = 0
    missed: int = 0

    @property
    def precision(self) -> float:
        """Share of the detected patterns that are right; 1 if none was detected."""
        given = self.right + self.wrong
        return self.right / given if given else 1.0

    @property
    def recall(self) -> float:
        """Share of the needed patterns that were detected; 1 if none is needed."""
        needed = self.right + self.missed
        return self.right / needed if needed else 1.0

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall."""
        both = 2 * self.right + self.wrong + self.missed
        return 2 * self.right / both if both else 1.0


@dataclass(frozen=True)
class PatternReport:
    """How a detector did on labelled questions.

    Attributes:
        by_pattern: Counts of each pattern.
        micro: Counts of all patterns together.
        macro_f1: Mean of the patterns' F1.
        exact: Share of questions with exactly the needed patterns.
        questions: Number of questions.
    """

    by_pattern: dict[str, Rate]
    micro: Rate
    macro_f1: float
    exact: float
    questions: int


def pattern_report(
    pairs: Iterable[tuple[Collection[str], Collection[str]]],
) -> PatternReport:
    """Compare detected patterns with the needed ones, given as one pair a question.

    Examples:
        >>> found = pattern_report([({"A", "B"}, {"A"}), ({"A"}, {"A"}), (set(), {"B"})])
        >>> found.by_pattern["B"], round(found.micro.precision, 2), round(found.exact, 2)
        (Rate(right=0, wrong=1, missed=1), 0.67, 0.33)
    """
    right: Counter[str] = Counter()
    wrong: Counter[str] = Counter()
    missed: Counter[str] = Counter()
    questions = exact = 0
    for detected, needed in pairs:
        given, gold = set(detected), set(needed)
        right.update(given & gold)
        wrong.update(given - gold)
        missed.update(gold - given)
        questions += 1
        exact += given == gold
    names = sorted(set(right) | set(wrong) | set(missed))
    rates = {name: Rate(right[name], wrong[name], missed[name]) for name in names}
    return PatternReport(
        by_pattern=rates,
        micro=Rate(right.total(), wrong.total(), missed.total()),
        macro_f1=sum(rate.f1 for rate in rates.values()) / len(rates) if rates else 1.0,
        exact=exact / questions if questions else 1.0,
        questions=questions,
    )


#: Fewest labelled questions of a pattern for a prototype.
LEAST = 3


@dataclass(frozen=True)
class _Prototype:
    """A pattern's position: the axis between the two means, the best cut, the distance."""

    name: str
    axis: NDArray[np.float32]
    cut: float
    width: float


class PrototypeDetector:
    """Finds patterns by embeddings; several threads may use it.

    For each pattern the vectors of labelled questions are averaged, with it and without it, and a
    question is projected on the line between both means. Entities are masked first. Single cosines
    are not used, since those of one model are all close together.

    Args:
        questions: Labelled questions.
        labels: The patterns of each.
        embedder: Embeds questions; the package's own by default.

    Raises:
        UsageError: If there are no questions, or not as many labels as questions.
    """

    def __init__(
        self,
        questions: Sequence[str],
        labels: Sequence[Collection[str]],
        embedder: Embedder | None = None,
    ) -> None:
        if not questions or len(questions) != len(labels):
            raise UsageError(f"{len(questions)} questions with {len(labels)} labels")
        self._embedder = embedder or open_embedder()
        vectors = self._embedder.queries([masked(question) for question in questions])
        names = dict.fromkeys(name for given in labels for name in sorted(given))
        self._prototypes = tuple(
            one
            for name in names
            if (one := _prototype(name, vectors, [name in given for given in labels]))
        )

    def detect(self, question: str) -> list[Detected]:
        """Return the patterns that a question is near to, the most certain first."""
        vector = self._embedder.queries([masked(question)])[0]
        found = []
        for one in self._prototypes:
            place = (float(vector @ one.axis) - one.cut) / one.width
            score = 1.0 / (1.0 + float(np.exp(-4.0 * place)))
            # The cut, at which both groups are equally likely, becomes the threshold of the rules.
            score = THRESHOLD * score * 2 if score < 0.5 else 1 - (1 - THRESHOLD) * (1 - score) * 2
            if score >= THRESHOLD:
                found.append(Detected(one.name, round(score, 3), ("near labelled questions",)))
        return sorted(found, key=lambda one: (-one.score, one.pattern))


class JointDetector:
    """Uses rules first, and prototypes if the rules find nothing.

    Args:
        rules: The detector by rules.
        prototypes: The detector by embeddings.
    """

    def __init__(self, rules: Detector, prototypes: Detector) -> None:
        self._rules = rules
        self._prototypes = prototypes

    def detect(self, question: str) -> list[Detected]:
        """Return the patterns that a question needs, the most certain first."""
        return self._rules.detect(question) or self._prototypes.detect(question)


def _prototype(name: str, vectors: Vectors, has: Sequence[bool]) -> _Prototype | None:
    with_it = np.asarray(has, dtype=bool)
    count = int(with_it.sum())
    if count < LEAST or len(has) - count < LEAST:
        return None
    near, far = vectors[with_it].mean(axis=0), vectors[~with_it].mean(axis=0)
    axis = near - far
    # Each question is projected on the means of the others, without its own share.
    others = np.where(with_it, count - 1, len(has) - count - 1)
    square = np.sum(vectors**2, axis=1)
    to_near = np.where(with_it, (count * (vectors @ near) - square) / others, vectors @ near)
    to_far = np.where(
        with_it, vectors @ far, ((len(has) - count) * (vectors @ far) - square) / others
    )
    places = to_near - to_far
    cut = _best_cut(places, with_it)
    width = float(places[with_it].mean() - places[~with_it].mean())
    if width <= 0:
        return None  # Its questions are no nearer to one another than to others.
    return _Prototype(name, np.asarray(axis, dtype=np.float32), cut, width)


def _best_cut(places: NDArray[np.floating], with_it: NDArray[np.bool_]) -> float:
    """Return the cut with the best F1, between two neighbours."""
    order = np.argsort(-places, kind="stable")
    right = np.cumsum(with_it[order])
    taken = np.arange(1, len(order) + 1)
    f1 = 2 * right / (taken + with_it.sum())
    best = int(np.argmax(f1))
    ranked = places[order]
    after = ranked[best + 1] if best + 1 < len(ranked) else ranked[best]
    return float((ranked[best] + after) / 2)
