"""Tables of committed results for `docs/learning.md` and `docs/evaluation.md`."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from reasoningbank.analysis import read_translations, summarise_run
from reasoningbank.analysis.tables import (
    TextTable,
    arm_table,
    capital,
    comparison_table,
    markdown,
    tables_of,
)
from reasoningbank.analysis.translators import (
    ArmRows,
    agent_table,
    brier_table,
    language_table,
    pattern_table,
    reliability_table,
    repair_table,
    scenario_table,
)
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
#: Names of arms in the records, and what they are called now.
RENAMED = {
    "placebo of": "random items of", "placebo": "random", "matched": "token_matched",
    "what was wrong with it could not be told": "no cause was found",
}  # fmt: skip
#: Runs with what they ask, in the order in which they make sense.
RUNS = {
    "liita_memory_gate": "The gate: do few-shot examples made of gold queries help at all?",
    "uniprot_memory_exemplars": "The gate's question on UniProt's held-out tasks",
    "liita_memory": "The standard experiment: learned memory, none, sampling and random memory",
    "liita_memory_fresh": "A second look at the claim, on 64 questions of fresh templates",
    "liita_memory_rlm": "The same for an agent that explores, `rlm` with at most four turns",
    "liita_memory_matts": "Three attempts a task: parallel and sequential, with memory and without",
}


def measured_learning() -> str:
    """Return the results of each run, as Markdown."""
    text = "\n\n".join(_section(name, title) for name, title in RUNS.items()) + "\n"
    for old, new in RENAMED.items():
        text = re.sub(rf"\b{old}\b", new, text)
    return text


def titled(table: TextTable) -> str:
    """Return a table as Markdown under its title."""
    return f"{capital(table.title)}:\n\n{markdown(table)}"


def _section(name: str, title: str) -> str:
    folder = RunFolder(RESULTS / name)
    summary = summarise_run(folder)
    by = f"{summary.metric}, by {summary.unit}"
    stated = [one for one in (summary.comparison, *summary.claims) if one is not None]
    tables = [
        arm_table(summary),
        comparison_table(stated, f"pre-registered ({by})"),
        comparison_table(summary.others, f"every other arm ({by})"),
    ]
    more = ("sampled", "streams", "stream judges", "use", "banks", "learning", "rejected")
    found = tables_of(summary)
    tables += [found[name] for name in more if name in found]
    if summary.comparison is not None:
        tables.append(_items(folder, summary.comparison.first))
    parts = [
        f"### {title}",
        f"Records: `experiments/results/{name}`. {summary.leakage.sentence()}.",
    ]
    parts += [titled(table) for table in tables if table.rows]
    return "\n\n".join(parts)


def _items(folder: RunFolder, arm: str) -> TextTable:
    """Return a sample by id of what an arm's first stream learned."""
    headers = ("item", "kind", "title", "content", "tasks", "shown", "helped", "hurt")
    steps = StepFolder(folder.path, arm, 0).taken()
    if not steps:
        return TextTable("", headers, [])
    snapshots = Snapshots(folder.path)
    begun = {item.id for item in snapshots.read(steps[0].before).items}
    found = [
        item
        for item in snapshots.read(steps[-1].after).items
        if item.id not in begun and item.status == "active"
    ]
    found.sort(key=lambda item: shuffle_key(0, item.id))
    title = (
        f"{min(SHOWN, len(found))} of the {len(found)} items that {arm}.0 learned, sampled by id"
    )
    return TextTable(title, headers, [_row(item) for item in found[:SHOWN]])


def _row(item: MemoryItem) -> tuple[str, ...]:
    said = " ".join((item.pattern or item.content).split())
    said = said if len(said) <= MOST_CHARS else f"{said[:MOST_CHARS].rstrip()} …"
    counts = item.counters
    tasks = {origin.task for origin in item.origins if origin.task}
    numbers = (len(tasks), counts.retrieved, counts.helped, counts.hurt)
    return (item.id[:8], item.src, item.title, f"`{said.replace('`', '')}`", *map(str, numbers))


class Section(NamedTuple):
    """A part of the page: tables of some runs, restricted to some arms if any are named."""

    title: str
    runs: tuple[str, ...]
    tables: tuple[Callable[[Sequence[ArmRows]], TextTable], ...]
    arms: tuple[str, ...] = ()


SECTIONS = (
    Section(
        "Four ways from a question to a query",
        ("nl2sparql", "nl2sparql_uniprot"),
        (agent_table, repair_table, brier_table, reliability_table),
    ),
    Section(
        "Calibration of scores, on questions of the train split",
        ("nl2sparql_calibration",),
        (agent_table, brier_table, reliability_table),
    ),
    Section("When to use which, on the lexicon", ("nl2sparql",), (scenario_table,)),
    Section(
        "Where it goes wrong, on the lexicon", ("nl2sparql",), (pattern_table,), ("rag", "graph")
    ),
    Section(
        "What retrieval, validation and repair add, on the lexicon",
        ("nl2sparql_parts",),
        (agent_table, repair_table),
    ),
    Section(
        "What the steps of the graph add, on the lexicon",
        ("nl2sparql_graph",),
        (agent_table, repair_table),
    ),
    Section(
        "The graph again, with everything that exploring finds in its prompt",
        (
            "nl2sparql",
            "nl2sparql_graph_again",
            "nl2sparql_uniprot",
            "nl2sparql_uniprot_graph_again",
        ),
        (agent_table, repair_table),
        (
            "nl2sparql/graph",
            "nl2sparql_graph_again/graph",
            "nl2sparql_uniprot/graph",
            "nl2sparql_uniprot_graph_again/graph",
        ),
    ),
    Section(
        "Italian against English, the same questions",
        ("nl2sparql_italian", "nl2sparql"),
        (language_table, repair_table),
        ("nl2sparql_italian/rag", "nl2sparql/rag"),
    ),
)


def measured_translators() -> str:
    """Return the sections as Markdown."""
    parts = []
    for section in SECTIONS:
        arms = [
            arm
            for arm in read_translations([RESULTS / name for name in section.runs])
            if not section.arms or arm.arm in section.arms
        ]
        trials = sum(len(arm.rows) for arm in arms)
        records = ", ".join(f"`experiments/results/{name}`" for name in section.runs)
        parts.append(
            f"### {section.title}\n\n{trials} judged trials of {len(arms)} arms: {records}."
        )
        for make in section.tables:
            table = make(arms)
            if table.rows:
                parts.append(titled(table))
    return "\n\n".join(parts) + "\n"
