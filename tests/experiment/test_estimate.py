"""A dry run's estimate: means of measured trials times the trials left, or the budget's bound."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reasoningbank.errors import UsageError
from reasoningbank.experiment import Experiment, RunFolder, TrialRecord, plan_run
from reasoningbank.experiment.estimate import RunEstimate, estimate_run
from reasoningbank.lm import Price
from reasoningbank.trajectory import Usage

Make = Callable[..., Experiment]
Pack = Callable[..., Path]
Record = Callable[..., TrialRecord]
HOSTED = {"name": "a", "agent": "direct", "lm": "openai/gpt-4.1-mini"}
LOCAL = {"name": "a", "agent": "direct"}


def write_run(
    target: Path, experiment: Experiment, record: Record, usages: list[Usage], **rest: Any
) -> Path:
    """Write a run with a trial of each arm per usage."""
    folder = RunFolder(target)
    tasks = list(dict.fromkeys(job.task.id for job in plan_run(experiment).jobs))
    data = experiment.model_dump(mode="json")
    folder.write_manifest({"experiment": data, "tasks": tasks, "created": target.name})
    for arm in experiment.arms:
        for task, usage in zip(tasks, usages, strict=False):
            folder.write(record(arm.name, task, usage=usage, **rest))
    return target


def estimate(experiment: Experiment, folder: Path, *sources: Path) -> RunEstimate:
    jobs = plan_run(experiment).jobs
    return estimate_run(experiment, RunFolder(folder), jobs, sources=sources)


def spent(n: int) -> Usage:
    return Usage(lm_calls=n, prompt_tokens=100 * n, completion_tokens=10 * n, tool_calls=n,
                 seconds=float(n), dollars=0.5 * n)  # fmt: skip


def test_a_run_is_estimated_from_its_own_trials(
    tmp_path: Path, make_pack: Pack, experiment_on: Make, record: Record
) -> None:
    experiment = experiment_on(make_pack(10), HOSTED, executor={"workers": 2})
    run = write_run(tmp_path / "run", experiment, record, [spent(1), spent(3)])
    reported = estimate(experiment, run)
    (arm,) = reported.arms
    assert (arm.match, arm.measured, arm.planned, arm.todo) == ("own", 2, 10, 8)
    assert arm.amounts == {
        "lm_calls": 16, "prompt_tokens": 1600, "completion_tokens": 160,
        "seconds": 16 / 2, "dollars": 8.0, "requests": 24,
    }  # fmt: skip
    assert reported.total == arm.amounts
    assert not arm.is_bound
    assert json.loads(json.dumps(reported.to_json()))["todo"] == 8


def test_the_most_similar_trials_are_used(
    tmp_path: Path, make_pack: Pack, experiment_on: Make, record: Record
) -> None:
    pack = make_pack(10)
    wanted = experiment_on(pack, HOSTED)
    runs = {
        "model": experiment_on(pack, LOCAL),
        "similar": experiment_on(pack, {**HOSTED, "max_tokens": 50}),
        "same": experiment_on(pack, {**HOSTED, "name": "b"}),
    }
    sources: list[Path] = []
    assert estimate(wanted, tmp_path / "run").arms[0].match == "none"
    for number, (match, experiment) in enumerate(runs.items(), 1):
        sources.append(
            write_run(tmp_path / match, experiment, record, [spent(number)] * 6, status="refused")
        )
        (arm,) = estimate(wanted, tmp_path / "run", *sources).arms
        assert arm.match == match
        assert arm.amounts["lm_calls"] == 10 * number
        # Another model is faster or slower.
        assert (arm.amounts["seconds"] is None) == (match == "model")


@pytest.mark.parametrize("order", [1, -1])
def test_of_similar_arms_the_one_with_the_fewest_other_settings_is_used(
    tmp_path: Path, make_pack: Pack, experiment_on: Make, record: Record, order: int
) -> None:
    pack, near = make_pack(10), {**HOSTED, "max_tokens": 50}
    far = {**near, "sampling": {"kind": "retry", "k": 4}}
    sources = [
        write_run(tmp_path / str(calls), experiment_on(pack, arm), record, [spent(calls)] * 6)
        for calls, arm in [(1, near), (4, far)][::order]
    ]
    (reported,) = estimate(experiment_on(pack, HOSTED), tmp_path / "run", *sources).arms
    assert (reported.match, reported.amounts["lm_calls"]) == ("similar", 10)


def test_errors_and_damaged_records_are_left_out(
    tmp_path: Path, make_pack: Pack, experiment_on: Make, record: Record
) -> None:
    experiment = experiment_on(make_pack(10), HOSTED)
    other = write_run(tmp_path / "other", experiment, record, [spent(9)], status="error")
    assert estimate(experiment, tmp_path / "run", other).arms[0].measured == 0
    write_run(other, experiment, record, [spent(9)])
    for path in (other / "trials").glob("*/*"):
        path.write_text("{", encoding="utf-8")
    assert estimate(experiment, tmp_path / "run", other).arms[0].measured == 0
    (other / "manifest.json").write_text("{", encoding="utf-8")
    assert estimate(experiment, tmp_path / "run", other).arms[0].measured == 0


def test_the_budget_is_a_bound_without_measurements(
    tmp_path: Path, make_pack: Pack, experiment_on: Make
) -> None:
    arms = [
        {"name": "d", "agent": "direct", "max_tokens": 100},
        {"name": "r", "agent": "rlm", "max_tokens": 100},
        {"name": "h", **{k: v for k, v in HOSTED.items() if k != "name"}},
        {"name": "o", "agent": "oracle"},
        {"name": "u", "agent": "dspy:Predict", "options": {"signature": "question -> sparql"}},
    ]
    experiment = experiment_on(
        make_pack(10), *arms, budget={"iterations": 4, "lm_calls": 3, "seconds": 60}
    )
    reported = {arm.arm: arm for arm in estimate(experiment, tmp_path / "run").arms}
    assert all(arm.is_bound for arm in reported.values())
    assert reported["d"].amounts["lm_calls"] == 10
    assert reported["d"].amounts["prompt_tokens"] == 10 * 8192
    assert reported["r"].amounts["lm_calls"] == 10 * 4
    assert reported["r"].amounts["completion_tokens"] == 10 * 4 * 100
    assert reported["r"].amounts["seconds"] == 10 * 60
    assert reported["u"].amounts["lm_calls"] == 10 * 3
    assert reported["h"].amounts["prompt_tokens"] is None
    assert reported["h"].amounts["dollars"] is None
    assert reported["o"].amounts["dollars"] == reported["o"].amounts["lm_calls"] == 0


def test_tokens_are_priced_where_no_price_was_recorded(
    tmp_path: Path,
    make_pack: Pack,
    experiment_on: Make,
    record: Record,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    experiment = experiment_on(make_pack(10), HOSTED)
    usage = Usage(lm_calls=1, prompt_tokens=1000, completion_tokens=100, seconds=1.0)
    source = write_run(tmp_path / "other", experiment, record, [usage] * 5)
    where = "reasoningbank.experiment.estimate.price_of"
    monkeypatch.setattr(where, lambda _: Price(0.001, 0.01))
    (arm,) = estimate(experiment, tmp_path / "run", source).arms
    assert arm.amounts["dollars"] == pytest.approx(10 * (1.0 + 1.0))
    monkeypatch.setattr(where, lambda _: None)
    (arm,) = estimate(experiment, tmp_path / "run", source).arms
    assert arm.amounts["dollars"] is None
    assert len(arm.notes) == 1


def test_an_lm_judge_is_estimated_beside_its_arm(
    tmp_path: Path, make_pack: Pack, experiment_on: Make, record: Record
) -> None:
    experiment = experiment_on(make_pack(10), {**LOCAL, "judge_lm": "local"})
    said = {"success": True, "seconds": 2.0, "usage": {"lm_calls": 1, "prompt_tokens": 50}}
    source = write_run(
        tmp_path / "other", experiment, record, [spent(1)] * 5, judgements={"lm:local": said}
    )
    reported = estimate(experiment, tmp_path / "run", source)
    assert [(arm.arm, arm.agent, arm.todo) for arm in reported.arms] == [
        ("a", "direct", 10),
        ("a", "judge", 10),
    ]
    assert reported.todo == 10
    assert reported.arms[1].amounts["prompt_tokens"] == 500
    assert reported.total["prompt_tokens"] == 1000 + 500
    assert [arm.runs for arm in reported.arms] == [(experiment.name,)] * 2


def test_another_run_in_the_folder_is_noted(
    tmp_path: Path, make_pack: Pack, experiment_on: Make, record: Record
) -> None:
    pack = make_pack(10)
    other = experiment_on(pack, LOCAL, seeds=[4])
    run = write_run(tmp_path / "run", other, record, [spent(1)] * 10)
    reported = estimate(experiment_on(pack, LOCAL), run)
    assert reported.todo == 10
    assert len(reported.notes) == 1


def test_a_public_endpoint_takes_its_time(
    tmp_path: Path, make_pack: Pack, experiment_on: Make
) -> None:
    endpoint = {"url": "https://example.org/sparql", "min_interval_s": 2.0}
    experiment = experiment_on(make_pack(10), LOCAL, endpoint=endpoint)
    assert estimate(experiment, tmp_path / "run").polite_seconds == 2.0 * 9


def test_an_unknown_agent_is_refused(tmp_path: Path, make_pack: Pack, experiment_on: Make) -> None:
    experiment = experiment_on(make_pack(10), LOCAL)
    jobs = plan_run(experiment).jobs
    arm = experiment.arms[0].model_copy(update={"agent": "nobody"})
    with pytest.raises(UsageError):
        estimate_run(
            experiment.model_copy(update={"arms": (arm,)}), RunFolder(tmp_path), jobs, sources=[]
        )
