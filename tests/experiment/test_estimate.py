"""What a dry run says: checked against what runs really took."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reasoningbank.agents import Budget
from reasoningbank.errors import UsageError
from reasoningbank.experiment import (
    Experiment,
    RunFolder,
    TaskSelection,
    TrialRecord,
    parse_experiment,
    plan_run,
)
from reasoningbank.experiment.estimate import Amount, RunEstimate, estimate_run
from reasoningbank.experiment.measured import find_basis, known_runs, read_runs
from reasoningbank.lm import Price, price_of
from reasoningbank.trajectory import Usage

RESULTS = Path(__file__).parents[2] / "experiments" / "results"
QUANTITIES = ("lm_calls", "prompt_tokens", "completion_tokens", "seconds")

Make = Callable[..., Experiment]
Pack = Callable[..., Path]
Record = Callable[..., TrialRecord]


def archived(run: str) -> tuple[Experiment, dict[Any, TrialRecord]]:
    """Return a committed run: its experiment, on the very tasks it had, and its trials."""
    folder = RunFolder(RESULTS / run)
    manifest = folder.manifest or {}
    experiment = parse_experiment(manifest["experiment"])
    selection = TaskSelection(ids=tuple(manifest["tasks"]))
    return (
        experiment.model_copy(update={"tasks": selection}),
        {trial.key: trial for trial in folder.trials()},
    )


def copy_some(run: str, target: Path, keep: Callable[[int], bool]) -> RunFolder:
    """Copy a committed run with every trial whose number `keep` accepts."""
    for number, path in enumerate(sorted((RESULTS / run / "trials").glob("*/*.json.gz"))):
        if keep(number):
            copy = target / "trials" / path.parent.name / path.name
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy)
    shutil.copyfile(RESULTS / run / "manifest.json", target / "manifest.json")
    return RunFolder(target)


def estimate(experiment: Experiment, folder: RunFolder, *sources: Path) -> RunEstimate:
    return estimate_run(experiment, folder, plan_run(experiment).jobs, sources=sources)


@pytest.mark.parametrize("run", ["uniprot_baseline", "uniprot_tools"])
def test_half_of_a_run_foretells_the_other_half(run: str, tmp_path: Path) -> None:
    experiment, trials = archived(run)
    planned = [job for job in plan_run(experiment).jobs if job.key in trials]
    within = total = 0
    for split, keep in enumerate(
        (lambda n: n % 2, lambda n: not n % 2, lambda n: n // 2 % 2, lambda n: not n // 2 % 2)
    ):
        folder = copy_some(run, tmp_path / str(split) / run, keep)
        # The manifest of a run that named its tasks otherwise is another run: its kin.
        left = [job for job in planned if not folder.done(job.key)]
        told = estimate_run(experiment, RunFolder(tmp_path / "none"), left, sources=[folder.path])
        for arm in told.arms:
            assert arm.kinship == "same"
            rest = [t for k, t in trials.items() if k.arm == arm.arm and not folder.done(k)]
            for name in QUANTITIES:
                amount: Amount = getattr(arm, name)
                took = sum(getattr(trial.usage, name) for trial in rest)
                assert amount.low is not None
                assert amount.expected is not None
                assert amount.high is not None
                assert 0.5 < took / amount.expected < 2, (run, split, arm.arm, name)
                total += 1
                within += amount.low <= took <= amount.high
    assert total == 4 * 2 * len(QUANTITIES)
    # The interval is one of 90 %.
    assert within / total >= 0.8


def test_a_run_foretells_its_own_rest(tmp_path: Path) -> None:
    experiment, trials = archived("uniprot_baseline")
    folder = copy_some("uniprot_baseline", tmp_path / "run", lambda number: number % 2 == 0)
    manifest = folder.manifest or {}
    manifest["experiment"] = experiment.model_dump(mode="json")
    folder.write_manifest(manifest)
    told = estimate(experiment, folder)
    for arm in told.arms:
        assert (arm.kinship, arm.planned, arm.done, arm.todo) == ("own", 20, 10, 10)
        rest = [t for k, t in trials.items() if k.arm == arm.arm and not folder.done(k)]
        took = sum(trial.usage.prompt_tokens for trial in rest)
        assert (arm.prompt_tokens.low or 0) <= took <= (arm.prompt_tokens.high or 0)
    assert told.todo == 20
    assert told.total["dollars"] == Amount(0.0, 0.0, 0.0)
    assert told.polite_seconds is None
    data = json.loads(json.dumps(told.to_json()))
    assert data["arms"][0]["prompt_tokens"]["expected"] == told.arms[0].prompt_tokens.expected
    assert data["todo"] == 20


def hosted_arm(**rest: Any) -> dict[str, Any]:
    return {"name": "a", "agent": "direct", "lm": "openai/gpt-4.1-mini", **rest}


def write_run(
    target: Path, experiment: Experiment, record: Record, usages: list[Usage], **rest: Any
) -> Path:
    """Write a finished run of the experiment's first arm, one trial a usage."""
    folder = RunFolder(target)
    jobs = [job for job in plan_run(experiment).jobs if job.arm == experiment.arms[0]]
    folder.write_manifest(
        {
            "experiment": experiment.model_dump(mode="json"),
            "tasks": [job.task.id for job in jobs],
            "created": rest.pop("created", "2026-01-01"),
        }
    )
    for job, usage in zip(jobs, usages, strict=False):
        folder.write(record(job.arm.name, job.task.id, usage=usage, **rest))
    return target


