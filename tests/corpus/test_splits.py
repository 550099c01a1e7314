"""Statistics, samples and splits of tasks."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reasoningbank.corpus import Corpus, Task, get_task_stats, groups_of, sample_tasks, split_tasks
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


_FORMS = ("SELECT", "ASK", "CONSTRUCT", "DESCRIBE")
_COMPLEXITIES = ("simple", "moderate", "complex")


@st.composite
def corpora(draw: st.DrawFn) -> list[Task]:
    """Tasks of any kinds in groups of any sizes, with any names."""
    kinds = st.tuples(st.sampled_from(_FORMS), st.sampled_from(_COMPLEXITIES))
    groups = draw(
        st.dictionaries(st.text(max_size=8), st.lists(kinds, min_size=1, max_size=6), max_size=40)
    )
    return [
        Task(f"{name}/{i}", "?", "", "http://e/", form=form, complexity=complexity, group=name)  # type: ignore[arg-type]
        for name, group in groups.items()
        for i, (form, complexity) in enumerate(group)
    ]


@settings(deadline=None)
@given(tasks=corpora(), seed=st.integers(0, 9))
def test_any_corpus_is_split_whole_by_group(tasks: list[Task], seed: int) -> None:
    parts = split_tasks(tasks, seed=seed).by_id()
    assert sorted(parts) == sorted(task.id for task in tasks)
    for group in groups_of(tasks).values():
        assert len({parts[task.id] for task in group}) == 1


@settings(deadline=None)
@given(tasks=corpora(), seed=st.integers(0, 9))
def test_each_stratum_has_its_share_to_within_a_group_at_each_cut(
    tasks: list[Task], seed: int
) -> None:
    shares = {"train": 0.5, "dev": 0.2, "test": 0.3}
    # One form and one complexity: the stratum is the whole corpus.
    tasks = [replace(task, form="ASK", complexity="simple") for task in tasks]
    counts = Counter(split_tasks(tasks, shares, seed).by_id().values())
    largest = max((len(group) for group in groups_of(tasks).values()), default=0)
    for part, share in shares.items():
        # An arc has two ends, and at each a group is in or out by its middle.
        assert abs(counts[part] - share * len(tasks)) <= largest + 1e-9


@settings(deadline=None)
@given(tasks=corpora(), more=st.integers(1, 6), seed=st.integers(0, 9))
def test_a_group_that_is_added_moves_only_what_lies_at_the_cuts_of_its_stratum(
    tasks: list[Task], more: int, seed: int
) -> None:
    new = [Task(f"new/{i}", "?", "", "http://e/", group="another group") for i in range(more)]
    before = split_tasks(tasks, seed=seed).by_id()
    after = split_tasks([*tasks, *new], seed=seed).by_id()
    moved = {task_id for task_id in before if before[task_id] != after[task_id]}
    by_id = {task.id: task for task in tasks}
    largest = max((len(group) for group in groups_of(tasks).values()), default=0)
    assert len(moved) <= 3 * (more + largest)
    for group in groups_of([by_id[task_id] for task_id in moved]).values():
        assert {task.form for task in group} == {"SELECT"}


def test_a_corpus_that_grows_keeps_nearly_every_task_in_its_part() -> None:
    tasks = make_tasks(60)
    whole = split_tasks(tasks).by_id()
    moved = 0
    for task in tasks:
        before = split_tasks([t for t in tasks if t is not task]).by_id()
        moved += sum(whole[task_id] != part for task_id, part in before.items())
    # On average, of the others, when one task is added.
    assert moved / len(tasks) / (len(tasks) - 1) < 0.03


def test_a_part_with_no_share_stays_empty() -> None:
    split = split_tasks(make_tasks(), {"train": 0.5, "test": 0.5})
    assert split.dev == ()
    assert abs(len(split.train) - len(split.test)) <= 4
    assert split_tasks([]).train == ()


@pytest.mark.parametrize(
    "shares",
    [
        {"train": 0.5},
        {"train": 1.5, "dev": -0.5},
        {"all": 1.0},
        {"train": float("nan"), "dev": 1.0},
    ],
)
def test_shares_that_are_none_are_refused(shares: dict[str, float]) -> None:
    with pytest.raises(UsageError):
        split_tasks(make_tasks(4), shares)


def test_groups_and_splits_are_part_of_a_corpus() -> None:
    tasks = make_tasks(8)
    corpus = Corpus("mine", tuple(tasks), ())
    assert corpus.groups == groups_of(tasks)
    assert corpus.split() == split_tasks(tasks)
    assert corpus.split(seed=2) == split_tasks(tasks, seed=2)


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
    assert len(sample_tasks(tasks)) == 10
    with pytest.raises(UsageError, match="-1"):
        sample_tasks(tasks, -1)
    with pytest.raises(UsageError, match="easy"):
        sample_tasks(tasks, 1, "easy")  # type: ignore[arg-type]
