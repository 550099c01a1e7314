"""What a verdict rests on, for readers: a few rows of both answers, and rows that differ.

Rows and column mapping are those of the judge's own comparison. Rows are sorted, and blank nodes
named by position, so the same two answers give the same evidence in whatever order the engine
returned them. What is shown of the prediction depends on it alone: a judge that must not know the
gold may read it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic_core import to_jsonable_python

from reasoningbank.judge.answer import Answer
from reasoningbank.judge.cells import Ints, local_classes
from reasoningbank.judge.compare import Contrast, SharedRows, contrast
from reasoningbank.judge.gold import Gold
from reasoningbank.sparql.terms import cut

#: Rows shown of an answer.
MAX_ROWS = 10
#: Rows shown that one answer lacks, or has too many.
MAX_DIFFERING = 20
#: Characters shown of a term.
MAX_TERM_CHARS = 300

#: A row of terms as SPARQL TSV writes them; None where a variable is unbound.
Row = tuple[str | None, ...]


@dataclass(frozen=True)
class AnswerSample:
    """A few rows of an answer: at most `MAX_ROWS` of its `n`.

    The variables are `subject`, `predicate` and `object` of a graph, `boolean` of an ASK.
    """

    variables: tuple[str, ...] = ()
    rows: tuple[Row, ...] = ()
    n: int = 0


@dataclass(frozen=True)
class Evidence:
    """What a verdict rests on."""

    gold: AnswerSample = field(default_factory=AnswerSample)  #: Rows of the right answer
    #: Rows of the judged answer; empty if there was nothing to compare
    predicted: AnswerSample = field(default_factory=AnswerSample)
    #: Rows of the gold that the prediction lacks; at most `MAX_DIFFERING` of `n_missing`. Where a
    #: LIMIT leaves several rows right, some that would do.
    missing: tuple[Row, ...] = ()
    #: Rows of the prediction that are wrong or too many; likewise, of `n_surplus`
    surplus: tuple[Row, ...] = ()
    #: The prediction's column for each gold column that has one
    mapping: Mapping[str, str] = field(default_factory=dict)
    n_missing: int = 0
    n_surplus: int = 0

    def to_json(self) -> dict[str, Any]:
        """Return the evidence as a JSON object."""
        return dict(to_jsonable_python(self))


def sample_of(
    answer: Answer, *, bag: bool = False, ordered: bool = False, names: dict[str, str] | None = None
) -> AnswerSample:
    """Return the first rows of an answer, sorted unless `ordered`, repeated ones only with `bag`.

    They depend on nothing but the answer. `names` holds the names given to blank nodes so far.
    """
    table, n = answer.table, answer.n_rows
    if not bag and table.num_columns:
        # Without threads the rows stay in the order in which each came first.
        table = table.group_by(table.column_names, use_threads=False).aggregate([])
        n = table.num_rows
    side = _Side(table, np.arange(n, dtype=np.int64), {} if names is None else names)
    rows = side.rows(side.first(side.all, MAX_ROWS, ordered))
    return AnswerSample(answer.variables, rows, n)


def evidence_of(
    gold: Gold,
    predicted: Answer | None = None,
    found: Contrast | None = None,
    *,
    bag: bool = False,
    ordered: bool = False,
) -> Evidence:
    """Collect the evidence of a verdict."""
    counted = (found or contrast(gold.answer, Answer.of_rows([], []))).gold
    n_gold = found.comparison.n_gold if found else gold.window.size(gold.answer.n_rows)
    ours = _Side(gold.answer.table, counted.places, {})
    inside = ours.all
    # The rows that the gold's modifiers keep, or may keep.
    if gold.window.is_slice and (ordered or gold.window.keys != ()):
        inside = inside[gold.window.inside(len(inside))]
    rows = ours.rows(ours.first(inside, min(MAX_ROWS, n_gold), ordered))
    right = AnswerSample(gold.answer.variables, rows, n_gold)
    if found is None or predicted is None:
        return Evidence(gold=right)
    names: dict[str, str] = {}
    shown = sample_of(predicted, bag=bag, ordered=ordered, names=names)
    theirs = _Side(predicted.table, found.predicted.places, names)
    # Where a LIMIT leaves several rows right, those that come first by their text.
    as_they_came = not found.window.is_slice
    orders = (side.first(side.all, len(side.all), as_they_came) for side in (ours, theirs))
    missing, surplus = _differing(found, *orders)
    return Evidence(
        gold=right,
        predicted=shown,
        missing=ours.rows(ours.first(missing, MAX_DIFFERING, ordered)),
        surplus=theirs.rows(theirs.first(surplus, MAX_DIFFERING, ordered)),
        mapping=dict(found.comparison.column_mapping),
        n_missing=len(missing),
        n_surplus=len(surplus),
    )


@dataclass(frozen=True)
class _Side:
    """Shows rows of one answer."""

    table: pa.Table
    places: Ints  #: The row of the table at each position
    names: dict[str, str]  #: The names given to blank nodes so far

    @property
    def all(self) -> Ints:
        return np.arange(len(self.places), dtype=np.int64)

    def first(self, positions: Ints, most: int, ordered: bool) -> Ints:
        """Return at most `most` of the positions: the first as they came, or when sorted."""
        if ordered or not self.table.num_columns:
            return positions[:most]
        rows = self.table.take(pa.array(self.places[positions]))
        # The labels of blank nodes mean nothing.
        keys = [pc.if_else(pc.starts_with(c, "_:"), "_:", c) for c in rows.columns]
        names = [str(at) for at in range(len(keys))]
        chosen = pc.select_k_unstable(
            pa.Table.from_arrays(keys, names=names),
            k=min(most, len(positions)),
            sort_keys=[(name, "ascending") for name in names],
        )
        first: Ints = positions[chosen.to_numpy()]
        return first

    def rows(self, positions: Ints) -> tuple[Row, ...]:
        """Return the rows at these positions, long terms cut, blank nodes named as they appear."""

        def shown(text: str | None) -> str | None:
            if text is not None and text.startswith("_:"):
                return self.names.setdefault(text, f"_:b{len(self.names)}")
            return text and cut(text, MAX_TERM_CHARS)

        found = self.table.take(pa.array(self.places[positions]))
        columns = [column.to_pylist() for column in found.columns]
        return tuple(tuple(shown(column[at]) for column in columns) for at in range(len(positions)))


def _differing(found: Contrast, gold_order: Ints, predicted_order: Ints) -> tuple[Ints, Ints]:
    """Return the positions of gold rows that are missing, and of predicted rows that are wrong."""
    gold, predicted = found.gold, found.predicted
    if found.mapping is None:
        ours = np.arange(gold.n_rows, dtype=np.int64)
        theirs = np.full(predicted.n_rows, -1, dtype=np.int64)
    else:
        ours, theirs = local_classes(gold, predicted.select(found.mapping))
    shared = SharedRows.of(gold, found.window, ours, theirs)
    known = predicted_order[theirs[predicted_order] >= 0]
    known = known[_nth(theirs[known]) < shared.possible[theirs[known]]]
    group = shared.group_of[theirs[known]]
    right = known[_nth(group) < shared.quota[group]]
    surplus = np.delete(np.arange(predicted.n_rows, dtype=np.int64), right)

    free = gold_order[_nth(ours[gold_order]) >= shared.possible[ours[gold_order]]]
    short = np.maximum(shared.quota - shared.taken, 0)
    missing = free[_nth(shared.groups[free]) < short[shared.groups[free]]]
    return np.sort(missing), surplus


def _nth(classes: Ints) -> Ints:
    """Number the members of each class from 0, in order: [5, 5, 2, 5] gives [0, 1, 0, 2]."""
    order = np.argsort(classes, kind="stable")
    sorted_ = classes[order]
    nth = np.empty(len(classes), dtype=np.int64)
    nth[order] = np.arange(len(classes)) - np.searchsorted(sorted_, sorted_, side="left")
    return nth
