"""One ranking of two: nearness in meaning and words in common."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reasoningbank.errors import UsageError

__all__ = ["WEIGHTS", "Match", "best_first"]

#: Meaning and words.
WEIGHTS = (0.6, 0.4)
#: How many are put in order at first; more only if the caller goes on.
FIRST = 64


@dataclass(frozen=True)
class Match:
    """A text that was found.

    Attributes:
        id: Its id.
        score: Both parts together, from 0 to 1; for ranking, not as a threshold.
        semantic: Nearness in meaning, from 0 (the furthest text) to 1 (the nearest).
        lexical: Share of the query that its words make up; 0 if they have no word in common.
    """

    id: str
    score: float
    semantic: float
    lexical: float


def best_first(
    ids: Mapping[int, str],
    cosines: tuple[NDArray[np.int64], NDArray[np.float64]],
    found: tuple[NDArray[np.int64], NDArray[np.float64]],
    weights: tuple[float, float] = WEIGHTS,
) -> Iterator[Match]:
    """Yield texts, best first; equals by id, so that the order they came in does not matter.

    Cosines of one model lie close together, at a height that depends on the query: they are
    stretched between the furthest and the nearest text. Scores by words already say how much
    of the query is met, and stay; a text without a word in common has none, rather than the
    last rank. So where words say nothing, meaning alone decides.

    Args:
        ids: Id of each text by its number.
        cosines: Numbers of all texts, ascending, and their cosines with the query.
        found: Numbers of texts with a word in common, ascending, and their scores.
        weights: Weight of meaning and of words; only their proportion counts. Where one is 0,
            that part plays no role: by words alone, texts without a word in common don't come.

    Raises:
        UsageError: One of the weights is below 0, or both are 0.
    """
    if not (min(weights) >= 0 and 0 < sum(weights) < math.inf):
        what = f"weights {weights[0]:g} and {weights[1]:g} rank nothing"
        raise UsageError(what, hint="give none below 0, and one above")
    keys, angles = cosines
    if not len(keys):
        return
    low, high = angles.min(), angles.max()
    semantic = (angles - low) / (high - low) if high > low else np.ones(len(keys))
    lexical = np.zeros(len(keys))
    lexical[np.searchsorted(keys, found[0])] = found[1]
    scores = np.round((weights[0] * semantic + weights[1] * lexical) / sum(weights), 6)
    most = len(keys) if weights[0] > 0 else len(found[0])
    told = 0
    while told < most:
        wanted = min(most, max(FIRST, 4 * told))
        least = -np.partition(-scores, wanted - 1)[wanted - 1]
        rows = np.flatnonzero(scores >= least).tolist()
        rows.sort(key=lambda row: (-scores[row], ids[int(keys[row])]))
        for row in rows[told:most]:
            yield Match(
                ids[int(keys[row])], float(scores[row]), float(semantic[row]), float(lexical[row])
            )
        told = len(rows)
