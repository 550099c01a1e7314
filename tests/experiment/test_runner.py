"""Running and resuming: every trial exactly once, whatever happens in between."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from reasoningbank.agents import AGENTS, Attempt, Episode
from reasoningbank.corpus import Task, load_shacl_tasks
from reasoningbank.errors import RecordError, UsageError
from reasoningbank.experiment import Experiment, Progress, RunFolder, run_experiment
from reasoningbank.experiment.plan import hidden_tasks
from reasoningbank.sparql import EndpointConfig
from reasoningbank.tools import EndpointTools
from reasoningbank.trajectory import Usage

Make = Callable[..., Experiment]
Pack = Callable[..., Path]


def test_the_oracle_is_right_on_every_task(
    tmp_path: Path, make_pack: Pack, experiment_on: Make
) -> None:
    told: list[Progress] = []
    folder = RunFolder(tmp_path / "run")
    experiment = experiment_on(make_pack(3), seeds=[0, 1])
    assert run_experiment(experiment, folder, on_progress=told.append) is folder
    records = list(folder.trials())
    assert len(records) == 6
    assert all(record.strict and record.status == "submitted" for record in records)
    manifest = folder.manifest
    assert manifest is not None
    assert manifest["tasks"] == ["t000", "t001", "t002"]
    assert [(p.done, p.total, p.record is None) for p in told[:3]] == [
        (0, 6, True),
        (1, 6, False),
        (1, 6, True),
    ]
    assert (told[-1].done, told[-1].fresh) == (6, 6)


def test_only_what_is_missing_is_run_again(
    tmp_path: Path, make_pack: Pack, experiment_on: Make
) -> None:
    folder, experiment = RunFolder(tmp_path / "run"), experiment_on(make_pack(3))
    run_experiment(experiment, folder, limit=2)
    assert [record.key.task for record in folder.trials()] == ["t000", "t001"]
    kept = tmp_path / "run" / "trials" / "oracle" / "t000.0.json"
    before = kept.stat().st_mtime_ns
    (kept.parent / "t001.0.json").unlink()
    told: list[Progress] = []
    run_experiment(experiment, folder, on_progress=told.append)
    assert [p.key.task for p in told if p.record is not None] == ["t001", "t002"]
    assert kept.stat().st_mtime_ns == before
    told.clear()
    run_experiment(experiment, folder, on_progress=told.append)
    assert told == []


@pytest.mark.parametrize("finished", [True, False])
def test_another_corpus_in_the_same_folder_is_refused(
    tmp_path: Path, make_pack: Pack, experiment_on: Make, finished: bool
) -> None:
    folder, pack = RunFolder(tmp_path / "run"), make_pack(2)
    run_experiment(experiment_on(pack), folder, limit=None if finished else 1)
    before = sorted(p.name for p in (tmp_path / "run").rglob("*.json"))
    examples = pack / "examples" / "tasks.ttl"
    text = examples.read_text(encoding="utf-8").replace("?h > 0", "?h > 20")
    examples.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match="corpus changed"):
        run_experiment(experiment_on(pack), folder)
    with pytest.raises(UsageError, match="experiment file"):
        run_experiment(experiment_on(pack, seeds=[7]), folder)
    assert sorted(p.name for p in (tmp_path / "run").rglob("*.json")) == before


def test_a_folder_that_cannot_be_written_ends_the_run_before_its_first_trial(
    tmp_path: Path, make_pack: Pack, experiment_on: Make
) -> None:
    (tmp_path / "file").write_text("x", encoding="utf-8")
    told: list[Progress] = []
    with pytest.raises(RecordError, match="cannot be written"):
        run_experiment(
            experiment_on(make_pack(1)),
            RunFolder(tmp_path / "file" / "run"),
            on_progress=told.append,
        )
    assert told == []


def test_a_disk_that_fills_up_keeps_what_is_there(
    tmp_path: Path, make_pack: Pack, experiment_on: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = RunFolder(tmp_path / "run")
    experiment = experiment_on(make_pack(3), retries={"write_s": 0})
    write = RunFolder.write

    def full(self: RunFolder, record: object) -> Path:
        if record.key.task == "t001":  # type: ignore[attr-defined]
            raise RecordError("cannot be written (No space left on device)")
        return write(self, record)  # type: ignore[arg-type]

    with monkeypatch.context() as patched:
        patched.setattr(RunFolder, "write", full)
        with pytest.raises(RecordError, match="No space"):
            run_experiment(experiment, folder)
    assert [record.key.task for record in folder.trials()] == ["t000"]
    run_experiment(experiment, folder)
    assert len(list(folder.trials())) == 3


@pytest.mark.parametrize(
    ("arm", "named"),
    [
        ({"name": "a", "agent": "orcale"}, "unknown agent 'orcale'"),
        ({"name": "a", "agent": "oracle", "tasks": ["t9"]}, "unknown task 't9'"),
        ({"name": "a", "agent": "direct", "lm": "locla"}, "locla"),
    ],
)
def test_unknown_names_end_it_before_anything_is_written(
    tmp_path: Path, make_pack: Pack, experiment_on: Make, arm: dict[str, object], named: str
) -> None:
    with pytest.raises(UsageError, match=named):
        run_experiment(experiment_on(make_pack(1), arm), RunFolder(tmp_path / "run"))
    assert not (tmp_path / "run").exists()


def test_a_killed_run_goes_on_with_every_trial_exactly_once(
    tmp_path: Path, make_pack: Pack, experiment_on: Make
) -> None:
    tasks = 120
    pack, run = make_pack(tasks), tmp_path / "run"
    file = tmp_path / "small.toml"
    file.write_text(
        f'name = "small"\npack = "{pack}"\n[[arms]]\nname = "oracle"\nagent = "oracle"\n',
        encoding="utf-8",
    )
    command = [sys.executable, "-m", "reasoningbank", "run", str(file), "--out", str(run)]
    killed = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    trials = run / "trials" / "oracle"
    end = time.monotonic() + 60
    while time.monotonic() < end and len(list(trials.glob("*.json"))) < 5:
        assert killed.poll() is None
        time.sleep(0.005)
    os.kill(killed.pid, signal.SIGKILL)
    killed.wait()
    before = {path.name: path.stat().st_mtime_ns for path in trials.glob("*.json")}
    assert 5 <= len(before) < tasks
    (trials / ".left.tmp").write_text('{"version": 1', encoding="utf-8")

    again = subprocess.run([*command, "--json"], capture_output=True, text=True, check=True)

    records = list(RunFolder(run).trials())
    assert sorted(record.key.task for record in records) == [f"t{i:03}" for i in range(tasks)]
    assert all(record.strict for record in records)
    assert {name: (trials / name).stat().st_mtime_ns for name in before} == before
    summary = json.loads(again.stdout)
    assert (summary["arms"][0]["trials"], summary["arms"][0]["strict"]) == (tasks, tasks)
    assert f"[{len(before) + 1}/{tasks}]" in again.stderr


def test_a_folder_of_examples_is_run_against_any_endpoint(
    tmp_path: Path, make_pack: Pack, experiment_on: Make, trees: EndpointConfig
) -> None:
    folder, pack = RunFolder(tmp_path / "run"), make_pack(2)
    # Without pack.toml the examples are just examples: no data, no address.
    (pack / "pack.toml").unlink()
    examples = pack / "examples" / "tasks.ttl"
    text = examples.read_text(encoding="utf-8")
    text = text.replace("SELECT ?", "PREFIX t: <http://e/> SELECT ?")
    examples.write_text(text, encoding="utf-8")
    endpoint = {"url": trees.address, "name": "Grove", "min_interval_s": 0.0}
    run_experiment(experiment_on(pack, endpoint=endpoint), folder)
    records = list(folder.trials())
    assert [record.strict for record in records] == [True, True]


class Prober:
    """Asks the discovery tools for all they show, and answers with that."""

    name = "prober"
    uses_lm = False
    sees_gold = False

    def solve(self, task: Task, episode: Episode) -> Attempt:
        tools = episode.tools
        ref = tools["federated_endpoints"]()
        shown = [str(tools["endpoint_detail"](ref, other)) for other in ("UniProt", "Rhea")]
        recorder = episode.recorder
        return Attempt(None, "\n".join(shown), "refused", Usage(), recorder.trajectory())


def test_no_tool_shows_the_test_split_or_the_tasks_own_group(
    tmp_path: Path, experiment_on: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(AGENTS, "prober", Prober)
    corpus = load_shacl_tasks("uniprot")
    # A task whose question would be among the first shown, were it not hidden.
    open_tools = EndpointTools()
    detail = open_tools.endpoint_detail(open_tools.federated_endpoints("uniprot"), "UniProt")
    task = next(task for task in corpus if task.query in str(detail))
    folder = RunFolder(tmp_path / "run")
    arm = {"name": "prober", "agent": "prober"}
    run_experiment(experiment_on(Path("uniprot"), arm, tasks={"ids": [task.id]}), folder)
    (record,) = folder.trials()
    hidden = hidden_tasks(corpus, [task])
    assert "'questions'" in record.answer
    assert any(other.query in record.answer for other in corpus if other.id not in hidden)
    assert not [other.id for other in corpus if other.id in hidden and other.query in record.answer]
