"""The example queries of a pack: what they are, which a question is shown, and what they become.

They are found by similarity, words and patterns. An agent is never shown an example of a hidden
task (those of an evaluation) or of its group.
"""

from __future__ import annotations

import copy
import hashlib
import re
import sqlite3
import threading
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Self

import numpy as np
from numpy.typing import NDArray

from reasoningbank.corpus import Pack, Task, load_corpus, load_pack
from reasoningbank.errors import UsageError
from reasoningbank.nl2sparql.detection import (
    Detected,
    PatternDetector,
    detector_of,
    patterns_of_query,
)
from reasoningbank.nl2sparql.hints import DEFAULT_PACK, PatternSet, as_pack, load_patterns
from reasoningbank.nl2sparql.words import (
    QuestionToken,
    content_words,
    folded,
    language_of,
    masked,
    read_tokens,
    stream,
)
from reasoningbank.retrieval import (
    DEFAULT_EMBEDDER,
    DEFAULT_INDEX,
    Embedder,
    WordIndex,
    open_embedder,
    open_index,
)
from reasoningbank.sparql import string_literal
from reasoningbank.sparql.tokens import Edit, apply_edits, tokenize
from reasoningbank.sparql.tokens import Token as QueryToken

#: Weights of the dense, the lexical and the pattern score.
WEIGHTS = (0.4, 0.3, 0.3)
#: Ways of retrieving, with their weights; None for random examples.
RETRIEVALS: Mapping[str, tuple[float, float, float] | None] = {
    "hybrid": WEIGHTS,
    "semantic": (1.0, 0.0, 0.0),
    "bm25": (0.0, 1.0, 0.0),
    "pattern": (0.0, 0.0, 1.0),
    "random": None,
}
_lock = threading.Lock()
#: From here a model changes the example's query instead of writing a new one.
NEAR = 0.8

_QUOTES = re.compile(r"\"{3}|'{3}|\"|'")
#: Special characters of a regular expression.
_SIGNS = re.compile(r"[\\.\[\]{}()*+?^$|]")


@dataclass(frozen=True)
class PackExample:
    """A question with the query that answers it."""

    id: str  #: The task's id
    nl: str  #: The question, in the first language it comes in
    sparql: str  #: The query
    #: What it needs: the example's keywords that are patterns; derived from the query if there are
    #: none
    patterns: tuple[str, ...] = ()
    group: str = ""  #: Examples of one group have one template
    questions: tuple[tuple[str, str], ...] = ()  #: The question by language

    def question(self, language: str = "") -> str:
        """Return the question in a language; the first one if it does not exist in it."""
        return dict(self.questions).get(language, self.nl)


def example_pack(pack: Pack) -> Pack:
    """Return the pack whose examples may be shown: for a test set, the pack it belongs to."""
    return load_pack(pack.root) if pack.test is not None and pack.examples == pack.test else pack


def load_examples(pack: Pack) -> tuple[PackExample, ...]:
    """Read the examples of a pack with their questions in all of the pack's languages."""
    languages = pack.languages or ("en",)
    corpora = {language: load_corpus(pack, language=language).tasks for language in languages}
    questions: dict[str, tuple[tuple[str, str], ...]] = {}
    for language, tasks in corpora.items():
        for task in tasks:
            if task.language == language:
                questions[task.id] = (*questions.get(task.id, ()), (language, task.query))
    # An update of documents is not an example of a query.
    queries = [task for task in corpora[languages[0]] if task.form != "UPDATE"]
    return examples_of(queries, load_patterns(pack), questions)


def examples_of(
    tasks: Iterable[Task],
    patterns: PatternSet,
    questions: dict[str, tuple[tuple[str, str], ...]] | None = None,
) -> tuple[PackExample, ...]:
    """Return tasks as examples."""
    return tuple(
        PackExample(
            task.id,
            task.query,
            task.expected_sparql,
            # Case matters: `gene` is any keyword, `GENE` is a pattern.
            tuple(name for name in patterns.names if name in task.keywords)
            or patterns_of_query(task.expected_sparql, patterns),
            task.group or f"task-{task.id}",
            (questions or {}).get(task.id) or ((task.language, task.query),),
        )
        for task in tasks
    )


