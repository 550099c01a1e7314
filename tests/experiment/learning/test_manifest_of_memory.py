"""What memory rests on is written down before the first trial, and changes are refused."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from reasoningbank.agents import rlm, tool_loop
from reasoningbank.cli.app import app
from reasoningbank.errors import UsageError
from reasoningbank.experiment import Experiment, RunFolder, parse_experiment, plan_run, rejudge_run
from reasoningbank.experiment.code_history import DECIDING
from reasoningbank.experiment.estimate import estimate_run
from reasoningbank.experiment.records import StepFolder, streams_of

from .orchard import STREAM, TEST

Make = Callable[..., Experiment]
Run = Callable[..., RunFolder]
ROOT = Path(__file__).resolve().parents[3]


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
    assert set(hashes) == {"stream", "hints", "prompts"}
    assert {"judge", "layers", "lessons", "sampling", "stop rules"} <= set(hashes["prompts"])
    assert set(manifest["code"]) == set(DECIDING)  # type: ignore[call-overload]


def test_changed_hints_prompts_and_stop_rules_are_named(
    learning: Make, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    coded = {"name": "rlm", "agent": "rlm", "lm": "ollama/none", "first": 1}
    learned = {"name": "learned", "agent": "pupil", "memory": "learned"}
    experiment = learning(learned, coded)
    folder = run(experiment, limit=1, only=["learned"])
    manifest = folder.manifest
    assert manifest is not None
    with monkeypatch.context() as patched:
        patched.setattr(rlm, "INSTRUCTIONS", "Write a query.")
        with pytest.raises(UsageError, match="memory prompts changed"):
            run(experiment, only=["learned"])
    with monkeypatch.context() as patched:
        patched.setattr(tool_loop, "MOST_REPEATS", 3)
        patched.setattr("inspect.getsource", lambda _: "changed")
        with pytest.raises(UsageError, match="memory prompts changed"):
            run(experiment, only=["learned"])
    hints = tmp_path / "trees" / "hints"
    hints.mkdir()
    (hints / "guide.md").write_text("Look up.", encoding="utf-8")
    toml = tmp_path / "trees" / "pack.toml"
    toml.write_text('hints = "hints"\n' + toml.read_text(encoding="utf-8"), encoding="utf-8")
    with pytest.raises(UsageError, match="memory hints changed"):
        run(experiment, only=["learned"])


def test_changed_code_is_told_and_the_run_goes_on(learning: Make, run: Run) -> None:
    folder = run(learning(), limit=2)
    manifest = folder.manifest
    assert manifest is not None
    folder.write_manifest({**manifest, "code": {**manifest["code"], "memory": "0" * 16}})
    told: list[str] = []
    run(learning(), on_notice=told.append)
    assert told == ["the code of memory is not what it was when this run began"]
    assert folder.manifest is not None
    (entry,) = folder.manifest["code_history"]
    assert entry["code"] == manifest["code"]
    shown = CliRunner().invoke(app, ["status", str(folder.path)])
    assert f"other code: trials since {entry['time']} are by changed memory" in shown.output
    run(learning(), on_notice=told.append)
    assert len(told) == 1


def test_a_run_without_memory_says_nothing_of_it(learning: Make, run: Run) -> None:
    folder = run(learning({"name": "none", "agent": "pupil"}, mode="evaluate"))
    assert folder.manifest is not None
    assert "memory" not in folder.manifest["hashes"]
    assert not {"code", "stream"} & set(folder.manifest)
    assert not (folder.path / "memory").exists()


def test_how_far_streams_are_is_told(learning: Make, run: Run) -> None:
    folder = run(learning(seeds=[0, 1]), limit=2)
    assert folder.manifest is not None
    assert streams_of(folder.path, folder.manifest) == [
        ("learned", 0, 2, 6),
        ("learned", 1, 2, 6),
    ]
    shown = CliRunner().invoke(app, ["status", str(folder.path)])
    assert "stream learned.1: 2 of 6 steps" in shown.output
    told = json.loads(CliRunner().invoke(app, ["status", str(folder.path), "--json"]).stdout)
    assert told["streams"][0] == {"arm": "learned", "order": 0, "taken": 2, "total": 6}


def test_judging_again_leaves_what_was_learned(learning: Make, run: Run, tmp_path: Path) -> None:
    folder = run(learning())
    copy = RunFolder(tmp_path / "copy")
    rejudge_run(folder, "rule", out=copy)
    taken = StepFolder(folder.path, "learned", 0).taken()
    assert StepFolder(copy.path, "learned", 0).taken() == taken
    run(learning(), "copy")
    assert StepFolder(copy.path, "learned", 0).taken() == taken


def test_a_dry_run_reckons_with_several_attempts(tmp_path: Path) -> None:
    text = (ROOT / "experiments" / "liita_memory_matts.toml").read_text(encoding="utf-8")
    # With settings that no trial on record has.
    experiment = parse_experiment(tomllib.loads(text.replace("items = 5", "items = 4")))
    plan = plan_run(experiment)
    told = estimate_run(experiment, RunFolder(tmp_path / "run"), plan.jobs)
    arms = {arm.arm: arm for arm in told.arms}
    assert (arms["learned"].planned, arms["sampled"].planned) == (24, 24)
    assert arms["parallel"].lm_calls.expected == 3 * 24
    assert arms["sampled"].lm_calls.expected == 3 * 24
    assert any("memory adds" in note for note in arms["parallel"].notes)
