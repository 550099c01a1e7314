"""How far a judge agrees with the execution judge, beyond what chance would give."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Protocol

from reasoningbank.judge.rule import rule_verdict

__all__ = ["Agreement", "Judged", "agreement", "agreement_with", "pairs_with"]


@dataclass(frozen=True)
class Agreement:
    """A confusion matrix and what follows from it; what is not defined is None.

    Attributes:
        true_positives: Both say success.
        false_positives: Only the judge in question says success.
        false_negatives: Only the reference says success.
        true_negatives: Neither does.
    """

    true_positives: int
    false_positives: int
    false_negatives: int
    true_negatives: int

    @property
    def n(self) -> int:
        """Attempts that both have judged."""
        return (
            self.true_positives + self.false_positives + self.false_negatives + self.true_negatives
        )

    @property
    def precision(self) -> float | None:
        """Of the successes it claims, the share that are successes."""
        return _ratio(self.true_positives, self.true_positives + self.false_positives)

    @property
    def recall(self) -> float | None:
        """Of the successes there are, the share that it sees."""
        return _ratio(self.true_positives, self.true_positives + self.false_negatives)

    @property
    def accuracy(self) -> float | None:
        """The share of attempts on which they agree."""
        return _ratio(self.true_positives + self.true_negatives, self.n)

    @property
    def kappa(self) -> float | None:
        """Cohen's kappa (1960), in [-1, 1]: agreement beyond chance.

        None where chance alone makes the agreement certain: each says the same of everything.
        """
        tp, fp, fn, tn = (
            self.true_positives,
            self.false_positives,
            self.false_negatives,
            self.true_negatives,
        )
        # Cohen's formula for two by two, brought to one fraction of whole numbers.
        return _ratio(2 * (tp * tn - fn * fp), (tp + fp) * (fp + tn) + (tp + fn) * (fn + tn))

    def to_json(self) -> dict[str, Any]:
        """Return the counts and what follows from them as JSON-able data."""
        return {
            **asdict(self),
            "n": self.n,
            "precision": self.precision,
            "recall": self.recall,
            "accuracy": self.accuracy,
            "kappa": self.kappa,
        }


class Judged(Protocol):
    """A record of an attempt, with what judges said of it."""

    @property
    def verdict(self) -> Mapping[str, Any] | None:
        """The execution judge's verdict."""

    @property
    def judgements(self) -> Mapping[str, Mapping[str, Any]]:
        """What other judges said, by judge."""


def agreement(pairs: Iterable[tuple[bool, bool]]) -> Agreement:
    """Count how two judges agree.

    Args:
        pairs: For each attempt, the verdict of the reference (the execution judge) and of
            the judge in question.

    Returns:
        The confusion matrix.

    Examples:
        >>> pairs = [(True, True)] * 20 + [(True, False)] * 5
        >>> pairs += [(False, True)] * 10 + [(False, False)] * 15
        >>> round(agreement(pairs).kappa, 3)
        0.4
    """
    counts = {(True, True): 0, (False, True): 0, (True, False): 0, (False, False): 0}
    for reference, judged in pairs:
        counts[bool(reference), bool(judged)] += 1
    return Agreement(*counts.values())


def pairs_with(
    judge: str, records: Iterable[Judged], *, metric: str = "strict"
) -> list[tuple[bool, bool]]:
    """Return the pairs of verdicts that `agreement` counts, from records.

    Left out are attempts that the execution judge could not judge, and those that the other
    judge did not, or of which it decided nothing.

    Args:
        judge: Name of the judge in question, as in `judgements`; ``rule`` is the plain rule,
            which needs no judgement of its own.
        records: Records of attempts.
        metric: What counts as success for the execution judge: ``strict`` or ``lenient``.
    """
    pairs = []
    for record in records:
        if record.verdict is None or record.verdict.get("status") == "gold_defect":
            continue
        said = record.judgements.get(judge)
        if said is None and judge == "rule":
            said = rule_verdict(record.verdict)
        success = (said or {}).get("success")
        if isinstance(success, bool):
            pairs.append((bool(record.verdict.get(metric)), success))
    return pairs


def agreement_with(judge: str, records: Iterable[Judged], *, metric: str = "strict") -> Agreement:
    """Count how a judge agrees with the execution judge; see `pairs_with`."""
    return agreement(pairs_with(judge, records, metric=metric))


def _ratio(part: int, whole: int) -> float | None:
    return part / whole if whole else None
