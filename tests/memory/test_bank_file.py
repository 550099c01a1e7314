"""The file: shared by processes, whole after a kill; foreign and damaged files are refused."""

from __future__ import annotations

import itertools
import multiprocessing
import signal
import sqlite3
import time
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from pathlib import Path

import numpy as np
import pytest
from hashed_words import HashedWords

from reasoningbank.errors import ReasoningBankError, RecordError, UsageError
from reasoningbank.memory import Counters, MemoryBank, MemoryItem

from .coded import raises


def item(title: str) -> MemoryItem:
    return MemoryItem(title, f"About {title}", f"Do {title}.", "success")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with MemoryBank(tmp_path / "folder" / "bank.sqlite", HashedWords()) as bank:
        bank.add([item("mass"), item("taxa"), item("up:encodedBy")])
    return tmp_path / "folder" / "bank.sqlite"


def test_opening_embeds_nothing_again(path: Path) -> None:
    embedder = HashedWords()
    with MemoryBank(path, embedder) as bank:
        assert bank.match("mass", 1)[0][0].title == "mass"
    assert embedder.embedded == []
    assert [one.name for one in path.parent.iterdir()] == ["bank.sqlite"]


@pytest.mark.parametrize("other", [HashedWords("another"), HashedWords(dimensions=32)])
def test_another_embedder_embeds_anew(path: Path, other: HashedWords) -> None:
    for _ in range(2):
        with MemoryBank(path, other) as bank:
            assert bank.match("mass", 1)[0][0].title == "mass"
        assert len(other.embedded) == 3


def test_what_is_searched_is_what_is_kept(path: Path) -> None:
    fresh = MemoryBank(embedder=HashedWords())
    fresh.add(item(title) for title in ("up:encodedBy", "taxa", "mass"))
    with MemoryBank(path, HashedWords()) as bank:
        assert bank.match("masses of taxa", 3) == fresh.match("masses of taxa", 3)


def test_anyone_can_read_it(path: Path) -> None:
    database = sqlite3.connect(path)
    tables = {name for (name,) in database.execute("SELECT name FROM sqlite_master")}
    assert {"items", "changes", "embeddings", "words"} <= tables
    found = database.execute(
        "SELECT title, json_extract(item, '$.content') FROM items JOIN words "
        "ON words.rowid = items.key WHERE words MATCH 'encoded'"
    ).fetchall()
    assert found == [("up:encodedBy", "Do up:encodedBy.")]
    ((vector,),) = database.execute(
        "SELECT vector FROM embeddings JOIN items ON items.id = item_id WHERE title = 'mass'"
    ).fetchall()
    assert np.linalg.norm(np.frombuffer(vector, "<f2").astype(float)) == pytest.approx(1, abs=1e-3)
    database.close()


def test_a_write_ahead_log_is_fine_too(path: Path) -> None:
    database = sqlite3.connect(path)
    assert database.execute("PRAGMA journal_mode=WAL").fetchone() == ("wal",)
    with MemoryBank(path, HashedWords()) as bank, MemoryBank(path, HashedWords()) as other:
        bank.add([item("genes")])
        assert other.match("genes", 1)[0][0].title == "genes"
    database.close()


def test_a_bank_follows_what_another_changes(path: Path) -> None:
    with MemoryBank(path, HashedWords()) as bank, MemoryBank(path, HashedWords()) as other:
        assert len(bank.match("x", 9)) == 3
        other.add([item("genes")])
        other.retire(item("mass").id, reason="hurts")
        assert {one.title for one, _ in bank.match("x", 9)} == {"taxa", "up:encodedBy", "genes"}
        assert bank.match("genes", 1, weights=(0, 1))[0][0].title == "genes"
        other.undo()
        assert bank.match("mass", 1)[0][0].title == "mass"
        bank.undo(4)
        assert not other.match("genes", 9, weights=(0, 1))


