"""Whether two answers are the same answer.

`compare` is the judge's core: cells by meaning, columns by content, rows as a set or a bag,
order where it counts, and what a LIMIT leaves open. It knows no query and no endpoint.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from reasoningbank.judge.answer import Answer
from reasoningbank.judge.blanks import isomorphic, local_classes
from reasoningbank.judge.columns import Found, Leaf, best_mapping
from reasoningbank.judge.encoding import Encoded, encode
from reasoningbank.judge.rows import DIFFERENT_BLANKS, Rows, shared
from reasoningbank.judge.window import Window

__all__ = ["Comparison", "Contrast", "compare", "contrast"]


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


@dataclass(frozen=True)
class Contrast:
    """A comparison and the rows that it is about.

    Attributes:
        comparison: The comparison.
        gold: The rows of the right answer that were counted, once each unless repeats count.
        predicted: Those of the other answer.
        mapping: For each gold column the predicted one; None where no row can be right.
        window: What the gold's modifiers leave open.
    """

    comparison: Comparison
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
    found = contrast(gold, predicted, bag=bag, ordered=ordered, window=window).comparison
    return replace(found, match=found.lenient if lenient else found.strict)


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
        found = _compare_tables(ours, theirs, bag, ordered, window)
        compared = replace(found.comparison, match=found.comparison.strict)
        return replace(found, comparison=compared)
    ours, theirs = ours.distinct(), theirs.distinct()
    mapping: tuple[int, ...] | None = None
    if gold.form != predicted.form:
        reason = f"the right answer is a {gold.form}, this is a {predicted.form}"
        compared = _scored(0, gold.n_rows, predicted.n_rows, reason=reason)
    elif gold.form == "graph":
        mapping = (0, 1, 2)
        compared = _compare_graphs(ours, theirs, window)
    else:
        same = gold.value is predicted.value
        mapping = () if same else None
        reason = "equal" if same else f"{str(gold.value).lower()} was right"
        compared = _scored(int(same), 1, 1, reason=reason)
        compared = replace(compared, match=same, strict=same, lenient=same)
    return Contrast(compared, ours, theirs, mapping, window)


def _compare_graphs(ours: Encoded, theirs: Encoded, window: Window) -> Comparison:
    classes = local_classes(ours, theirs)
    size = window.size(ours.n_rows)
    right = min(shared(*classes), size)
    same = right == size == theirs.n_rows
    reason = _difference(right, size, theirs.n_rows, "triples")
    if same and not window.is_slice and (ours.has_blanks or theirs.has_blanks):
        same = isomorphic(ours, theirs)
        reason = reason if same else DIFFERENT_BLANKS
    found = _scored(right, size, theirs.n_rows, reason=reason)
    return replace(found, match=same, strict=same, lenient=same)


def _compare_tables(
    ours: Encoded, theirs: Encoded, bag: bool, ordered: bool, window: Window
) -> Contrast:
    if bag:
        return _read(ours, theirs, ordered, window)
    found = _read(ours.distinct(), theirs.distinct(), ordered, window)
    if window.is_slice and not found.comparison.lenient:
        # Rows are repeated and then cut in the gold too: that is as right as cutting
        # distinct rows.
        repeated = _read(ours, theirs, ordered, window)
        if repeated.comparison.lenient or repeated.comparison.f1 > found.comparison.f1:
            return repeated
    return found


def _read(gold: Encoded, predicted: Encoded, ordered: bool, window: Window) -> Contrast:
    """Compare two tables row for row."""
    size = window.size(gold.n_rows)
    missing = len(gold.values) - len(predicted.values)
    needed = size if predicted.n_rows == size else None
    rows = Rows(gold, predicted, ordered, window)
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
    compared = _reported(leaf, found.mapping, gold, predicted, size, reason, named)
    mapping = found.mapping if found.leaf else None
    return Contrast(compared, gold, predicted, mapping, window)


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
