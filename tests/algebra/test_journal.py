"""The journal of a run's writes: what is on disk at each moment."""

from __future__ import annotations

from pathlib import Path

import pytest

from reasoningbank.algebra.writes import Journal
from reasoningbank.errors import RecordError, UsageError

from .faults import full_disk, raises


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "runs" / "writes.journal"


def on_disk(file: Path) -> list[tuple[str, str]]:
    """Return what a run would find that resumed from the file as it is now."""
    copy = file.with_suffix(".copy")
    copy.write_bytes(file.read_bytes())
    with Journal(copy, resume=True) as journal:
        return [(write.url, write.state) for write in journal.writes()]


def test_a_write_is_on_disk_before_it_is_sent(file: Path) -> None:
    with Journal(file) as journal:
        write = journal.begin("PUT", "http://e/ø", "d1", {})
        assert on_disk(file) == [("http://e/ø", "unanswered")]
        journal.end(write, "done", status=201)
        assert on_disk(file) == [("http://e/ø", "done")]
        journal.again(write, {})
        assert on_disk(file) == [("http://e/ø", "unanswered")]


def test_a_resumed_run_knows_what_was_done_and_what_is_not_known(file: Path) -> None:
    with Journal(file) as journal:
        for number, state in enumerate(("done", "refused", "not sent", "unanswered")):
            write = journal.begin("POST", f"http://e/{number}", "d", {"If-Match": '"x"'})
            journal.end(write, state)  # type: ignore[arg-type]
        journal.begin("POST", "http://e/4", "d", {})
    with Journal(file, resume=True) as again:
        known = [again.earlier("POST", f"http://e/{number}", "d") for number in range(5)]
        states = [write and write.state for write in known]
        assert states == ["done", None, None, "unanswered", "unanswered"]
        assert known[0] is not None
        assert known[0].condition == {"If-Match": '"x"'}
        assert known[0].earlier
        # Another body, another method or another document is another write.
        assert again.earlier("POST", "http://e/0", "other") is None
        assert again.earlier("PUT", "http://e/0", "d") is None


def test_equal_writes_are_taken_one_by_one_and_done_ones_first(file: Path) -> None:
    with Journal(file) as journal:
        journal.begin("POST", "http://e/", "d", {})
        for _ in range(2):
            journal.end(journal.begin("POST", "http://e/", "d", {}), "done")
    with Journal(file, resume=True) as again:
        taken = [again.earlier("POST", "http://e/", "d") for _ in range(4)]
        assert [write and write.state for write in taken] == ["done", "done", "unanswered", None]


def test_a_repeated_write_keeps_its_number(file: Path) -> None:
    with Journal(file) as journal:
        journal.begin("POST", "http://e/", "d", {})
    with Journal(file, resume=True) as again:
        earlier = again.earlier("POST", "http://e/", "d")
        assert earlier is not None
        again.end(again.again(earlier, {"If-Match": '"y"'}), "done", status=200)
        assert [(write.number, write.state) for write in again.writes()] == [(1, "done")]
    with Journal(file, resume=True) as last:
        assert [write.state for write in last.writes()] == ["done"]


def test_journals_are_not_mixed_up(file: Path) -> None:
    with Journal(file, program="p"), raises(UsageError, "journal-in-use"):
        Journal(file, program="p", resume=True)
    with raises(UsageError, "journal-exists"):
        Journal(file, program="p")
    with raises(UsageError, "other-journal"):
        Journal(file, program="q", resume=True)
    with raises(UsageError, "no-journal"):
        Journal(file.parent / "other", resume=True)
    with raises(UsageError, "no-journal"):
        Journal(resume=True)
    notes = file.parent / "notes.txt"
    for text in ("not a journal\n", "[1]\n", '{"journal": 2}\n', '{"journal":'):
        notes.write_text(text)
        with raises(UsageError, "not-a-journal"):
            Journal(notes, resume=True)
        assert notes.read_text() == text


def test_a_damaged_journal_is_not_resumed(file: Path) -> None:
    with Journal(file) as journal:
        for number in range(20):
            journal.begin("POST", f"http://e/{number}/{'x' * 1_000}", "d", {})
    damaged = file.read_bytes()[:8_192]
    file.write_bytes(damaged)
    with raises(RecordError, "journal-unreadable"):
        Journal(file, resume=True)
    assert file.read_bytes() == damaged


def test_a_write_that_the_disk_does_not_take_is_not_recorded(file: Path) -> None:
    with Journal(file) as journal:
        with full_disk(), raises(RecordError, "journal-unwritable"):
            journal.begin("POST", "http://e/1", "d", {})
        journal.end(journal.begin("POST", "http://e/2", "d", {}), "done")
    with Journal(file, resume=True) as again:
        assert [(write.url, write.state) for write in again.writes()] == [("http://e/2", "done")]


def test_no_journal_is_begun_on_a_full_disk(file: Path) -> None:
    with full_disk(), raises(RecordError, "journal-unwritable"):
        Journal(file)


def test_uuids_are_the_same_when_a_run_is_resumed(file: Path) -> None:
    with Journal(file) as journal:
        drawn = [journal.draw() for _ in range(3)]
    with Journal(file, resume=True) as again:
        assert [again.draw() for _ in range(3)] == drawn
    assert len(set(drawn)) == 3
    assert Journal().draw() not in drawn


def test_rows_draw_the_same_uuids_in_whatever_order_they_come(file: Path) -> None:
    places = [f"$.operation {row}" for row in range(4)]
    with Journal(file) as journal:
        drawn = {place: journal.draw(place) for place in places}
    with Journal(file, resume=True) as again:
        assert {place: again.draw(place) for place in reversed(places)} == drawn
