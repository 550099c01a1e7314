"""A stream goes on as if nothing had happened, wherever it was cut off."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reasoningbank.agents import AGENTS, Attempt, Episode
from reasoningbank.corpus import Task
from reasoningbank.errors import EndpointError, RecordError
from reasoningbank.experiment import Experiment, RunFolder, TrialKey, read_state, storage
from reasoningbank.experiment.memory_sources import read_snapshot
from reasoningbank.experiment.session import TaskStream
from reasoningbank.experiment.storage import ARCHIVE
from reasoningbank.memory import Snapshot
from reasoningbank.memory.distill import Distiller

from .orchard import STREAM, TEST, Pupil

Make = Callable[..., Experiment]
Run = Callable[..., RunFolder]
NONE: dict[str, Any] = {"name": "none", "agent": "pupil", "stream": True}
LEARNED: dict[str, Any] = {"name": "learned", "agent": "pupil", "memory": "learned"}


class Killed(BaseException):
    """Ends a run at once, as a kill does: nothing is tidied up by our own code."""


def left_by(folder: RunFolder) -> dict[str, Any]:
    """Return all that a run left of its streams, without what time it took."""
    files: dict[str, Any] = {}
    for path in sorted(folder.path.glob("learning/*/*.json")):
        data = json.loads(path.read_text(encoding="utf-8"))
        files[path.relative_to(folder.path).as_posix()] = {**data, "seconds": 0.0}
    for path in sorted(folder.path.glob("memory/*.jsonl")):
        files[path.name] = path.read_bytes()
    for record in folder.trials():
        said = record.to_json()
        for varying in ("judge_seconds", "trajectory", "usage"):
            said.pop(varying)
        files[record.key.path] = said
    return files


def kill_at(
    monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, call: int, *, after: bool = False
) -> None:
    """Let the process end at the so-many-th call of a function, before or after it is done."""
    real, calls = getattr(owner, name), []

    def deadly(*args: Any, **kwargs: Any) -> Any:
        calls.append(None)
        if len(calls) == call and not after:
            raise Killed
        result = real(*args, **kwargs)
        if len(calls) == call:
            raise Killed
        return result

    monkeypatch.setattr(owner, name, deadly)


@pytest.fixture(scope="module")
def undisturbed() -> dict[str, Any]:
    return {}


@pytest.mark.parametrize(
    ("owner", "name", "call", "after"),
    [
        (Pupil, "solve", 4, False),  # in mid trial
        (RunFolder, "write", 4, False),  # the trial is done, its record not written
        (RunFolder, "write", 4, True),  # the record is written, nothing learned
        (Distiller, "distil", 3, True),  # in mid step
        (TaskStream, "_learn", 3, True),  # learned, and nothing of it on disk
        (Snapshot, "write", 5, True),  # the snapshot is written, the step not
        (RunFolder, "write_step", 3, False),
        (RunFolder, "write_step", 3, True),  # the step is written, the next trial not begun
        (RunFolder, "write_step", 1, True),
        (RunFolder, "write_step", len(STREAM), True),  # before the evaluation
        (storage.Path, "replace", 9, False),  # written, and no name yet
        (RunFolder, "write", len(STREAM) + 2, True),  # in mid evaluation
    ],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_it_ends_as_without_the_crash(
    owner: Any,
    name: str,
    call: int,
    after: bool,
    learning: Make,
    run: Run,
    undisturbed: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if not undisturbed:
        undisturbed |= left_by(run(learning(), "whole"))
    with monkeypatch.context() as patched:
        kill_at(patched, owner, name, call, after=after)
        with pytest.raises(Killed):
            run(learning())
    folder = run(learning())
    assert left_by(folder) == undisturbed
    items = read_snapshot(folder, _end(folder)).items
    assert max(len(item.origins) for item in items) <= len(STREAM)


def _end(folder: RunFolder) -> str:
    return folder.taken("learned", 0)[-1].after


def test_a_trial_on_disk_is_not_run_again_and_taught_once(
    learning: Make, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    solve = Pupil.solve

    def taught(self: Pupil, task: Task, episode: Episode) -> Attempt:
        asked.append(task.id)
        return solve(self, task, episode)

    monkeypatch.setattr(Pupil, "solve", taught)
    with monkeypatch.context() as patched:
        kill_at(patched, TaskStream, "_learn", 3)
        with pytest.raises(Killed):
            run(learning())
    folder = run(learning())
    assert sorted(asked) == sorted(STREAM + TEST)
    taken = folder.taken("learned", 0)
    origins = [o for i in read_snapshot(folder, _end(folder)).items for o in i.origins]
    assert {o.trial for o in origins} <= {step.trial for step in taken}


STEP = "learning/learned.0/0002.json"


@pytest.mark.parametrize("what", [["trial"], ["step"], ["step", "trial"], ["last snapshot"]])
def test_what_is_damaged_is_set_aside_and_made_again(
    learning: Make, run: Run, what: list[str]
) -> None:
    folder = run(learning())
    whole = left_by(folder)
    files = {
        "trial": folder.file(TrialKey("learned", whole[STEP]["task"], 0).path),
        "step": folder.path / STEP,
        "last snapshot": folder.path / "memory" / f"{_end(folder)}.jsonl",
    }
    if what == ["last snapshot"]:
        # It is looked at where something is left to do with it.
        folder.file(TrialKey("learned", TEST[0], 0).path).unlink()
    reported: list[str] = []
    for name in what:
        files[name].write_text('{"version": 1, "arm"', encoding="utf-8")
    run(learning(), on_notice=reported.append)
    assert left_by(folder) == whole
    assert all(any(files[name].name in line for line in reported) for name in what)


def test_a_stream_whose_last_snapshot_is_damaged_takes_its_last_step_again(
    learning: Make, run: Run
) -> None:
    whole = left_by(run(learning(), "whole"))
    folder = run(learning(), limit=3)
    (folder.path / "memory" / f"{_end(folder)}.jsonl").write_text("{", encoding="utf-8")
    run(learning())
    assert left_by(folder) == whole


def test_steps_of_another_history_are_reported(learning: Make, run: Run) -> None:
    folder = run(learning())
    path = folder.path / STEP
    data = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**data, "before": "0" * 16}), encoding="utf-8")
    folder.file(TrialKey("learned", data["task"], 0).path).unlink()
    with pytest.raises(RecordError) as caught:
        run(learning())
    assert caught.value.code == "step-does-not-follow"


def test_a_trial_that_saw_another_bank_is_not_learned_from(learning: Make, run: Run) -> None:
    folder = run(learning(), limit=3)
    (folder.path / STEP).unlink()
    key = next(r.key for r in folder.trials() if r.step == 2)
    folder.write(replace(folder.read(key), memory="0" * 16))
    with pytest.raises(RecordError) as caught:
        run(learning())
    assert caught.value.code == "trial-of-another-bank"


def test_a_step_of_another_task_is_reported(learning: Make, run: Run) -> None:
    folder = run(learning(), limit=3)
    path = folder.path / STEP
    data = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**data, "task": "t999"}), encoding="utf-8")
    with pytest.raises(RecordError) as caught:
        run(learning())
    assert caught.value.code == "step-of-another-task"


class Cut(Pupil):
    """Loses its endpoint on the third task of its stream."""

    asked: list[str]

    def solve(self, task: Task, episode: Episode) -> Attempt:
        self.asked.append(task.id)
        if len(set(self.asked)) == 3:
            raise EndpointError("the endpoint is gone")
        return super().solve(task, episode)


def test_a_stream_stops_where_the_infrastructure_fails_and_goes_on_later(
    learning: Make, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = left_by(run(learning(), "whole"))
    folder = RunFolder(tmp_path / "run")
    Cut.asked = []
    with monkeypatch.context() as patched:
        patched.setitem(AGENTS, "pupil", Cut)
        with pytest.raises(EndpointError, match=r"stream learned\.0, step 2 of 6.*gone.*rerun"):
            run(learning())
    assert len(folder.taken("learned", 0)) == 2
    assert Cut.asked.count(Cut.asked[-1]) == 2
    state = read_state(folder)
    assert state is not None
    assert state.status == "failed"
    (spoiled,) = [record.key for record in folder.trials() if record.status == "error"]
    # The same command does not run it again; a rerun does, and goes on.
    with pytest.raises(EndpointError, match="step 2 of 6"):
        run(learning())
    run(learning(), again=[spoiled], missing=True)
    assert left_by(folder) == whole


def test_a_rerun_leaves_alone_what_a_stream_went_on_from(learning: Make, run: Run) -> None:
    folder = run(learning())
    whole = left_by(folder)
    keys = [record.key for record in folder.trials()]
    reported: list[str] = []
    began: list[Any] = []
    run(
        learning(),
        again=keys,
        missing=False,
        on_notice=reported.append,
        on_progress=lambda standing: began.append(standing.key),
    )
    assert {key.task for key in began} == set(TEST)
    assert len(reported) == 1
    assert left_by(folder) == whole


def test_what_cannot_be_learned_stops_the_stream_and_is_learned_later(
    learning: Make, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = left_by(run(learning(), "whole"))
    calls: list[int] = []
    distil = Distiller.distil

    def gone(self: Distiller, experiences: Any) -> Any:
        calls.append(1)
        if len(calls) > 2:
            raise EndpointError("the endpoint is gone")
        return distil(self, experiences)

    with monkeypatch.context() as patched:
        patched.setattr(Distiller, "distil", gone)
        with pytest.raises(EndpointError, match=r"step 2 of 6: nothing could be learned"):
            run(learning())
    assert len(calls) == 4
    folder = run(learning())
    assert left_by(folder) == whole


def test_an_archive_carries_the_streams_and_goes_on(
    learning: Make, run: Run, tmp_path: Path
) -> None:
    whole = left_by(run(learning(), "whole"))
    copy = run(learning(), limit=3).archive(tmp_path / "copy")
    assert {path.name for path in copy.path.iterdir()} == {"manifest.json", ARCHIVE}
    run(learning(), "copy")
    assert _end(copy) == whole["learning/learned.0/0005.json"]["after"]
    again = copy.archive(tmp_path / "again")
    assert _end(again) == _end(copy)
    assert len(list(again.trials())) == len(STREAM) + len(TEST)
