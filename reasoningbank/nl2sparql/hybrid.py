"""Finding the examples that a question's query is most like: meaning, words and patterns."""

from __future__ import annotations

import hashlib
import sqlite3
import threading
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from reasoningbank.corpus import Pack, load_pack
from reasoningbank.errors import UsageError
from reasoningbank.nl2sparql.detection import Detected, Detector, PatternDetector
from reasoningbank.nl2sparql.examples import Example, example_pack, load_examples
from reasoningbank.nl2sparql.hints import DEFAULT_PACK
from reasoningbank.nl2sparql.patterns import load_patterns
from reasoningbank.nl2sparql.words import masked, telling
from reasoningbank.retrieval import (
    DEFAULT_INDEX,
    Embedder,
    WordIndex,
    open_embedder,
    open_index,
)

__all__ = ["WEIGHTS", "HybridRetriever", "RandomRetriever", "Retrieved", "Retriever"]

#: Meaning, words, patterns.
WEIGHTS = (0.4, 0.3, 0.3)


@dataclass(frozen=True)
class Retrieved:
    """An example that was found.

    Attributes:
        example: The example.
        score: The three parts by their weights, from 0 to 1.
        semantic: Nearness in meaning, entities masked: 1 the nearest example, 0 the furthest.
        bm25: Share of the question that its words make up, entities included.
        pattern: How far its patterns are those of the question.
    """

    example: Example
    score: float
    semantic: float
    bm25: float
    pattern: float


class Retriever(Protocol):
    """Finds examples for a question."""

    def retrieve(
        self,
        question: str,
        top_k: int = 5,
        *,
        patterns: Collection[Detected] | None = None,
        without_groups: Collection[str] = (),
        without_ids: Collection[str] = (),
    ) -> list[Retrieved]:
        """Return the best examples, best first, without those of some groups and ids."""
        ...


class RandomRetriever:
    """Gives any examples: what every retriever must beat.

    The same question gets the same ones each time, whatever is asked beside it.

    Args:
        examples: The examples.
        seed: Another seed, other examples.

    Examples:
        >>> any_one = RandomRetriever([Example(i, i, "ASK {}", group=i) for i in "abc"])
        >>> found = any_one.retrieve("What?", 9, without_groups=["b"])
        >>> sorted(one.example.id for one in found)
        ['a', 'c']
    """

    def __init__(self, examples: Sequence[Example], seed: int = 0) -> None:
        self.examples = tuple(examples)
        self._seed = seed

    def retrieve(
        self,
        question: str,
        top_k: int = 5,
        *,
        patterns: Collection[Detected] | None = None,
        without_groups: Collection[str] = (),
        without_ids: Collection[str] = (),
    ) -> list[Retrieved]:
        """Return any examples; arguments as those of `HybridRetriever.retrieve`."""

        def place(example: Example) -> str:
            key = f"{self._seed}\0{question}\0{example.id}"
            return hashlib.sha256(key.encode("utf-8", "replace")).hexdigest()

        kept = _kept(self.examples, without_groups, without_ids)
        chosen = sorted((self.examples[number] for number in kept), key=place)[: max(top_k, 0)]
        return [Retrieved(example, 0.0, 0.0, 0.0, 0.0) for example in chosen]