def test_without_measurements_the_budget_bounds(
    tmp_path: Path, make_pack: Pack, experiment_on: Make
) -> None:
    arms = [
        {"name": "d", "agent": "direct", "max_tokens": 100},
        {"name": "r", "agent": "rlm", "max_tokens": 100},
        {"name": "h", "agent": "react", "lm": "openai/gpt-4.1-mini"},
        {"name": "o", "agent": "oracle"},
    ]
    budget = {"iterations": 4, "lm_calls": 3, "seconds": 60, "tokens": 9_000}
    experiment = experiment_on(make_pack(5), *arms, budget=budget)
    told = estimate(experiment, RunFolder(tmp_path / "run"))
    direct, rlm, hosted, oracle = told.arms
    assert {arm.kinship for arm in told.arms} == {"none"}
    assert direct.lm_calls == Amount(high=5.0)
    assert direct.lm_calls.is_bound
    assert direct.completion_tokens == Amount(high=500.0)
    assert direct.seconds == Amount(high=300.0)
    # Three calls are allowed before a turn; the step that extracts the answer may follow.
    assert rlm.lm_calls == Amount(high=20.0)
    assert rlm.prompt_tokens == Amount(high=5 * (9_000 + 2 * 8_192))
    assert hosted.prompt_tokens == hosted.dollars == Amount()
    assert (oracle.lm, oracle.lm_calls) == ("", Amount(0.0, 0.0, 0.0))
    assert told.total["lm_calls"] == Amount(high=5.0 + 20.0 + 20.0)
    assert told.total["prompt_tokens"] == Amount()
    assert not (tmp_path / "run").exists()


def test_bounds_hold_what_real_trials_took(tmp_path: Path) -> None:
    for run in ("uniprot_baseline", "uniprot_tools", "uniprot_demo"):
        experiment, trials = archived(run)
        told = estimate(experiment, RunFolder(tmp_path / run))
        for arm in told.arms:
            mine = [trial for key, trial in trials.items() if key.arm == arm.arm]
            for name in QUANTITIES[:3]:
                most = getattr(arm, name).high / arm.todo
                assert all(getattr(trial.usage, name) <= most for trial in mine), (run, arm, name)


def test_another_model_tells_of_calls_and_tokens_but_not_of_seconds(
    tmp_path: Path, make_pack: Pack, experiment_on: Make, record: Record
) -> None:
    pack = make_pack(6)
    local = experiment_on(pack, {"name": "a", "agent": "direct", "lm": "local"})
    usage = [Usage(lm_calls=1, prompt_tokens=1000, completion_tokens=500, seconds=9.0)] * 6
    source = write_run(tmp_path / "past" / "local", local, record, usage)
    told = estimate(experiment_on(pack, hosted_arm()), RunFolder(tmp_path / "run"), source)
    (arm,) = told.arms
    assert (arm.kinship, arm.models, arm.runs) == ("model", ("local",), ("small",))
    assert arm.prompt_tokens == Amount(6000.0, 6000.0, 6000.0)
    assert arm.seconds == Amount(high=6 * 600.0)
    assert arm.trial_seconds.median is None
    # 6,000 tokens sent at 0.4 and 3,000 generated at 1.6 dollars a million.
    assert arm.dollars.expected == pytest.approx(0.0024 + 0.0048)


