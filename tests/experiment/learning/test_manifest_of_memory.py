"""What memory rests on is written down before the first trial, and changes are refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from reasoningbank.cli.app import app
from reasoningbank.errors import UsageError
from reasoningbank.experiment import Experiment, RunFolder, rejudge_run
from reasoningbank.experiment.manifest import code_version

from .orchard import STREAM, TEST

Make = Callable[..., Experiment]
Run = Callable[..., RunFolder]


def test_it_is_on_disk_before_the_first_trial(learning: Make, run: Run, tmp_path: Path) -> None:
    seen: list[dict[str, object]] = []
    run(
        learning(),
        on_progress=lambda _: seen.append(
            json.loads((tmp_path / "run" / "manifest.json").read_text(encoding="utf-8"))
        ),
        limit=1,
    )
    manifest = seen[0]
    assert manifest["tasks"] == TEST
    assert manifest["stream"] == STREAM
    hashes = manifest["hashes"]["memory"]  # type: ignore[index]
    assert set(hashes) == {"stream", "hints"}
    assert manifest["code"] == code_version()


def test_changed_hints_are_refused(learning: Make, run: Run, tmp_path: Path) -> None:
    experiment = learning()
    run(experiment, limit=1, only=["learned"])
    hints = tmp_path / "trees" / "hints"
    hints.mkdir()
    (hints / "guide.md").write_text("Look up.", encoding="utf-8")
    toml = tmp_path / "trees" / "pack.toml"
    toml.write_text('hints = "hints"\n' + toml.read_text(encoding="utf-8"), encoding="utf-8")
    with pytest.raises(UsageError) as caught:
        run(experiment, only=["learned"])
    assert caught.value.fields["changed"] == ["memory hints"]


def test_changed_code_is_reported_and_the_run_goes_on(learning: Make, run: Run) -> None:
    folder = run(learning(), limit=2)
    manifest = folder.manifest
    assert manifest is not None
    folder.write_manifest({**manifest, "code": {**manifest["code"], "commit": "another"}})
    reported: list[str] = []
    run(learning(), on_notice=reported.append)
    assert len(reported) == 1
    assert folder.manifest is not None
    (entry,) = folder.manifest["code_history"]
    assert entry["code"] == manifest["code"]
    shown = CliRunner().invoke(app, ["status", str(folder.path)])
    assert f"other code: trials since {entry['time']} are by changed commit" in shown.output
    run(learning(), on_notice=reported.append)
    assert len(reported) == 1


def test_a_run_without_memory_says_nothing_of_it(learning: Make, run: Run) -> None:
    folder = run(learning({"name": "none", "agent": "pupil"}, mode="evaluate"))
    assert folder.manifest is not None
    assert "memory" not in folder.manifest["hashes"]
    assert "stream" not in folder.manifest
    assert not (folder.path / "memory").exists()


def test_how_far_streams_are_is_reported(learning: Make, run: Run) -> None:
    folder = run(learning(seeds=[0, 1]), limit=2)
    shown = CliRunner().invoke(app, ["status", str(folder.path)])
    assert "stream learned.1: 2 of 6 steps" in shown.output
    reported = json.loads(CliRunner().invoke(app, ["status", str(folder.path), "--json"]).stdout)
    assert reported["streams"] == [
        {"arm": "learned", "order": order, "taken": 2, "total": 6} for order in (0, 1)
    ]


def test_judging_again_leaves_what_was_learned(learning: Make, run: Run, tmp_path: Path) -> None:
    folder = run(learning())
    copy = RunFolder(tmp_path / "copy")
    rejudge_run(folder, "rule", out=copy)
    taken = folder.taken("learned", 0)
    assert copy.taken("learned", 0) == taken
    run(learning(), "copy")
    assert copy.taken("learned", 0) == taken
