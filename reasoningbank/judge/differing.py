"""Which rows two answers do not share: those missing from one, those too many in the other.

The numbers are those that the comparison counted. Where several answers are right, which
rows stand for the missing ones is a choice; the order given with each side makes it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from reasoningbank.judge.blanks import local_classes
from reasoningbank.judge.compare import Contrast, blocks_of
from reasoningbank.judge.encoding import Encoded, Ints
from reasoningbank.judge.window import Window

__all__ = ["Differing", "differing"]


class Differing(NamedTuple):
    """Positions of rows, among those that were counted.

    Attributes:
        missing: Rows of the right answer that the other lacks.
        surplus: Rows of the other answer that are wrong or too many.
    """

    missing: Ints
    surplus: Ints


def differing(found: Contrast, gold_order: Ints, predicted_order: Ints) -> Differing:
    """Find the rows that the two answers do not share, under the mapping of their columns.

    Args:
        found: The comparison, with its rows.
        gold_order: Positions of the gold's rows, those first that are named first.
        predicted_order: Positions of the prediction's rows, those first that count first.
    """
    gold, predicted, window = found.gold, found.predicted, found.window
    if found.mapping is None:
        ours = np.arange(gold.n_rows, dtype=np.int64)
        theirs = np.full(predicted.n_rows, -1, dtype=np.int64)
    else:
        ours, theirs = local_classes(gold, predicted.select(found.mapping))
    kinds = 1 + int(max(ours.max(initial=0), theirs.max(initial=0)))
    possible = np.minimum(
        np.bincount(ours, minlength=kinds), np.bincount(theirs[theirs >= 0], minlength=kinds)
    )
    blocks, quota = _blocks(gold, window)
    block_of = np.zeros(kinds, dtype=np.int64)
    block_of[ours] = blocks
    taken = np.zeros(len(quota), dtype=np.int64)
    np.add.at(taken, block_of, possible)

    known = predicted_order[theirs[predicted_order] >= 0]
    known = known[_nth(theirs[known]) < possible[theirs[known]]]
    block = block_of[theirs[known]]
    right = known[_nth(block) < quota[block]]
    surplus = np.ones(predicted.n_rows, dtype=bool)
    surplus[right] = False

    free = gold_order[_nth(ours[gold_order]) >= possible[ours[gold_order]]]
    short = quota - np.minimum(taken, quota)
    missing = free[_nth(blocks[free]) < short[blocks[free]]]
    return Differing(np.sort(missing), np.flatnonzero(surplus).astype(np.int64))


def _blocks(gold: Encoded, window: Window) -> tuple[Ints, Ints]:
    """Return the group of each gold row, and how many rows of each group belong in the answer."""
    if not window.is_slice:
        return np.zeros(gold.n_rows, dtype=np.int64), np.array([gold.n_rows], dtype=np.int64)
    blocks = blocks_of(gold, window.keys)
    inside = blocks[window.start : window.start + window.size(gold.n_rows)]
    return blocks, np.bincount(inside, minlength=1 + int(blocks.max(initial=0)))


def _nth(classes: Ints) -> Ints:
    """Number the members of each class from 0, as they follow one another.

    Examples:
        >>> _nth(np.array([5, 5, 2, 5])).tolist()
        [0, 1, 0, 2]
    """
    order = np.argsort(classes, kind="stable")
    sorted_ = classes[order]
    nth = np.empty(len(classes), dtype=np.int64)
    nth[order] = np.arange(len(classes)) - np.searchsorted(sorted_, sorted_, side="left")
    return nth
