"""Whether two answers are the same answer.

`compare` is the core of the execution judge: cells by value, columns by content, rows as a set or
a bag, order where it counts, and what a LIMIT leaves open. It knows no query and no endpoint.

`best_mapping` maps gold columns to predicted columns, injectively, by content and not by name. It
extends a mapping column by column and tracks how many rows can still be right under it. That bound
only falls, so whole branches can be dropped and the result is still optimal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from reasoningbank.findings import Finding
from reasoningbank.judge.answer import Answer, read_answer
from reasoningbank.judge.cells import (
    Encoded,
    Ints,
    counted,
    encode,
    in_common,
    isomorphic,
    local_classes,
    pair_keys,
    row_ids,
    signature_classes,
)

_ORDER = Finding("wrong-order", "the right rows in the wrong order")
_BLANKS = Finding(
    "blank-nodes-differ", "the rows are alike, but blank nodes connect them differently"
)
_INCOMPLETE = Finding("search-incomplete", "not every mapping of columns was tried")
# Rows that each search may look at (a few seconds), and the fixed cost of a step.
_WORK = 20_000_000
_STEP = 1_000


@dataclass(frozen=True)
class Window:
    """What the outermost modifiers of a gold query leave open.

    The gold is computed without its LIMIT. An answer is right if it takes the right number of rows
    from each group of rows that the ORDER BY leaves tied; without ORDER BY all rows are one such
    group.
    """

    start: int = 0  #: OFFSET, in rows
    length: int | None = None  #: LIMIT, in rows; None without one
    #: The variables that the rows are sorted by; empty if nothing sorts them, None if an expression
    #: does, so that every row has its own place
    keys: tuple[str, ...] | None = None

    @property
    def is_slice(self) -> bool:
        """Whether rows are left out."""
        return self.start > 0 or self.length is not None

    def size(self, n_rows: int) -> int:
        """Return how many of `n_rows` rows are inside."""
        left = max(0, n_rows - self.start)
        return left if self.length is None else min(self.length, left)

    def inside(self, n_rows: int) -> slice:
        """Return the places of `n_rows` rows that are inside."""
        return slice(self.start, self.start + self.size(n_rows))


@dataclass(frozen=True, kw_only=True)
class Scores:
    """How an answer scores against the right one."""

    strict: bool = False
    lenient: bool = False
    precision: float = 0.0
    recall: float = 0.0
    f1: float = 0.0
    column_mapping: Mapping[str, str] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    n_gold: int = 0
    n_predicted: int = 0
    extra_columns: tuple[str, ...] = ()

    @property
    def reason(self) -> str:
        """What decided, in one line for people; code reads `findings`."""
        return "; ".join([*(["equal"] if self.strict else []), *map(str, self.findings)])

    def to_json(self) -> dict[str, Any]:
        """Return everything as a JSON object, the rendered reason included."""
        data = {one.name: getattr(self, one.name) for one in fields(self)}
        return data | {
            "column_mapping": dict(self.column_mapping),
            "findings": [finding.to_json() for finding in self.findings],
            "extra_columns": list(self.extra_columns),
            "reason": self.reason,
        }


def findings_of(verdict: Mapping[str, Any]) -> tuple[Finding, ...]:
    """Return the findings of a verdict as records keep it; none for records of old versions."""
    return tuple(Finding.from_json(one) for one in verdict.get("findings") or ())


@dataclass(frozen=True, kw_only=True)
class Comparison(Scores):
    """How two answers compare."""

    match: bool = False  #: Whether the answer counts as right, strictly or leniently as asked


@dataclass(frozen=True)
class Contrast:
    """A comparison and the rows that it is about."""

    comparison: Scores
    gold: Encoded
    predicted: Encoded
    mapping: tuple[int, ...] | None
    window: Window


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
        the mapping of columns that makes most rows right, and ignore order. A row with a blank
        node counts as right for them if some gold row has a blank node in its place. Two empty
        answers are the same.
    """
    found = contrast(gold, predicted, bag=bag, ordered=ordered, window=window).comparison
    return Comparison(**vars(found), match=found.lenient if lenient else found.strict)


def compare_files(
    gold: Path, predicted: Path, *, bag: bool = False, ordered: bool = False, lenient: bool = False
) -> Comparison:
    """Compare two files of results or two graphs; see `compare` and `read_answer`."""
    return compare(
        read_answer(gold), read_answer(predicted), bag=bag, ordered=ordered, lenient=lenient
    )


