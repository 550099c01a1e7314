"""A run's summary as tables: one line an arm, and the comparison stated beforehand.

On a terminal the tables fit into 100 columns. In a pipe one wide table, separated by tabs, has
everything.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from reasoningbank.analysis.memory_tables import sampled_table
from reasoningbank.analysis.summary_tables import (
    comparison_table,
    interval_cell,
    judge_table,
    score_cell,
)
from reasoningbank.analysis.tables import number
from reasoningbank.cli import output
from reasoningbank.cli.memory_summary import print_leaks, print_memory, print_online

if TYPE_CHECKING:
    from reasoningbank.analysis import ArmSummary, Comparison, RunSummary

__all__ = ["print_comparisons", "print_summary"]

_STATUSES = ("submitted", "fallback", "exhausted", "refused", "error")


def print_summary(summary: RunSummary, title: str) -> None:
    """Print one line an arm, the comparison stated beforehand, the others, and what memory did.

    A leak comes before everything else.
    """
    print_leaks(summary.leakage)
    if output.console.is_terminal:
        _print_narrow(summary, title)
    else:
        _print_wide(summary)
    output.show(judge_table(summary.arms))
    output.show(sampled_table(summary.arms))
    for arm in summary.arms:
        if arm.errors or arm.defective:
            _line(_uncounted(arm))
        if arm.exhausted:
            causes = ", ".join(f"{n} {cause}" for cause, n in arm.exhausted.items())
            _line(f"{arm.arm}: attempts that a budget ended: {causes}")
        if arm.late:
            _line(f"{arm.arm}: queries that took longer than the judge waits: {arm.late}")
    for line in summary.stated_lines():
        _line(line)
    for other in summary.others:
        _line(f"also: {other.sentence()}")
    if summary.online:
        print_online(summary.online)
    print_memory(summary.memory)
    for name, trials in summary.replaced.items():
        _line(f"{name}: {trials} trials were run again after they had been judged")
    for change in summary.code:
        _line(f"other code: trials since {change.time} are by changed {', '.join(change.parts)}")
    _line(f"leakage: {summary.leakage.sentence()}")


def print_comparisons(comparisons: Sequence[Comparison], title: str) -> None:
    """Print one line a comparison, and what it says in words."""
    output.show(comparison_table(comparisons, title, narrow=output.console.is_terminal))
    for comparison in comparisons:
        _line(comparison.sentence())


def _print_narrow(summary: RunSummary, title: str) -> None:
    metric = summary.metric
    headers = ("arm", "n", "tasks", metric, "95 % interval", "row F1", "ran", "s", "tokens")
    rows = [
        (
            arm.arm,
            arm.judged,
            arm.tasks,
            score_cell(arm),
            interval_cell(arm),
            f"{arm.f1:.2f}",
            arm.executed,
            number(arm.seconds[0], 1),
            number(arm.tokens[0], 0),
        )
        for arm in summary.arms
    ]
    output.print_table(headers, rows, title)
    seen = [name for name in _STATUSES if any(arm.statuses.get(name) for arm in summary.arms)]
    more = ("s p95", "tokens p95", "cached calls", "dollars", *_pass_names(summary))
    output.print_table(
        ("arm", *seen, *more),
        [
            (
                arm.arm,
                *(arm.statuses.get(name, 0) for name in seen),
                number(arm.seconds[1], 1),
                number(arm.tokens[1], 0),
                arm.cached_calls,
                _dollars(arm),
                *_passes(arm, summary),
            )
            for arm in summary.arms
        ],
        "how trials ended, and what they took",
    )


def _print_wide(summary: RunSummary) -> None:
    headers = (
        "arm", "n", summary.metric, "95 % interval", "row F1", "ran", *_STATUSES,
        "s median", "s p95", "tokens median", "tokens p95", "tasks", "seeds", "interval by",
        "lm calls", "cached calls", "dollars", "retried", *_pass_names(summary),
    )  # fmt: skip
    rows = [
        (
            arm.arm,
            arm.judged,
            score_cell(arm),
            interval_cell(arm),
            f"{arm.f1:.2f}",
            arm.executed,
            *(arm.statuses.get(name, 0) for name in _STATUSES),
            *(number(value, 1) for value in arm.seconds),
            *(number(value, 0) for value in arm.tokens),
            arm.tasks,
            arm.seeds,
            arm.mean.method,
            arm.lm_calls,
            arm.cached_calls,
            _dollars(arm),
            arm.retried,
            *_passes(arm, summary),
        )
        for arm in summary.arms
    ]
    output.print_table(headers, rows)


def _uncounted(arm: ArmSummary) -> str:
    parts = []
    if arm.errors:
        parts.append(
            f"{arm.errors} of {arm.trials} trials ended in infrastructure errors: "
            f"{arm.metric} would be {arm.worst_case:.2f} had they failed and "
            f"{arm.best_case:.2f} had they succeeded"
        )
    if arm.defective:
        parts.append(f"{arm.defective} trials left out, their gold is defective")
    return f"{arm.arm}: {'; '.join(parts)}"


def _pass_names(summary: RunSummary) -> tuple[str, ...]:
    k = _most_runs(summary)
    return (f"pass@{k}", f"pass^{k}") if k > 1 else ()


def _passes(arm: ArmSummary, summary: RunSummary) -> tuple[str, ...]:
    k = _most_runs(summary)
    found = next((p for p in arm.passes if p.k == k), None)
    if k < 2:
        return ()
    return (f"{found.one:.2f}", f"{found.all:.2f}") if found else ("-", "-")


def _most_runs(summary: RunSummary) -> int:
    return max((p.k for arm in summary.arms for p in arm.passes), default=1)


def _dollars(arm: ArmSummary) -> str:
    if arm.dollars is None:
        return "-"
    judging = "" if arm.judge_dollars is None else f" + {arm.judge_dollars:.4f} judging"
    unpriced = "" if not arm.unpriced else f" ({arm.unpriced} unpriced)"
    return f"{arm.dollars:.4f}{judging}{unpriced}"


def _line(text: str) -> None:
    output.console.print(text, soft_wrap=True)
