"""`export inspect` writes logs and says where."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from recorded import records, write_run

from .conftest import Said

Cli = Callable[..., Said]


def test_logs_are_written_and_listed(cli: Cli, tmp_path: Path) -> None:
    run = write_run(tmp_path / "run")
    said = cli("export", "inspect", str(run.path), "--out", str(tmp_path / "logs"))
    assert said.status == 0
    rows = [line.split("\t") for line in said.out.splitlines()]
    assert rows[0] == ["arm", "trials", "errors", "log"]
    assert [row[:3] for row in rows[1:]] == [["direct", "5", "0"], ["rlm", "6", "1"]]
    assert all(Path(row[3]).exists() for row in rows[1:])
    assert "inspect view --log-dir" in said.err


def test_json_says_which_arm_misses_trials(cli: Cli, tmp_path: Path) -> None:
    run = write_run(tmp_path)
    said = cli("export", "inspect", str(run.path), "--json")
    assert {row["arm"]: row["complete"] for row in json.loads(said.out)} == {
        "direct": False,
        "rlm": True,
    }


def test_a_damaged_trial_is_reported(cli: Cli, tmp_path: Path) -> None:
    run = write_run(tmp_path)
    broken = run.path / records()[0].key.path
    broken.write_text("")
    said = cli("export", "inspect", str(run.path))
    assert said.status == 0
    assert f"{broken}: cannot be read and is left out" in said.err


def test_a_folder_without_a_run_and_a_missing_package_are_one_line(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = cli("export", "inspect", str(tmp_path))
    assert (said.status, said.out) == (1, "")
    assert said.err.count("\n") == 1
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    said = cli("export", "inspect", str(tmp_path))
    assert said.status == 1
    assert 'pip install "reasoningbank[inspect]"' in said.err
