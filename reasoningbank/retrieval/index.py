"""Dense vectors by number, and their fusion with lexical scores."""

from __future__ import annotations

import importlib
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reasoningbank.errors import UsageError, need_package
from reasoningbank.retrieval.embedding import Vectors
from reasoningbank.retrieval.lexical import Scored

DEFAULT_INDEX = "numpy"
#: Weight of dense and of lexical scores.
WEIGHTS = (0.6, 0.4)
#: Decimals of a cosine: those beyond depend on the processor.
DECIMALS = 5

#: From so many vectors on, FAISS's index is approximate; below, comparing all takes some
#: milliseconds. One in `READ_SHARE` of its lists is read.
LARGE = 200_000
READ_SHARE = 12

#: So many are ranked at first, and eight times as many each further time.
FIRST = 128


class VectorTable:
    """A matrix of vectors of length 1 by number. One thread at a time may use it."""

    def __init__(self) -> None:
        #: Number → row of the parts, one after another; in the order of the rows.
        self._rows: dict[int, int] = {}
        #: Matrices; after a search there is one, without free rows.
        self._parts: list[Vectors] = []
        self._keys: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, key: int) -> bool:
        return key in self._rows

    def put(self, keys: Sequence[int], vectors: NDArray[np.floating]) -> None:
        """Add vectors by number, replacing those that exist."""
        self.drop(keys)
        first = sum(map(len, self._parts))
        self._parts.append(np.array(vectors, dtype=np.float32))
        self._rows.update(zip(keys, range(first, first + len(vectors)), strict=True))

    def drop(self, keys: Iterable[int]) -> None:
        """Remove vectors; unknown numbers are ignored."""
        for key in keys:
            self._rows.pop(key, None)
        self._keys = None

    def cosines(self, query: Vectors) -> Scored:
        """Return all numbers, and the cosine of each with the query."""
        if not self._rows:
            return np.zeros(0, dtype=np.int64), np.zeros(0)
        if self._keys is None:
            self._keys = np.fromiter(self._rows, dtype=np.int64)
            self._merge()
        return self._keys, self._compare(self._parts[0], query).astype(np.float64).round(DECIMALS)

    def candidates(self, query: Vectors, most: int, others: Sequence[int]) -> Scored:
        """Return at least the `most` nearest, the furthest, and `others`; here all, as `cosines`.

        `others` are numbers of the table.
        """
        return self.cosines(query)

    def _merge(self) -> None:
        rows = np.fromiter(self._rows.values(), dtype=np.int64)
        matrix = np.empty((len(rows), self._parts[0].shape[1]), dtype=np.float32)
        done = passed = 0
        while self._parts:
            # Released one by one, so that there never are two copies of all.
            part = self._parts.pop(0)
            end = int(np.searchsorted(rows, passed + len(part)))
            np.take(part, rows[done:end] - passed, axis=0, out=matrix[done:end], mode="clip")
            done, passed = end, passed + len(part)
        self._parts = [matrix]
        self._rows = dict(zip(self._rows, range(len(rows)), strict=True))

    def _compare(self, matrix: Vectors, query: Vectors) -> Vectors:
        # In one thread: BLAS's threads spin while they wait, and beside a busy processor `@` took
        # twice as long.
        found: Vectors = np.vecdot(matrix, query)
        return found