# -- retrieval ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Retrieved:
    """An example that was found."""

    example: PackExample  #: The example
    score: float  #: The weighted mean of the three scores, from 0 to 1
    semantic: float  #: Dense score, entities masked: 1 for the nearest example, 0 for the furthest
    bm25: float  #: Lexical score: the share of the question that its words make up
    pattern: float  #: Overlap of its patterns with those of the question


class Retriever(ABC):
    examples: tuple[PackExample, ...]
    hidden: frozenset[str] = frozenset()  #: Ids of examples that are never found

    def without(self, groups: Collection[str] = (), ids: Iterable[str] = ()) -> Self:
        """Return a retriever that does not find some groups of examples, and single ones."""
        other = copy.copy(self)
        other.hidden = self.hidden.union(ids, (e.id for e in self.examples if e.group in groups))
        return other

    def retrieve(
        self, question: str, top_k: int = 5, *, patterns: Collection[Detected] | None = None
    ) -> list[Retrieved]:
        """Return the best examples, best first; ties by id."""
        kept = [number for number, one in enumerate(self.examples) if one.id not in self.hidden]
        if top_k < 1 or not question.strip() or not kept:
            return []
        return self._ranked(question, kept, patterns)[:top_k]

    @abstractmethod
    def _ranked(
        self, question: str, kept: Sequence[int], patterns: Collection[Detected] | None
    ) -> list[Retrieved]:
        """Return the examples with the kept numbers, best first."""


class RandomRetriever(Retriever):
    """Returns random examples, the baseline of every retriever; the same for the same question."""

    def __init__(self, examples: Sequence[PackExample], seed: int = 0) -> None:
        self.examples = tuple(examples)
        self._seed = seed

    def _ranked(
        self, question: str, kept: Sequence[int], patterns: Collection[Detected] | None
    ) -> list[Retrieved]:
        def rank(example: PackExample) -> str:
            key = f"{self._seed}\0{question}\0{example.id}"
            return hashlib.sha256(key.encode("utf-8", "replace")).hexdigest()

        chosen = sorted((self.examples[number] for number in kept), key=rank)
        return [Retrieved(example, 0.0, 0.0, 0.0, 0.0) for example in chosen]


