"""What a verdict rests on, for readers: a few rows of both answers, and rows that differ.

The rows and the mapping of columns are those of the judge's own comparison. Rows are sorted,
and blank nodes named by where they stand, so that the same two answers give the same evidence
in whatever order the engine returned them. What is shown of the prediction depends on it alone:
a judge that must not know the gold may read it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from reasoningbank.judge.answer import Answer
from reasoningbank.judge.compare import Contrast, contrast
from reasoningbank.judge.differing import differing
from reasoningbank.judge.encoding import Encoded, Ints
from reasoningbank.judge.gold import Gold
from reasoningbank.judge.sample import MAX_ROWS, Row, Sample, first_rows, sample_of, shown_rows

__all__ = ["MAX_DIFFERING", "Evidence", "evidence_of"]

#: Rows shown that one answer lacks, and that it has too many.
MAX_DIFFERING = 20


@dataclass(frozen=True)
class Evidence:
    """What a verdict rests on.

    Attributes:
        gold: Of the right answer.
        predicted: Of the answer that was judged; empty where there was none to compare.
        missing: Rows of the gold, in its columns, that the prediction lacks; at most
            `MAX_DIFFERING`. Where a LIMIT leaves several rows right, some that would do.
        surplus: Rows of the prediction, in its columns, that are wrong or too many; likewise.
        mapping: The prediction's column for each gold column that has one.
        n_missing: How many rows are missing in all.
        n_surplus: How many are wrong or too many in all.
    """

    gold: Sample = field(default_factory=Sample)
    predicted: Sample = field(default_factory=Sample)
    missing: tuple[Row, ...] = ()
    surplus: tuple[Row, ...] = ()
    mapping: Mapping[str, str] = field(default_factory=dict)
    n_missing: int = 0
    n_surplus: int = 0

    def to_json(self) -> dict[str, Any]:
        """Return the evidence as JSON-able data."""
        return {
            "gold": self.gold.to_json(),
            "predicted": self.predicted.to_json(),
            "missing": [list(row) for row in self.missing],
            "surplus": [list(row) for row in self.surplus],
            "mapping": dict(self.mapping),
            "n_missing": self.n_missing,
            "n_surplus": self.n_surplus,
        }


def evidence_of(
    gold: Gold,
    predicted: Answer | None = None,
    found: Contrast | None = None,
    *,
    bag: bool = False,
    ordered: bool = False,
) -> Evidence:
    """Collect the evidence of a verdict.

    Args:
        gold: The right answer.
        predicted: The answer that was judged; None where there was none.
        found: How the two compare; None where they were not compared.
        bag: Whether repeated rows of the prediction are shown and counted.
        ordered: Whether rows are shown in the order in which they came.

    Examples:
        >>> gold = Gold(Answer.of_rows(["x"], [["<http://e/b>"], ["<http://e/a>"]]))
        >>> mine = Answer.of_rows(["y"], [["<http://e/c>"], ["<http://e/a>"]])
        >>> found = evidence_of(gold, mine, contrast(gold.answer, mine))
        >>> found.gold.rows, found.missing, found.surplus
        ((('<http://e/a>',), ('<http://e/b>',)), (('<http://e/b>',),), (('<http://e/c>',),))
    """
    if found is None or predicted is None:
        counted = contrast(gold.answer, Answer.of_rows([], [])).gold
        right = _Side(gold.answer, counted, {})
        n_gold = gold.window.size(gold.answer.n_rows)
        return Evidence(gold=right.sample(_inside(gold, counted.n_rows, ordered), n_gold, ordered))
    names: dict[str, str] = {}
    shown = sample_of(predicted, bag=bag, ordered=ordered, names=names)
    ours = _Side(gold.answer, found.gold, {})
    theirs = _Side(predicted, found.predicted, names)
    many = found.window.is_slice
    rows = differing(found, ours.order(sort=many), theirs.order(sort=many))
    inside = _inside(gold, found.gold.n_rows, ordered)
    return Evidence(
        gold=ours.sample(inside, found.comparison.n_gold, ordered),
        predicted=shown,
        missing=ours.rows(ours.first(rows.missing, MAX_DIFFERING, ordered)),
        surplus=theirs.rows(theirs.first(rows.surplus, MAX_DIFFERING, ordered)),
        mapping=dict(found.comparison.column_mapping),
        n_missing=len(rows.missing),
        n_surplus=len(rows.surplus),
    )


def _inside(gold: Gold, n_rows: int, ordered: bool) -> Ints:
    """Return the positions of the gold's rows that its modifiers leave inside, or may leave."""
    window = gold.window
    if window.is_slice and (ordered or window.keys != ()):
        return np.arange(window.start, window.start + window.size(n_rows), dtype=np.int64)
    return np.arange(n_rows, dtype=np.int64)


class _Side:
    """Shows rows of one answer; names its blank nodes as they come.

    Args:
        answer: The answer.
        counted: Its rows that were counted; positions below are of these.
        names: Names given to its blank nodes so far.
    """

    def __init__(self, answer: Answer, counted: Encoded, names: dict[str, str]) -> None:
        self._answer = answer
        self._places = counted.places
        self._names = names

    def order(self, *, sort: bool) -> Ints:
        """Return all positions, sorted by what the rows say or as they came."""
        everything = np.arange(len(self._places), dtype=np.int64)
        return self.first(everything, len(everything), not sort)

    def first(self, positions: Ints, most: int, ordered: bool) -> Ints:
        """Return at most so many of the positions: the first as they came, or when sorted."""
        if ordered or self._answer.form == "boolean":
            return positions[:most]
        places = first_rows(self._answer.table, self._places[positions], most)
        # The rows that are counted stand in the order of the answer.
        return np.searchsorted(self._places, places).astype(np.int64)

    def sample(self, positions: Ints, n: int, ordered: bool) -> Sample:
        """Return a few of the rows at these positions."""
        if self._answer.form == "boolean":
            return sample_of(self._answer)
        chosen = self.first(positions, min(MAX_ROWS, n), ordered)
        return Sample(self._answer.variables, self.rows(chosen), n)

    def rows(self, positions: Ints) -> tuple[Row, ...]:
        """Return the rows at these positions."""
        if self._answer.form == "boolean":
            return sample_of(self._answer).rows * len(positions)
        return shown_rows(self._answer.table, self._places[positions], self._names)
