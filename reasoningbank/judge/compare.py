"""Whether two answers are the same answer.

`compare` is the judge's core: cells by meaning, columns by content, rows as a set or a bag,
order where it counts, and what a LIMIT leaves open. It knows no query and no endpoint.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from reasoningbank.judge.answer import Answer
from reasoningbank.judge.blanks import isomorphic, local_classes, signature_classes
from reasoningbank.judge.columns import Found, Leaf, best_mapping
from reasoningbank.judge.encoding import Encoded, Ints, encode, pair_ids
from reasoningbank.judge.window import Window

__all__ = ["Comparison", "compare"]


@dataclass(frozen=True)
class Comparison:
    """How an answer compares with the right one.

    Attributes:
        match: Whether it counts as right, by the reading that was asked for.
        strict: Whether it is the same answer with no column too many.
        lenient: Whether it is the same answer when columns that do not change the number of
            rows are looked over.
        precision: Share of its rows that are right, in [0, 1].
        recall: Share of the right rows that it has, in [0, 1].
        f1: Harmonic mean of the two, in [0, 1].
        column_mapping: Its column for each gold column that has one.
        reason: What decided, in a line.
        n_gold: Rows (triples) the right answer has.
        n_predicted: Rows (triples) it has.
        extra_columns: Its columns that stand for nothing in the gold.
    """

    match: bool
    strict: bool
    lenient: bool
    precision: float
    recall: float
    f1: float
    column_mapping: Mapping[str, str] = field(default_factory=dict)
    reason: str = ""
    n_gold: int = 0
    n_predicted: int = 0
    extra_columns: tuple[str, ...] = ()


def compare(
    gold: Answer,
    predicted: Answer,
    *,
    bag: bool = False,
    ordered: bool = False,
    lenient: bool = False,
    window: Window | None = None,
) -> Comparison:
    """Compare an answer with the right one.

    Args:
        gold: The right answer; without its OFFSET and LIMIT where `window` has them.
        predicted: The answer to judge.
        bag: Whether repeated rows count. As a set, rows are counted once on both sides.
        ordered: Whether the order of rows counts.
        lenient: Whether `match` is the lenient reading instead of the strict one.
        window: What the gold's modifiers leave open. Without it the gold is taken as it is,
            and where order counts, every row has its own place.

    Returns:
        The comparison. Precision, recall and F1 are of rows (of triples for graphs), under
        the mapping of columns that makes most rows right; where a blank node is in a row,
        the row is right for them when some gold row has a blank node in its place. They do
        not depend on order. Two empty answers are the same.

    Examples:
        >>> gold = Answer.of_rows(["x", "n"], [["<http://e/a>", "1"], ["<http://e/b>", "2.0"]])
        >>> mine = Answer.of_rows(["c", "id"], [["2", "<http://e/b>"], ["1", "<http://e/a>"]])
        >>> result = compare(gold, mine)
        >>> result.strict, result.column_mapping
        (True, {'x': 'id', 'n': 'c'})
        >>> compare(gold, mine, ordered=True).reason
        'the right rows in the wrong order'
    """
    if gold.form != predicted.form:
        reason = f"the right answer is a {gold.form}, this is a {predicted.form}"
        found = _scored(0, gold.n_rows, predicted.n_rows, reason=reason)
    elif gold.form == "boolean":
        same = gold.value is predicted.value
        reason = "equal" if same else f"{str(gold.value).lower()} was right"
        found = replace(_scored(int(same), 1, 1, reason=reason), strict=same, lenient=same)
    elif gold.form == "graph":
        found = _compare_graphs(gold, predicted, window or Window())
    else:
        found = _compare_tables(gold, predicted, bag, ordered, window or Window())
    return replace(found, match=found.lenient if lenient else found.strict)


def _compare_graphs(gold: Answer, predicted: Answer, window: Window) -> Comparison:
    ours, theirs = encode(gold, predicted)
    ours, theirs = ours.distinct(), theirs.distinct()
    classes = local_classes(ours, theirs)
    size = window.size(ours.n_rows)
    right = min(_shared(*classes), size)
    same = right == size == theirs.n_rows
    reason = _difference(right, size, theirs.n_rows, "triples")
    if same and not window.is_slice and (ours.has_blanks or theirs.has_blanks):
        same = isomorphic(ours, theirs)
        reason = reason if same else _DIFFERENT_BLANKS
    found = _scored(right, size, theirs.n_rows, reason=reason)
    return replace(found, strict=same, lenient=same)


def _compare_tables(
    gold: Answer, predicted: Answer, bag: bool, ordered: bool, window: Window
) -> Comparison:
    ours, theirs = encode(gold, predicted)
    if bag:
        return _read(ours, theirs, ordered, window)
    found = _read(ours.distinct(), theirs.distinct(), ordered, window)
    if window.is_slice and not found.lenient:
        # Rows are repeated and then cut in the gold too: that is as right as cutting
        # distinct rows.
        repeated = _read(ours, theirs, ordered, window)
        if repeated.lenient or repeated.f1 > found.f1:
            return repeated
    return found


def _read(gold: Encoded, predicted: Encoded, ordered: bool, window: Window) -> Comparison:
    """Compare two tables row for row."""
    size = window.size(gold.n_rows)
    missing = len(gold.values) - len(predicted.values)
    needed = size if predicted.n_rows == size else None
    rows = _Rows(gold, predicted, ordered, window)
    if needed == 0 and missing <= 0:
        found = Found(tuple(range(len(gold.values))), Leaf(0, True))
    else:
        found = best_mapping(gold, predicted, rows.evaluate, needed)
    leaf = found.leaf or Leaf(0, False)
    named = {
        gold.variables[g]: predicted.variables[p] for g, p in enumerate(found.mapping) if p >= 0
    }
    if missing > 0:
        reason = f"{missing} of {len(gold.values)} columns missing"
    elif leaf.right == size == predicted.n_rows and not leaf.accepted:
        reason = rows.objection
    else:
        reason = _difference(leaf.right, size, predicted.n_rows, "rows")
    if not found.complete and not leaf.accepted:
        reason += "; not every mapping of columns was tried"
    return _reported(leaf, found.mapping, gold, predicted, size, reason, named)


class _Rows:
    """Judges the rows of two tables under a mapping of their columns."""

    def __init__(self, gold: Encoded, predicted: Encoded, ordered: bool, window: Window) -> None:
        self._gold = gold
        self._predicted = predicted
        self._ordered = ordered
        self._window = window
        self._size = window.size(gold.n_rows)
        self._blocks = _blocks(gold, window.keys)
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
            if _shared(ours, theirs) < self._size:
                self.objection = _DIFFERENT_BLANKS
                return Leaf(right, False)
        if self._ordered and not self._in_order(ours, theirs):
            self.objection = "the right rows in the wrong order"
            return Leaf(right, False)
        return Leaf(right, True)

    def _right(self, ours: Ints, theirs: Ints) -> int:
        if not self._window.is_slice:
            return _shared(ours, theirs)
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
        return _shared(have, want) == len(want)


def _blocks(gold: Encoded, keys: tuple[str, ...] | None) -> Ints:
    """Number the groups of gold rows that the sort keys leave tied."""
    if keys is None or not set(keys) <= set(gold.variables):
        return np.arange(gold.n_rows, dtype=np.int64)
    ids = np.zeros(gold.n_rows, dtype=np.int64)
    for key in keys:
        ids = pair_ids(ids, gold.values[gold.variables.index(key)])
    return ids


def _shared(ours: Ints, theirs: Ints) -> int:
    """Count the members that two multisets share; negative ones are nobody's."""
    theirs = theirs[theirs >= 0]
    values, counts = np.unique(ours, return_counts=True)
    others, other_counts = np.unique(theirs, return_counts=True)
    _, left, right = np.intersect1d(values, others, assume_unique=True, return_indices=True)
    return int(np.minimum(counts[left], other_counts[right]).sum())


