"""Print the table of ratios: `python -m benchmarks [--only NAME]... [--quick]`."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from benchmarks.corpus import loading
from benchmarks.discovery import discovery
from benchmarks.growth import growth
from benchmarks.long_runs import long_runs
from benchmarks.measure import Row, table
from benchmarks.overhead import overhead
from benchmarks.parallel import parallel
from benchmarks.results import large_result
from benchmarks.retrieval import retrieval
from benchmarks.sandbox import tool_calls
from benchmarks.slices import slices

#: By name: the benchmark as reported, and a version that takes seconds.
BENCHMARKS: dict[str, tuple[Callable[[], list[Row]], Callable[[], list[Row]]]] = {
    "results": (
        lambda: large_result(rows=100_000, repeats=5),
        lambda: large_result(rows=20_000, repeats=1),
    ),
    "slices": (
        lambda: slices(sizes=(10_000, 100_000, 1_000_000, 10_000_000), repeats=101),
        lambda: slices(sizes=(10_000, 100_000), repeats=21),
    ),
    "corpus": (
        lambda: loading(files=1_200, repeats=5),
        lambda: loading(files=100, repeats=1),
    ),
    "sandbox": (lambda: tool_calls(calls=2_000), lambda: tool_calls(calls=200)),
    "discovery": (lambda: discovery(repeats=5), lambda: discovery(repeats=1)),
    "retrieval": (
        lambda: retrieval(sizes=(1_000, 10_000, 100_000), repeats=3),
        lambda: retrieval(sizes=(1_000,), repeats=1),
    ),
    "growth": (
        lambda: growth(size=50_000, repeats=5),
        lambda: growth(size=5_000, repeats=1),
    ),
    "overhead": (
        lambda: overhead(tasks=16, rounds=3, seconds=0.5),
        lambda: overhead(tasks=1, rounds=1, seconds=0.1, uncounted=0),
    ),
    "parallel": (
        lambda: parallel(workers=(4, 16, 64), seconds=0.5, repeats=3),
        lambda: parallel(workers=(4,), seconds=0.1, repeats=1),
    ),
    "long_runs": (lambda: long_runs(trials=2_000), lambda: long_runs(trials=200)),
}


def main() -> None:
    """Run the benchmarks and print one table; about twenty minutes on two cores."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--only", action="append", choices=list(BENCHMARKS), help="may be repeated")
    parser.add_argument("--quick", action="store_true", help="smaller and not for reporting")
    chosen = parser.parse_args()
    rows = []
    for name in chosen.only or BENCHMARKS:
        full, quick = BENCHMARKS[name]
        rows += quick() if chosen.quick else full()
    print(table(rows))


if __name__ == "__main__":
    main()
