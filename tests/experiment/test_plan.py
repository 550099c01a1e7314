"""Which trials are run, and in which order."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from reasoningbank.corpus import Task, load_shacl_tasks, split_tasks
from reasoningbank.errors import UsageError
from reasoningbank.experiment import (
    Arm,
    Experiment,
    TaskSelection,
    parse_experiment,
    plan_trials,
    select_tasks,
)
from reasoningbank.experiment.plan import hidden_tasks, plan_run

BANKS = Path(__file__).parents[2] / "experiments" / "banks"
TASKS = [
    Task(
        f"t{i}",
        "?",
        "ASK {}",
        "http://e/",
        complexity="simple" if i % 2 else "complex",
        form="SELECT" if i % 3 else "ASK",
        group=f"g{i}",
    )
    for i in range(30)
]


def ids(selection: TaskSelection) -> list[str]:
    return [task.id for task in select_tasks(TASKS, selection)]


def test_all_in_corpus_order_or_exactly_the_ids_in_theirs() -> None:
    assert ids(TaskSelection()) == [task.id for task in TASKS]
    assert ids(TaskSelection(ids=("t9", "t2"))) == ["t9", "t2"]
    part = "train" if "t9" in ids(TaskSelection(split="train")) else "test"
    assert ids(TaskSelection(ids=("t9",), split=part)) == ["t9"]  # type: ignore[arg-type]
    with pytest.raises(UsageError) as caught:
        ids(TaskSelection(ids=("t9", "t2"), split="test" if part == "train" else "train"))
    assert (caught.value.code, caught.value.where) == ("ids-left-out", "tasks.ids")


def test_filters_are_joined() -> None:
    chosen = select_tasks(TASKS, TaskSelection(complexity=("simple",), forms=("ASK",)))
    assert [task.id for task in chosen] == ["t3", "t9", "t15", "t21", "t27"]


def test_splits_are_those_of_the_corpus_and_disjoint() -> None:
    parts = [set(ids(TaskSelection(split=name))) for name in ("train", "dev", "test")]  # type: ignore[arg-type]
    assert parts[0] == {task.id for task in split_tasks(TASKS).train}
    assert sum(map(len, parts)) == len(set().union(*parts)) == len(TASKS)


def test_a_sample_is_the_same_each_time_and_grows() -> None:
    five = ids(TaskSelection(sample=5))
    assert five == ids(TaskSelection(sample=5))
    assert len(five) == 5
    assert set(five) < set(ids(TaskSelection(sample=9)))
    assert ids(TaskSelection(sample=5, sample_seed=1)) != five
    assert len(ids(TaskSelection(sample=500))) == len(TASKS)


def test_an_unknown_id_suggests_near_ones() -> None:
    with pytest.raises(UsageError, match=r"unknown task 't99'; did you mean t9"):
        ids(TaskSelection(ids=("t99",)))
    with pytest.raises(UsageError, match="tasks list"):
        ids(TaskSelection(ids=("zzzzzzzz",)))


def test_a_selection_that_leaves_nothing_is_reported() -> None:
    with pytest.raises(UsageError, match="leaves no task"):
        ids(TaskSelection(complexity=("moderate",)))


def test_arms_follow_one_another_with_all_seeds(
    experiment_on: Callable[..., Experiment],
) -> None:
    experiment = experiment_on(
        Path("p"),
        {"name": "a", "agent": "oracle"},
        {"name": "b", "agent": "oracle", "first": 2},
        {"name": "c", "agent": "oracle", "tasks": ["t7"]},
        seeds=[0, 3],
    )
    planned = plan_trials(experiment, TASKS[:8], limit=3)
    keys = [(key.arm, key.task, key.seed) for key in (job.key for job in planned)]
    assert keys == [
        *(("a", task, seed) for task in ("t0", "t1", "t2") for seed in (0, 3)),
        *(("b", task, seed) for task in ("t0", "t1") for seed in (0, 3)),
        *(("c", "t7", seed) for seed in (0, 3)),
    ]
    assert all((job.arm.name, job.task.id) == (job.key.arm, job.key.task) for job in planned)


def test_an_arms_unknown_task_is_reported(experiment_on: Callable[..., Experiment]) -> None:
    experiment = experiment_on(Path("p"), {"name": "a", "agent": "oracle", "tasks": ["t77"]})
    with pytest.raises(UsageError, match="unknown task 't77'"):
        plan_trials(experiment, TASKS)


def test_hidden_are_the_test_split_and_the_groups_of_the_run() -> None:
    corpus = load_shacl_tasks("uniprot")
    split = split_tasks(corpus)
    chosen = split.train[0]
    hidden = hidden_tasks(corpus, [chosen])
    assert {task.id for task in split.test} <= hidden
    assert {task.id for task in corpus if task.group == chosen.group} <= hidden
    shown = {task.id for task in corpus} - hidden
    assert shown
    assert not {task.group for task in corpus if task.id in shown} & {
        task.group for task in corpus if task.id in hidden
    }


def test_questions_come_in_the_language_that_is_asked_for() -> None:
    arm = Arm(name="one", agent="oracle")
    tasks = TaskSelection(sample=3)
    english, italian = (
        plan_run(Experiment(name="x", pack="liita", language=one, tasks=tasks, arms=(arm,))).tasks
        for one in ("en", "it")
    )
    assert [task.id for task in english] == [task.id for task in italian]
    assert {task.language for task in italian} == {"it"}
    assert not {task.query for task in english} & {task.query for task in italian}
    with pytest.raises(UsageError, match="choose it or en"):
        plan_run(Experiment(name="x", pack="liita", language="de", arms=(arm,)))


@pytest.mark.parametrize(("leave_out", "trials"), [("run", 3), ("group", 3), ("none", 0)])
def test_an_arm_of_examples_without_any_is_reported(
    make_pack: Callable[..., Path], experiment_on: Callable[..., Experiment],
    leave_out: str, trials: int,
) -> None:  # fmt: skip
    arms = [{"name": "rag", "agent": "rag"}, {"name": "oracle", "agent": "oracle"}]
    # The three tasks are one group.
    plan = plan_run(experiment_on(make_pack(3), *arms, leave_out=leave_out))
    assert [(one.code, one.fields["arm"], one.fields["trials"]) for one in plan.denied] == (
        [("no-examples", "rag", trials)] if trials else []
    )


@pytest.mark.parametrize(("split", "trials"), [("all", 214), ("dev", 0)])
def test_an_arm_of_golds_without_any_is_reported(split: str, trials: int) -> None:
    memory = {"source": "gold"}
    arms = [{"name": "gold", "agent": "direct", "memory": memory}, {"name": "o", "agent": "oracle"}]
    experiment = parse_experiment(
        {"name": "x", "pack": "liita", "arms": arms, "tasks": {"split": split}}
    )
    plan = plan_run(experiment)
    assert [(one.code, one.fields["arm"], one.fields["trials"]) for one in plan.denied] == (
        [("no-examples", "gold", trials)] if trials else []
    )


@pytest.mark.parametrize(("split", "trials"), [("all", 161), ("dev", 0)])
def test_an_arm_whose_bank_rests_on_what_is_evaluated_is_reported(split: str, trials: int) -> None:
    memory = {"source": "bank", "bank": str(BANKS / "uniprot.jsonl")}
    arms = [{"name": "bank", "agent": "direct", "memory": memory}, {"name": "o", "agent": "oracle"}]
    plan = plan_run(
        parse_experiment({"name": "x", "pack": "uniprot", "arms": arms, "tasks": {"split": split}})
    )
    assert [(one.code, one.fields["arm"], one.fields["trials"]) for one in plan.denied] == (
        [("no-examples", "bank", trials)] if trials else []
    )


@pytest.mark.parametrize(
    ("changes", "denied"),
    [
        ({}, ["rag", "graph"]),
        ({"tasks": {"split": "dev"}}, []),
        ({"leave_out": "group"}, []),
        ({"pack": "liita-test"}, []),
    ],
)
def test_arms_whose_examples_are_all_hidden_are_named(
    changes: dict[str, object], denied: list[str]
) -> None:
    bare = {"name": "bare", "agent": "rag", "options": {"top_k": 0}}
    arms = [*({"name": one, "agent": one} for one in ("rag", "graph", "direct")), bare]
    experiment = parse_experiment({"name": "x", "pack": "liita", "arms": arms, **changes})
    found = plan_run(experiment).denied
    assert [(one.code, one.fields["arm"]) for one in found] == [("no-examples", n) for n in denied]
