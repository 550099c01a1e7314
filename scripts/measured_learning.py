"""What was measured of memory, as tables of `docs/learning.md`, from committed records."""

from __future__ import annotations

from pathlib import Path

from reasoningbank.analysis import summarise_run
from reasoningbank.analysis.memory_tables import (
    bank_table,
    learning_table,
    rejected_table,
    sampled_table,
    stream_judge_table,
    stream_table,
    use_table,
)
from reasoningbank.analysis.summary_tables import arm_table, comparison_table
from reasoningbank.analysis.tables import titled
from reasoningbank.experiment import RunFolder

RESULTS = Path(__file__).resolve().parent.parent / "experiments" / "results"
#: Runs with what they ask, in the order in which they make sense.
RUNS = {
    "liita_memory_gate": "The gate: do exemplars of golds help at all?",
}


def measured_learning() -> str:
    """Return what each run came to, as Markdown."""
    return "\n\n".join(_section(name, title) for name, title in RUNS.items()) + "\n"


def _section(name: str, title: str) -> str:
    folder = RunFolder(RESULTS / name)
    summary = summarise_run(folder)
    by = f"{summary.metric}, by {summary.unit}"
    stated = [one for one in (summary.comparison, *summary.claims) if one is not None]
    tables = [
        arm_table(summary),
        comparison_table(stated, f"stated beforehand ({by})"),
        comparison_table(summary.others, f"every other arm ({by})"),
        sampled_table(summary.arms),
    ]
    if summary.online:
        tables += [stream_table(summary.online), stream_judge_table(summary.online)]
    tables += [
        make(summary.memory) for make in (use_table, bank_table, learning_table, rejected_table)
    ]
    parts = [
        f"### {title}",
        f"Records: `experiments/results/{name}`. {summary.leakage.sentence()}.",
    ]
    parts += [titled(table) for table in tables if table.rows]
    return "\n\n".join(parts)
