"""A gold that is not the one that was kept decides nothing: it is computed again."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from reasoningbank.corpus import Task
from reasoningbank.judge import Answer, GoldStore

TASK = Task("t1", "Which?", "SELECT ?x { ?x ?p ?o }", "https://example.org/sparql")
ROWS = Answer.of_rows(["x", "n"], [["<http://e/a>", "1"], ["_:b", None], ["é", ""]])
FACTS = b"reasoningbank.gold"


def rewritten(path: Path, change: Callable[[pa.Table, dict[str, object]], pa.Table]) -> None:
    """Change a gold and keep what its file says of itself, the hash included."""
    table = pq.read_table(path)
    facts = json.loads(table.schema.metadata[FACTS])
    changed = change(table, facts)
    pq.write_table(changed.replace_schema_metadata({FACTS: json.dumps(facts)}), path)


def other_value(table: pa.Table, _: dict[str, object]) -> pa.Table:
    return table.set_column(0, "x", pa.array(["<http://e/z>", "_:b", "é"]))


def moved_null(table: pa.Table, _: dict[str, object]) -> pa.Table:
    return table.set_column(1, "n", pa.array(["1", "", None]))


def moved_border(table: pa.Table, _: dict[str, object]) -> pa.Table:
    return table.set_column(0, "x", pa.array(["<http://e/a>_", ":b", "é"]))


def row_less(table: pa.Table, _: dict[str, object]) -> pa.Table:
    return table.slice(0, 2)


def other_fact(table: pa.Table, facts: dict[str, object]) -> pa.Table:
    facts["n_rows"] = 2
    return table


def without_hash(table: pa.Table, facts: dict[str, object]) -> pa.Table:
    del facts["hash"]
    return table


@pytest.mark.parametrize(
    "change", [other_value, moved_null, moved_border, row_less, other_fact, without_hash]
)
def test_a_gold_that_was_changed_is_computed_anew(
    tmp_path: Path,
    change: Callable[[pa.Table, dict[str, object]], pa.Table],
    caplog: pytest.LogCaptureFixture,
) -> None:
    golds = GoldStore(tmp_path, "h")
    golds.gold(TASK, lambda _: ROWS)
    rewritten(golds.path(TASK), lambda table, _: table)
    kept = GoldStore(tmp_path, "h").gold(TASK, lambda _: Answer.of_boolean(True))
    assert kept.answer.table.equals(ROWS.table)
    rewritten(golds.path(TASK), change)
    again = GoldStore(tmp_path, "h").gold(TASK, lambda _: ROWS)
    assert again.answer.table.equals(ROWS.table)
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    caplog.clear()
    assert GoldStore(tmp_path, "h").gold(TASK, lambda _: ROWS).answer.n_rows == 3
    assert caplog.text == ""


@pytest.mark.parametrize("share", [0.0, 0.5, 0.99])
def test_a_part_of_a_gold_is_computed_anew(tmp_path: Path, share: float) -> None:
    golds = GoldStore(tmp_path, "h")
    golds.gold(TASK, lambda _: ROWS)
    path = golds.path(TASK)
    path.write_bytes(path.read_bytes()[: int(share * path.stat().st_size)])
    assert GoldStore(tmp_path, "h").gold(TASK, lambda _: ROWS).answer.table.equals(ROWS.table)


def test_another_tasks_gold_under_its_name_is_computed_anew(tmp_path: Path) -> None:
    golds, other = GoldStore(tmp_path, "h"), replace(TASK, id="t2")
    golds.gold(TASK, lambda _: ROWS)
    golds.gold(other, lambda _: Answer.of_boolean(True))
    shutil.copyfile(golds.path(other), golds.path(TASK))
    again = GoldStore(tmp_path, "h").gold(TASK, lambda _: ROWS)
    assert again.answer.table.equals(ROWS.table)


def test_a_large_gold_is_checked_in_a_moment(tmp_path: Path) -> None:
    rows = Answer.of_rows(["x", "y"], [[f"<http://e/{n}>", None] for n in range(300_000)])
    GoldStore(tmp_path, "h").gold(TASK, lambda _: rows)
    kept = GoldStore(tmp_path, "h").gold(TASK, lambda _: Answer.of_boolean(True))
    assert kept.answer.table.equals(rows.table)
