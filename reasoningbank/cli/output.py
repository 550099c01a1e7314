"""How commands write: tables for people, JSON for programs, everything else on standard error."""

from __future__ import annotations

import contextlib
import json
import re
import signal
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, TextColumn
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from reasoningbank.analysis.tables import TextTable
    from reasoningbank.experiment import Progress as RunProgress
    from reasoningbank.experiment import TrialKey


_BREAKS = re.compile(r"[\t\r\n]+")

#: Results; plain when piped. Most of the text was written by others, so markup is off.
console = Console(highlight=False, soft_wrap=False, markup=False, emoji=False)
#: Everything else.
progress_console = Console(stderr=True, highlight=False, markup=False, emoji=False)


def say(*lines: object, to: Console | None = None) -> None:
    """Write lines as they are to standard output, without wrapping."""
    for line in lines:
        (to or console).print(Text(str(line)), soft_wrap=True)


def notice(*lines: object) -> None:
    """Write lines to standard error, without wrapping."""
    say(*lines, to=progress_console)


def print_json(data: Any) -> None:
    print(json.dumps(data, ensure_ascii=False, indent=2, default=str, allow_nan=True))


def print_lines(lines: Iterable[str], as_json: bool, data: Any) -> None:
    """Write lines, or `data` as JSON."""
    if as_json:
        print_json(data)
    else:
        say(*lines)


def print_table(headers: Sequence[str], rows: Sequence[Sequence[Any]], title: str = "") -> None:
    """Write a table to standard output: one line a row with tabs between cells when piped."""
    if not console.is_terminal:
        for row in (headers, *rows):
            print("\t".join(_BREAKS.sub(" ", str(cell)) for cell in row))
        return
    table = Table(*headers, title=title or None, title_justify="left")
    for row in rows:
        table.add_row(*(str(cell) for cell in row))
    console.print(table)


def print_rows(
    headers: Sequence[str], rows: Sequence[Sequence[Any]], as_json: bool, data: Any = None
) -> None:
    """Write a table; or as JSON `data`, by default the rows as objects."""
    if as_json:
        print_json([dict(zip(headers, row, strict=True)) for row in rows] if data is None else data)
    else:
        print_table(headers, rows)


def print_objects(
    items: Sequence[Mapping[str, Any]],
    columns: Sequence[str] = (),
    as_json: bool = False,
    data: Any = None,
) -> None:
    """Write objects as a table, if there are any, what is not known empty; or them as JSON."""
    columns = columns or list(dict.fromkeys(name for item in items for name in item))
    if as_json or columns:
        rows = [["" if item.get(c) is None else item[c] for c in columns] for item in items]
        print_rows(columns, rows, as_json, list(items) if data is None else data)


def show(table: TextTable) -> None:
    """Write a table to standard output, if it has rows."""
    if table.rows:
        print_table(table.headers, table.rows, table.title)


def print_query(text: str, to: Console = console, language: str = "sparql") -> None:
    """Print a query or code, highlighted on a terminal; `language` is Pygments' name of it."""
    if to.is_terminal:
        # Lines stay whole: what is copied from the terminal must be what was printed.
        shown = Syntax(text, language, background_color="default").highlight(text)
        shown.rstrip()
        to.print(shown, soft_wrap=True)
    else:
        say(text, to=to)


def seconds(value: float) -> str:
    if value < 60:
        return f"{value:.1f} s"
    return f"{int(value) // 60} min {int(value) % 60} s"


def trial_name(key: TrialKey) -> str:
    return f"{key.arm} · {key.task} · {key.seed}"


def progress_bar(*columns: ProgressColumn) -> Progress:
    """Return a progress bar with these columns after the description; drawn only on a terminal."""
    description = TextColumn("{task.description}", markup=False)
    hidden = not progress_console.is_terminal
    return Progress(description, *columns, console=progress_console, disable=hidden)


class TimeLeft:
    """Estimates the time left from trials and seconds by arm, of past runs and of this one."""

    def __init__(self, todo: Mapping[str, int], expected: Mapping[str, float | None]) -> None:
        self._todo = dict(todo)
        self._expected = {
            arm: total / todo[arm] for arm, total in expected.items() if total and todo.get(arm)
        }
        self._measured: dict[str, list[float]] = defaultdict(list)
        self._at = 0.0

    def began(self, seconds: float) -> None:
        """Note that a trial began; the time before the first one is not a trial's."""
        if not self._measured:
            self._at = seconds

    def finished(self, arm: str, seconds: float) -> None:
        """Note that a trial of an arm ended, `seconds` after the run began."""
        self._measured[arm].append(seconds - self._at)
        self._at = seconds

    def __str__(self) -> str:
        """The time left; a lower bound while nothing is known of an arm that is still to run."""
        known = [arm for arm in self._measured if arm in self._expected]
        spent = sum(sum(self._measured[arm]) for arm in known)
        foreseen = sum(self._expected[arm] * len(self._measured[arm]) for arm in known)
        # How much slower this machine is than the one of the past runs; few seconds say little.
        pace = (spent + 10) / (foreseen + 10)
        each = {arm: one * pace for arm, one in self._expected.items()}
        each |= {arm: fmean(times) for arm, times in self._measured.items()}
        left = {arm: n - len(self._measured.get(arm, ())) for arm, n in self._todo.items()}
        total = sum(each[arm] * max(0, n) for arm, n in left.items() if arm in each)
        # An arm says nothing of the time of another one.
        unknown = [arm for arm, n in left.items() if n and arm not in each]
        if unknown:
            return f"at least {seconds(total)} left, without {', '.join(unknown)}"
        return f"about {seconds(total)} left"


@contextlib.contextmanager
def follow_run(left: TimeLeft) -> Iterator[Callable[[RunProgress], None]]:
    """Open a run's progress bar; its callback writes a line a trial where there is no bar."""
    judged: dict[str, list[bool]] = defaultdict(list)

    def follow(now: RunProgress) -> None:
        record, arm = now.record, now.key.arm
        if record is not None:
            arm += " practice" if record.step is not None else ""
            if record.judged:
                judged[arm].append(record.strict)
            left.finished(now.key.arm, now.seconds)
        else:
            left.began(now.seconds)
        mine = judged[arm]
        # Rates of different arms are not added up.
        rate = f"{arm} {sum(mine)} of {len(mine)} right" if mine else ""
        eta = str(left) if now.fresh else ""
        summary = " · ".join(part for part in (rate, seconds(now.seconds), eta) if part)
        label = f"{arm} · {now.key.task}"
        bar.update(row, description=label, total=now.total, completed=now.done, summary=summary)
        if not progress_console.is_terminal and record is not None:
            how = f" ({record.status})" if record.status in ("fallback", "exhausted") else ""
            outcome = record.outcome + how
            notice(f"[{now.done}/{now.total}] {label}: {outcome} · {summary}")

    last = TextColumn("{task.fields[summary]}", markup=False)
    with progress_bar(BarColumn(bar_width=20), MofNCompleteColumn(), last) as bar:
        row = bar.add_task("starting", total=None, summary="")
        yield follow


def stop_event() -> threading.Event:
    """Return an event that SIGTERM sets, so that a server being opened is also closed."""
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    return stop


def serve_until(stop: threading.Event) -> None:
    """Wait until the event is set or Ctrl-C."""
    notice("serving; press Ctrl-C to stop")
    with contextlib.suppress(KeyboardInterrupt):
        stop.wait()
