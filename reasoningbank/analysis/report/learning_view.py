"""What learning did, in the page: leaks first, streams apart, memory, and judges."""

from __future__ import annotations

from reasoningbank.analysis.leak import Leakage
from reasoningbank.analysis.memory_tables import (
    bank_table,
    learning_table,
    rejected_table,
    stream_judge_table,
    stream_table,
    use_table,
)
from reasoningbank.analysis.report.markup import Html, element, joined
from reasoningbank.analysis.report.tables import section
from reasoningbank.analysis.summary import RunSummary

__all__ = ["leak_note", "learning_view"]

#: Leaks that are told one by one.
MOST_LEAKS = 50


def leak_note(leakage: Leakage) -> Html:
    """Return the warning of a run that leaked, which stands before every number; else nothing."""
    leaks = leakage.leaks
    if leakage.unread and not leaks:
        said = f"{leakage.unread} files of memory cannot be read, so that nothing is proven."
        return element("section", element("p", element("b", "Leakage: "), said),
                       class_="note error", id="leaks", role="alert")  # fmt: skip
    if not leaks:
        return Html()
    lines = [element("li", leak.sentence()) for leak in leaks[:MOST_LEAKS]]
    if len(leaks) > MOST_LEAKS:
        lines.append(element("li", f"and {len(leaks) - MOST_LEAKS} more"))
    many = "leak" if len(leaks) == 1 else "leaks"
    return element(
        "section",
        element("p", element("b", f"Leakage: {len(leaks)} {many}."), " Trials were shown what they "
                "should have found by themselves; the numbers below prove nothing."),
        element("ul", joined(lines)),
        class_="note error",
        id="leaks",
        role="alert",
    )  # fmt: skip


def learning_view(summary: RunSummary) -> list[Html]:
    """Return the sections on streams, memory and its judges; nothing for a run without."""
    parts: list[Html] = []
    if summary.online:
        practice = (
            "Practice: each task was met with a bank that was still growing.",
            *(f"{found.sentence()}." for found in summary.online.comparisons),
        )
        parts += section(stream_table(summary.online), *practice)
        parts += section(stream_judge_table(summary.online))
    return [
        *parts,
        *section(use_table(summary.memory), left=3),
        *section(bank_table(summary.memory), wide=True),
        *section(learning_table(summary.memory)),
        *section(rejected_table(summary.memory), left=2),
    ]
