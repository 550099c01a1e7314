"""How a dry run is printed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reasoningbank.cli.summary import print_estimate
from reasoningbank.experiment import RunFolder, load_experiment, parse_experiment, plan_run
from reasoningbank.experiment.estimate import RunEstimate, estimate_run

EXPERIMENTS = Path(__file__).parents[2] / "experiments"


def estimate(name: str, tmp_path: Path, *changes: str) -> RunEstimate:
    experiment = load_experiment(EXPERIMENTS / f"{name}.toml", changes)
    folder = RunFolder(tmp_path / "run")
    sources = [EXPERIMENTS / "results" / "uniprot_floor"]
    return estimate_run(experiment, folder, plan_run(experiment).jobs, sources=sources)


def printed(reported: RunEstimate, capsys: pytest.CaptureFixture[str]) -> dict[str, list[str]]:
    """Return the lines by their first cell."""
    print_estimate(reported)
    lines = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    return {cells[0]: cells[1:] for cells in lines}


def test_means_of_measured_trials_are_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = printed(estimate("uniprot_floor", tmp_path), capsys)
    assert lines["direct"] == ["10 of 10", "10", "1.7k", "1.7k", "1.0 min", "0"]
    assert lines["oracle"][:4] == ["10 of 10", "0", "0", "0"]
    assert lines["(all)"][0] == "23 of 23"
    text = "\n".join(lines)
    assert "direct (direct, local): from 10 trials with the same settings, of uniprot_demo" in text
    assert "23 trials to run (threads, one after another)" in text


def test_bounds_and_unknown_amounts_are_marked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = printed(estimate("uniprot_floor", tmp_path, "arms.direct.agent=react"), capsys)
    assert lines["direct"][1].startswith("≤ ")
    reported = estimate("uniprot_floor", tmp_path, "arms.*.lm=openai/no-such-model")
    lines = printed(reported, capsys)
    assert lines["direct"][4:] == ["?", "?"]
    assert any("with another model" in line for line in lines)


def test_dollars_and_rate_limit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    reported = estimate("uniprot_public", tmp_path, "arms.*.lm=anthropic/claude-sonnet-4-5")
    lines = printed(reported, capsys)
    assert lines["rlm"][5].startswith("$0.")
    assert any(line.startswith("endpoint: at least ") for line in lines)


def test_a_judge_has_a_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = printed(estimate("uniprot_floor", tmp_path, "arms.direct.judge_lm=local"), capsys)
    assert lines["direct (judge)"] == ["10 of 10", "≤ 10", "?", "?", "?", "0"]
    assert lines["(all)"][0] == "23 of 23"


def test_a_finished_run_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = RunFolder(EXPERIMENTS / "results" / "uniprot_tools")
    experiment = parse_experiment((folder.manifest or {})["experiment"])
    jobs = plan_run(experiment, only=["react"]).jobs
    lines = printed(estimate_run(experiment, folder, jobs, sources=[]), capsys)
    assert lines["react"] == ["0 of 20", "0", "0", "0", "0", "0"]
    assert any(line.startswith("nothing is left to run") for line in lines)


def test_programs_read_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    print_estimate(estimate("uniprot_floor", tmp_path), as_json=True)
    data = json.loads(capsys.readouterr().out)
    assert data["todo"] == 23
    assert data["arms"][1]["amounts"]["lm_calls"] == 10.0
    assert set(data["total"]) >= {"lm_calls", "seconds", "dollars"}
