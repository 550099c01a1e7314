"""Damage to what a run has computed once and keeps."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from .changes import endpoint_counts_as_public
from .commands import Done
from .scenario import Fault, Scenario

__all__ = ["CACHES"]


def gold(scenario: Scenario, number: int) -> Path:
    (found,) = (scenario.path / "gold").glob(f"t{number:03}.*.parquet")
    return found


def poisoned(change: Callable[[Scenario], object]) -> Callable[[Scenario], Done]:
    """Return what runs a run, poisons what it kept, and runs its trials again."""

    def inject(scenario: Scenario) -> Done:
        first = scenario.run(endpoint_counts_as_public)
        assert first.status == 0, first.err
        change(scenario)
        shutil.rmtree(scenario.path / "trials")
        return scenario.run(endpoint_counts_as_public)

    return inject


def overwrite(name: str, change: Callable[[bytes], bytes]) -> Callable[[Scenario], object]:
    """Return what overwrites a database, all of which is in its file."""

    def inject(scenario: Scenario) -> None:
        file = scenario.cache / name
        with contextlib.closing(sqlite3.connect(file)) as database:
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        file.write_bytes(change(file.read_bytes()))

    return inject


def garbage(content: bytes) -> bytes:
    return b"garbage " * (len(content) // 8)


def cut(content: bytes) -> bytes:
    return content[:3_000]


def execute(name: str, statement: str) -> Callable[[Scenario], object]:
    def inject(scenario: Scenario) -> None:
        with contextlib.closing(sqlite3.connect(scenario.cache / name)) as database, database:
            assert database.execute(statement).rowcount > 0

    return inject


def other_rows(scenario: Scenario) -> None:
    """Change the rows of a gold, and leave what its file says of itself."""
    path = gold(scenario, 2)
    table = pq.read_table(path)
    wrong = pa.array(["<http://e/moss>"] * table.num_rows)
    pq.write_table(table.set_column(0, "plant", wrong), path)


ANSWERS = "answers.sqlite"
ANEW = "computing the gold again"

CACHES = [
    Fault(
        "a gold overwritten by garbage",
        poisoned(lambda scenario: gold(scenario, 2).write_bytes(b"garbage" * 100)),
        ANEW,
        0,
        6,
    ),
    Fault(
        "half of a gold",
        poisoned(
            lambda scenario: gold(scenario, 2).write_bytes(gold(scenario, 2).read_bytes()[:400])
        ),
        ANEW,
        0,
        6,
    ),
    Fault("a gold with other rows", poisoned(other_rows), ANEW, 0, 6),
    Fault(
        "another task's gold under its name",
        poisoned(lambda scenario: shutil.copyfile(gold(scenario, 5), gold(scenario, 2))),
        ANEW,
        0,
        6,
    ),
    Fault(
        "the answers' cache overwritten by garbage",
        poisoned(overwrite(ANSWERS, garbage)),
        r"answers.sqlite.damaged",
        0,
        6,
    ),
    Fault(
        "the answers' cache cut off",
        poisoned(overwrite(ANSWERS, cut)),
        r"answers.sqlite.damaged",
        0,
        6,
    ),
    Fault(
        "other bytes in the answers' cache",
        poisoned(execute(ANSWERS, "UPDATE entries SET value = substr(value, 1, 30)")),
        "",
        0,
        6,
    ),
]