def contrast(
    gold: Answer,
    predicted: Answer,
    *,
    bag: bool = False,
    ordered: bool = False,
    window: Window | None = None,
) -> Contrast:
    """Compare as `compare` does, strictly, and keep what was compared."""
    window = window or Window()
    ours, theirs = encode(gold, predicted)
    if gold.form == predicted.form == "table":
        return _compare_tables(ours, theirs, bag, ordered, window)
    ours, theirs = ours.distinct(), theirs.distinct()
    mapping: tuple[int, ...] | None = None
    if gold.form != predicted.form:
        what = f"the right answer is a {gold.form}, this is a {predicted.form}"
        facts = {"gold": gold.form, "predicted": predicted.form}
        findings = [Finding("form-mismatch", what, fields=facts)]
        compared = _scored(0, gold.n_rows, predicted.n_rows, findings)
    elif gold.form == "graph":
        mapping = (0, 1, 2)
        size = window.size(ours.n_rows)
        right = min(in_common(*map(counted, local_classes(ours, theirs))), size)
        findings = _differences(right, size, theirs.n_rows, "triples")
        blanks = ours.has_blanks or theirs.has_blanks
        if not findings and blanks and not window.is_slice and not isomorphic(ours, theirs):
            findings = [_BLANKS]
        compared = _scored(right, size, theirs.n_rows, findings, accepted=not findings)
    elif gold.value is predicted.value:
        mapping = (0,)
        compared = _scored(1, 1, 1, accepted=True)
    else:
        what = f"the right answer is {str(gold.value).lower()}"
        value = Finding("wrong-boolean", what, fields={"gold": gold.value})
        compared = _scored(0, 1, 1, [value])
    return Contrast(compared, ours, theirs, mapping, window)


def _compare_tables(
    ours: Encoded, theirs: Encoded, bag: bool, ordered: bool, window: Window
) -> Contrast:
    if bag:
        return _compare_rows(ours, theirs, ordered, window)
    found = _compare_rows(ours.distinct(), theirs.distinct(), ordered, window)
    if window.is_slice and not found.comparison.lenient:
        # The gold cuts repeated rows too, so cutting them is as right as cutting distinct rows.
        repeated = _compare_rows(ours, theirs, ordered, window)
        if repeated.comparison.lenient or repeated.comparison.f1 > found.comparison.f1:
            return repeated
    return found


def _compare_rows(gold: Encoded, predicted: Encoded, ordered: bool, window: Window) -> Contrast:
    size = window.size(gold.n_rows)
    n_columns = len(gold.variables)
    missing = n_columns - len(predicted.variables)
    needed = size if predicted.n_rows == size else None
    rows = _RowJudge(gold, predicted, ordered, window)
    if needed == 0 and missing <= 0:
        found = BestMapping(tuple(range(n_columns)), accepted=True)
    else:
        found = best_mapping(rows, needed)
    names = predicted.variables
    extra = tuple(name for at, name in enumerate(names) if at not in found.columns)
    if found.accepted:
        what = f"columns not asked for: {', '.join(extra)}"
        unasked = Finding("columns-extra", what, fields={"columns": list(extra)})
        findings = [unasked] if extra else []
    elif missing > 0:
        what = f"{missing} of {n_columns} columns missing"
        fields = {"missing": missing, "of": n_columns}
        findings = [Finding("columns-missing", what, fields=fields)]
    elif found.right == size == predicted.n_rows:
        findings = [rows.objection] if rows.objection else []
    else:
        findings = _differences(found.right, size, predicted.n_rows, "rows")
    if not found.complete and not found.accepted:
        findings.append(_INCOMPLETE)
    pairs = zip(gold.variables, found.columns, strict=True)
    compared = replace(
        _scored(found.right, size, predicted.n_rows, findings, accepted=found.accepted),
        strict=found.accepted and not extra,
        column_mapping={ours: names[theirs] for ours, theirs in pairs if theirs >= 0},
        extra_columns=extra,
    )
    return Contrast(compared, gold, predicted, found.columns if found.tried else None, window)


def _differences(right: int, size: int, n_predicted: int, unit: str) -> list[Finding]:
    found = []
    for code, few, of, said in (
        ("missing", size - right, size, "missing"),
        ("extra", n_predicted - right, n_predicted, "wrong or too many"),
    ):
        if few > 0:
            what = f"{few} of {of} {unit} {said}"
            fields = {code: few, "of": of, "unit": unit}
            found.append(Finding(f"rows-{code}", what, fields=fields))
    return found


