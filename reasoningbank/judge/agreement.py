"""How far a judge agrees with the execution judge beyond chance; the rule as a baseline judge."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, astuple, dataclass
from typing import Any

from reasoningbank.judge.execution import RAN, is_judged


@dataclass(frozen=True)
class Agreement:
    """A confusion matrix against the reference judge, and the figures derived from it.

    A figure is None where it is undefined.
    """

    true_positives: int
    false_positives: int
    false_negatives: int
    true_negatives: int

    @property
    def n(self) -> int:
        """Attempts that both have judged."""
        return sum(astuple(self))

    @property
    def precision(self) -> float | None:
        """Share of the successes it claims that are successes."""
        return _ratio(self.true_positives, self.true_positives + self.false_positives)

    @property
    def recall(self) -> float | None:
        """Share of the successes that it recognizes."""
        return _ratio(self.true_positives, self.true_positives + self.false_negatives)

    @property
    def accuracy(self) -> float | None:
        """Share of attempts on which they agree."""
        return _ratio(self.true_positives + self.true_negatives, self.n)

    @property
    def kappa(self) -> float | None:
        """Cohen's kappa (1960), in [-1, 1]: agreement beyond chance.

        None if chance alone makes the agreement certain: each says the same of everything.
        """
        tp, fp = self.true_positives, self.false_positives
        fn, tn = self.false_negatives, self.true_negatives
        # Cohen's formula for two by two, as one fraction of whole numbers.
        return _ratio(2 * (tp * tn - fn * fp), (tp + fp) * (fp + tn) + (tp + fn) * (fn + tn))

    def to_json(self) -> dict[str, Any]:
        """Return the counts and the derived figures as a JSON object."""
        derived = ("n", "precision", "recall", "accuracy", "kappa")
        return asdict(self) | {name: getattr(self, name) for name in derived}


def agreement(pairs: Iterable[tuple[bool, bool]]) -> Agreement:
    """Count how two judges agree: pairs of the reference's and the other judge's verdict."""
    counts = Counter((bool(reference), bool(judged)) for reference, judged in pairs)
    kinds = ((True, True), (False, True), (True, False), (False, False))
    return Agreement(*(counts[kind] for kind in kinds))


def agreement_with(judge: str, records: Iterable[Any], *, metric: str = "strict") -> Agreement:
    """Count how a judge agrees with the execution judge, over the attempts that both judged.

    Records have a `verdict` and `judgements`. The judge is a name in these, or ``rule``, the plain
    rule, which needs no judgement; `metric` is what counts as success for the execution judge:
    ``strict`` or ``lenient``.
    """
    pairs = []
    for record in records:
        if not is_judged(record.verdict):
            continue
        said = record.judgements.get(judge)
        if said is None and judge == "rule":
            said = rule_verdict(record.verdict)
        success = (said or {}).get("success")
        if isinstance(success, bool):
            pairs.append((bool(record.verdict.get(metric)), success))
    return agreement(pairs)


def rule_verdict(verdict: Mapping[str, Any]) -> dict[str, Any] | None:
    """Judge an attempt by the plain rule: the query ran and has rows. Other judges must beat it.

    It reads from the execution judge's verdict only whether the query ran and how many rows it
    returned (a boolean has one). Returns a judgement as records keep it; None if nothing is known
    about running the query.
    """
    status, rows = verdict.get("status"), int(verdict.get("n_predicted") or 0)
    if status in (None, "gold_defect"):
        return None
    ran = status in RAN
    reason = "no query was submitted" if status == "no_query" else "it does not run"
    if ran:
        reason = f"it ran and has {rows or 'no'} {'row' if rows == 1 else 'rows'}"
    return {
        "success": ran and rows > 0,
        "confidence": 1.0,
        "reason": reason,
        "checked": ["it ran", "it has rows"],
        "status": "judged",
        "seconds": 0.0,
        "usage": {},
    }


def _ratio(part: int, whole: int) -> float | None:
    return part / whole if whole else None
