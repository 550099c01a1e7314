"""How things are measured: medians of repeats, side by side, and peak memory in a fresh process."""

from __future__ import annotations

import json
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Row", "in_own_processes", "median_seconds", "peak_mb", "table"]


@dataclass(frozen=True)
class Row:
    """One line of the table.

    Attributes:
        what: What was measured.
        unit: Its unit; less is better, except where the unit is a rate.
        ours: The library's number.
        other: The number of the other way; what it is stands in `than`.
        than: The other way.
    """

    what: str
    unit: str
    ours: float
    other: float
    than: str

    @property
    def ratio(self) -> float:
        """How many times better the library's number is."""
        return self.ours / self.other if self.unit.endswith("/s") else self.other / self.ours


def median_seconds(job: Callable[[], object], repeats: int) -> float:
    """Return the median wall time of a job that was run a few times."""
    taken = []
    for _ in range(repeats):
        began = time.perf_counter()
        job()
        taken.append(time.perf_counter() - began)
    return statistics.median(taken)


def in_own_processes(
    module: str, ways: Mapping[str, Sequence[str]], repeats: int
) -> dict[str, dict[str, float]]:
    """Run a module a few times each way, in fresh processes, the ways taking turns.

    Args:
        module: A module that prints one JSON object of numbers.
        ways: Its arguments, by the name of the way.
        repeats: How often each is run.

    Returns:
        By way, the median of each number.
    """
    said: dict[str, list[dict[str, float]]] = {way: [] for way in ways}
    for _ in range(repeats):
        for way, arguments in ways.items():
            done = subprocess.run(
                [sys.executable, "-m", module, *arguments],
                check=True,
                stdout=subprocess.PIPE,
                text=True,
            )
            said[way].append(json.loads(done.stdout))
    return {
        way: {name: statistics.median(one[name] for one in all_) for name in all_[0]}
        for way, all_ in said.items()
    }


def peak_mb() -> float:
    """Return the most memory that this process has held so far, in megabytes.

    On Linux `getrusage` counts what the parent held before the process was started, too, so the
    kernel's own mark of this program is read there.
    """
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text(encoding="ascii").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024 / 1e6
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6


def table(rows: Sequence[Row]) -> str:
    """Return the rows as a Markdown table."""
    lines = ["| what | unit | reasoningbank | instead | ratio | instead is |"]
    lines.append("|---|---|---:|---:|---:|---|")
    for row in rows:
        numbers = f"{_shown(row.ours)} | {_shown(row.other)} | {_shown(row.ratio)}"
        lines.append(f"| {row.what} | {row.unit} | {numbers} | {row.than} |")
    return "\n".join(lines)


def _shown(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
