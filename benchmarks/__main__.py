"""Print the table of ratios: `python -m benchmarks`."""

from __future__ import annotations

from benchmarks.corpus import loading
from benchmarks.measure import table
from benchmarks.results import large_result, slices


def main() -> None:
    """Run every benchmark, a minute or less on two cores, and print one table."""
    rows = [
        *large_result(rows=100_000, repeats=5),
        *loading(files=1_200, repeats=3),
        *slices(sizes=(10_000, 100_000, 1_000_000), repeats=101),
    ]
    print(table(rows))


if __name__ == "__main__":
    main()
