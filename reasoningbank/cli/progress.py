"""A run while it goes on: a bar on a terminal, a line a trial in a file."""

from __future__ import annotations

from collections.abc import Callable

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from reasoningbank.cli.output import progress_console, seconds
from reasoningbank.experiment import Progress as Standing

__all__ = ["follower", "notice", "progress_bar"]


def notice(line: str) -> None:
    """Tell what a person should know while a run goes on."""
    progress_console.print(line, soft_wrap=True)


def progress_bar() -> Progress:
    """Return the bar of a run; it draws on a terminal only."""
    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=20),
        MofNCompleteColumn(),
        TextColumn("{task.fields[standing]}", markup=False),
        console=progress_console,
        disable=not progress_console.is_terminal,
        transient=False,
    )


def follower(bar: Progress) -> Callable[[Standing], None]:
    """Return what keeps the bar up to date."""
    row = bar.add_task("starting", total=None, standing="")
    scores: list[bool] = []

    def follow(now: Standing) -> None:
        if now.record is not None:
            scores.append(now.record.strict)
        left = now.total - now.done
        rate = f"{sum(scores)}/{len(scores)} strict" if scores else ""
        eta = f"about {seconds(now.seconds / now.fresh * left)} left" if now.fresh else ""
        standing = " · ".join(part for part in (rate, f"{seconds(now.seconds)}", eta) if part)
        label = f"{now.key.arm} · {now.key.task}"
        bar.update(row, description=label, total=now.total, completed=now.done, standing=standing)
        if not progress_console.is_terminal and now.record is not None:
            verdict = "strict" if now.record.strict else now.record.status
            progress_console.print(f"[{now.done}/{now.total}] {label}: {verdict} · {standing}",
                                   soft_wrap=True)  # fmt: skip

    return follow
