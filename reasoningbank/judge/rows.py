"""Which rows of a prediction are right, once it is known which column stands for which.

A window that leaves several answers right is a quota: of each group of gold rows that its
ORDER BY leaves tied, so many rows belong in the answer.
"""

from __future__ import annotations

import numpy as np

from reasoningbank.judge.blanks import local_classes, signature_classes
from reasoningbank.judge.columns import Leaf
from reasoningbank.judge.encoding import Encoded, Ints, pair_ids
from reasoningbank.judge.window import Window

__all__ = ["DIFFERENT_BLANKS", "Rows", "blocks_of", "shared"]

#: Why rows that look alike are not the same.
DIFFERENT_BLANKS = "the rows are alike, but blank nodes connect them differently"


class Rows:
    """Judges the rows of two tables under a mapping of their columns."""

    def __init__(self, gold: Encoded, predicted: Encoded, ordered: bool, window: Window) -> None:
        self._gold = gold
        self._predicted = predicted
        self._ordered = ordered
        self._window = window
        self._size = window.size(gold.n_rows)
        self._blocks = blocks_of(gold, window.keys)
        self._has_blanks = gold.has_blanks or predicted.has_blanks
        self.objection = ""

    def evaluate(self, mapping: tuple[int, ...], ours: Ints, theirs: Ints) -> Leaf:
        """Count the right rows; see `columns.best_mapping`."""
        if self._has_blanks:
            mapped = self._predicted.select(mapping)
            ours, theirs = local_classes(self._gold, mapped)
        right = self._right(ours, theirs)
        if not right == self._size == self._predicted.n_rows:
            return Leaf(right, False)
        if self._has_blanks and not self._window.is_slice:
            ours, theirs = signature_classes(self._gold, mapped)
            if shared(ours, theirs) < self._size:
                self.objection = DIFFERENT_BLANKS
                return Leaf(right, False)
        if self._ordered and not self._in_order(ours, theirs):
            self.objection = "the right rows in the wrong order"
            return Leaf(right, False)
        return Leaf(right, True)

    def _right(self, ours: Ints, theirs: Ints) -> int:
        if not self._window.is_slice:
            return shared(ours, theirs)
        # Each group of tied rows gives as many rows as it has inside the window.
        kinds = 1 + int(max(ours.max(initial=0), theirs.max(initial=0)))
        possible = np.minimum(
            np.bincount(ours, minlength=kinds), np.bincount(theirs[theirs >= 0], minlength=kinds)
        )
        block_of = np.zeros(kinds, dtype=np.int64)
        block_of[ours] = self._blocks
        n_blocks = 1 + int(self._blocks.max(initial=0))
        taken = np.bincount(block_of, weights=possible, minlength=n_blocks)
        quota = np.bincount(self._inside(), minlength=n_blocks)
        return int(np.minimum(taken, quota).sum())

    def _inside(self) -> Ints:
        start = self._window.start
        return self._blocks[start : start + self._size]

    def _in_order(self, ours: Ints, theirs: Ints) -> bool:
        """Whether each place holds a row of the group that belongs there."""
        kinds = 1 + int(max(ours.max(initial=0), theirs.max(initial=0)))
        have = self._blocks * kinds + ours
        want = self._inside() * kinds + theirs
        return shared(have, want) == len(want)


def blocks_of(gold: Encoded, keys: tuple[str, ...] | None) -> Ints:
    """Number the groups of gold rows that the sort keys leave tied."""
    if keys is None or not set(keys) <= set(gold.variables):
        return np.arange(gold.n_rows, dtype=np.int64)
    ids = np.zeros(gold.n_rows, dtype=np.int64)
    for key in keys:
        ids = pair_ids(ids, gold.values[gold.variables.index(key)])
    return ids


def shared(ours: Ints, theirs: Ints) -> int:
    """Count the members that two multisets share; negative ones are nobody's."""
    theirs = theirs[theirs >= 0]
    values, counts = np.unique(ours, return_counts=True)
    others, other_counts = np.unique(theirs, return_counts=True)
    _, left, right = np.intersect1d(values, others, assume_unique=True, return_indices=True)
    return int(np.minimum(counts[left], other_counts[right]).sum())
