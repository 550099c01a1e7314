"""Banks that the streams of an earlier run ended with, on tasks that were not met there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from reasoningbank.errors import UsageError
from reasoningbank.experiment import Experiment, RunFolder, TrialKey
from reasoningbank.experiment.plan import plan_run

Make = Callable[..., Experiment]
Run = Callable[..., RunFolder]
FRESH = ["t004", "t005", "t010"]


@pytest.fixture
def before(learning: Make, run: Run) -> RunFolder:
    """A run of two orders, kept in other records than those of the run that uses it."""
    folder = run(learning(seeds=[0, 1]), "before")
    ends = {folder.taken("learned", order)[-1].after for order in (0, 1)}
    assert len(ends) == 2
    return folder


def transfer(folder: RunFolder, **rest: Any) -> list[dict[str, Any]]:
    memory = {"source": "bank", "bank": str(folder.path), "stream": "learned", **rest}
    return [
        {"name": "none", "agent": "pupil", "seeds": [0]},
        {"name": "learned", "agent": "pupil", "memory": memory},
        {"name": "random", "agent": "pupil", "memory": {"source": "random", "of": "learned"}},
    ]


def evaluated(learning: Make, *arms: dict[str, Any], seeds: tuple[int, ...] = (0, 1)) -> Experiment:
    return learning(*arms, mode="evaluate", seeds=seeds, tasks={"ids": FRESH}, learning={})


def test_each_seed_has_the_bank_of_its_order(learning: Make, run: Run, before: RunFolder) -> None:
    experiment = evaluated(learning, *transfer(before))
    folder = run(experiment)
    for seed in (0, 1):
        end = before.taken("learned", seed)[-1].after
        for arm in ("learned", "random"):
            memories = {folder.read(TrialKey(arm, task, seed)).memory for task in FRESH}
            assert memories == {end}, (arm, seed)
    right = {arm: sum(r.strict for r in folder.trials() if r.key.arm == arm) for arm in
             ("none", "learned")}  # fmt: skip
    # The pupil knows none of these three by itself, and was taught at both orders.
    assert right == {"none": 0, "learned": 2 * len(FRESH)}


def test_compressed_records_do_as_well_and_others_are_refused(
    learning: Make, run: Run, before: RunFolder
) -> None:
    experiment = evaluated(learning, *transfer(before))
    first = run(experiment, limit=1)
    before.archive(before.path.with_name("kept"))
    kept = RunFolder(before.path.with_name("kept"))
    arms = transfer(kept)
    memory = {r.memory for r in first.trials()}
    assert {r.memory for r in run(evaluated(learning, *arms), "again", limit=1).trials()} == memory
    before.set_aside(before.taken("learned", 1)[-1].name)
    with pytest.raises(UsageError, match="memory banks changed"):
        run(experiment)


def test_what_is_not_there_is_reported_before_anything_runs(
    learning: Make, before: RunFolder
) -> None:
    third = evaluated(learning, *transfer(before)[:2], seeds=(0, 1, 2))
    with pytest.raises(UsageError) as caught:
        plan_run(third)
    assert (caught.value.code, caught.value.where) == ("no-stream", "arm learned")
    with pytest.raises(UsageError) as caught:
        plan_run(evaluated(learning, *transfer(before, stream="")[:2]))
    assert caught.value.code == "not-a-bank"
    with pytest.raises(UsageError) as caught:
        evaluated(learning, *transfer(before, source="learned")[:2])
    assert caught.value.fields["key"] == "arms.learned.memory.stream"
    missing = [*transfer(before)[:2], {**transfer(before)[2], "seeds": [0, 7]}]
    with pytest.raises(UsageError) as caught:
        evaluated(learning, *missing)
    assert caught.value.code == "seed-missing"


def test_tasks_of_the_earlier_stream_are_guarded(
    learning: Make, run: Run, before: RunFolder
) -> None:
    """An evaluation on a task that the bank was learned from shows nothing of it."""
    arms = transfer(before)[:2]
    same = learning(*arms, mode="evaluate", tasks={"ids": ["t002"]}, learning={})
    (record,) = (r for r in run(same).trials() if r.key.arm == "learned")
    (event,) = record.trajectory.of("memory_retrieved")
    assert any(one["code"] == "own-task" for one in event.data["filtered_out"])
