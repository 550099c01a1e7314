"""What Parquet files hold is what the frames hold, for every common reader."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from reasoningbank.analysis import load
from reasoningbank.analysis.frames import COLUMNS, MANIFESTS, write_parquet
from reasoningbank.cli.app import app
from reasoningbank.errors import RecordError

from .written import whole_run, write_run


@pytest.mark.parametrize("texts", [False, True])
@pytest.mark.parametrize("empty", [False, True])
def test_pandas_reads_back_what_was_written(tmp_path: Path, texts: bool, empty: bool) -> None:
    path = tmp_path / "run"
    frames = load(write_run(path, []) if empty else whole_run(path), texts=texts)
    written = write_parquet(frames, tmp_path / "tables")
    assert set(written) == set(COLUMNS)
    for name, frame in frames.items():
        pd.testing.assert_frame_equal(pd.read_parquet(written[name]), frame)


def test_files_carry_meanings_and_manifests(tmp_path: Path) -> None:
    frames = load(whole_run(tmp_path / "run"))
    path = write_parquet(frames, tmp_path / "tables")["lm_calls"]
    schema = pq.read_schema(path)
    for column in COLUMNS["lm_calls"]:
        if not column.long:
            assert schema.field(column.name).metadata[b"description"] == column.meaning.encode()
    assert json.loads(schema.metadata[MANIFESTS]) == dict(frames.manifests)


@pytest.mark.parametrize("reader", ["duckdb", "polars"])
def test_other_readers_see_the_same_rows(tmp_path: Path, reader: str) -> None:
    module = pytest.importorskip(reader)
    frames = load(whole_run(tmp_path / "run"))
    path = write_parquet(frames, tmp_path / "tables")["trials"]
    if reader == "duckdb":
        query = f"select task, outcome, strict, step from '{path}' order by arm, task"
        rows = module.sql(query).fetchall()
    else:
        table = module.read_parquet(path).sort("arm", "task")
        rows = table.select("task", "outcome", "strict", "step").rows()
    assert rows == [
        ("t1", "partly right", False, 0),
        ("t2", "right", True, 1),
        ("t1", "query error", False, None),
        ("t2", "infrastructure error", None, None),
        ("t3", "gold defect", None, None),
    ]


def test_a_folder_that_cannot_be_written_is_reported_in_a_line(tmp_path: Path) -> None:
    frames = load(whole_run(tmp_path / "run"))
    (tmp_path / "taken").write_text("a file", encoding="utf-8")
    with pytest.raises(RecordError, match="cannot be written"):
        write_parquet(frames, tmp_path / "taken")


def test_the_command_writes_the_files_and_tells_what_was_left_out(tmp_path: Path) -> None:
    folder = whole_run(tmp_path / "run")
    (folder.path / "trials/plain/t1.0.json").write_text("{", encoding="utf-8")
    result = CliRunner().invoke(app, ["export", "parquet", str(folder.path), "--json"])
    assert result.exit_code == 0, result.output
    reported = json.loads(result.stdout)
    assert {f["frame"]: f["rows"] for f in reported["files"]}["trials"] == 4
    assert "t1.0.json" in reported["problems"][0]
    assert "t1.0.json" in result.stderr.replace("\n", "")
    assert len(pd.read_parquet(folder.path / "parquet" / "trials.parquet")) == 4


def test_the_command_takes_texts_and_another_folder(tmp_path: Path) -> None:
    folder = whole_run(tmp_path / "run")
    out = tmp_path / "tables"
    command = ["export", "parquet", str(folder.path), "--out", str(out), "--texts"]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[1].split("\t") == ["trials", "5", str(out / "trials.parquet")]
    assert "response" in pd.read_parquet(out / "lm_calls.parquet")
