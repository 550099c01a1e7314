"""Finding a question's few-shot examples: by similarity, words and patterns.

An agent is never shown an example of a hidden task (those of an evaluation) or of its group.
"""

from __future__ import annotations

import copy
import hashlib
import sqlite3
import threading
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from reasoningbank.corpus import Pack, load_corpus
from reasoningbank.errors import UsageError
from reasoningbank.nl2sparql.detection import Detected, PatternDetector, detector_of
from reasoningbank.nl2sparql.examples import PackExample, example_pack, load_examples
from reasoningbank.nl2sparql.hints import DEFAULT_PACK, as_pack
from reasoningbank.nl2sparql.words import content_words, masked
from reasoningbank.retrieval import (
    DEFAULT_EMBEDDER,
    DEFAULT_INDEX,
    Embedder,
    WordIndex,
    open_embedder,
    open_index,
)

#: Weights of the dense, the lexical and the pattern score.
WEIGHTS = (0.4, 0.3, 0.3)
#: Ways of retrieving, with their weights; None for random examples.
RETRIEVALS = MappingProxyType(
    {
        "hybrid": WEIGHTS,
        "semantic": (1.0, 0.0, 0.0),
        "bm25": (0.0, 1.0, 0.0),
        "pattern": (0.0, 0.0, 1.0),
        "random": None,
    }
)
_lock = threading.Lock()


@dataclass(frozen=True)
class Retrieved:
    """An example that was found."""

    example: PackExample  #: The example
    score: float  #: The weighted mean of the three scores, from 0 to 1
    semantic: float  #: Dense score, entities masked: 1 for the nearest example, 0 for the furthest
    bm25: float  #: Lexical score: the share of the question that its words make up
    pattern: float  #: Overlap of its patterns with those of the question


class Retriever(ABC):
    """Finds examples for a question."""

    examples: tuple[PackExample, ...]

    def retrieve(
        self,
        question: str,
        top_k: int = 5,
        *,
        patterns: Collection[Detected] | None = None,
        without_groups: Collection[str] = (),
        without_ids: Collection[str] = (),
    ) -> list[Retrieved]:
        """Return the best examples, best first; ties by id."""
        kept = [
            number
            for number, one in enumerate(self.examples)
            if one.group not in without_groups and one.id not in without_ids
        ]
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


@dataclass(frozen=True)
class ShownExamples:
    """What an attempt may retrieve from."""

    retriever: Retriever
    without_groups: frozenset[str] = frozenset()
    without_ids: frozenset[str] = frozenset()


def shown_examples(
    pack: Pack,
    hidden: frozenset[str] = frozenset(),
    *,
    whole_groups: bool = True,
    retrieval: str = "hybrid",
    embedding: str = DEFAULT_EMBEDDER,
    index: str = DEFAULT_INDEX,
) -> ShownExamples:
    """Return what may be retrieved if some tasks are hidden."""
    if retrieval not in RETRIEVALS:
        hint = f"choose {', '.join(RETRIEVALS)}"
        raise UsageError(f"examples cannot be retrieved by {retrieval!r}", hint=hint)
    with _lock:
        # Two threads would both embed all questions.
        hybrid = _opened(example_pack(pack), embedding, index)
    weights = RETRIEVALS[retrieval]
    retriever: Retriever = RandomRetriever(hybrid.examples)
    if weights is not None:
        # The vectors of the examples are shared.
        retriever = weighted = copy.copy(hybrid)
        weighted.weights = weights
    hidden_groups = _groups_of(pack, hidden) if whole_groups else frozenset()
    return ShownExamples(retriever, hidden_groups, frozenset(hidden))


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