_DIFFERENT_BLANKS = "the rows are alike, but blank nodes connect them differently"


def _difference(right: int, size: int, n_predicted: int, what: str) -> str:
    if right == size == n_predicted:
        return "equal"
    parts = []
    if size > right:
        parts.append(f"{size - right} of {size} {what} missing")
    if n_predicted > right:
        parts.append(f"{n_predicted - right} of {n_predicted} {what} wrong or too many")
    return ", ".join(parts)


def _reported(
    leaf: Leaf,
    mapping: tuple[int, ...],
    gold: Encoded,
    predicted: Encoded,
    size: int,
    reason: str,
    named: dict[str, str],
) -> Comparison:
    extra = tuple(name for at, name in enumerate(predicted.variables) if at not in mapping)
    if leaf.accepted and extra:
        reason = f"columns not asked for: {', '.join(extra)}"
    return replace(
        _scored(leaf.right, size, predicted.n_rows, reason=reason),
        strict=leaf.accepted and not extra,
        lenient=leaf.accepted,
        column_mapping=named,
        extra_columns=extra,
    )


def _scored(right: int, n_gold: int, n_predicted: int, *, reason: str) -> Comparison:
    if n_gold == n_predicted == 0:
        precision = recall = f1 = 1.0
    else:
        precision = right / n_predicted if n_predicted else 0.0
        recall = right / n_gold if n_gold else 0.0
        f1 = 2 * right / (n_gold + n_predicted)
    return Comparison(
        match=False,
        strict=False,
        lenient=False,
        precision=precision,
        recall=recall,
        f1=f1,
        reason=reason,
        n_gold=n_gold,
        n_predicted=n_predicted,
    )