def in_process(work: Callable[[MemoryBank], None], path: Path) -> BaseProcess:
    """Let another process open the bank; forked, since it need not import anything then."""

    def opened() -> None:
        with MemoryBank(path, HashedWords()) as bank:
            work(bank)

    process = multiprocessing.get_context("fork").Process(target=opened)
    process.start()
    return process


def ended(process: BaseProcess) -> int | None:
    process.join(240)
    return process.exitcode


def test_two_processes_read_while_one_writes(path: Path) -> None:
    def read(bank: MemoryBank) -> None:
        seen = 0
        while seen < 28:
            now = len(bank.match("word", 9_999))
            assert now >= seen
            seen = now
            time.sleep(0.002)

    def write(bank: MemoryBank) -> None:
        for number in range(25):
            bank.add([item(f"word{number}")])

    started = [in_process(work, path) for work in (read, read, write)]
    assert [ended(one) for one in started] == [0, 0, 0]


def test_two_processes_write(path: Path) -> None:
    def count(bank: MemoryBank) -> None:
        for _ in range(15):
            bank.count([one.id for one in bank.items()], Counters(1))

    started = [in_process(count, path) for _ in range(2)]
    assert [ended(one) for one in started] == [0, 0]
    with MemoryBank(path, HashedWords()) as bank:
        assert {one.counters for one in bank.items()} == {Counters(30)}
        assert len(bank.history()) == 3 + 2 * 15 * 3


@pytest.mark.parametrize("after", range(0, 12, 2))
def test_a_killed_process_loses_nothing_that_was_done(path: Path, after: int) -> None:
    done = multiprocessing.get_context("fork").Queue()

    def write(bank: MemoryBank) -> None:
        for number in itertools.count():
            bank.add([item(f"word{number}")])
            done.put(number)

    writer = in_process(write, path)
    while done.get(timeout=60) < after:
        pass
    # Somewhere in the middle of the next ones.
    time.sleep(0.001 * after)
    writer.kill()
    assert ended(writer) == -signal.SIGKILL
    embedder = HashedWords()
    with MemoryBank(path, embedder) as bank:
        items = bank.items()
        assert {f"word{number}" for number in range(after + 1)} <= {one.title for one in items}
        assert len(bank.history()) == len(items)
        assert len(bank.match("word", 9_999)) == len(items)
        assert len(embedder.embedded) <= 1
        bank.add([item("still writable")])


@pytest.mark.parametrize("readonly", [False, True])
def test_a_killed_transaction_is_rolled_back(path: Path, readonly: bool) -> None:
    written = multiprocessing.get_context("fork").Event()

    def half(bank: MemoryBank) -> None:
        with bank._store.changing("half") as operation:
            # With no room in memory, what is not committed reaches the file.
            bank._store._database.execute("PRAGMA cache_size = 1")
            for one in bank.items():
                operation.change("retire", one, None)
            for number in range(1_000):
                operation.change("add", None, item(f"half {number}"))
            written.set()
            time.sleep(60)

    before = path.stat().st_size
    writer = in_process(half, path)
    assert written.wait(240)
    assert path.stat().st_size > 2 * before
    writer.kill()
    assert ended(writer) == -signal.SIGKILL
    with MemoryBank(path, HashedWords(), readonly=readonly) as bank:
        assert {one.title for one in bank.items()} == {"mass", "taxa", "up:encodedBy"}
        assert len(bank.history()) == 3


def test_read_only_stays_as_it_is(path: Path) -> None:
    before = path.read_bytes()
    path.chmod(0o444)
    with MemoryBank(path, HashedWords("another"), readonly=True) as bank:
        assert bank.match("mass", 1)[0][0].title == "mass"
        assert len(bank.history()) == 3
        with raises(RecordError, "bank-unreadable", sqlite="SQLITE_READONLY"):
            bank.undo()
    assert path.read_bytes() == before
    missing = path.with_name("missing.sqlite")
    with raises(RecordError, "bank-unreadable", sqlite="SQLITE_CANTOPEN"):
        MemoryBank(missing, readonly=True)
    assert not missing.exists()


