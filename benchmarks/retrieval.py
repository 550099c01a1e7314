"""Finding items in banks of growing size, beside a loop over items and their vectors.

Run as a module it is one measured process: `python -m benchmarks.retrieval bank|loop FOLDER`.
"""

from __future__ import annotations

import heapq
import itertools
import json
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.measure import Row, in_own_processes, peak_mb
from reasoningbank.memory import MemoryBank, MemoryItem
from reasoningbank.retrieval import WEIGHTS

__all__ = ["retrieval"]

DIMENSIONS = 384
QUESTIONS = 20
SHOWN = 5
THAN = "JSON lines and `np.load`; a cosine and the words in common, item by item"


@dataclass(frozen=True)
class Numbered:
    """Stands in for a model: a vector by the number that a text begins with.

    The vectors lie in 1,000 groups, all of them close together, as those of a model do. How long
    the model takes for a question does not depend on the bank, and is no part of what is measured.
    """

    name: str = "numbered"
    dimensions: int = DIMENSIONS

    def queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return np.stack([_row(_number(text), asked=0.5) for text in texts])

    def passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return np.stack([_row(_number(text)) for text in texts])


def _number(text: str) -> int:
    return int(text.partition(" ")[0].removeprefix("n"))


def _row(number: int, asked: float = 0.0) -> NDArray[np.float32]:
    group, own, other = (
        np.random.default_rng(seed).standard_normal(DIMENSIONS)
        for seed in ([0, number % 1_000], [1, number], [2, number])
    )
    row = 10 + 2 * group + own + asked * other
    return (row / np.linalg.norm(row)).astype(np.float32)


def retrieval(sizes: tuple[int, ...], repeats: int) -> list[Row]:
    """Search banks of growing size both ways, in fresh processes."""
    rows = []
    for size in sizes:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            seconds = _make(folder, size)
            found = in_own_processes(
                "benchmarks.retrieval", {way: [way, name] for way in ("bank", "loop")}, repeats
            )
        ours, other = found["bank"], found["loop"]
        if ours["nearest"] != other["nearest"]:
            raise AssertionError(f"another item is nearest: {ours} {other}")
        rows += [
            Row(f"{size:,} items: {what}", unit, ours[key], other[key], THAN)
            for what, unit, key in (
                (f"the {SHOWN} best for a question", "ms", "search_ms"),
                ("opened, and the first search", "s", "first_s"),
                ("peak memory above the start", "MB", "memory_mb"),
            )
        ]
        what = f"{size:,} items: written, with vectors, words and history"
        rows.append(Row(what, "s", *seconds, "JSON lines alone"))
    return rows


def _make(folder: Path, size: int) -> tuple[float, float]:
    """Write both forms; return how many seconds each took."""
    dice = random.Random(7)
    # As words are in texts: a few stand in most of them, most in a few.
    words = [f"word{number}" for number in range(20_000)]
    weights = list(itertools.accumulate(1 / (rank + 3) for rank in range(len(words))))
    texts = [dice.choices(words, cum_weights=weights, k=30) for _ in range(size)]
    items = [
        MemoryItem(
            f"n{number} {' '.join(text[:6])}", " ".join(text[6:16]), " ".join(text[16:]), "success"
        )
        for number, text in enumerate(texts)
    ]
    questions = [
        f"n{dice.randrange(size)} {' '.join(dice.choices(words, cum_weights=weights, k=12))}"
        for _ in range(QUESTIONS)
    ]
    (folder / "questions.json").write_text(json.dumps(questions), encoding="utf-8")
    np.save(folder / "vectors.npy", Numbered().passages([item.title for item in items]))
    began = time.perf_counter()
    with (folder / "items.jsonl").open("w", encoding="utf-8") as file:
        for item in items:
            file.write(f"{json.dumps(item.to_json())}\n")
    plain = time.perf_counter() - began
    with MemoryBank(folder / "bank.sqlite", Numbered()) as bank:
        began = time.perf_counter()
        bank.add(items)
        ours = time.perf_counter() - began
    return ours, plain


def _bank(folder: Path, questions: Sequence[str]) -> dict[str, float]:
    began = time.perf_counter()
    bank = MemoryBank(folder / "bank.sqlite", Numbered())
    bank.match(questions[0], SHOWN)
    first = time.perf_counter() - began

    def search(weights: tuple[float, float]) -> tuple[float, list[str]]:
        return _asked(questions, lambda q: bank.match(q, SHOWN, weights=weights)[0][0].id)

    search_ms, _ = search(WEIGHTS)
    _, nearest = search((1, 0))
    return {"first_s": first, "search_ms": search_ms, "nearest": _checksum(nearest)}


def _loop(folder: Path, questions: Sequence[str]) -> dict[str, float]:
    began = time.perf_counter()
    with (folder / "items.jsonl").open(encoding="utf-8") as file:
        items = [json.loads(line) for line in file]
    words = [set(f"{one['title']} {one['description']} {one['content']}".split()) for one in items]
    vectors = list(np.load(folder / "vectors.npy"))

    def search(question: str, weights: tuple[float, float]) -> str:
        query, asked = Numbered().queries([question])[0], set(question.split())
        meaning, common = weights[0], weights[1] / len(asked)
        scored = (
            (meaning * float(query @ vector) + common * len(asked & said), place)
            for place, (vector, said) in enumerate(zip(vectors, words, strict=True))
        )
        _, place = heapq.nlargest(SHOWN, scored)[0]
        return str(items[place]["id"])

    search(questions[0], WEIGHTS)
    first = time.perf_counter() - began
    search_ms, _ = _asked(questions, lambda question: search(question, WEIGHTS))
    nearest = [search(question, (1, 0)) for question in questions]
    return {"first_s": first, "search_ms": search_ms, "nearest": _checksum(nearest)}


def _asked(questions: Sequence[str], search: Callable[[str], str]) -> tuple[float, list[str]]:
    """Ask each question once; return the median of the milliseconds, and what came first."""
    taken, found = [], []
    for question in questions:
        began = time.perf_counter()
        found.append(search(question))
        taken.append((time.perf_counter() - began) * 1000)
    return statistics.median(taken), found


def _checksum(ids: Sequence[str]) -> float:
    return float(sum(int(one[:8], 16) for one in ids))


def _process(way: str, folder: Path) -> dict[str, float]:
    job = {"bank": _bank, "loop": _loop}[way]
    questions = json.loads((folder / "questions.json").read_text(encoding="utf-8"))
    before = peak_mb()
    said = job(folder, questions)
    return {**said, "memory_mb": peak_mb() - before}


if __name__ == "__main__":
    print(json.dumps(_process(sys.argv[1], Path(sys.argv[2]))))
