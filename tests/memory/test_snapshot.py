"""Snapshots: equal banks have equal names, nothing is lost, damage is detected."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reasoningbank.errors import RecordError, UsageError
from reasoningbank.memory import Counters, MemoryItem, Snapshot

from .coded import raises
from .strategies import BANKS

ONE = MemoryItem("One", "first", "Do one.", "success")
TWO = MemoryItem("Two", "second", "Do two.", "failure", tags=("up:Protein",))
SAME_FOLDER = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@SAME_FOLDER
@given(BANKS, st.booleans())
def test_files_lose_nothing(tmp_path: Path, items: list[MemoryItem], compressed: bool) -> None:
    snapshot = Snapshot.of(items)
    file = tmp_path / f"any{'.jsonl.gz' if compressed else '.jsonl'}"
    file.write_bytes(gzip.compress(snapshot.lines()) if compressed else snapshot.lines())
    assert Snapshot.read(file) == snapshot
    assert Snapshot.read(file).items == snapshot.items


@SAME_FOLDER
@given(BANKS, st.randoms())
def test_order_does_not_matter_and_content_does(
    tmp_path: Path, items: list[MemoryItem], dice: object
) -> None:
    snapshot = Snapshot.of(items)
    shuffled = items[:]
    dice.shuffle(shuffled)  # type: ignore[attr-defined]
    assert Snapshot.of(shuffled).hash == snapshot.hash
    for place, item in enumerate(items):
        counted = replace(item, counters=item.counters + Counters(retrieved=1))
        changed = [*items[:place], counted, *items[place + 1 :]]
        assert Snapshot.of(changed).hash != snapshot.hash
        assert Snapshot.of(items[:place] + items[place + 1 :]).hash != snapshot.hash


def test_it_is_written_once_under_its_hash(tmp_path: Path) -> None:
    snapshot = Snapshot.of([TWO, ONE])
    file = snapshot.write(tmp_path / "memory")
    assert file.name == f"{snapshot.hash}.jsonl"
    os.utime(file, (1, 1))
    assert snapshot.write(tmp_path / "memory") == file
    assert file.stat().st_mtime == 1
    file.write_text("cut", encoding="utf-8")
    assert Snapshot.read(snapshot.write(tmp_path / "memory")) == snapshot
    assert [one.name for one in file.parent.iterdir()] == [file.name]


def test_a_line_is_readable_by_eye(tmp_path: Path) -> None:
    item = MemoryItem("Attività 蛋白质", "d", "c", "seed")
    (line,) = Snapshot.of([item]).write(tmp_path).read_text(encoding="utf-8").splitlines()
    assert "Attività 蛋白质" in line
    assert json.loads(line)["id"] == item.id


def test_threads_that_write_the_same_do_not_disturb_each_other(tmp_path: Path) -> None:
    snapshot = Snapshot.of([ONE, TWO])
    with ThreadPoolExecutor(8) as pool:
        files = set(pool.map(lambda _: snapshot.write(tmp_path), range(32)))
    assert [Snapshot.read(file) for file in files] == [snapshot]


def test_lines_of_others_are_read(tmp_path: Path) -> None:
    file = tmp_path / "by hand.jsonl"
    by_hand = {"title": "T", "description": "", "content": "C", "src": "seed"}
    file.write_text(f"\ufeff{json.dumps(by_hand)}\r\n\n{json.dumps(ONE.to_json())}", "utf-8")
    assert set(Snapshot.read(file).items) == {ONE, MemoryItem("T", "", "C", "seed")}


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("{", "not-json"),
        ("[1]", "bad-item"),
        ('{"title": "T"}', "bad-item"),
        (json.dumps(ONE.to_json()), "duplicate-item"),
        (json.dumps({**TWO.to_json(), "content": "other"}), "item-changed"),
        ("[" * 100_000, "not-json"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, line: str, code: str) -> None:
    file = tmp_path / "bad.jsonl"
    file.write_text(f"{json.dumps(ONE.to_json())}\n{line}\n", encoding="utf-8")
    with raises(UsageError, code) as raised:
        Snapshot.read(file)
    assert raised.value.where == f"{file}:2"
    assert len(str(raised.value)) < 500


def test_a_bank_without_queries_is_named_as_before_there_were_any() -> None:
    item = MemoryItem("One", "first", "Do one.", "success", question="Which?")
    # What the version before the field `query` wrote.
    assert Snapshot.of([item]).hash == "2b866f75d77b680a"
    assert b"query" not in Snapshot.of([item]).lines()
    asked = replace(item, query="ASK {}")
    assert json.loads(Snapshot.of([asked]).lines())["query"] == "ASK {}"


def test_a_file_named_by_its_lines_is_read_however_items_are_written_today(tmp_path: Path) -> None:
    lines = [
        json.dumps({**item.to_json(), "query": ""}, sort_keys=True) + "\n"
        for item in sorted((ONE, TWO), key=lambda item: item.id)
    ]
    name = hashlib.sha256("".join(lines).encode()).hexdigest()[:16]
    assert name != Snapshot.of([ONE, TWO]).hash
    file = tmp_path / f"{name}.jsonl"
    file.write_text("".join(reversed(lines)), encoding="utf-8")
    assert Snapshot.read(file) == Snapshot.of([ONE, TWO])
    file.write_text("".join(lines).replace('"retrieved": 0', '"retrieved": 1'), encoding="utf-8")
    with raises(RecordError, "snapshot-changed"):
        Snapshot.read(file)
    file.write_text(lines[0], encoding="utf-8")
    with raises(RecordError, "snapshot-changed"):
        Snapshot.read(file)


def test_a_truncated_file_is_refused(tmp_path: Path) -> None:
    file = Snapshot.of([ONE, TWO]).write(tmp_path)
    whole = file.read_bytes()
    file.write_bytes(whole.splitlines(keepends=True)[0])
    with raises(RecordError, "snapshot-changed"):
        Snapshot.read(file)
    (tmp_path / "half.jsonl.gz").write_bytes(gzip.compress(whole)[:-20])
    for name in ("half.jsonl.gz", "missing.jsonl", "."):
        with raises(RecordError, "snapshot-unreadable"):
            Snapshot.read(tmp_path / name)


def test_where_nothing_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with raises(RecordError, "snapshot-unwritable"):
        Snapshot.of([ONE]).write(tmp_path / "file" / "folder")
    with raises(UsageError, "duplicate-item"):
        Snapshot.of([ONE, ONE])
