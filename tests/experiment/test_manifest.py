"""A folder belongs to one run: what it was run on is written down and checked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from reasoningbank.corpus import Task
from reasoningbank.errors import UsageError
from reasoningbank.experiment import Experiment, RunFolder
from reasoningbank.experiment.manifest import build_manifest, hash_files, hash_tasks, open_run

TASK = Task("t1", "Which?", "ASK {}", "http://e/")


def test_it_says_what_was_run_on_what(
    tmp_path: Path, experiment_on: Callable[..., Experiment]
) -> None:
    experiment = experiment_on(tmp_path)
    manifest = build_manifest(experiment, [TASK], [], {"m": {"sha256": "1"}}, {"d": "2"})
    folder = RunFolder(tmp_path / "run")
    open_run(folder, manifest)
    primary = {"metric": "strict", "comparison": None, "unit": "task"}
    assert folder.manifest == {**manifest, "primary": primary}
    assert manifest["tasks"] == ["t1"]
    assert manifest["hashes"]["models"] == {"m": {"sha256": "1"}}
    assert manifest["versions"]["dspy"].startswith("3.")
    open_run(folder, {**manifest, "created": "later"})


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
        experiment = experiment_on(tmp_path, **rest)
        return build_manifest(experiment, [task], [file], {"m": {"h": model}}, {"d": prompt})

    folder = RunFolder(tmp_path / "run")
    open_run(folder, manifest())
    before = folder.manifest
    with pytest.raises(UsageError, match=rf"{named} changed.*--out") as caught:
        open_run(folder, manifest(**change))  # type: ignore[arg-type]
    assert str(folder.path) in str(caught.value)
    assert folder.manifest == before


def test_hashes_follow_contents_alone(tmp_path: Path) -> None:
    one, two = tmp_path / "1", tmp_path / "2"
    one.write_text("a", encoding="utf-8")
    two.write_text("b", encoding="utf-8")
    assert hash_files([one, two]) == hash_files([two, one]) != hash_files([one])
    assert hash_tasks([TASK]) == hash_tasks([Task("t1", "Which?", "ASK {}", "http://other/")])
    assert hash_tasks([TASK]) != hash_tasks([TASK, TASK])
