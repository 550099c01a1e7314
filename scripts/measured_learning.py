"""What was measured of memory, as tables of `docs/learning.md`, from committed records."""

from __future__ import annotations

from pathlib import Path

from reasoningbank.analysis import summarise_run
from reasoningbank.analysis.run_tables import (
    arm_table,
    bank_table,
    comparison_table,
    learning_table,
    rejected_table,
    sampled_table,
    stream_judge_table,
    stream_table,
    use_table,
)
from reasoningbank.analysis.tables import Table, titled
from reasoningbank.corpus.task import shuffle_key
from reasoningbank.experiment import RunFolder
from reasoningbank.experiment.records import StepFolder
from reasoningbank.experiment.streams import Snapshots
from reasoningbank.memory import MemoryItem

RESULTS = Path(__file__).resolve().parent.parent / "experiments" / "results"
#: Items of a bank that are shown as they are.
SHOWN = 10
#: Characters of an item's text in the table.
MOST_CHARS = 260
#: Runs with what they ask, in the order in which they make sense.
RUNS = {
    "liita_memory_gate": "The gate: do exemplars of golds help at all?",
    "uniprot_memory_exemplars": "The gate's question on UniProt's held-out tasks",
    "liita_memory": "The standard experiment: learned memory against none, sampling and a placebo",
    "liita_memory_fresh": "A second look at the claim, on 64 questions of fresh templates",
    "liita_memory_rlm": "The same for an agent that explores, `rlm` with at most four turns",
    "liita_memory_matts": "Three attempts a task: parallel and sequential, with memory and without",
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
        comparison_table(stated, f"pre-registered ({by})"),
        comparison_table(summary.others, f"every other arm ({by})"),
        sampled_table(summary.arms),
    ]
    if summary.online:
        tables += [stream_table(summary.online), stream_judge_table(summary.online)]
    tables += [
        make(summary.memory) for make in (use_table, bank_table, learning_table, rejected_table)
    ]
    if summary.comparison is not None:
        tables.append(_items(folder, summary.comparison.first))
    parts = [
        f"### {title}",
        f"Records: `experiments/results/{name}`. {summary.leakage.sentence()}.",
    ]
    parts += [titled(table) for table in tables if table.rows]
    return "\n\n".join(parts)


def _items(folder: RunFolder, arm: str) -> Table:
    """Return some of what an arm's first stream learned, drawn by id and not by worth."""
    headers = ("item", "kind", "title", "content", "tasks", "shown", "helped", "hurt")
    steps = StepFolder(folder.path, arm, 0).taken()
    if not steps:
        return Table("", headers, [])
    snapshots = Snapshots(folder.path)
    begun = {item.id for item in snapshots.read(steps[0].before).items}
    found = [
        item
        for item in snapshots.read(steps[-1].after).items
        if item.id not in begun and item.status == "active"
    ]
    found.sort(key=lambda item: shuffle_key(0, item.id))
    title = f"{min(SHOWN, len(found))} of the {len(found)} items that {arm}.0 learned, drawn by lot"
    return Table(title, headers, [_row(item) for item in found[:SHOWN]])


def _row(item: MemoryItem) -> tuple[str, ...]:
    said = " ".join((item.pattern or item.content).split())
    said = said if len(said) <= MOST_CHARS else f"{said[:MOST_CHARS].rstrip()} …"
    counts = item.counters
    tasks = {origin.task for origin in item.origins if origin.task}
    numbers = (len(tasks), counts.retrieved, counts.helped, counts.hurt)
    return (item.id[:8], item.src, item.title, f"`{said.replace('`', '')}`", *map(str, numbers))