class FaissTable(VectorTable):
    """The same by FAISS (Douze et al., arXiv:2401.08281): exact if small, and then approximate.

    From `LARGE` vectors on they lie in lists of near ones, in half precision, and `candidates`
    reads the lists nearest to the query. The lists are made for the vectors at the first search.
    """

    def __init__(self) -> None:
        super().__init__()
        need_package("faiss", "faiss")
        self._faiss: Any = importlib.import_module("faiss")
        self._index: Any = None
        #: Vectors that are not in the index yet.
        self._waiting: list[tuple[NDArray[np.int64], Vectors]] = []

    def put(self, keys: Sequence[int], vectors: NDArray[np.floating]) -> None:
        last = {key: row for row, key in enumerate(keys)}
        self.drop(last)
        numbers = np.fromiter(last, dtype=np.int64)
        if len(numbers):
            self._waiting.append((numbers, np.array(vectors[list(last.values())])))
        self._rows.update(dict.fromkeys(last, 0))

    def drop(self, keys: Iterable[int]) -> None:
        known = [key for key in keys if self._rows.pop(key, None) is not None]
        if known:
            self._settle().remove_ids(np.array(known, dtype=np.int64))

    def cosines(self, query: Vectors) -> Scored:
        return self.candidates(query, len(self), ())

    def candidates(self, query: Vectors, most: int, others: Sequence[int]) -> Scored:
        if not self._rows:
            return np.zeros(0, dtype=np.int64), np.zeros(0)
        index = self._settle()
        asked = np.ascontiguousarray(query, dtype=np.float32)[np.newaxis]
        lists = index.nlist if most >= len(self) else max(1, index.nlist // READ_SHARE)
        how = self._faiss.SearchParametersIVF(nprobe=lists)
        cosines, keys = index.search(asked, min(most, len(self)), params=how)
        furthest = index.search(-asked, 1, params=how)[1]
        # Those found otherwise, and the furthest, are compared by their vectors.
        rest = np.setdiff1d(np.append(furthest[0], others), keys[0]).astype(np.int64)
        rest = rest[rest >= 0]
        compared = super()._compare(index.reconstruct_batch(rest), asked[0])
        found = np.append(keys[0], rest), np.append(cosines[0], compared).astype(np.float64)
        # A list that is nearly empty is filled up with -1.
        kept = found[0] >= 0
        return found[0][kept], found[1][kept].round(DECIMALS)

    def _settle(self) -> Any:
        if self._index is None:
            total = sum(len(keys) for keys, _ in self._waiting)
            lists, kept = (math.isqrt(total) // 2, "SQfp16") if total >= LARGE else (1, "Flat")
            width = self._waiting[0][1].shape[1]
            inner = self._faiss.METRIC_INNER_PRODUCT
            index = self._faiss.index_factory(width, f"IVF{lists},{kept}", inner)
            # Else it prints a warning if there are few.
            index.cp.min_points_per_centroid = 1
            index.set_direct_map_type(self._faiss.DirectMap.Hashtable)
            step = max(1, total // (64 * lists))
            sample = [rows[::step] for _, rows in self._waiting]
            index.train(np.concatenate(sample).astype(np.float32))
            self._index = index
        while self._waiting:
            # Released one by one, so that there never are two copies of all.
            keys, rows = self._waiting.pop(0)
            self._index.add_with_ids(rows.astype(np.float32), keys)
        return self._index


INDEXES: MappingProxyType[str, type[VectorTable]] = MappingProxyType(
    {DEFAULT_INDEX: VectorTable, "faiss": FaissTable}
)


def open_index(name: str = DEFAULT_INDEX) -> VectorTable:
    """Return an empty vector index: ``numpy``; or ``faiss``, which is approximate if large."""
    if name not in INDEXES:
        hint = f"choose {' or '.join(INDEXES)}"
        raise UsageError(f"unknown vector index {name!r}", hint=hint, code="unknown-index")
    return INDEXES[name]()


@dataclass(frozen=True)
class Match:
    """A text that was found; all scores are in [0, 1].

    `semantic` is 0 for the furthest text and 1 for the nearest; `lexical` is 0 without a word in
    common. `score` is their weighted sum, for ranking and not as a threshold.
    """

    id: str
    score: float
    semantic: float
    lexical: float


def best_first(
    ids: Mapping[int, str],
    cosines: Scored,
    found: Scored,
    weights: tuple[float, float] = WEIGHTS,
) -> Iterator[Match]:
    """Yield texts, best first; ties by id, so that insertion order does not matter.

    Cosines of one model lie close together, at a height that depends on the query: they are scaled
    between the furthest and the nearest text. Lexical scores are absolute and stay. With a dense
    weight of 0, texts without a word in common are left out.
    """
    if not (min(weights) >= 0 and 0 < sum(weights) < math.inf):
        what = f"retrieval weights {weights[0]:g} and {weights[1]:g} are not usable"
        hint = "give none below 0, and at least one above 0"
        raise UsageError(what, hint=hint, code="bad-weights")
    keys, angles = cosines
    if not len(keys):
        return
    low, high = angles.min(), angles.max()
    semantic = (angles - low) / (high - low) if high > low else np.ones(len(keys))
    by_key = np.zeros(1 + max(keys.max(), found[0].max(initial=0)))
    by_key[found[0]] = found[1]
    lexical = by_key[keys]
    scores = np.round((weights[0] * semantic + weights[1] * lexical) / sum(weights), 6)
    left = len(keys) if weights[0] > 0 else np.count_nonzero(lexical)
    # Mostly a few are wanted: sort the best, and the rest only if it is asked for.
    bound, most = math.inf, FIRST
    while left > 0:
        place = min(most, len(keys)) - 1
        least = -np.partition(-scores, place)[place]
        rows = np.flatnonzero((scores < bound) & (scores >= least))
        ranked = sorted((-scores[row], ids[int(keys[row])], row) for row in rows)
        for score, text_id, row in ranked[:left]:
            yield Match(text_id, float(-score), float(semantic[row]), float(lexical[row]))
        left -= len(rows)
        bound, most = least, most * 8
