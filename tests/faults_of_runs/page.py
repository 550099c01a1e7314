"""`docs/robustness.md`, made from what the faults really led to."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from . import caches, disk, network, process, readers
from .budgets import BUDGETS, Ending, Limit
from .scenario import Fault, Seen

__all__ = ["GROUPS", "PAGE", "lost", "render"]

PAGE = Path(__file__).resolve().parents[2] / "docs" / "robustness.md"
_PROSE = Path(__file__).with_name("robustness.md")
_SHOWN = 260

#: Title → faults, in the page's order.
GROUPS: Mapping[str, Sequence[Fault]] = {
    "The process": process.PROCESS,
    "Its parts": process.PARTS,
    "The disk": disk.DISK,
    "Files that are found damaged by `run`": disk.FILES,
    "The beginning of a trial's file, met by what reads": readers.READERS,
    "The endpoint": network.ENDPOINT,
    "The model": network.MODEL,
    "What the model says in one trial": network.REPLIES,
    "What was computed once": caches.CACHES,
    "The clock": process.CLOCK,
}
_HEAD = (
    "| what happens | what is said | exit | finished by then | then | lost |\n"
    "|---|---|---|---|---|---|"
)
_BUDGET_HEAD = (
    "| budget | how the trials end | what is said | judged | right |\n|---|---|---|---|---|"
)


def render(observe: Callable[[Fault], Seen], end: Callable[[Limit], Ending]) -> str:
    """Return the page: the prose, with the tables in the place that it leaves for them."""
    tables = [_table(title, faults, observe) for title, faults in GROUPS.items()]
    rows = []
    for limit in BUDGETS:
        ending = end(limit)
        said = _cell(ending.said.removeprefix("ToolError: ")) or "nothing"
        status = ", ".join(sorted(set(ending.statuses)))
        count = len(ending.statuses)
        rows.append(
            f"| `{limit.name} = {limit.value:g}` | {status} | {said} "
            f"| {ending.judged} of {count} | {ending.strict} of {count} |"
        )
    tables.append("### Budgets\n\n" + "\n".join([_BUDGET_HEAD, *rows]) + "\n")
    return _PROSE.read_text(encoding="utf-8").replace("{tables}\n", "\n".join(tables))


def lost(seen: Seen) -> str:
    """Return what was lost in the end, in words."""
    found = {
        "trials": seen.planned - seen.finished,
        "finished records changed": seen.changed,
        "finished trials asked again": seen.asked_again,
    }
    return ", ".join(f"{number} {what}" for what, number in found.items() if number) or "nothing"


def _table(title: str, faults: Sequence[Fault], observe: Callable[[Fault], Seen]) -> str:
    rows = []
    for fault in faults:
        seen = observe(fault)
        then = f"`{' '.join(fault.again)}`" if fault.again else "the same command"
        ended = "killed" if seen.status == -9 else str(seen.status)
        rows.append(
            f"| {fault.name} | {_cell(seen.shown) or 'nothing'} | {ended} "
            f"| {seen.kept} of {seen.planned} "
            f"| {then}: exit {seen.again}, {seen.finished} of {seen.planned} | {lost(seen)} |"
        )
    return f"### {title}\n\n" + "\n".join([_HEAD, *rows]) + "\n"


def _cell(text: str) -> str:
    shown = " ".join(text.encode("utf-8", "backslashreplace").decode().split())
    shown = shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}…"
    return shown.replace("|", "\\|").replace("`", "'").replace("<", "&lt;")
