"""Measure how many of a gold's names retrieved examples of other groups can bring.

    python scripts/measure_examples.py [EXPERIMENT.toml]

No model is asked; the tasks are those of the experiment, the examples those of the training
split that the leakage filter lets pass.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from reasoningbank.corpus import Task, load_corpus, load_pack, open_endpoint, split_tasks
from reasoningbank.experiment import plan_run
from reasoningbank.experiment.config import load_experiment
from reasoningbank.memory import LeakageFilter, MemoryBank, Scope, retrieve
from reasoningbank.memory.distill import Distiller
from reasoningbank.memory.grounding import Facts
from reasoningbank.memory.success import terms_in
from reasoningbank.schema import Schema
from reasoningbank.sparql.query import prepare

SHOWN = (1, 3, 5, 8, 12)
Names = Callable[[str], frozenset[str]]


def main(file: str = "experiments/uniprot_memory_gate.toml") -> None:
    """Print one row for each number of examples that are shown."""
    plan = plan_run(load_experiment(Path(file)))
    pack = load_pack(plan.pack.key)
    tasks = plan.tasks
    with open_endpoint(pack) as endpoint, MemoryBank() as bank:
        vocabulary = Schema.of(endpoint)
        facts = Facts(vocabulary, endpoint)
        distiller = Distiller(vocabulary=vocabulary, endpoint=endpoint, pack=pack)
        split = split_tasks(load_corpus(pack).tasks)
        for task in split.train:
            bank.add(distiller.from_gold(task, "train").items)

        def names(query: str) -> frozenset[str]:
            text = prepare(query, prefixes=endpoint.namespaces).text
            return frozenset(filter(None, map(facts.iri_of, terms_in(text, facts))))

        everywhere = frozenset().union(*(names(item.pattern) for item in bank.items()))
        wanted = {task.id: names(task.expected_sparql) for task in tasks}
        possible = sum(wanted[task.id] <= everywhere for task in tasks)
        examples = len(bank.items())
        print(f"{len(tasks)} tasks; all names somewhere among {examples} examples: {possible}")
        print("\n| examples shown | of a gold's names | tasks with all names |\n|---:|---:|---:|")
        for k in SHOWN:
            shares, whole = _covered(bank, tasks, wanted, names, k, pack.key)
            print(f"| {k} | {shares / len(tasks):.2f} | {whole} |")


def _covered(
    bank: MemoryBank,
    tasks: Sequence[Task],
    wanted: dict[str, frozenset[str]],
    names: Names,
    k: int,
    pack: str,
) -> tuple[float, int]:
    shares, whole = 0.0, 0
    for task in tasks:
        leakage = LeakageFilter(task=task.id, group=task.group)
        found = retrieve(bank, task.query, leakage=leakage, k=k, tokens=10**6, scope=Scope(pack))
        shown = frozenset().union(*(names(one.item.pattern) for one in found.found))
        need = wanted[task.id]
        shares += len(need & shown) / len(need) if need else 1.0
        whole += need <= shown
    return shares, whole


if __name__ == "__main__":
    main(*sys.argv[1:])
