"""A run's summary as tables: one line per arm, comparisons, streams, and what memory did.

On a terminal the tables fit in 100 columns. In a pipe one wide table, separated by tabs, has
everything.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from reasoningbank.analysis.tables import (
    STATUSES,
    arm_table,
    bank_table,
    comparison_table,
    counts,
    judge_table,
    learning_table,
    level_table,
    sampled_table,
    stream_judge_table,
    stream_table,
    use_table,
)
from reasoningbank.cli import output

if TYPE_CHECKING:
    from reasoningbank.analysis import ArmComparison, ArmSummary, ChangedAnswer, Leakage, RunSummary


#: Leaks that are listed one by one.
_MOST_LEAKS = 20
_NARROW = ("arm", "n", "tasks", "score", "95% CI", "row F1", "ran", "s median", "tokens median")
_ENDS = ("s p95", "tokens p95", "cached calls", "dollars", "passes")
_WIDE = ("arm", "n", "score", "95% CI", "row F1", "ran", *STATUSES, "s median", "s p95",
         "tokens median", "tokens p95", "tasks", "seeds", "interval by", "lm calls",
         "cached calls", "dollars", "retried", "passes")  # fmt: skip


def print_summary(summary: RunSummary, title: str) -> None:
    """Print the arms, the pre-registered comparison, the others, and what memory did.

    Leaks come before everything else.
    """
    _print_leaks(summary.leakage)
    if output.console.is_terminal:
        output.show(arm_table(summary, _NARROW, title))
        seen = [name for name in STATUSES if any(arm.statuses.get(name) for arm in summary.arms)]
        output.show(arm_table(summary, ("arm", *seen, *_ENDS), "how trials ended, and their cost"))
    else:
        wide = arm_table(summary, _WIDE)
        output.print_table(wide.headers, wide.rows)
    output.show(level_table(summary))
    output.show(judge_table(summary.arms))
    output.show(sampled_table(summary.arms))
    for arm in summary.arms:
        if arm.errors or arm.defective:
            _line(_uncounted(arm))
        if arm.exhausted:
            causes = ", ".join(f"{n} {cause}" for cause, n in arm.exhausted.items())
            _line(f"{arm.arm}: attempts ended by a budget: {causes}")
        if arm.timed_out:
            _line(f"{arm.arm}: queries that timed out when judged: {arm.timed_out}")
    for line in summary.preregistered_lines():
        _line(line)
    for other in summary.others:
        _line(f"also: {other.sentence()}")
    if summary.online:
        output.show(stream_table(summary.online))
        for found in summary.online.comparisons:
            _line(f"in the stream: {found.sentence()}")
        output.show(stream_judge_table(summary.online))
    for make in (use_table, bank_table, learning_table):
        output.show(make(summary.memory))
    for one in summary.memory:
        if one.rejected:
            _line(f"{one.arm}, rejected: {counts(one.rejected)}")
    for name, trials in summary.replaced.items():
        _line(f"{name}: {trials} trials were run again after they had been judged")
    for change in summary.code:
        _line(f"other code: trials since {change.time} are by changed {', '.join(change.parts)}")
    _line(f"leakage: {summary.leakage.sentence()}")


def print_changes(summary: RunSummary, changes: Sequence[ChangedAnswer]) -> None:
    """Print questions that changed from wrong to right, and what the run shows in plain words."""
    for change in changes:
        level = f" ({change.level})" if change.level else ""
        _line(f"\n{change.question}{level}")
        for answer in (change.before, change.after):
            _line(f"  {answer.arm}: {answer.outcome}")
            _line("    " + " ".join(answer.sparql.split()))
            for row in answer.rows:
                _line("    → " + " | ".join(row))
            if answer.total > len(answer.rows) > 0:
                _line(f"    → {answer.total - len(answer.rows)} more rows")
    if (found := summary.comparison) is not None:
        arms = {arm.arm: arm for arm in summary.arms}
        first, second = arms[found.first], arms[found.second]
        sign = "more" if found.difference >= 0 else "fewer"
        ends = sorted(100 * abs(end) for end in (found.low, found.high))
        if found.low < 0 < found.high:
            ends = [100 * found.low, 100 * found.high]
        _line(
            f"\nIn plain words: {found.first} answered {first.strict} of {first.judged} questions "
            f"right, {found.second} {second.strict} of {second.judged}: "
            f"{100 * abs(found.difference):.0f} percentage points {sign} "
            f"(95% CI {ends[0]:.0f} to {ends[1]:.0f})."
        )


def print_comparisons(comparisons: Sequence[ArmComparison], title: str) -> None:
    """Print one line per comparison, and its sentence."""
    output.show(comparison_table(comparisons, title, narrow=output.console.is_terminal))
    for comparison in comparisons:
        _line(comparison.sentence())


def _print_leaks(leakage: Leakage) -> None:
    leaks = leakage.leaks
    if leakage.unread:
        _line(f"LEAKAGE: nothing is proven; {leakage.unread} files of memory cannot be read")
    if leaks:
        _line(f"LEAKAGE: {len(leaks)} found; the numbers below prove nothing")
    for leak in leaks[:_MOST_LEAKS]:
        _line(f"  {leak.sentence()}")
    if len(leaks) > _MOST_LEAKS:
        _line(f"  and {len(leaks) - _MOST_LEAKS} more; --json has all")


def _uncounted(arm: ArmSummary) -> str:
    parts = []
    if arm.errors:
        parts.append(
            f"{arm.errors} of {arm.trials} trials ended in infrastructure errors: "
            f"{arm.metric} would be {arm.worst_case:.2f} if they had failed and "
            f"{arm.best_case:.2f} if they had succeeded"
        )
    if arm.defective:
        parts.append(f"{arm.defective} trials left out, their gold query is defective")
    return f"{arm.arm}: {'; '.join(parts)}"


def _line(text: str) -> None:
    output.console.print(text, soft_wrap=True)
