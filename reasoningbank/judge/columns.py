"""The best mapping of gold columns to predicted columns: injective, by content and not by name.

The search extends a mapping column by column and tracks how many rows can still be right under it.
That bound only falls, so whole branches can be dropped and the result is still optimal.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from reasoningbank.judge.cells import Encoded, Ints, counted, in_common

# Rows that each search may look at (a few seconds), and the fixed cost of a step.
_WORK = 20_000_000
_STEP = 1_000


@dataclass(frozen=True)
class Leaf:
    """A complete mapping: how many rows are right under it, and whether the whole answer is."""

    right: int
    accepted: bool


@dataclass(frozen=True)
class BestMapping:
    """The best mapping."""

    mapping: tuple[int, ...]
    leaf: Leaf | None
    complete: bool = True


def best_mapping(
    gold: Encoded,
    predicted: Encoded,
    evaluate: Callable[[tuple[int, ...], Ints, Ints], Leaf],
    needed: int | None,
) -> BestMapping:
    """Return the first accepted mapping, or one with the most right rows."""
    from scipy.optimize import linear_sum_assignment

    # The cells that each pair of columns shares, as multisets.
    ours, theirs = ([counted(column) for column in side.values] for side in (gold, predicted))
    counts = [[in_common(one, other) for other in theirs] for one in ours]
    overlaps = np.array(counts, dtype=np.int64).reshape(len(ours), len(theirs))
    # Each gold column has the most similar predicted column, none twice.
    assigned = np.full(len(ours), -1)
    rows, columns = linear_sum_assignment(overlaps, maximize=True)
    assigned[rows] = columns
    mapping = tuple(assigned.tolist())
    if -1 in mapping or not overlaps.any(axis=1).all():
        return BestMapping(mapping, None)
    search = _Search(gold, predicted, overlaps, evaluate)
    if needed is None or not search.run(needed):
        search.run(None)
    if search.best is None:
        return BestMapping(mapping, None, search.complete)
    return BestMapping(*search.best, search.complete)


class _Search:
    """Depth first, best candidate first, over gold columns in a fixed order."""

    def __init__(
        self,
        gold: Encoded,
        predicted: Encoded,
        overlaps: Ints,
        evaluate: Callable[[tuple[int, ...], Ints, Ints], Leaf],
    ) -> None:
        self._gold = gold
        self._predicted = predicted
        self._overlaps = overlaps
        self._evaluate = evaluate
        self._left = 0
        self._needed: int | None = None
        self.best: tuple[tuple[int, ...], Leaf] | None = None
        self.complete = True
        # Columns with few similar ones and many values first: they decide most.
        kinds = [len(np.unique(column)) for column in gold.values]
        alike = (overlaps == overlaps.max(axis=1, initial=0)[:, None]).sum(axis=1)
        self._order = sorted(range(len(kinds)), key=lambda c: (alike[c], -kinds[c], c))
        # Columns that are equal cell by cell are interchangeable.
        twins: dict[bytes, int] = {}
        self._twin = [
            twins.setdefault(value.tobytes() + blank.tobytes(), c)
            for c, (value, blank) in enumerate(zip(predicted.values, predicted.blanks, strict=True))
        ]
        # By depth: the classes of gold rows under the columns so far, with their counts.
        self._levels: list[tuple[Ints, Ints, Ints]] = []
        ids = np.zeros(gold.n_rows, dtype=np.int64)
        for column in self._order:
            keys = _pair_keys(ids, gold.values[column])
            unique, ids, counts = np.unique(keys, return_inverse=True, return_counts=True)
            self._levels.append((unique, counts, ids.astype(np.int64)))

    def run(self, needed: int | None) -> bool:
        """Search, with `needed` only where that many rows can be right; say if one is accepted."""
        self._needed = needed
        self._left = _WORK
        n_rows = self._predicted.n_rows
        return self._extend((), np.arange(n_rows), np.zeros(n_rows, dtype=np.int64))

    def _extend(self, chosen: tuple[int, ...], alive: Ints, classes: Ints) -> bool:
        """Try every way to map the columns that are left."""
        if len(chosen) == len(self._order):
            return self._finish(chosen, alive, classes)
        candidates = self._candidates(self._order[len(chosen)], chosen)
        if self._needed is None:
            bounds = {c: self._step(len(chosen), c, alive, classes)[2] for c in candidates}
            candidates.sort(key=lambda c: -bounds[c])
        for candidate in candidates:
            # At least one mapping is always evaluated.
            if self._left <= 0 and not (self._needed is None and self.best is None):
                self.complete = False
                return False
            rows, agreed, bound = self._step(len(chosen), candidate, alive, classes)
            most = self.best[1].right if self.best else 0
            hopeless = bound <= most if self._needed is None else bound < self._needed
            if not hopeless and self._extend((*chosen, candidate), rows, agreed):
                return True
        return False

    def _step(
        self, depth: int, candidate: int, alive: Ints, classes: Ints
    ) -> tuple[Ints, Ints, int]:
        """Map one more column; return the rows left and how many of them can still be right."""
        self._left -= len(alive) + _STEP
        unique, counts, _ = self._levels[depth]
        keys = _pair_keys(classes, self._predicted.values[candidate][alive])
        at = np.minimum(np.searchsorted(unique, keys), len(unique) - 1)
        same = unique[at] == keys
        at = at[same].astype(np.int64)
        bound = int(np.minimum(np.bincount(at, minlength=len(counts)), counts).sum())
        return alive[same], at, bound

    def _candidates(self, column: int, chosen: tuple[int, ...]) -> list[int]:
        """Return the free predicted columns for a gold column, the most similar first."""
        overlaps, names = self._overlaps[column], self._predicted.variables
        free = [c for c in range(len(names)) if c not in chosen and overlaps[c] > 0]
        name = self._gold.variables[column]
        free.sort(key=lambda c: (-overlaps[c], names[c] != name, c != column, c))
        firsts = {self._twin[candidate]: candidate for candidate in reversed(free)}
        return [candidate for candidate in free if firsts[self._twin[candidate]] == candidate]

    def _finish(self, chosen: tuple[int, ...], alive: Ints, classes: Ints) -> bool:
        mapping = [0] * len(chosen)
        for column, candidate in zip(self._order, chosen, strict=True):
            mapping[column] = candidate
        nothing = np.zeros(self._gold.n_rows, dtype=np.int64)
        gold_classes = self._levels[-1][2] if self._levels else nothing
        predicted_classes = np.full(self._predicted.n_rows, -1, dtype=np.int64)
        predicted_classes[alive] = classes
        leaf = self._evaluate(tuple(mapping), gold_classes, predicted_classes)
        if leaf.accepted or self.best is None or leaf.right > self.best[1].right:
            self.best = (tuple(mapping), leaf)
        return leaf.accepted


def _pair_keys(first: Ints, second: Ints) -> Ints:
    # Ids are far below 2^31.
    return (first << 31) | second
