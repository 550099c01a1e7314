"""Tables of committed results for `docs/evaluation.md`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from reasoningbank.analysis import read_translations
from reasoningbank.analysis.tables import TextTable, capital, markdown
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

RESULTS = Path(__file__).resolve().parent.parent / "experiments" / "results"


def titled(table: TextTable) -> str:
    """Return a table as Markdown under its title."""
    return f"{capital(table.title)}:\n\n{markdown(table)}"


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
