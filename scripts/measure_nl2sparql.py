"""Print what runs of translators measured, as the Markdown of docs/evaluation.md.

python scripts/measure_nl2sparql.py RUN… > measured.md

A RUN is the folder of a run of the harness, or a report that ``nl2sparql evaluate --output`` wrote.
Records are read and nothing is run.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from reasoningbank.analysis import read_translations
from reasoningbank.analysis.nl2sparql_tables import (
    Table,
    agent_table,
    brier_table,
    language_table,
    mending_table,
    pattern_table,
    reliability_table,
    scenario_table,
)
from reasoningbank.errors import ReasoningBankError

TABLES = (
    agent_table,
    scenario_table,
    language_table,
    pattern_table,
    mending_table,
    brier_table,
    reliability_table,
)


def main(words: list[str] | None = None) -> int:
    """Print the tables; return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN")
    parser.add_argument("--pack", default="", help="the pack, if not where the runs say")
    given = parser.parse_args(words)
    try:
        arms = read_translations(given.runs, given.pack)
    except ReasoningBankError as error:
        print(error, file=sys.stderr)
        return 1
    names = ", ".join(run.stem for run in given.runs)
    trials = sum(len(one.rows) for one in arms)
    print(f"Measured in {names}: {trials} judged trials of {len(arms)} arms.")
    for make in TABLES:
        table = make(arms)
        if table.rows:
            print(f"\n### {table.title[0].upper()}{table.title[1:]}\n\n{markdown(table)}")
    return 0


def markdown(table: Table) -> str:
    """Return a table as Markdown, numbers to the right."""
    numeric = [
        all(row[column][:1].isdigit() or row[column] == "-" for row in table.rows)
        for column in range(len(table.headers))
    ]
    lines = [
        table.headers,
        tuple("---:" if right else "---" for right in numeric),
        *(tuple(cell.replace("|", "\\|") for cell in row) for row in table.rows),
    ]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


if __name__ == "__main__":
    sys.exit(main())