def test_workers_divide_the_time_of_a_hosted_model_alone(
    tmp_path: Path, make_pack: Pack, experiment_on: Make, record: Record
) -> None:
    pack = make_pack(6)
    usage = [Usage(lm_calls=1, prompt_tokens=10, completion_tokens=5, seconds=8.0)] * 6
    for lm, seconds in (("local", 48.0), ("openai/gpt-4.1-mini", 12.0)):
        arm = hosted_arm(lm=lm)
        source = write_run(tmp_path / "past", experiment_on(pack, arm), record, usage)
        experiment = experiment_on(pack, arm, executor={"kind": "threads", "workers": 4})
        told = estimate(experiment, RunFolder(tmp_path / "run"), source)
        assert told.arms[0].kinship == "same"
        assert told.arms[0].seconds.expected == pytest.approx(seconds)
        assert (told.executor, told.workers) == ("threads", 4)


def test_recorded_dollars_are_better_than_the_price_table(
    tmp_path: Path, make_pack: Pack, experiment_on: Make, record: Record
) -> None:
    experiment = experiment_on(make_pack(5), hosted_arm())
    usage = [Usage(lm_calls=1, prompt_tokens=10, completion_tokens=5, dollars=0.5)] * 5
    source = write_run(tmp_path / "past", experiment, record, usage)
    told = estimate(experiment, RunFolder(tmp_path / "run"), source)
    assert told.arms[0].dollars.expected == pytest.approx(2.5)


def test_no_price_is_told(
    tmp_path: Path, make_pack: Pack, experiment_on: Make, record: Record
) -> None:
    experiment = experiment_on(make_pack(5), hosted_arm(lm="openai/no-such-model"))
    usage = [Usage(lm_calls=1, prompt_tokens=10, completion_tokens=5)] * 5
    source = write_run(tmp_path / "past", experiment, record, usage)
    (arm,) = estimate(experiment, RunFolder(tmp_path / "run"), source).arms
    assert arm.dollars == Amount()
    assert "LiteLLM's price table has no price for openai/no-such-model" in arm.notes[0]


def test_closer_trials_come_first(
    tmp_path: Path, make_pack: Pack, experiment_on: Make, record: Record
) -> None:
    pack = make_pack(6)
    experiment = experiment_on(pack, hosted_arm(max_tokens=300))
    folder = RunFolder(tmp_path / "run")

    def basis(*sources: Path) -> tuple[str, list[int]]:
        runs = read_runs((folder.path, *sources))
        found = find_basis(experiment, experiment.arms[0], folder, runs)
        return found.kinship, sorted({trial.prompt_tokens for trial in found.trials})

    def past(name: str, tokens: int, n: int, made: Experiment, **rest: Any) -> Path:
        return write_run(tmp_path / name, made, record, [Usage(prompt_tokens=tokens)] * n, **rest)

    other_model = past("m", 1, 6, experiment_on(pack, hosted_arm(lm="local")))
    other_settings = past("s", 2, 6, experiment_on(pack, hosted_arm(max_tokens=700)))
    older_settings = past("t", 5, 6, experiment_on(pack, hosted_arm(max_tokens=500)), created="2")
    same = past("a", 3, 6, experiment.model_copy(update={"name": "other"}))
    other_agent = past("g", 9, 6, experiment_on(pack, hosted_arm(agent="rlm")))
    assert basis() == basis(other_agent) == ("none", [])
    assert basis(other_agent, other_model) == ("model", [1])
    assert basis(other_model, other_settings, older_settings)[0] == "settings"
    assert basis(other_model, other_settings) == ("settings", [2])
    assert basis(other_model, other_settings, same) == ("same", [3])
    # Two trials of its own are too few to stand alone, and never mixed with another model's.
    past("run", 4, 2, experiment)
    assert basis(other_model) == ("own", [4])
    assert basis(other_model, other_settings, same) == ("same", [3, 4])
    past("run", 4, 6, experiment)
    assert basis(other_model, other_settings, same) == ("own", [4])