def _scored(
    right: int,
    n_gold: int,
    n_predicted: int,
    findings: Sequence[Finding] = (),
    *,
    accepted: bool = False,
) -> Scores:
    both_empty = n_gold == n_predicted == 0
    return Scores(
        strict=accepted,
        lenient=accepted,
        precision=right / n_predicted if n_predicted else float(both_empty),
        recall=right / n_gold if n_gold else float(both_empty),
        f1=1.0 if both_empty else 2 * right / (n_gold + n_predicted),
        findings=tuple(findings),
        n_gold=n_gold,
        n_predicted=n_predicted,
    )


class _RowJudge:
    """Counts the right rows of a table under a mapping of its columns."""

    def __init__(self, gold: Encoded, predicted: Encoded, ordered: bool, window: Window) -> None:
        self.gold, self.predicted = gold, predicted
        self._ordered, self._window = ordered, window
        self._has_blanks = gold.has_blanks or predicted.has_blanks
        self.objection: Finding | None = None

    def evaluate(self, mapping: tuple[int, ...], ours: Ints, theirs: Ints) -> BestMapping:
        if self._has_blanks:
            mapped = self.predicted.select(mapping)
            ours, theirs = local_classes(self.gold, mapped)
        right = SharedRows.of(self.gold, self._window, ours, theirs).right
        size = self._window.size(self.gold.n_rows)
        if not right == size == self.predicted.n_rows:
            return BestMapping(mapping, right)
        if self._has_blanks and not self._window.is_slice:
            ours, theirs = signature_classes(self.gold, mapped)
            if in_common(counted(ours), counted(theirs)) < size:
                self.objection = _BLANKS
                return BestMapping(mapping, right)
        if self._ordered and not self._in_order(ours, theirs):
            self.objection = _ORDER
            return BestMapping(mapping, right)
        return BestMapping(mapping, right, accepted=True)

    def _in_order(self, ours: Ints, theirs: Ints) -> bool:
        """Whether each place holds a row of the group that belongs there."""
        groups = _tied(self.gold, self._window.keys)
        kinds = 1 + int(max(ours.max(initial=0), theirs.max(initial=0)))
        want = groups[self._window.inside(len(groups))] * kinds + theirs
        return in_common(counted(groups * kinds + ours), counted(want)) == len(want)


@dataclass(frozen=True)
class SharedRows:
    """The rows that two tables share. Each group of tied gold rows gives as many as it may."""

    possible: Ints  #: By class, how many rows both have
    group_of: Ints  #: The group of each class
    groups: Ints  #: The group of each gold row; without a slice all are one
    quota: Ints  #: By group, how many rows belong in the answer
    taken: Ints  #: By group, how many rows both have

    @classmethod
    def of(cls, gold: Encoded, window: Window, ours: Ints, theirs: Ints) -> SharedRows:
        """Return the rows that are shared, given the class of each row."""
        groups, quota = np.zeros(gold.n_rows, dtype=np.int64), np.array([gold.n_rows])
        if window.is_slice:
            groups = _tied(gold, window.keys)
            inside = groups[window.inside(gold.n_rows)]
            quota = np.bincount(inside, minlength=1 + int(groups.max(initial=0)))
        # Negative classes match nothing.
        kinds = 1 + int(max(ours.max(initial=0), theirs.max(initial=0)))
        counts = (np.bincount(side[side >= 0], minlength=kinds) for side in (ours, theirs))
        possible = np.minimum(*counts)
        group_of = np.zeros(len(possible), dtype=np.int64)
        group_of[ours] = groups
        taken = np.zeros(len(quota), dtype=np.int64)
        np.add.at(taken, group_of, possible)
        return cls(possible, group_of, groups, quota, taken)

    @property
    def right(self) -> int:
        return int(np.minimum(self.taken, self.quota).sum())


def _tied(gold: Encoded, keys: tuple[str, ...] | None) -> Ints:
    """Number the groups of gold rows that the sort keys leave tied."""
    if keys is None or not set(keys) <= set(gold.variables):
        return np.arange(gold.n_rows, dtype=np.int64)
    return row_ids(gold.n_rows, *(gold.values[gold.variables.index(key)] for key in keys))


@dataclass(frozen=True)
class BestMapping:
    """The predicted column of each gold column, -1 for none, and how many rows are then right."""

    columns: tuple[int, ...]
    right: int = 0
    accepted: bool = False  #: Whether the whole answer is right
    tried: bool = True  #: Whether its rows were counted
    complete: bool = True  #: Whether every other mapping was tried, too


