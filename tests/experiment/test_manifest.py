"""A folder belongs to one run: what it was run on is written down and checked."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from reasoningbank.analysis import summarise
from reasoningbank.corpus import Pack, Task
from reasoningbank.errors import UsageError
from reasoningbank.experiment import Experiment, RunFolder
from reasoningbank.experiment.context import hash_files
from reasoningbank.experiment.manifest import (
    build_manifest,
    code_changes,
    code_version,
    hash_tasks,
    open_run,
)
from reasoningbank.experiment.plan import Plan

TASK = Task("t1", "Which?", "ASK {}", "http://e/", level="iid")


def plan_of(*tasks: Task, root: Path = Path("none"), data: tuple[Path, ...] = ()) -> Plan:
    return Plan(Pack("p", root, root, data=data), tasks, tasks, frozenset(), ())


def test_it_says_what_was_run_on_what(
    tmp_path: Path, experiment_on: Callable[..., Experiment]
) -> None:
    experiment = experiment_on(tmp_path)
    manifest = build_manifest(experiment, plan_of(TASK), {"m": {"sha256": "1"}})
    folder = RunFolder(tmp_path / "run")
    open_run(folder, manifest)
    primary = {"metric": "strict", "comparison": None, "unit": "task"}
    assert folder.manifest == {**manifest, "primary": primary}
    assert manifest["code"] == code_version()
    assert manifest["tasks"] == ["t1"]
    assert manifest["hashes"]["models"] == {"m": {"sha256": "1"}}
    assert manifest["versions"]["dspy"].startswith("3.")
    open_run(folder, {**manifest, "created": "later"})
    # One that was begun without levels.
    folder.write_manifest({key: value for key, value in manifest.items() if key != "levels"})
    open_run(folder, manifest)
    assert folder.manifest["levels"] == {"t1": "iid"}


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"seeds": [1]}, "experiment file"),
        ({"task": Task("t1", "Which?", "ASK { }", "http://e/")}, "corpus"),
        ({"data": "b"}, "store"),
        ({"model": "2"}, "model m"),
        ({"prompt": "2"}, "prompts"),
    ],
)
def test_another_run_in_the_same_folder_is_refused(
    tmp_path: Path, experiment_on: Callable[..., Experiment], change: dict[str, object], named: str
) -> None:
    def manifest(
        task: Task = TASK, data: str = "a", model: str = "1", prompt: str = "1", **rest: object
    ) -> dict[str, object]:
        file = tmp_path / "data.nq"
        file.write_text(data, encoding="utf-8")
        turns = tmp_path / "hints" / "demonstrations.json"
        turns.parent.mkdir(exist_ok=True)
        turns.write_text(prompt, encoding="utf-8")
        plan = plan_of(task, root=tmp_path, data=(file,))
        return build_manifest(experiment_on(tmp_path, **rest), plan, {"m": {"h": model}})

    folder = RunFolder(tmp_path / "run")
    open_run(folder, manifest())
    before = folder.manifest
    with pytest.raises(UsageError) as caught:
        open_run(folder, manifest(**change))  # type: ignore[arg-type]
    assert (caught.value.code, caught.value.fields["changed"]) == ("another-run", [named])
    assert caught.value.where == str(folder.path)
    assert folder.manifest == before


def test_a_run_is_resumed_with_another_number_of_cores(
    tmp_path: Path, experiment_on: Callable[..., Experiment]
) -> None:
    folder = RunFolder(tmp_path / "run")
    for threads in (2, 1):
        model = {"m": {"sha256": "1", "threads": threads}}
        open_run(folder, build_manifest(experiment_on(tmp_path), plan_of(TASK), model))
    assert folder.manifest is not None
    assert folder.manifest["hashes"]["models"]["m"]["threads"] == 2


def test_hashes_follow_contents_alone(tmp_path: Path) -> None:
    one, two = tmp_path / "1", tmp_path / "2"
    one.write_text("a", encoding="utf-8")
    two.write_text("b", encoding="utf-8")
    assert hash_files([one, two]) == hash_files([two, one]) != hash_files([one])
    assert hash_tasks([TASK]) == hash_tasks([Task("t1", "Which?", "ASK {}", "http://other/")])
    assert hash_tasks([TASK]) != hash_tasks([TASK, TASK])


@pytest.fixture
def begun(
    tmp_path: Path, experiment_on: Callable[..., Experiment]
) -> Callable[..., dict[str, Any]]:
    def manifest(**code: str) -> dict[str, Any]:
        made = build_manifest(experiment_on(tmp_path), plan_of(), {})
        return {**made, "code": {**made["code"], **code}}

    return manifest


def test_each_resumption_with_other_code_is_recorded_once(
    tmp_path: Path, begun: Callable[..., dict[str, Any]]
) -> None:
    folder = RunFolder(tmp_path / "run")
    notices: list[str] = []
    for commit in ("1", "1", "2", "2", "1"):
        open_run(folder, begun(commit=commit), notices.append)
    manifest = folder.manifest
    assert manifest is not None
    assert manifest["code"]["commit"] == "1"
    assert [entry["code"]["commit"] for entry in manifest["code_history"]] == ["2", "1"]
    assert len(notices) == 2
    changes = code_changes(manifest)
    assert [change.parts for change in changes] == [("commit",), ("commit",)]
    assert all(datetime.fromisoformat(change.time).tzinfo for change in changes)
    assert summarise([], manifest=manifest).code == changes


def test_a_run_of_other_prompts_is_not_resumed(
    tmp_path: Path, begun: Callable[..., dict[str, Any]]
) -> None:
    folder = RunFolder(tmp_path / "run")
    open_run(folder, begun(prompts="1"))
    before = folder.manifest
    with pytest.raises(UsageError) as caught:
        open_run(folder, begun(prompts="2"))
    assert (caught.value.code, caught.value.fields["prompts"]) == ("other-prompts", "1")
    open_run(folder, begun(prompts="2"), resumes=False)
    assert folder.manifest == before


@pytest.mark.parametrize("code", [{}, {"code": {"memory": "d0" * 8}}])
def test_a_run_of_an_older_version_is_not_resumed(
    tmp_path: Path, begun: Callable[..., dict[str, Any]], code: dict[str, Any]
) -> None:
    folder = RunFolder(tmp_path / "run")
    old = {name: value for name, value in begun().items() if name != "code"}
    folder.write_manifest({**old, **code})
    with pytest.raises(UsageError) as caught:
        open_run(folder, begun())
    assert caught.value.code == "other-prompts"
    open_run(folder, begun(), resumes=False)