class HybridRetriever(Retriever):
    """Ranks examples by three scores, each from 0 to 1; several threads may use it.

    Quoted names, codes and numbers are masked for the dense score, since the shape of a query does
    not depend on them, and kept for the lexical one.

    Args:
        source: Examples, a pack, or a pack's name; for a test set, the pack it belongs to is used.
        weights: Weights of the dense, lexical and pattern scores; only their proportion counts.
        embedder: Embeds questions; the package's own by default.
        index: What compares vectors, one of `retrieval.INDEXES`.

    Raises:
        UsageError: If there is no such pack or index, no example, or a weight is below 0.
        SetupError: If the index's package is missing.
    """

    def __init__(
        self,
        source: Sequence[PackExample] | Pack | str = DEFAULT_PACK,
        *,
        weights: tuple[float, float, float] = WEIGHTS,
        embedder: Embedder | None = None,
        index: str = DEFAULT_INDEX,
    ) -> None:
        if len(weights) != 3 or min(weights) < 0 or sum(weights) <= 0:
            raise UsageError(f"weights must be three numbers of at least 0, not {weights}")
        self._detector: PatternDetector | None = None
        if isinstance(source, (Pack, str)):
            pack = as_pack(source)
            self._detector = detector_of(pack)
            source = load_examples(example_pack(pack))
        self.examples = tuple(source)
        if not self.examples:
            raise UsageError("there is no example to retrieve", where="HybridRetriever")
        self.weights = weights
        self._embedder = embedder or open_embedder()
        self._lock = threading.Lock()
        # A question exists in several languages.
        numbered = [
            (number, text)
            for number, example in enumerate(self.examples)
            for text in dict.fromkeys(text for _, text in example.questions) or (example.nl,)
        ]
        #: The example of each text.
        self._of = [number for number, _ in numbered]
        texts = [text for _, text in numbered]
        self._vectors = open_index(index)
        self._vectors.put(range(len(texts)), self._embedder.passages([masked(t) for t in texts]))
        self._words = WordIndex(sqlite3.connect(":memory:", check_same_thread=False))
        self._words.add((number, content_words(text)) for number, text in enumerate(texts))

    def _ranked(
        self, question: str, kept: Sequence[int], patterns: Collection[Detected] | None
    ) -> list[Retrieved]:
        if patterns is None:
            patterns = self._detector.detect(question) if self._detector else ()
        shares = {one.pattern: one.score for one in patterns}
        vector = self._embedder.queries([masked(question)])[0]
        with self._lock:
            near = self._best(*self._vectors.cosines(vector))
            lexical = self._best(*self._words.scores(content_words(question)))
        # Excluded examples must not affect the scale either.
        low, high = min(near[n] for n in kept), max(near[n] for n in kept)
        found = []
        for number in kept:
            example = self.examples[number]
            parts = (
                round((near[number] - low) / (high - low), 6) if high > low else 1.0,
                round(lexical.get(number, 0.0), 6),
                _overlap(shares, example.patterns),
            )
            score = sum(w * p for w, p in zip(self.weights, parts, strict=True))
            found.append(Retrieved(example, round(score / sum(self.weights), 6), *parts))
        return sorted(found, key=lambda one: (-one.score, one.example.id))

    def _best(self, keys: NDArray[np.int64], scores: NDArray[np.float64]) -> dict[int, float]:
        """Return the score by example, the best of its texts."""
        best: dict[int, float] = {}
        for key, score in zip(keys.tolist(), scores.tolist(), strict=True):
            number = self._of[key]
            best[number] = max(score, best.get(number, score))
        return best


def _overlap(detected: Mapping[str, float], patterns: Sequence[str]) -> float:
    """Return the shared patterns over all of both, weighted by confidence; 1 if all are shared."""
    if not detected or not patterns:
        return 0.0
    shared = sum(detected.get(name, 0.0) for name in patterns)
    both = sum(detected.values()) + sum(name not in detected for name in patterns)
    return round(shared / both, 6)


@dataclass
class ExampleSettings:
    """How an agent's examples are found."""

    retrieval: str = "hybrid"  #: One of `RETRIEVALS`
    #: The embedding model, as named for `retrieval.open_embedder`
    embedding: str = DEFAULT_EMBEDDER
    index: str = DEFAULT_INDEX  #: What compares vectors, one of `retrieval.INDEXES`
    #: Whether the groups of hidden tasks are hidden too (leave-group-out)
    whole_groups: bool = True

    def retriever(self, pack: Pack, hidden: frozenset[str] = frozenset()) -> Retriever:
        """Return what finds the examples of a pack if some tasks are hidden."""
        if self.retrieval not in RETRIEVALS:
            hint = f"choose {', '.join(RETRIEVALS)}"
            raise UsageError(f"examples cannot be retrieved by {self.retrieval!r}", hint=hint)
        with _lock:
            # Two threads would both embed all questions.
            hybrid = _opened(example_pack(pack), self.embedding, self.index)
        groups = _groups_of(pack, hidden) if self.whole_groups else ()
        weights = RETRIEVALS[self.retrieval]
        if weights is None:
            return RandomRetriever(hybrid.examples).without(groups, hidden)
        # The vectors of the examples are shared.
        found = hybrid.without(groups, hidden)
        found.weights = weights
        return found


def examples_left(pack: Pack, hidden: frozenset[str]) -> int:
    """Return how many examples may be shown if some tasks, and their groups, are hidden."""
    groups = _groups_of(pack, hidden)
    shown = _groups(example_pack(pack)).items()
    return sum(task not in hidden and group not in groups for task, group in shown)


@lru_cache(maxsize=32)
def _opened(pack: Pack, embedding: str, index: str) -> HybridRetriever:
    return HybridRetriever(pack, embedder=open_embedder(embedding), index=index)


