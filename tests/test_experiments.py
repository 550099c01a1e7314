"""The experiments that come with the harness: each can be run, and a dry run says what it takes."""

from __future__ import annotations

from pathlib import Path

import pytest

from reasoningbank.corpus import load_corpus
from reasoningbank.experiment import RunFolder, load_experiment, plan_run
from reasoningbank.experiment.estimate import estimate_run

FOLDER = Path(__file__).parent.parent / "experiments"
FILES = sorted(FOLDER.glob("*.toml"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_it_loads_and_its_names_exist(file: Path, tmp_path: Path) -> None:
    experiment = load_experiment(file)
    if experiment.pack.startswith("build/"):
        # Its header says how the pack is built, in minutes: the same templates, another seed.
        pack = experiment.pack.removeprefix("build/").replace("-7", "")
        experiment = experiment.model_copy(update={"pack": pack})
    assert experiment.name == file.stem, "its records would be looked for elsewhere"
    assert experiment.title
    plan = plan_run(experiment)
    assert {job.arm.name for job in plan.jobs} == {arm.name for arm in experiment.arms}
    reported = estimate_run(experiment, RunFolder(tmp_path / "run"), plan.jobs)
    assert reported.todo == len(plan.jobs)
    for arm in reported.arms:
        # What the README says of cost and time rests on measured trials; of peers there are none.
        assert arm.match != "none" or arm.agent.startswith("experiments.peers.")
    assert not (tmp_path / "run").exists()


def test_a_second_look_asks_what_nobody_has_met() -> None:
    plan = plan_run(load_experiment(FOLDER / "liita_memory_fresh.toml"))
    known = {task.group for task in load_corpus("liita").tasks}
    groups = [task.group for task in plan.tasks]
    assert len(set(groups)) == len(groups) == 64
    assert not known & set(groups)


def test_the_readme_names_each() -> None:
    text = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert [file.name for file in FILES if f"`{file.name}`" not in text] == []
