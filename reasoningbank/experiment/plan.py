"""Which trials an experiment consists of, in the order in which they run."""

from __future__ import annotations

from collections.abc import Sequence

from reasoningbank.corpus import Task, find_task, groups_of, sample_tasks, split_tasks
from reasoningbank.errors import UsageError
from reasoningbank.experiment.config import Arm, Experiment, TaskSelection
from reasoningbank.experiment.records import TrialKey

__all__ = ["hidden_tasks", "plan_trials", "select_tasks"]


def select_tasks(tasks: Sequence[Task], selection: TaskSelection) -> list[Task]:
    """Return the tasks an experiment asks for, in corpus order or in the order of its ids.

    Raises:
        UsageError: If an id is unknown, or nothing is left.
    """
    if selection.ids:
        return [find_task(tasks, task_id) for task_id in selection.ids]
    chosen = list(tasks)
    if selection.split != "all":
        chosen = list(getattr(split_tasks(tasks), selection.split))
    if selection.complexity:
        chosen = [task for task in chosen if task.complexity in selection.complexity]
    if selection.forms:
        chosen = [task for task in chosen if task.form in selection.forms]
    if selection.sample is not None and selection.sample < len(chosen):
        drawn = sample_tasks(chosen, selection.sample, seed=selection.sample_seed)
        ids = {task.id for task in drawn}
        chosen = [task for task in chosen if task.id in ids]
    if not chosen:
        raise UsageError("the selection leaves no task", where="tasks")
    return chosen


def plan_trials(
    experiment: Experiment, tasks: Sequence[Task], limit: int | None = None
) -> list[tuple[Arm, Task, TrialKey]]:
    """Return every trial of the experiment, arm by arm.

    An arm's trials follow one another, since a local model keeps the beginning of an arm's
    prompt in its cache.

    Args:
        experiment: The experiment.
        tasks: The selected tasks.
        limit: Only the first so many tasks of each arm.
    """
    planned = []
    for arm in experiment.arms:
        mine = [find_task(tasks, task_id) for task_id in arm.tasks] if arm.tasks else list(tasks)
        for task in mine[: arm.first][:limit]:
            planned += [(arm, task, TrialKey(arm.name, task.id, seed)) for seed in experiment.seeds]
    return planned


def hidden_tasks(corpus: Sequence[Task], tasks: Sequence[Task]) -> frozenset[str]:
    """Return the ids whose examples no tool may show in a run of `tasks`.

    These are the test split, and every task of a group that the run has a task of: a question of
    the same template would tell the gold's shape.

    Args:
        corpus: All tasks of the pack.
        tasks: Those of the run.
    """
    test = {task.id for task in split_tasks(corpus).test}
    run = {task.id for task in tasks}
    for group in groups_of(corpus).values():
        ids = {task.id for task in group}
        if ids & run:
            test |= ids
    return frozenset(test)
