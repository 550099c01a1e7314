"""A run that goes on with other code says so, and since when."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from reasoningbank.analysis import summarise
from reasoningbank.errors import UsageError
from reasoningbank.experiment import Experiment, RunFolder
from reasoningbank.experiment.code_history import (
    DECIDING,
    code_changes,
    code_hashes,
    with_code,
)
from reasoningbank.experiment.manifest import build_manifest, open_run

RESULTS = Path(__file__).parents[2] / "experiments" / "results"
Make = Callable[..., Experiment]


@pytest.fixture
def begun(tmp_path: Path, experiment_on: Make) -> Callable[..., dict[str, Any]]:
    def manifest(code: dict[str, str] | None = None, **memory: Any) -> dict[str, Any]:
        made = build_manifest(experiment_on(tmp_path), [], [], {}, {}, {"prompts": {}, **memory})
        return made if code is None else {**made, "code": code}

    return manifest


def test_every_room_that_decides_is_hashed() -> None:
    hashes = code_hashes()
    assert tuple(hashes) == DECIDING
    assert {"agents", "memory", "tools", "experiment/learning", "experiment/sampling.py"} <= {
        *hashes
    }
    # What is not there has the hash of nothing, so two of them would be equal.
    assert len(set(hashes.values())) == len(hashes)


def test_each_change_is_written_down_once(
    tmp_path: Path, begun: Callable[..., dict[str, Any]]
) -> None:
    folder = RunFolder(tmp_path / "run")
    told: list[str] = []
    first, second = {"memory": "1", "lm": "1"}, {"memory": "2", "lm": "1"}
    for code in (first, first, second, second, first):
        open_run(folder, begun(code), told.append)
    manifest = folder.manifest
    assert manifest is not None
    assert manifest["code"] == first
    assert [entry["code"] for entry in manifest["code_history"]] == [second, first]
    assert told == ["the code of memory is not what it was when this run began"] * 2
    changes = code_changes(manifest)
    assert [change.rooms for change in changes] == [("memory",), ("memory",)]
    assert all(datetime.fromisoformat(change.time).tzinfo for change in changes)
    assert summarise([], manifest=manifest).code == changes
    assert summarise([], manifest=manifest).to_json()["code"][0]["rooms"] == ("memory",)


def test_a_finished_run_is_of_the_code_that_made_it(
    tmp_path: Path, begun: Callable[..., dict[str, Any]]
) -> None:
    folder = RunFolder(tmp_path / "run")
    told: list[str] = []
    open_run(folder, begun({"memory": "1"}))
    before = folder.manifest
    open_run(folder, begun({"memory": "2"}), told.append, goes_on=False)
    assert (folder.manifest, told) == (before, [])


def test_a_room_that_was_not_hashed_then_is_not_known_to_have_changed(
    tmp_path: Path, begun: Callable[..., dict[str, Any]]
) -> None:
    folder = RunFolder(tmp_path / "run")
    told: list[str] = []
    open_run(folder, begun({"memory": "1"}))
    open_run(folder, begun({"memory": "1", "tools": "5"}), told.append)
    assert folder.manifest is not None
    assert ("code_history" in folder.manifest, told) == (False, [])
    open_run(folder, begun({"memory": "2", "tools": "5"}))
    open_run(folder, begun({"memory": "2", "tools": "6"}))
    assert [change.rooms for change in code_changes(folder.manifest)] == [("memory",), ("tools",)]


def test_texts_that_had_no_hash_are_taken_over_and_checked_from_then_on(
    tmp_path: Path, begun: Callable[..., dict[str, Any]]
) -> None:
    folder = RunFolder(tmp_path / "run")
    open_run(folder, begun(prompts={"judge": "1"}))
    open_run(folder, begun(prompts={"judge": "1", "layers": "2"}))
    assert folder.manifest is not None
    assert folder.manifest["hashes"]["memory"]["prompts"] == {"judge": "1", "layers": "2"}
    for prompts in ({"judge": "1", "layers": "3"}, {"judge": "2", "layers": "2"}):
        with pytest.raises(UsageError, match="memory prompts changed"):
            open_run(folder, begun(prompts=prompts))


@pytest.mark.parametrize("name", sorted(path.name for path in RESULTS.iterdir()))
def test_runs_of_before_are_read_and_go_on(name: str) -> None:
    manifest = RunFolder(RESULTS / name).manifest
    assert manifest is not None
    changes = code_changes(manifest)
    assert len(changes) == len(manifest.get("code_history", ()))
    assert all(change.rooms for change in changes)
    went_on = with_code(manifest, code_hashes())
    last = manifest.get("code_history", [manifest])[-1].get("code")
    if last is None:
        assert went_on is manifest
    elif last != code_hashes():
        assert code_changes(went_on)[-1].rooms
        assert went_on["code"] == manifest["code"]