def _groups_of(pack: Pack, tasks: frozenset[str]) -> frozenset[str]:
    groups = _groups(pack)
    return frozenset(groups[one] for one in tasks if one in groups)


@lru_cache(maxsize=32)
def _groups(pack: Pack) -> dict[str, str]:
    return {task.id: task.group or f"task-{task.id}" for task in load_corpus(pack).tasks}


# -- the query of a similar question ------------------------------------------------------


def question_similarity(one: str, other: str) -> float:
    """Return the share of words that two questions have in common, entities masked: 0 to 1."""
    first, second = (set(content_words(masked(text)).split()) - {"x"} for text in (one, other))
    if not first or not second:
        return 0.0
    return round(2 * len(first & second) / (len(first) + len(second)), 6)


def nearest_question(question: str, example: PackExample) -> tuple[str, float]:
    """Return the form of an example's question most similar to a question, and the similarity."""
    texts = [text for _, text in example.questions] or [example.nl]
    best = max(texts, key=lambda text: question_similarity(question, text))
    return best, question_similarity(question, best)


def swap_entities(question: str, example: PackExample) -> str | None:
    """Return an example's query with the entities of a question instead of its own."""
    asked, like = nearest_question(question, example)
    if like < 1.0 or _wording(asked) != _wording(question):
        return None
    # The same wording has as many entities, though perhaps of other kinds.
    old, new = _entities(asked), _entities(question)
    if [one.kind for one in old] != [one.kind for one in new]:
        return None
    pairs: dict[str, str] = {}
    for own, other in zip(old, new, strict=True):
        if pairs.setdefault(own.text, other.text) != other.text:
            return None
    pairs = {before: after for before, after in pairs.items() if before != after}
    numbers = {token.text for token in old if token.kind == "number"}
    tokens = tokenize(example.sparql)
    words = {token.text.upper() for token in tokens if token.kind == "word"}
    edits: list[Edit] = []
    found: set[str] = set()
    for place, token in enumerate(tokens):
        for before, after in pairs.items():
            text = _changed(token, words, before, after)
            if text is None:
                continue
            counts = place > 0 and tokens[place - 1].is_word("LIMIT", "OFFSET")
            if before in numbers and (counts or before in found):
                return None
            edits.append(Edit(token.start, token.end, text))
            found.add(before)
            break
    return apply_edits(example.sparql, edits) if found == pairs.keys() else None


def _wording(question: str) -> list[str]:
    """Return all words in order; function words and positions matter here."""
    plain = masked(question)
    return [word for _, word in stream(read_tokens(plain), language_of(plain))]


def _entities(question: str) -> list[QuestionToken]:
    return [token for token in read_tokens(question) if token.kind != "word"]


def _changed(token: QueryToken, words: set[str], before: str, after: str) -> str | None:
    """Return a token of a query with another entity in it; None if it contains another one."""
    if token.kind == "string":
        return _text(token.text, words, before.strip("-"), after.strip("-"))
    if token.kind == "name":
        prefix, _, local = token.text.partition(":")
        fits = local == before and after.replace("_", "").isalnum()
        return f"{prefix}:{after}" if fits else None
    same = token.kind == "number" and token.text == before.replace(",", ".")
    return after.replace(",", ".") if same else None


def _text(written: str, words: set[str], before: str, after: str) -> str | None:
    """Return a string with another text in it; None where its function might need another form."""
    quotes = _QUOTES.match(written)
    assert quotes is not None
    inside = written[quotes.end() : -quotes.end()]
    bare = inside.removeprefix("^").removesuffix("$")
    if folded(bare) != folded(before):
        return None
    # Lower case if the query has the example's entity in lower case.
    if bare == bare.lower() and before != before.lower():
        after = after.lower()
    folds = words & {"LCASE", "UCASE"} and after != after.lower()
    matches = (words & {"REGEX", "REPLACE"} or bare != inside) and _SIGNS.search(after)
    return None if folds or matches else string_literal(inside.replace(bare, after))