def best_mapping(rows: _RowJudge, needed: int | None) -> BestMapping:
    """Return the first accepted mapping, or one with the most right rows."""
    from scipy.optimize import linear_sum_assignment

    gold, predicted = rows.gold, rows.predicted
    # The cells that each pair of columns shares, as multisets.
    ours, theirs = ([counted(column) for column in side.values] for side in (gold, predicted))
    counts = [[in_common(one, other) for other in theirs] for one in ours]
    overlaps = np.array(counts, dtype=np.int64).reshape(len(ours), len(theirs))
    # Each gold column has the most similar predicted column, none twice.
    assigned = np.full(len(ours), -1)
    ours_at, theirs_at = linear_sum_assignment(overlaps, maximize=True)
    assigned[ours_at] = theirs_at
    untried = BestMapping(tuple(assigned.tolist()), tried=False)
    if -1 in untried.columns or not overlaps.any(axis=1).all():
        return untried
    search = _Search(rows, overlaps)
    if needed is None or not search.run(needed):
        search.run(None)
    return replace(search.best or untried, complete=search.complete)


class _Search:
    """Depth first, best candidate first, over gold columns in a fixed order."""

    def __init__(self, rows: _RowJudge, overlaps: Ints) -> None:
        gold, predicted = rows.gold, rows.predicted
        self._rows = rows
        self._overlaps = overlaps
        self._left = 0
        self._needed: int | None = None
        self.best: BestMapping | None = None
        self.complete = True
        # Columns with few similar ones and many values first: they decide most.
        kinds = [len(np.unique(column)) for column in gold.values]
        alike = (overlaps == overlaps.max(axis=1, initial=0)[:, None]).sum(axis=1)
        self._order = sorted(range(len(kinds)), key=lambda c: (alike[c], -kinds[c], c))
        # Columns that are equal cell by cell are interchangeable.
        twins: dict[bytes, int] = {}
        cells = np.hstack([predicted.values, predicted.blanks])
        self._twin = [twins.setdefault(column.tobytes(), c) for c, column in enumerate(cells)]
        # By depth: the classes of gold rows under the columns so far, with their counts.
        self._levels: list[tuple[Ints, Ints, Ints]] = []
        ids = np.zeros(gold.n_rows, dtype=np.int64)
        for column in self._order:
            keys = pair_keys(ids, gold.values[column])
            unique, ids, counts = np.unique(keys, return_inverse=True, return_counts=True)
            self._levels.append((unique, counts, ids.astype(np.int64)))

    def run(self, needed: int | None) -> bool:
        """Search, with `needed` only where that many rows can be right; say if one is accepted."""
        self._needed = needed
        self._left = _WORK
        n_rows = self._rows.predicted.n_rows
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
            most = self.best.right if self.best else 0
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
        keys = pair_keys(classes, self._rows.predicted.values[candidate][alive])
        at = np.minimum(np.searchsorted(unique, keys), len(unique) - 1)
        same = unique[at] == keys
        at = at[same].astype(np.int64)
        bound = int(np.minimum(np.bincount(at, minlength=len(counts)), counts).sum())
        return alive[same], at, bound

    def _candidates(self, column: int, chosen: tuple[int, ...]) -> list[int]:
        """Return the free predicted columns for a gold column, the most similar first."""
        overlaps, names = self._overlaps[column], self._rows.predicted.variables
        free = [c for c in range(len(names)) if c not in chosen and overlaps[c] > 0]
        name = self._rows.gold.variables[column]
        free.sort(key=lambda c: (-overlaps[c], names[c] != name, c != column, c))
        firsts = {self._twin[candidate]: candidate for candidate in reversed(free)}
        return [candidate for candidate in free if firsts[self._twin[candidate]] == candidate]

    def _finish(self, chosen: tuple[int, ...], alive: Ints, classes: Ints) -> bool:
        mapping = [0] * len(chosen)
        for column, candidate in zip(self._order, chosen, strict=True):
            mapping[column] = candidate
        nothing = np.zeros(self._rows.gold.n_rows, dtype=np.int64)
        gold_classes = self._levels[-1][2] if self._levels else nothing
        predicted_classes = np.full(self._rows.predicted.n_rows, -1, dtype=np.int64)
        predicted_classes[alive] = classes
        found = self._rows.evaluate(tuple(mapping), gold_classes, predicted_classes)
        if found.accepted or self.best is None or found.right > self.best.right:
            self.best = found
        return found.accepted
