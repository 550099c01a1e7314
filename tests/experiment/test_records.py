"""Records are whole or not there, and what is damaged is named."""

from __future__ import annotations

import errno
import gzip
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from reasoningbank.errors import RecordError
from reasoningbank.experiment import RunFolder, TrialKey, TrialRecord
from reasoningbank.experiment.storage import ARCHIVE, write_atomically


def test_a_trial_comes_back_as_it_was_written(
    tmp_path: Path, record: Callable[..., TrialRecord]
) -> None:
    folder, written = RunFolder(tmp_path), record(error="a “line”")
    assert not folder.exists(written.key.path)
    assert folder.write(written) == tmp_path / "trials" / "a" / "t1.0.json"
    assert folder.exists(written.key.path)
    assert folder.read(written.key) == written
    assert (written.strict, written.f1) == (True, 1.0)


def test_trials_are_ordered_and_only_trials(
    tmp_path: Path, record: Callable[..., TrialRecord]
) -> None:
    folder = RunFolder(tmp_path)
    assert list(folder.trials()) == []
    for arm, task in (("b", "t1"), ("a", "t2"), ("a", "t1")):
        folder.write(record(arm, task))
    (tmp_path / "trials" / "a" / ".abc.tmp").write_text("{", encoding="utf-8")
    zipped = tmp_path / "trials" / "b" / "t1.0.json"
    (zipped.parent / "t1.0.json.gz").write_bytes(gzip.compress(zipped.read_bytes()))
    zipped.unlink()
    found = [(trial.key.arm, trial.key.task) for trial in folder.trials()]
    assert found == [("a", "t1"), ("a", "t2"), ("b", "t1")]


def test_text_that_is_not_unicode_is_kept(
    tmp_path: Path, record: Callable[..., TrialRecord]
) -> None:
    folder, written = RunFolder(tmp_path), record(sparql="ASK {} # \ud800")
    folder.write(written)
    assert folder.read(written.key) == written


def test_task_ids_make_safe_file_names() -> None:
    path = TrialKey("a", "../../etc/pass wd", 1).path
    assert re.fullmatch(r"trials/a/\.\._\.\._etc_pass_wd-[0-9a-f]{8}\.1\.json", path)
    assert path != TrialKey("a", "../../etc/pass_wd", 1).path


@pytest.mark.parametrize(
    "content",
    [
        *("", "{", "[]", "null", "{}", "[" * 100_000, "\udcff"),
        *('{"key": {}}', '{"version": 1, "trajectory": {}}'),
    ],
)
def test_a_damaged_trial_is_named_with_a_hint(
    tmp_path: Path, record: Callable[..., TrialRecord], content: str
) -> None:
    folder, written = RunFolder(tmp_path), record()
    path = folder.write(written)
    path.write_bytes(content.encode("utf-8", "surrogateescape"))
    for read in (lambda: folder.read(written.key), lambda: list(folder.trials())):
        with pytest.raises(RecordError, match=r"t1\.0\.json.*delete the file") as caught:
            read()
        assert "\n" not in str(caught.value)


def test_a_trial_written_meanwhile_is_not_a_damaged_one(
    tmp_path: Path, record: Callable[..., TrialRecord], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, first, second = RunFolder(tmp_path), record(task="t1"), record(task="t2")
    folder.write(first)
    names = RunFolder.names

    def growing(self: RunFolder, pattern: str) -> list[str]:
        found = names(self, pattern)
        folder.write(second)
        return found

    monkeypatch.setattr(RunFolder, "names", growing)
    assert folder.damaged() == []


@pytest.mark.parametrize(
    "field", ["question", *(f"{name}=a text" for name in ("verdict", "usage", "model", "rollouts"))]
)
def test_a_trial_with_a_field_missing_or_of_another_type_is_damaged(
    tmp_path: Path, record: Callable[..., TrialRecord], field: str
) -> None:
    folder, written = RunFolder(tmp_path), record()
    path = folder.write(written)
    data = json.loads(path.read_text(encoding="utf-8"))
    name, _, value = field.partition("=")
    if value:
        data[name] = value
    else:
        del data[name]
    path.write_text(json.dumps(data), encoding="utf-8")
    with pytest.raises(RecordError) as caught:
        folder.read(written.key)
    assert caught.value.code == "not-a-trial"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("[]", "it holds no JSON object"),
        ("null", "it holds no JSON object"),
        ('{"name": "an app"}', "it has no 'experiment'"),
        ('{"experiment": "x"}', "its fields are others"),
    ],
)
def test_the_manifest_of_something_else_is_reported(
    tmp_path: Path, content: str, said: str
) -> None:
    (tmp_path / "manifest.json").write_text(content, encoding="utf-8")
    with pytest.raises(RecordError) as caught:
        _ = RunFolder(tmp_path).manifest
    assert caught.value.code == "not-a-manifest"
    assert said in caught.value.what
    assert "Error" not in str(caught.value)


