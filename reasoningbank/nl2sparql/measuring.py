"""How right detected patterns are: precision, recall and F1, by pattern and in all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass

__all__ = ["PatternReport", "Rate", "pattern_report"]


@dataclass(frozen=True)
class Rate:
    """Counts of one pattern, or of all.

    Attributes:
        right: Given, and rightly.
        wrong: Given, and not needed.
        missed: Needed, and not given.
    """

    right: int = 0
    wrong: int = 0
    missed: int = 0

    @property
    def precision(self) -> float:
        """Share of what was given that is right; 1 where nothing was given."""
        given = self.right + self.wrong
        return self.right / given if given else 1.0

    @property
    def recall(self) -> float:
        """Share of what is needed that was given; 1 where nothing is needed."""
        needed = self.right + self.missed
        return self.right / needed if needed else 1.0

    @property
    def f1(self) -> float:
        """Harmonic mean of both."""
        both = 2 * self.right + self.wrong + self.missed
        return 2 * self.right / both if both else 1.0


@dataclass(frozen=True)
class PatternReport:
    """What a detector did on labelled questions.

    Attributes:
        by_pattern: Counts of each pattern.
        micro: Counts of all patterns together.
        macro_f1: Mean of the patterns' F1.
        exact: Share of questions whose patterns are all right and none besides.
        questions: How many there were.
    """

    by_pattern: dict[str, Rate]
    micro: Rate
    macro_f1: float
    exact: float
    questions: int


def pattern_report(
    pairs: Iterable[tuple[Collection[str], Collection[str]]],
) -> PatternReport:
    """Compare detected patterns with gold ones.

    Args:
        pairs: For each question what was detected, and what is needed.

    Examples:
        >>> found = pattern_report([({"A", "B"}, {"A"}), ({"A"}, {"A"}), (set(), {"B"})])
        >>> found.by_pattern["B"], round(found.micro.precision, 2), round(found.exact, 2)
        (Rate(right=0, wrong=1, missed=1), 0.67, 0.33)
    """
    right: Counter[str] = Counter()
    wrong: Counter[str] = Counter()
    missed: Counter[str] = Counter()
    questions = exact = 0
    for detected, needed in pairs:
        given, gold = set(detected), set(needed)
        right.update(given & gold)
        wrong.update(given - gold)
        missed.update(gold - given)
        questions += 1
        exact += given == gold
    names = sorted(set(right) | set(wrong) | set(missed))
    rates = {name: Rate(right[name], wrong[name], missed[name]) for name in names}
    return PatternReport(
        by_pattern=rates,
        micro=Rate(right.total(), wrong.total(), missed.total()),
        macro_f1=sum(rate.f1 for rate in rates.values()) / len(rates) if rates else 1.0,
        exact=exact / questions if questions else 1.0,
        questions=questions,
    )
