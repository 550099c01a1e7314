"""The second detector: a question has the patterns whose labelled questions are near it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reasoningbank.errors import UsageError
from reasoningbank.nl2sparql.detection import THRESHOLD, Detected, Detector
from reasoningbank.nl2sparql.words import masked
from reasoningbank.retrieval import Embedder, Vectors, open_embedder

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
