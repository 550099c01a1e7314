"""A run's summary as tables: one line an arm, and the comparison stated beforehand."""

from __future__ import annotations

from reasoningbank.analysis import RunSummary
from reasoningbank.cli.output import console, print_table

__all__ = ["print_summary"]

HEADERS = (
    "arm", "n", "strict", "95 % interval", "row F1", "ran",
    "submitted", "fallback", "exhausted", "refused", "error",
    "s median", "s p95", "tokens median", "tokens p95",
)  # fmt: skip


def print_summary(summary: RunSummary, title: str) -> None:
    """Print one line an arm and the comparison stated beforehand."""
    rows = []
    for arm in summary.arms:
        counts = [arm.statuses.get(name, 0) for name in HEADERS[6:11]]
        low, high = f"{arm.rate.low:.2f}", f"{arm.rate.high:.2f}"
        rows.append(
            [
                arm.arm,
                arm.judged,
                f"{arm.strict} ({arm.rate.rate:.0%})" if arm.judged else "-",
                f"{low} to {high}",
                f"{arm.f1:.2f}",
                arm.executed,
                *counts,
                *(f"{value:.1f}" for value in arm.seconds),
                *(f"{value:.0f}" for value in arm.tokens),
            ]
        )
    print_table(HEADERS, rows, title)
    if summary.comparison and summary.paired:
        first, second = summary.comparison
        paired = summary.paired
        word = "" if paired.p < 0.05 else ": unresolved"
        console.print(
            f"{first} against {second}, {paired.n} tasks that both have: only {first} right "
            f"{paired.only_first}, only {second} right {paired.only_second}, difference "
            f"{paired.difference:+.2f}, mid-p {paired.p:.3f}{word}",
            soft_wrap=True,
        )