def use(path: Path) -> None:
    with MemoryBank(path, HashedWords()) as bank:
        bank.items()
        bank.match("mass", 1)


def refuse(path: Path, code: str, kind: type[ReasoningBankError] = RecordError) -> None:
    with raises(kind, code) as raised:
        use(path)
    assert raised.value.where == str(path)


def test_other_files_are_refused_and_left_alone(tmp_path: Path) -> None:
    text = tmp_path / "bank.jsonl"
    text.write_text('{"title": "T"}\n' * 100, encoding="utf-8")
    other = tmp_path / "other.sqlite"
    with sqlite3.connect(other) as database:
        database.execute("CREATE TABLE items (id TEXT)")
    database.close()
    before = text.read_bytes(), other.read_bytes()
    refuse(text, "not-a-bank")
    refuse(other, "not-a-bank")
    refuse(tmp_path, "is-folder", UsageError)
    refuse(text / "bank.sqlite", "bank-unreadable")
    assert (text.read_bytes(), other.read_bytes()) == before


def test_a_newer_bank_is_refused(path: Path) -> None:
    with sqlite3.connect(path) as database:
        database.execute("PRAGMA user_version = 9")
    database.close()
    refuse(path, "newer-bank")


def test_a_damaged_file_is_refused(path: Path) -> None:
    with MemoryBank(path, HashedWords()) as bank:
        bank.add(item(f"title {number}") for number in range(300))
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    refuse(path, "damaged-bank")
    path.write_bytes(whole[:8_192] + b"\xff" * (len(whole) - 8_192))
    refuse(path, "damaged-bank")


def test_a_damaged_row_is_refused(path: Path) -> None:
    with sqlite3.connect(path) as database:
        database.execute("UPDATE items SET item = '{' WHERE title = 'mass'")
    database.close()
    refuse(path, "damaged-item")


def test_damaged_vectors_are_made_anew(path: Path) -> None:
    with sqlite3.connect(path) as database:
        database.execute("UPDATE embeddings SET vector = x'00'")
    database.close()
    embedder = HashedWords()
    with MemoryBank(path, embedder) as bank:
        assert bank.match("mass", 1)[0][0].title == "mass"
    assert len(embedder.embedded) == 3


def test_an_empty_file_is_a_new_bank(tmp_path: Path) -> None:
    (tmp_path / "bank.sqlite").touch()
    with MemoryBank(tmp_path / "bank.sqlite", HashedWords()) as bank:
        assert bank.items() == bank.match("x", 3) == bank.history() == []


def test_an_empty_file_is_nothing_to_read(tmp_path: Path) -> None:
    (tmp_path / "bank.sqlite").touch()
    with raises(RecordError, "not-a-bank"):
        MemoryBank(tmp_path / "bank.sqlite", readonly=True)
    assert (tmp_path / "bank.sqlite").stat().st_size == 0


def test_who_may_only_read_can_search(path: Path) -> None:
    embedder = HashedWords("another")
    with MemoryBank(path, embedder) as bank:
        bank._store._database.execute("PRAGMA query_only = 1")
        for _ in range(2):
            assert bank.match("mass", 1)[0][0].title == "mass"
            assert len(bank.match("mass", 9)) == 3
        assert len(embedder.embedded) == 3
        with raises(RecordError, "bank-unreadable", sqlite="SQLITE_READONLY"):
            bank.add([item("new")])


def test_a_bank_that_another_process_holds(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reasoningbank.memory.store.WAIT_S", 0.05)
    with MemoryBank(path, HashedWords()) as bank:
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN EXCLUSIVE")
        with raises(RecordError, "bank-busy"):
            bank.count([item("mass").id], Counters(1))
        other.execute("ROLLBACK")
        other.close()
        bank.count([item("mass").id], Counters(1))
