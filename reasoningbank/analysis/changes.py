"""Questions that one arm of a run answers right and another does not, to be read side by side."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from reasoningbank.corpus import LEVELS
from reasoningbank.experiment import TrialRecord

#: Rows of an answer that are kept.
ROWS = 3


@dataclass(frozen=True)
class ArmAnswer:
    """What one arm answered: its query, how it was judged, and the first rows it returned."""

    arm: str
    sparql: str
    outcome: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    total: int


@dataclass(frozen=True)
class ChangedAnswer:
    """A held-out question that only the first of two arms answers right."""

    question: str
    level: str
    before: ArmAnswer
    after: ArmAnswer


def changed_answers(
    records: Iterable[TrialRecord], first: str, second: str, most: int = 2
) -> list[ChangedAnswer]:
    """Return held-out questions that `first` answers right and `second` does not.

    Easier levels of generalization come first, then the order of the records.
    """
    found: dict[str, dict[tuple[str, int], TrialRecord]] = {first: {}, second: {}}
    for record in records:
        if record.step is None and record.verdict and record.key.arm in found:
            found[record.key.arm][record.key.task, record.key.seed] = record
    pairs = list(_pairs(found[first], found[second]))
    order = {level: place for place, level in enumerate(LEVELS)}
    pairs.sort(key=lambda change: order.get(change.level, len(order)))  # type: ignore[call-overload]
    return pairs[:most]


def _pairs(
    first: Mapping[tuple[str, int], TrialRecord], second: Mapping[tuple[str, int], TrialRecord]
) -> Iterator[ChangedAnswer]:
    tasks = set()
    for place, after in first.items():
        before = second.get(place)
        if before and after.strict and not before.strict and place[0] not in tasks:
            tasks.add(place[0])
            yield ChangedAnswer(after.question, after.level, _answer(before), _answer(after))


def _answer(record: TrialRecord) -> ArmAnswer:
    shown: Mapping[str, Any] = record.evidence.get("predicted") or {}
    verdict = record.verdict or {}
    rows = tuple(
        tuple("" if cell is None else str(cell) for cell in row)
        for row in (shown.get("rows") or ())[:ROWS]
    )
    outcome = "right" if record.strict else str(verdict.get("reason") or record.error or "wrong")
    return ArmAnswer(
        record.key.arm,
        record.sparql or "",
        outcome,
        tuple(shown.get("variables") or ()),
        rows,
        int(shown.get("n") or 0),
    )
