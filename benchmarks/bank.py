"""A bank of many items: adding, opening, searching, consolidating, in processor time and memory.

`python -m benchmarks.bank [ITEMS] [--consolidate] [--recall QUESTIONS]` prints a table. Items are
the training tasks and seeds of the packs with other names in them. A stand-in embeds them, since
the bundled model would take hours: a vector is the sum of random ones of the text's words.
"""

from __future__ import annotations

import argparse
import itertools
import random
import re
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.measure import peak_mb
from reasoningbank.corpus import load_pack, load_shacl_tasks, split_tasks
from reasoningbank.memory import MemoryBank, MemoryItem, Provenance, Scope
from reasoningbank.memory.consolidate import consolidate

__all__ = ["items", "main"]

PACKS = ("uniprot", "liita")
DIMENSIONS = 384
#: Items of one call of `add`.
AT_ONCE = 10_000
_WORDS = re.compile(r"\w+")


#: A random vector for each hash of a word.
TABLE = np.random.default_rng(5).standard_normal((1 << 15, DIMENSIONS), dtype=np.float32)


@dataclass(frozen=True)
class WordSums:
    """Stands in for a model: the sum of random vectors of a text's words, all close together."""

    name: str = "word sums"
    dimensions: int = DIMENSIONS

    def passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        rows = np.empty((len(texts), DIMENSIONS), dtype=np.float32)
        for row, text in zip(rows, texts, strict=True):
            words = [zlib.crc32(word.encode()) % len(TABLE) for word in _WORDS.findall(text)]
            row[:] = TABLE[words].sum(axis=0) / max(1, len(words)) ** 0.5 + 2 * TABLE[0]
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        return rows

    def queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return self.passages(texts)


def items(size: int, seed: int = 0) -> Iterator[MemoryItem]:
    """Yield so many different items; the same ones each time."""
    draw = random.Random(seed)
    known: set[str] = set()
    scopes = {pack: Scope(pack, load_pack(pack).endpoint) for pack in PACKS}
    tasks = [
        (task, scopes[pack]) for pack in PACKS for task in split_tasks(load_shacl_tasks(pack)).train
    ]
    words = sorted({word for task, _ in tasks for word in _WORDS.findall(task.query)})
    while len(known) < size:
        task, scope = draw.choice(tasks)
        said = [w if draw.random() < 0.7 else draw.choice(words) for w in task.query.split()]
        name = f"{draw.choice(words)}{draw.randrange(10**4)}"
        question = f"{' '.join(said)} {name}"
        item = MemoryItem(
            f"{draw.choice(words)}: {question[:60]}",
            question,
            f"Write {draw.choice(words)} and {draw.choice(words)} beside {name}.",
            draw.choice(("success", "failure", "contrast", "gold")),
            pattern=task.expected_sparql,
            scope=scope,
            provenance=Provenance(task.id, task.group, task.corpus, f"one/{task.id}.0"),
        )
        if item.id not in known:
            known.add(item.id)
            yield item


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bank")
    parser.add_argument("size", nargs="?", type=int, default=2_000, metavar="ITEMS")
    parser.add_argument("--consolidate", action="store_true", help="reads the whole bank")
    parser.add_argument("--recall", type=int, default=0, metavar="QUESTIONS")
    parser.add_argument("--file", type=Path, help="made if missing, and else opened")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        _measured(chosen.size, chosen.file or Path(name) / "bank.sqlite", chosen)


def _measured(size: int, path: Path, chosen: argparse.Namespace) -> None:
    embedder = WordSums()
    asked = [item.description for item in items(60 + chosen.recall, seed=1)]
    new = list(items(60, seed=2))
    print("| what | processor time | peak memory |\n|---|---:|---:|")
    if not path.exists():
        with MemoryBank(path, embedder) as bank:
            made, spent = items(size), 0.0
            for first in range(0, size, AT_ONCE):
                part = list(itertools.islice(made, min(AT_ONCE, size - first)))
                began = time.process_time()
                bank.add(part)
                spent += time.process_time() - began
        print(
            f"| {size:,} items added, {AT_ONCE:,} at once | {spent:.1f} s | {peak_mb():,.0f} MB |"
        )
    bank = MemoryBank(path, embedder)
    _row("opened, and first search", lambda: bank.match(asked[0], 20))
    for what in ("search, new words", "search, known words"):
        _row(what, *(lambda q=q: bank.match(q, 20) for q in asked[1:31]))
    _row("one item added", *(lambda i=i: bank.add([i]) for i in new[:20]))
    _row(
        "one added, and a search",
        *(
            lambda i=i, q=q: (bank.add([i]), bank.match(q, 20))
            for i, q in zip(new[20:40], asked[1:21], strict=True)
        ),
    )
    if chosen.consolidate:
        ids = bank.add(new[40:41])
        _row("one new item consolidated", lambda: consolidate(bank, new=ids, embedder=embedder))
        _row("snapshot", bank.snapshot)
    if chosen.recall:
        _recall(bank, asked[60:])


def _recall(bank: MemoryBank, asked: Sequence[str]) -> None:
    """Compare what is found with what an exact index finds."""
    exact = MemoryBank(bank.path, bank._index._embedder)
    exact._index._room = 1 << 62
    shares = []
    for question in asked:
        found = {item.id for item, _ in bank.match(question, 20)}
        shares.append(len(found & {item.id for item, _ in exact.match(question, 20)}) / 20)
    print(f"recall@20 against exact search: {np.mean(shares):.4f}, {len(asked)} questions")


def _row(what: str, *jobs: Callable[[], object]) -> None:
    taken = []
    for job in jobs:
        began = time.process_time()
        job()
        taken.append(time.process_time() - began)
    worst = f", at most {1000 * max(taken):,.1f}" if len(taken) > 1 else ""
    print(
        f"| {what} | {1000 * float(np.median(taken)):,.1f} ms{worst} | {peak_mb():,.0f} MB |",
        flush=True,
    )


if __name__ == "__main__":
    main()
