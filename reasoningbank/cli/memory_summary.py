"""What memory did in a run, as commands print it: leaks first, streams apart, banks, judges."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from reasoningbank.analysis.memory_tables import (
    bank_table,
    counts,
    learning_table,
    stream_judge_table,
    stream_table,
    use_table,
)
from reasoningbank.cli import output

if TYPE_CHECKING:
    from reasoningbank.analysis import ArmMemory, Leakage, Online

__all__ = ["print_leaks", "print_memory", "print_online"]

#: Leaks that are told one by one.
MOST_LINES = 20


def print_leaks(leakage: Leakage) -> None:
    """Say what leaked, where anything did: nothing else in the summary can be believed then."""
    leaks = leakage.leaks
    if leakage.unread:
        _line(f"LEAKAGE: nothing is proven; {leakage.unread} files of memory cannot be read")
    if not leaks:
        return
    _line(f"LEAKAGE: {len(leaks)} found; the numbers below prove nothing")
    for leak in leaks[:MOST_LINES]:
        _line(f"  {leak.sentence()}")
    if len(leaks) > MOST_LINES:
        _line(f"  and {len(leaks) - MOST_LINES} more; --json has all")


def print_online(online: Online) -> None:
    """Print what happened in the learning streams, apart from what is compared."""
    output.show(stream_table(online))
    for found in online.comparisons:
        _line(f"in the stream: {found.sentence()}")
    output.show(stream_judge_table(online))


def print_memory(arms: Sequence[ArmMemory]) -> None:
    """Print what arms with a memory were shown, what it cost, and what their banks hold."""
    for make in (use_table, bank_table, learning_table):
        output.show(make(arms))
    for arm in arms:
        if arm.rejected:
            _line(f"{arm.arm}, rejected: {counts(arm.rejected)}")


def _line(text: str) -> None:
    output.console.print(text, soft_wrap=True)
