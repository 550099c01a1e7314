"""The folder for `datasets` has the layout of its card, and the rows of tasks and trials."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml
from typer.testing import CliRunner

from reasoningbank.analysis import load
from reasoningbank.analysis.hf_dataset import export_dataset
from reasoningbank.cli.app import app
from reasoningbank.corpus import load_shacl_tasks, split_tasks
from reasoningbank.errors import UsageError

from .written import whole_run


def card_of(folder: Path) -> dict[str, Any]:
    _, head, _ = (folder / "README.md").read_text(encoding="utf-8").split("---\n", 2)
    return dict(yaml.safe_load(head))


def files_of(folder: Path) -> dict[tuple[str, str], Path]:
    """Return the files as the card declares them."""
    return {
        (config["config_name"], file["split"]): folder / file["path"]
        for config in card_of(folder)["configs"]
        for file in config["data_files"]
    }


def read_with_pandas(folder: Path, config: str) -> dict[str, list[dict[str, Any]]]:
    return {
        split: pd.read_parquet(path).to_dict("records")
        for (name, split), path in files_of(folder).items()
        if name == config
    }


def read_with_datasets(folder: Path, config: str) -> dict[str, list[dict[str, Any]]]:
    loaded = pytest.importorskip("datasets").load_dataset(str(folder), config)
    return {split: list(rows) for split, rows in loaded.items()}


@pytest.mark.parametrize("read", [read_with_pandas, read_with_datasets])
def test_tasks_and_trials_are_read_back(
    tmp_path: Path, read: Callable[[Path, str], dict[str, list[dict[str, Any]]]]
) -> None:
    run, folder = tmp_path / "run", tmp_path / "set"
    whole_run(run)
    written = export_dataset(folder, ["uniprot", "liita"], [run])
    assert {(one.config, one.split): one.path for one in written} == files_of(folder)

    tasks = {name: load_shacl_tasks(name) for name in ("uniprot", "liita")}
    splits = read(folder, "tasks")
    for name, ours in tasks.items():
        part = split_tasks(ours).by_id()
        for split, of_ours in {"train": "train", "validation": "dev", "test": "test"}.items():
            rows = {row["id"]: row for row in splits[split] if row["pack"] == name}
            assert set(rows) == {task.id for task in ours if part[task.id] == of_ours}
            for task in ours:
                if row := rows.get(task.id):
                    assert (row["question"], row["sparql"]) == (task.query, task.expected_sparql)
                    assert tuple(row["features"]) == task.features
                    assert bool(row["bag"]) is task.bag

    trials = read(folder, "trials")["train"]
    frame = load(run).trials
    assert [row["task"] for row in trials] == frame["task"].tolist()
    assert list(trials[0]) == list(frame.columns)
    card = card_of(folder)
    assert card["license"] == ["cc-by-4.0", "apache-2.0"]
    assert card["language"] == ["en", "it"]


def test_the_command(tmp_path: Path) -> None:
    folder = tmp_path / "set"
    arguments = ["export", "hf", "--pack", "algebra", "--out", str(folder), "--json"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    rows = json.loads(result.stdout)
    assert sum(row["rows"] for row in rows) == len(load_shacl_tasks("algebra"))
    assert {row["config"] for row in rows} == {"tasks"}


def test_what_another_wrote_is_kept(tmp_path: Path) -> None:
    notes = tmp_path / "README.md"
    notes.write_text("# Notes", encoding="utf-8")
    with pytest.raises(UsageError) as caught:
        export_dataset(tmp_path, ["algebra"])
    assert caught.value.code == "not-a-card"
    assert [path.name for path in tmp_path.iterdir()] == ["README.md"]
    notes.unlink()
    for _ in range(2):
        assert export_dataset(tmp_path, ["algebra"])


def test_nothing_named_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        export_dataset(tmp_path / "set")
    assert caught.value.code == "nothing-to-export"
    with pytest.raises(UsageError):
        export_dataset(tmp_path / "set", ["uniprot", "nosuch"])
    assert not (tmp_path / "set").exists()