def test_a_damaged_manifest_is_named(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text("{", encoding="utf-8")
    with pytest.raises(RecordError, match=r"manifest\.json"):
        _ = RunFolder(tmp_path).manifest


def test_a_folder_that_cannot_be_made_is_reported(
    tmp_path: Path, record: Callable[..., TrialRecord]
) -> None:
    (tmp_path / "file").write_text("x", encoding="utf-8")
    folder = RunFolder(tmp_path / "file" / "run")
    assert not folder.exists(record().key.path)
    with pytest.raises(RecordError, match=r"cannot be written.*--out"):
        folder.write(record())


def test_a_full_disk_leaves_the_old_file_and_no_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x.json"
    write_atomically(path, {"a": 1})

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(RecordError, match="No space left on device"):
        write_atomically(path, {"a": 2})
    assert json.loads(path.read_text(encoding="utf-8")) == {"a": 1}
    assert [p.name for p in tmp_path.iterdir()] == ["x.json"]


def test_what_is_not_json_leaves_no_part(tmp_path: Path) -> None:
    with pytest.raises(TypeError):
        write_atomically(tmp_path / "x.json", {"a": object()})
    assert list(tmp_path.iterdir()) == []


def test_an_archived_run_is_a_run(tmp_path: Path, record: Callable[..., TrialRecord]) -> None:
    folder = RunFolder(tmp_path / "run")
    folder.write_manifest({"version": 1, "experiment": {}})
    made = record()
    folder.write(made)
    copy = folder.archive(tmp_path / "copy")
    assert copy.manifest == {"version": 1, "experiment": {}}
    assert copy.exists(made.key.path)
    assert copy.read(made.key) == made
    assert list(copy.trials()) == [made]
    assert sorted(p.name for p in copy.path.iterdir()) == ["manifest.json", ARCHIVE]
    folder.archive(tmp_path / "again")
    first, again = ((tmp_path / run / ARCHIVE).read_bytes() for run in ("copy", "again"))
    assert first == again


def test_a_loose_record_takes_precedence_over_the_archive(
    tmp_path: Path, record: Callable[..., TrialRecord]
) -> None:
    folder = RunFolder(tmp_path / "run")
    folder.write_manifest({"version": 1, "experiment": {}})
    old, new = record(), record(error="run again")
    folder.write(old)
    folder.archive(folder.path)
    assert not folder.path.joinpath(old.key.path).exists()
    assert folder.read(old.key) == old
    folder.write(new)
    folder.write(record(task="t2"))
    assert [trial.error for trial in folder.trials()] == ["run again", ""]
    folder.archive(folder.path)
    assert folder.read(old.key) == new


def test_a_damaged_archive_is_named(tmp_path: Path, record: Callable[..., TrialRecord]) -> None:
    folder = RunFolder(tmp_path)
    folder.write(record())
    folder.archive(tmp_path)
    raw = (tmp_path / ARCHIVE).read_bytes()
    (tmp_path / ARCHIVE).write_bytes(raw[: len(raw) // 2])
    with pytest.raises(RecordError) as caught:
        list(folder.trials())
    assert caught.value.where.endswith(ARCHIVE)


def test_a_colleague_may_read_what_is_written(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.touch()
    write_atomically(tmp_path / "x.json", {"a": 1})
    assert (tmp_path / "x.json").stat().st_mode == plain.stat().st_mode