class HybridRetriever:
    """Ranks examples by three parts, each from 0 to 1; several threads may use it.

    What a question names in quotes, and codes and numbers, is masked where meaning is compared,
    since a query's shape does not depend on it, and kept where words are.

    Args:
        source: Examples, a pack, or a pack's name; those of a separate test set are never shown,
            but those of the pack it belongs to.
        weights: Weights of meaning, words and patterns; only their proportion counts.
        detector: What tells a question's patterns; the pack's rules by default.
        embedder: What turns questions into vectors; the one of the package by default.
        index: What compares vectors, one of `retrieval.INDEXES`.

    Raises:
        UsageError: No such pack or index, no example, or a weight below 0.
        SetupError: The index's package is missing.

    Examples:
        >>> found = HybridRetriever("uniprot").retrieve("Which gene encodes Q9Y6K9?", top_k=1)
        >>> found[0].example.patterns
        ('GENE',)
    """

    def __init__(
        self,
        source: Sequence[Example] | Pack | str = DEFAULT_PACK,
        *,
        weights: tuple[float, float, float] = WEIGHTS,
        detector: Detector | None = None,
        embedder: Embedder | None = None,
        index: str = DEFAULT_INDEX,
    ) -> None:
        if len(weights) != 3 or min(weights) < 0 or sum(weights) <= 0:
            raise UsageError(f"weights {weights} are not three numbers of at least 0")
        pack = load_pack(source) if isinstance(source, str) else source
        if isinstance(pack, Pack):
            detector = detector or PatternDetector(load_patterns(pack))
            self.examples: tuple[Example, ...] = load_examples(example_pack(pack))
        else:
            self.examples = tuple(pack)
        if not self.examples:
            raise UsageError("there is no example to retrieve", where="HybridRetriever")
        self.weights = weights
        self._detector = detector
        self._embedder = embedder or open_embedder()
        self._lock = threading.Lock()
        #: The example of each text: one comes in several languages.
        self._of: list[int] = []
        texts: list[str] = []
        for number, example in enumerate(self.examples):
            for text in dict.fromkeys(text for _, text in example.questions) or (example.nl,):
                self._of.append(number)
                texts.append(text)
        self._vectors = open_index(index)
        self._vectors.put(range(len(texts)), self._embedder.passages([masked(t) for t in texts]))
        self._words = WordIndex(sqlite3.connect(":memory:", check_same_thread=False))
        self._words.add((number, telling(text)) for number, text in enumerate(texts))

    def retrieve(
        self,
        question: str,
        top_k: int = 5,
        *,
        patterns: Collection[Detected] | None = None,
        without_groups: Collection[str] = (),
        without_ids: Collection[str] = (),
    ) -> list[Retrieved]:
        """Return the best examples, best first; equals by id.

        Args:
            question: A question, in any of the pack's languages.
            top_k: How many at most.
            patterns: What the question needs; detected where None.
            without_groups: Groups that are left out, in an evaluation those of the question
                (leave-group-out).
            without_ids: Examples that are left out (leave-one-out).
        """
        if top_k < 1 or not question.strip():
            return []
        if patterns is None:
            patterns = self._detector.detect(question) if self._detector else ()
        kept = _kept(self.examples, without_groups, without_ids)
        if not kept:
            return []
        semantic, lexical = self._texts(question, kept)
        shares = {one.pattern: one.score for one in patterns}
        found = []
        for number in kept:
            example = self.examples[number]
            parts = (
                semantic[number],
                round(lexical.get(number, 0.0), 6),
                _overlap(shares, example.patterns),
            )
            score = sum(w * p for w, p in zip(self.weights, parts, strict=True))
            found.append(Retrieved(example, round(score / sum(self.weights), 6), *parts))
        found.sort(key=lambda one: (-one.score, one.example.id))
        return found[:top_k]

    def _texts(
        self, question: str, kept: Sequence[int]
    ) -> tuple[Mapping[int, float], Mapping[int, float]]:
        """Return nearness in meaning and share of words, by example; the best of its texts."""
        vector = self._embedder.queries([masked(question)])[0]
        with self._lock:
            keys, cosines = self._vectors.cosines(vector)
            found, shares = self._words.scores(telling(question))
        near = _best(self._of, keys, cosines)
        # What is left out must not set the scale either.
        low, high = min(near[n] for n in kept), max(near[n] for n in kept)
        span = high - low
        semantic = {n: round((near[n] - low) / span, 6) if span > 0 else 1.0 for n in kept}
        return semantic, _best(self._of, found, shares)


def _kept(
    examples: Sequence[Example], without_groups: Collection[str], without_ids: Collection[str]
) -> list[int]:
    return [
        number
        for number, example in enumerate(examples)
        if example.group not in without_groups and example.id not in without_ids
    ]


def _best(
    of: Sequence[int], keys: NDArray[np.int64], scores: NDArray[np.float64]
) -> dict[int, float]:
    best: dict[int, float] = {}
    for key, score in zip(keys.tolist(), scores.tolist(), strict=True):
        number = of[key]
        best[number] = max(score, best.get(number, score))
    return best


def _overlap(detected: Mapping[str, float], patterns: Sequence[str]) -> float:
    """Return the shared patterns over all of both, each by how sure it is; 1 if they are equal."""
    if not detected or not patterns:
        return 0.0
    shared = sum(detected[name] for name in patterns if name in detected)
    both = sum(detected.values()) + sum(1.0 for name in patterns if name not in detected)
    return round(shared / both, 6)
