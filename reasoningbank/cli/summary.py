"""A run's summary as tables: one line an arm, and the comparison stated beforehand.

On a terminal the tables fit into 100 columns. In a pipe one wide table, separated by tabs, has
everything.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from reasoningbank.cli import output
from reasoningbank.cli.memory_summary import (
    AGREEMENT,
    agreement_cells,
    print_leaks,
    print_memory,
    print_online,
    print_sampled,
)

if TYPE_CHECKING:
    from reasoningbank.analysis import ArmSummary, Comparison, Interval, RunSummary

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
    _print_judges(summary.arms)
    print_sampled(summary.arms)
    for arm in summary.arms:
        if arm.errors or arm.defective:
            _line(_uncounted(arm))
        if arm.exhausted:
            causes = ", ".join(f"{n} {cause}" for cause, n in arm.exhausted.items())
            _line(f"{arm.arm}: attempts that a budget ended: {causes}")
    if summary.comparison:
        _line(f"stated beforehand: {summary.comparison.sentence()}")
    for claim in summary.claims:
        _line(f"stated beforehand too: {claim.sentence()}")
    for other in summary.others:
        _line(f"also: {other.sentence()}")
    if summary.online:
        print_online(summary.online)
    print_memory(summary.memory)
    for change in summary.code:
        _line(f"other code: trials since {change.time} are by changed {', '.join(change.rooms)}")
    _line(f"leakage: {summary.leakage.sentence()}")


def print_comparisons(comparisons: Sequence[Comparison], title: str) -> None:
    """Print one line a comparison, and what it says in words."""
    on_terminal = output.console.is_terminal
    # Two names beside each other would not fit; words of one cell are wrapped.
    names = ("arms",) if on_terminal else ("first", "second")
    headers = (*names, "tasks", "difference", "95 % interval", "p", "Holm", "verdict")
    rows = [
        (
            *((f"{c.first} against {c.second}",) if on_terminal else (c.first, c.second)),
            c.tasks,
            f"{c.difference:+.2f}",
            _ends(c.low, c.high, sign="+"),
            _number(c.p, 3),
            _number(c.p_holm, 3),
            "resolved" if c.resolved else "unresolved",
        )
        for c in comparisons
    ]
    output.print_table(headers, rows, title)
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
            _score(arm),
            _interval(arm.mean),
            f"{arm.f1:.2f}",
            arm.executed,
            _number(arm.seconds[0], 1),
            _number(arm.tokens[0], 0),
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
                _number(arm.seconds[1], 1),
                _number(arm.tokens[1], 0),
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
            _score(arm),
            _interval(arm.mean),
            f"{arm.f1:.2f}",
            arm.executed,
            *(arm.statuses.get(name, 0) for name in _STATUSES),
            *(_number(value, 1) for value in arm.seconds),
            *(_number(value, 0) for value in arm.tokens),
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


def _print_judges(arms: Sequence[ArmSummary]) -> None:
    rows = [
        (name, arm.arm, *agreement_cells(found))
        for arm in arms
        for name, found in arm.judges.items()
    ]
    if rows:
        headers = ("judge", "arm", *AGREEMENT)
        output.print_table(headers, rows, "judges against the execution judge")


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


def _score(arm: ArmSummary) -> str:
    if not arm.judged:
        return "-"
    if arm.metric == "f1":
        return f"{arm.mean.rate:.2f}"
    share = f"{arm.mean.rate:.0%}"
    return f"{arm.strict} ({share})" if arm.metric == "strict" else share


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


def _interval(found: Interval) -> str:
    return _ends(found.low, found.high)


def _ends(low: float, high: float, sign: str = "") -> str:
    return "-" if math.isnan(low) else f"{low:{sign}.2f} to {high:{sign}.2f}"


def _dollars(arm: ArmSummary) -> str:
    if arm.dollars is None:
        return "-"
    judging = "" if arm.judge_dollars is None else f" + {arm.judge_dollars:.4f} judging"
    unpriced = "" if not arm.unpriced else f" ({arm.unpriced} unpriced)"
    return f"{arm.dollars:.4f}{judging}{unpriced}"


def _number(value: float | None, places: int) -> str:
    return "-" if value is None or math.isnan(value) else f"{value:.{places}f}"


def _line(text: str) -> None:
    output.console.print(text, soft_wrap=True, markup=False)
