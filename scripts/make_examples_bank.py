"""Make the bank that streams of a learning experiment begin with: examples of golds.

python scripts/make_examples_bank.py PACK TASKS OUT.jsonl [--beside EXPERIMENT.toml], e.g.
liita 26 experiments/banks/liita.jsonl --beside experiments/liita_memory.toml.

One training task of a template or group, of those drawn by a seed, until there are TASKS; the same
every time.
With --beside none of a group that the experiment's stream has: what it learns is then of others.
The leakage filter keeps an example from every task of its own group, in stream and evaluation.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Sequence
from pathlib import Path

from reasoningbank.corpus import Task, load_corpus, load_pack, open_endpoint, split_tasks
from reasoningbank.experiment import load_experiment
from reasoningbank.experiment.plan import plan_run
from reasoningbank.memory import MemoryItem, Snapshot
from reasoningbank.memory.distill import Distiller
from reasoningbank.schema import Schema

SEED = 0


def drawn(tasks: Sequence[Task], number: int, beside: Sequence[Task] = ()) -> list[Task]:
    """Return the tasks that examples are made of: one of a group, groups in a drawn order."""
    left_out = {task.group or task.id for task in beside}
    groups: dict[str, list[Task]] = {}
    for task in sorted(tasks, key=lambda task: task.id):
        if (task.group or task.id) not in left_out:
            groups.setdefault(task.template or task.group or task.id, []).append(task)
    order = sorted(groups)
    draw = random.Random(SEED)
    draw.shuffle(order)
    return [draw.choice(groups[name]) for name in order[:number]]


def main(words: Sequence[str] | None = None) -> int:
    """Write the bank; return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("pack")
    parser.add_argument("tasks", type=int, metavar="TASKS")
    parser.add_argument("out", type=Path, metavar="OUT")
    parser.add_argument("--beside", type=Path, metavar="EXPERIMENT")
    given = parser.parse_args(words)
    pack = load_pack(given.pack)
    train = split_tasks(load_corpus(pack).tasks).train
    beside = plan_run(load_experiment(given.beside)).stream if given.beside else ()
    chosen = drawn(train, given.tasks, beside)
    items: list[MemoryItem] = []
    with open_endpoint(pack) as endpoint:
        names = Schema.of(endpoint)
        distiller = Distiller(vocabulary=names, endpoint=endpoint, pack=pack)
        for task in chosen:
            made = distiller.from_gold(task, "train")
            items += made.items
            for rejected in made.rejected:
                print(f"{task.id}: {rejected}", file=sys.stderr)
    given.out.parent.mkdir(parents=True, exist_ok=True)
    given.out.write_bytes(Snapshot.of(items).lines())
    print(f"{len(items)} examples of {len(chosen)} groups of {given.pack}: {given.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