def test_of_trials_with_other_settings_the_most_alike_come_first(
    tmp_path: Path, make_pack: Pack, experiment_on: Make, record: Record
) -> None:
    pack = make_pack(6)
    experiment = experiment_on(pack, hosted_arm(max_tokens=300, layers=["L1"]))

    def past(name: str, tokens: int, made: Experiment, created: str) -> Path:
        usage = [Usage(prompt_tokens=tokens)] * 6
        return write_run(tmp_path / name, made, record, usage, created=created)

    two = past("two", 1, experiment_on(pack, hosted_arm(max_tokens=700)), "2")
    one = past("one", 2, experiment_on(pack, hosted_arm(max_tokens=700, layers=["L1"])), "1")
    elsewhere = experiment.model_copy(update={"pack": "uniprot"})
    newest = past("newest", 3, elsewhere, "3")

    def basis(*sources: Path) -> list[int]:
        runs = read_runs(sources)
        found = find_basis(experiment, experiment.arms[0], RunFolder(tmp_path / "run"), runs)
        return sorted({trial.prompt_tokens for trial in found.trials})

    assert basis(newest, two, one) == [2]
    assert basis(newest, two) == [1]
    assert basis(newest) == [3]


def test_errors_damage_and_copies_do_not_count(
    tmp_path: Path, make_pack: Pack, experiment_on: Make, record: Record
) -> None:
    experiment = experiment_on(make_pack(6), hosted_arm())
    usage = [Usage(lm_calls=1, prompt_tokens=10)] * 6
    past = write_run(tmp_path / "past", experiment, record, usage)
    copy = RunFolder(past).archive(tmp_path / "copy").path
    files = sorted((past / "trials").glob("*/*.json"))
    files[0].write_text("{", encoding="utf-8")
    broken = write_run(tmp_path / "errors", experiment, record, usage, status="error", created="3")
    (tmp_path / "nothing").mkdir()
    (tmp_path / "nothing" / "manifest.json").write_text("[", encoding="utf-8")
    sources = [past, copy, broken, tmp_path / "nothing", tmp_path / "missing"]
    runs = read_runs(sources)
    assert [run.folder.path for run in runs] == [broken, past]
    found = find_basis(experiment, experiment.arms[0], RunFolder(tmp_path / "run"), runs)
    assert len(found.trials) == 5


