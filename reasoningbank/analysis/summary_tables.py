"""A run's summary as tables of text: its arms, and what was compared."""

from __future__ import annotations

from collections.abc import Sequence

from reasoningbank.analysis.arm_summary import ArmSummary
from reasoningbank.analysis.comparison import Comparison
from reasoningbank.analysis.summary import RunSummary
from reasoningbank.analysis.tables import Cells, Table, ends, number
from reasoningbank.judge import Agreement

__all__ = [
    "AGREEMENT",
    "agreement_cells",
    "arm_table",
    "comparison_table",
    "interval_cell",
    "judge_table",
    "score_cell",
]

#: Heads of the columns that `agreement_cells` fills.
AGREEMENT = ("n", "both yes", "only judge", "only execution", "both no", "precision", "recall",
             "kappa")  # fmt: skip


def arm_table(summary: RunSummary) -> Table:
    """Return every arm in one row: how often it was right on held-out tasks, and what it took."""
    headers = ("arm", "n", "tasks", "seeds", summary.metric, "95 % interval", "row F1", "ran",
               "s median", "s p95", "tokens median", "tokens p95")  # fmt: skip
    rows = [
        (
            arm.arm,
            *map(str, (arm.judged, arm.tasks, arm.seeds)),
            score_cell(arm),
            interval_cell(arm),
            number(arm.f1, 2),
            str(arm.executed),
            *(number(value, 1) for value in arm.seconds),
            *(number(value, 0) for value in arm.tokens),
        )
        for arm in summary.arms
    ]
    return Table("arms on held-out tasks", headers, rows)


def comparison_table(
    comparisons: Sequence[Comparison], title: str, *, narrow: bool = False
) -> Table:
    """Return one row a comparison.

    Args:
        comparisons: What was compared.
        title: Of what, and by what.
        narrow: Whether both names stand in one column, where they can be wrapped.
    """
    names = ("arms",) if narrow else ("first", "second")
    headers = (*names, "tasks", "difference", "95 % interval", "p", "Holm", "verdict")
    rows = [
        (
            *((f"{c.first} against {c.second}",) if narrow else (c.first, c.second)),
            str(c.tasks),
            f"{c.difference:+.2f}",
            ends(c.low, c.high, "+"),
            number(c.p, 3),
            number(c.p_holm, 3),
            c.verdict,
        )
        for c in comparisons
    ]
    return Table(title, headers, rows)


def judge_table(arms: Sequence[ArmSummary]) -> Table:
    """Return how other judges agree with the execution judge, arm by arm."""
    rows = [
        (name, arm.arm, *agreement_cells(found))
        for arm in arms
        for name, found in arm.judges.items()
    ]
    return Table("judges against the execution judge", ("judge", "arm", *AGREEMENT), rows)


def agreement_cells(found: Agreement) -> Cells:
    """Return how a judge agrees with the execution judge, under the heads of `AGREEMENT`."""
    return (
        str(found.n),
        str(found.true_positives),
        str(found.false_positives),
        str(found.false_negatives),
        str(found.true_negatives),
        *(number(value, 2) for value in (found.precision, found.recall, found.kappa)),
    )


def score_cell(arm: ArmSummary) -> str:
    """Return an arm's mean; a count beside it where trials are right or wrong."""
    if not arm.judged:
        return "-"
    if arm.metric == "f1":
        return f"{arm.mean.rate:.2f}"
    share = f"{arm.mean.rate:.0%}"
    return f"{arm.strict} ({share})" if arm.metric == "strict" else share


def interval_cell(arm: ArmSummary) -> str:
    """Return the interval of an arm's mean."""
    return ends(arm.mean.low, arm.mean.high)
