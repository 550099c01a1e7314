"""A stream learns step by step, and is then evaluated frozen."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from reasoningbank.agents import AGENTS, Attempt, Episode
from reasoningbank.analysis import summarise
from reasoningbank.corpus import Task
from reasoningbank.errors import UsageError
from reasoningbank.experiment import Experiment, Progress, RunFolder, TrialKey
from reasoningbank.experiment.memory_sources import read_snapshot
from reasoningbank.experiment.plan import permuted, plan_run
from reasoningbank.experiment.sampling import AGAIN
from reasoningbank.trajectory import Trajectory, Usage

from .orchard import STREAM, TEST

Make = Callable[..., Experiment]
Run = Callable[..., RunFolder]
NONE: dict[str, Any] = {"name": "none", "agent": "pupil", "stream": True}
LEARNED: dict[str, Any] = {"name": "learned", "agent": "pupil", "memory": "learned"}


def test_what_a_stream_learns_helps_on_held_out_tasks(learning: Make, run: Run) -> None:
    folder = run(learning(NONE, LEARNED))
    strict = {record.key: record.strict for record in folder.trials()}
    assert len(strict) == 2 * (len(STREAM) + len(TEST))
    assert [strict[TrialKey("none", task, 0)] for task in TEST] == [False, True, False, True]
    assert all(strict[TrialKey("learned", task, 0)] for task in TEST)
    steps = folder.taken("learned", 0)
    assert [step.task for step in steps] == [
        task.id for task in permuted(plan_run(learning(NONE, LEARNED)).stream, 0)
    ]
    assert sorted(step.task for step in steps) == STREAM
    first_success = next(step for step in steps if step.success)
    assert first_success.added
    assert first_success.judges["execution"]
    assert first_success.used == "execution"
    online = summarise(folder.trials()).online
    assert online is not None
    assert online.curves["learned"].mean[-1] > online.curves["none"].mean[-1]


class Listener:
    """Corrects itself once the prompt says that it was wrong."""

    uses_lm, sees_gold = False, False

    def solve(self, task: Task, episode: Episode) -> Attempt:
        number = int(re.findall(r"higher than (\d+)", task.query)[0])
        name = "height" if AGAIN.split("{")[0] in task.query else "size"
        query = f"SELECT ?plant WHERE {{ ?plant t:{name} ?h . FILTER(?h > {number}) }}"
        episode.recorder.add("step", {"step": "asked", "question": task.query})
        return Attempt(query, "", "submitted", Usage(lm_calls=1), episode.recorder.trajectory())


def test_a_teacher_helps_in_the_stream_and_nowhere_else(
    learning: Make, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(AGENTS, "listener", Listener)
    arms = ({**NONE, "agent": "listener"}, {**LEARNED, "agent": "listener"})
    practice = {"tasks": {"ids": STREAM}, "attempts": 3}
    folder = run(learning(*arms, learning=practice))
    for record in folder.trials():
        taught = record.key.arm == "learned" and record.step is not None
        asked = [
            event.data["question"]
            for trajectory in (record.trajectory, *map(trajectory_of, record.rollouts))
            for event in trajectory.of("step")
        ]
        assert (record.strict, len(asked)) == ((True, 2) if taught else (False, 1)), record.key
        # What the teacher says holds no row and no part of the gold.
        assert not any("t:height" in question or "t:oak" in question for question in asked)
    steps = folder.taken("learned", 0)
    assert all(step.success and step.added for step in steps)


def trajectory_of(attempt: Mapping[str, Any]) -> Trajectory:
    return Trajectory.from_json(attempt["trajectory"])


def test_each_trial_says_which_bank_it_saw(learning: Make, run: Run) -> None:
    folder = run(learning())
    steps = folder.taken("learned", 0)
    for step in steps:
        record = folder.read(TrialKey("learned", step.task, 0))
        assert (record.step, record.memory) == (step.step, step.before)
        shown = {
            item["id"]
            for event in record.trajectory.of("memory_retrieved")
            for item in event.data["items"]
        }
        assert shown == set(step.retrieved)
        assert shown <= {item.id for item in read_snapshot(folder, step.before).items}
    assert [a.after for a in steps[:-1]] == [b.before for b in steps[1:]]
    final = steps[-1].after
    for task in TEST:
        record = folder.read(TrialKey("learned", task, 0))
        assert (record.step, record.memory) == (None, final)
        (event,) = record.trajectory.of("memory_retrieved")
        assert event.data["items"]


def test_orders_are_shared_by_arms_and_differ_by_seed(learning: Make) -> None:
    other = {**LEARNED, "name": "successes", "memory": {"source": "learned", "kinds": ["success"]}}
    plan = plan_run(learning(NONE, LEARNED, other, seeds=[0, 1]))
    orders: dict[tuple[str, int], list[str]] = {}
    for job in plan.jobs:
        if job.step is not None:
            orders.setdefault((job.key.arm, job.key.seed), []).append(job.task.id)
    assert len(orders) == 6
    for seed in (0, 1):
        assert orders["none", seed] == orders["learned", seed] == orders["successes", seed]
    assert orders["none", 0] != orders["none", 1]
    assert {job.step for job in plan.jobs if job.key.arm == "none"} == {None, *range(len(STREAM))}


def test_what_memory_changed_is_distinguished_from_what_came_with_it(
    learning: Make, run: Run
) -> None:
    tasks = {"tasks": {"ids": STREAM}, "consolidate": False}
    folder = run(learning(NONE, LEARNED, learning=tasks))
    steps = folder.taken("learned", 0)
    assert all(step.control == f"none/{step.task}.0" for step in steps)
    items = read_snapshot(folder, steps[-1].after).items
    shown = [item for item in items if item.counters.retrieved]
    assert shown
    for item in items:
        of = [step for step in steps if item.id in step.retrieved]
        assert item.counters.retrieved == len(of)
        assert item.counters.success == sum(step.success is True for step in of)
        changed = [
            step
            for step in of
            if step.success and not folder.read(TrialKey("none", step.task, 0)).strict
        ]
        assert (item.counters.helped, item.counters.hurt) == (len(changed), 0)
    assert any(item.counters.helped for item in shown)


def test_streams_run_side_by_side_to_the_same_end(learning: Make, run: Run) -> None:
    one = run(learning(seeds=[0, 1, 2]), "one")
    many = run(learning(seeds=[0, 1, 2], executor={"workers": 3}), "many")
    for seed in range(3):
        ends = [f.taken("learned", seed)[-1].after for f in (one, many)]
        assert ends[0] == ends[1]
    assert {record.key for record in one.trials()} == {record.key for record in many.trials()}


def test_evaluation_and_stream_may_share_no_group(learning: Make) -> None:
    with pytest.raises(UsageError) as caught:
        plan_run(learning(tasks={"ids": ["t004"]}, learning={"tasks": {"ids": ["t000", "t004"]}}))
    assert (caught.value.code, caught.value.fields["task"]) == ("shared-group", "t004")


def test_nothing_is_learned_of_the_test_split(learning: Make) -> None:
    with pytest.raises(UsageError) as caught:
        plan_run(learning(tasks={"ids": ["t001"]}, learning={"tasks": {"ids": ["t000", "t012"]}}))
    assert (caught.value.code, caught.value.fields["task"]) == ("held-out-task", "t012")


def test_what_is_learned_from_is_hidden_as_what_is_evaluated(learning: Make) -> None:
    plan = plan_run(learning())
    assert {*STREAM, *TEST} <= plan.hidden


def test_a_limited_stream_goes_on_later_and_is_evaluated_when_it_is_whole(
    learning: Make, run: Run
) -> None:
    reported: list[str] = []
    folder = run(learning(), limit=2, on_notice=reported.append)
    assert len(folder.taken("learned", 0)) == 2
    assert reported == ["2 trials not run: stream learned.0 is at step 2 of 6"]
    assert all(record.step is not None for record in folder.trials())
    whole = run(learning(), "whole")
    run(learning())
    for name in ("learning/learned.0", "memory"):
        mine, other = (
            sorted(path.name for path in (f.path / name).iterdir()) for f in (folder, whole)
        )
        assert mine == other
    assert len(list(folder.trials())) == len(STREAM) + len(TEST)


def test_an_arm_alone_waits_for_those_it_rests_on(learning: Make, run: Run) -> None:
    control = {
        "name": "random",
        "agent": "pupil",
        "memory": {"source": "random", "of": "learned"},
    }
    experiment = learning(NONE, LEARNED, control)
    with pytest.raises(UsageError, match=r"stream learned\.0 is at step 0 of 6"):
        run(experiment, only=["random"])
    with pytest.raises(UsageError, match=r"stream learned\.0 waits for the trials of none"):
        run(experiment, only=["learned"])
    folder = run(experiment, only=["none"])
    spoiled = next(record for record in folder.trials() if record.step is not None)
    folder.write(replace(spoiled, status="error", verdict=None))
    with pytest.raises(UsageError, match=r"stream learned\.0 waits for the trials of none"):
        run(experiment, only=["learned"])
    run(experiment, again=[spoiled.key], missing=False)
    run(experiment, only=["learned"])
    folder = run(experiment, only=["random"])
    assert {record.key.arm for record in folder.trials()} == {"none", "learned", "random"}
    reported: list[str] = []
    run(experiment, tasks=["t001", "t000"], on_notice=reported.append)
    assert reported == []


def test_what_waited_begins_with_the_agent_that_ran_last(
    learning: Make, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(AGENTS, "twin", AGENTS["pupil"])
    memory = {"source": "learned", "of": "learned"}
    twins = [
        {"name": "twin_none", "agent": "twin"},
        {"name": "twin", "agent": "twin", "memory": memory},
    ]
    began: list[str] = []

    def note(progress: Progress) -> None:
        if progress.record is None:
            began.append(progress.key.arm)

    run(learning({"name": "none", "agent": "pupil"}, LEARNED, *twins), on_progress=note)
    assert list(dict.fromkeys(began)) == ["none", "learned", "twin_none", "twin"]
    assert began[-1] == "learned"