def test_runs_at_hand_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "runs" / "x").mkdir(parents=True)
    (tmp_path / "runs" / "x" / "manifest.json").write_text("{}", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    names = [path.name for path in known_runs(RunFolder(Path("runs/mine")))]
    assert "x" in names
    assert "uniprot_baseline" in names
    assert known_runs(RunFolder(Path("runs/x"))) == [
        path for path in known_runs(RunFolder(Path("runs/mine"))) if path.name != "x"
    ]


def test_a_public_endpoint_has_a_least_time(
    tmp_path: Path, make_pack: Pack, experiment_on: Make, record: Record
) -> None:
    endpoint = {"url": "https://trees.example/sparql/", "min_interval_s": 2.0}
    experiment = experiment_on(make_pack(5), hosted_arm(agent="rlm"), endpoint=endpoint)
    usage = [Usage(lm_calls=1, tool_calls=3)] * 5
    source = write_run(tmp_path / "past", experiment, record, usage)
    told = estimate(experiment, RunFolder(tmp_path / "run"), source)
    # Three tool calls and one submitted query a trial, and a gold a task.
    assert told.total["requests"].expected == 25
    assert told.polite_seconds == pytest.approx(48.0)


def test_few_trials_are_told(
    tmp_path: Path, make_pack: Pack, experiment_on: Make, record: Record
) -> None:
    experiment = experiment_on(make_pack(4), hosted_arm())
    usage = [Usage(lm_calls=1, prompt_tokens=10, completion_tokens=5, seconds=2.0)]
    source = write_run(tmp_path / "past", experiment, record, usage)
    (arm,) = estimate(experiment, RunFolder(tmp_path / "run"), source).arms
    assert arm.seconds == Amount(0.0, 8.0, 4 * 600.0)
    assert arm.notes == ("a: measured on 1 trial only",)


def test_a_judge_comes_on_top(
    tmp_path: Path, make_pack: Pack, experiment_on: Make, record: Record
) -> None:
    experiment = experiment_on(make_pack(5), hosted_arm(judge_lm="openai/gpt-4.1"))
    usage = [Usage(lm_calls=1, prompt_tokens=10, completion_tokens=5, seconds=2.0)] * 5
    unjudged = write_run(tmp_path / "unjudged", experiment, record, usage)
    told = estimate(experiment, RunFolder(tmp_path / "run"), unjudged)
    assert told.judges[0].lm_calls == Amount(high=5.0)
    # A hosted model may think before it answers: nothing bounds its reply.
    assert told.judges[0].completion_tokens == Amount()
    assert told.total["seconds"] == told.judges[0].seconds == Amount()
    judgement = {
        "success": True,
        "seconds": 3.0,
        "usage": {"lm_calls": 1, "prompt_tokens": 1000, "completion_tokens": 100, "dollars": None},
    }
    said = {"lm:openai/gpt-4.1": judgement}
    source = write_run(tmp_path / "past", experiment, record, usage, judgements=said, created="2")
    told = estimate(experiment, RunFolder(tmp_path / "run"), source)
    (judge,) = told.judges
    assert (judge.arm, judge.agent, judge.lm, judge.todo) == ("a", "judge", "openai/gpt-4.1", 5)
    assert (judge.kinship, judge.measured) == ("same", 5)
    # 5,000 tokens sent at 2 and 500 generated at 8 dollars a million.
    assert judge.dollars.expected == pytest.approx(0.014)
    assert told.total["lm_calls"].expected == 10
    assert told.total["seconds"].expected == pytest.approx(10 + 15)
    assert told.todo == 5


def test_a_folder_of_another_run_is_told(
    tmp_path: Path, make_pack: Pack, experiment_on: Make, record: Record
) -> None:
    pack = make_pack(3)
    write_run(tmp_path / "run", experiment_on(pack, hosted_arm()), record, [Usage()] * 3)
    other = experiment_on(pack, hosted_arm(temperature=0.5))
    told = estimate(other, RunFolder(tmp_path / "run"))
    assert "holds another run, and would be refused" in told.notes[0]
    assert told.todo == 3


def test_an_unknown_model_is_an_error(tmp_path: Path, make_pack: Pack, experiment_on: Make) -> None:
    experiment = experiment_on(make_pack(2), hosted_arm(lm="gpt5"))
    with pytest.raises(UsageError, match="unknown model 'gpt5'"):
        estimate(experiment, RunFolder(tmp_path / "run"))


def test_a_finished_run_takes_nothing(
    tmp_path: Path, make_pack: Pack, experiment_on: Make, record: Record
) -> None:
    experiment = experiment_on(make_pack(3), hosted_arm(), budget=Budget(tokens=99).model_dump())
    write_run(tmp_path / "run", experiment, record, [Usage(lm_calls=1)] * 3)
    told = estimate(experiment, RunFolder(tmp_path / "run"))
    assert told.todo == 0
    assert set(told.total.values()) == {Amount(0.0, 0.0, 0.0)}


@pytest.mark.parametrize(
    ("name", "price"),
    [
        ("local", Price(0.0, 0.0)),
        ("local:/no/such.gguf", Price(0.0, 0.0)),
        ("anthropic/claude-sonnet-4-5", Price(3e-06, 1.5e-05)),
        ("gemini/gemini-2.5-flash", Price(3e-07, 2.5e-06)),
        ("openai/claude-sonnet-4-5", None),
        ("ollama_chat/nothing-like-it", None),
    ],
)
def test_prices(name: str, price: Price | None) -> None:
    assert price_of(name) == price
