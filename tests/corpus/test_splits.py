"""Statistics, samples and splits of tasks."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from reasoningbank.corpus import Task, get_task_stats, groups_of, sample_tasks, split_tasks
from reasoningbank.errors import UsageError


def make_tasks(groups: int = 40) -> list[Task]:
    kinds = [("simple", "SELECT"), ("moderate", "SELECT"), ("complex", "SELECT"), ("simple", "ASK")]
    tasks = []
    for g in range(groups):
        complexity, form = kinds[g % 4]
        tasks += [
            Task(
                f"t{g}_{i}",
                "?",
                "",
                "http://e/",
                keywords=("all", form.lower()),
                complexity=complexity,  # type: ignore[arg-type]
                form=form,  # type: ignore[arg-type]
                group=f"g{g}",
            )
            for i in range(1 + g % 5)
        ]
    return tasks


def test_no_group_is_in_two_parts_and_nothing_is_lost() -> None:
    tasks = make_tasks()
    split = split_tasks(tasks)
    parts = [split.train, split.dev, split.test]
    assert sorted(t.id for part in parts for t in part) == sorted(t.id for t in tasks)
    groups = [{t.group for t in part} for part in parts]
    assert not groups[0] & groups[1]
    assert not groups[0] & groups[2]
    assert not groups[1] & groups[2]
    assert split.part_of(split.dev[0].id) == "dev"
    assert split.part_of("nobody") is None


def test_parts_have_their_share_of_every_kind() -> None:
    tasks = make_tasks()
    shares = {"train": 0.5, "dev": 0.2, "test": 0.3}
    split = split_tasks(tasks, shares)
    kinds = Counter((t.complexity, t.form) for t in tasks)
    for name, share in shares.items():
        part = getattr(split, name)
        assert len(part) == pytest.approx(share * len(tasks), abs=4)
        for kind, n in kinds.items():
            found = sum((t.complexity, t.form) == kind for t in part)
            assert found == pytest.approx(share * n, abs=4)


def test_a_split_depends_on_seed_and_groups_alone() -> None:
    tasks = make_tasks()
    shuffled = random.Random(7).sample(tasks, len(tasks))
    assert split_tasks(tasks) == split_tasks(shuffled)
    assert split_tasks(tasks, seed=1) != split_tasks(tasks)


def test_a_part_with_no_share_stays_empty() -> None:
    split = split_tasks(make_tasks(), {"train": 0.5, "test": 0.5})
    assert split.dev == ()
    assert abs(len(split.train) - len(split.test)) <= 4
    assert split_tasks([]).train == ()


@pytest.mark.parametrize("shares", [{"train": 0.5}, {"train": 1.5, "dev": -0.5}, {"all": 1.0}])
def test_shares_that_are_none_are_refused(shares: dict[str, float]) -> None:
    with pytest.raises(UsageError):
        split_tasks(make_tasks(4), shares)


def test_a_task_without_a_group_is_one_by_itself() -> None:
    tasks = [Task(i, "?", "", "http://e/") for i in "ab"]
    assert len(groups_of(tasks)) == 2


def test_stats_count_and_order() -> None:
    stats = get_task_stats(make_tasks(8))
    assert stats["total"] == 21
    assert stats["by_form"] == {"SELECT": 14, "ASK": 7}
    assert sum(stats["by_complexity"].values()) == 21
    assert stats["by_endpoint"] == {"http://e/": 21}
    assert stats["groups"] == 8
    assert next(iter(stats["top_keywords"].items())) == ("all", 21)
    assert len(get_task_stats(make_tasks(8), top=1)["top_keywords"]) == 1
    assert get_task_stats([])["total"] == 0


def test_samples_are_the_same_each_time_and_nested() -> None:
    tasks = make_tasks()
    shuffled = random.Random(7).sample(tasks, len(tasks))
    assert sample_tasks(tasks, 10) == sample_tasks(shuffled, 10)
    assert sample_tasks(tasks, 10)[:4] == sample_tasks(tasks, 4)
    assert sample_tasks(tasks, 10) != sample_tasks(tasks, 10, seed=1)
    assert len({t.id for t in sample_tasks(tasks, 10)}) == 10


def test_samples_of_one_complexity_and_of_more_than_there_is() -> None:
    tasks = make_tasks()
    assert {t.complexity for t in sample_tasks(tasks, 5, "complex")} == {"complex"}
    assert len(sample_tasks(tasks, 10_000)) == len(tasks)
    assert sample_tasks(tasks, 0) == []
    with pytest.raises(UsageError, match="-1"):
        sample_tasks(tasks, -1)
    with pytest.raises(UsageError, match="easy"):
        sample_tasks(tasks, 1, "easy")  # type: ignore[arg-type]
