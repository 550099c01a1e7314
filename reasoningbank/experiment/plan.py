"""Which trials an experiment consists of, in the order in which they run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from reasoningbank.agents import make_agent
from reasoningbank.corpus import (
    Pack,
    Task,
    corpus_prefixes,
    find_task,
    groups_of,
    load_pack,
    load_shacl_tasks,
    sample_tasks,
    split_tasks,
)
from reasoningbank.errors import UsageError
from reasoningbank.experiment.config import Experiment, TaskSelection
from reasoningbank.experiment.executors import Job
from reasoningbank.experiment.trial_record import TrialKey

__all__ = ["Plan", "hidden_tasks", "plan_run", "plan_trials", "select_tasks"]


@dataclass(frozen=True)
class Plan:
    """What an experiment comes to on its pack; nothing is opened yet.

    Attributes:
        pack: The domain pack.
        corpus: All tasks of the pack.
        tasks: The experiment's tasks.
        hidden: Ids of the tasks whose examples no tool shows.
        jobs: The trials that were asked for, in the order in which they run.
    """

    pack: Pack
    corpus: tuple[Task, ...]
    tasks: tuple[Task, ...]
    hidden: frozenset[str]
    jobs: tuple[Job, ...]

    @property
    def services(self) -> list[str]:
        """What SERVICE may name at a running endpoint."""
        return [url for task in self.corpus for url in task.federates_with]


def plan_run(
    experiment: Experiment,
    *,
    limit: int | None = None,
    only: Sequence[str] = (),
    tasks: Sequence[str] = (),
) -> Plan:
    """Plan an experiment's run.

    Args:
        experiment: The experiment.
        limit: Only the first so many tasks of each arm.
        only: Only these arms; empty for all.
        tasks: Only these of the experiment's tasks; empty for all.

    Raises:
        UsageError: If the experiment, `only` or `tasks` names what does not exist.
    """
    for arm in experiment.arms:
        make_agent(arm.agent)
    pack = load_pack(experiment.pack)
    corpus = load_shacl_tasks(experiment.pack)
    selected = select_tasks(corpus, experiment.tasks)
    hidden = hidden_tasks(corpus, selected)
    if not pack.prefixes:
        # A bare folder of examples: what they declare is all that is known of namespaces.
        shown = (task.expected_sparql for task in corpus if task.id not in hidden)
        pack = replace(pack, prefixes=corpus_prefixes(shown))
    wanted = {find_task(selected, task_id).id for task_id in tasks}
    names = [arm.name for arm in experiment.arms]
    for name in only:
        if name not in names:
            raise UsageError(f"unknown arm {name!r}", mend=f"choose from {', '.join(names)}")
    jobs = [
        job
        for job in plan_trials(experiment, selected, None if wanted else limit)
        if (not only or job.arm.name in only) and (not wanted or job.task.id in wanted)
    ]
    return Plan(pack, tuple(corpus), tuple(selected), hidden, tuple(jobs))


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
) -> list[Job]:
    """Return every trial of the experiment, arm by arm.

    An arm's trials follow one another, since a local model keeps the beginning of an arm's
    prompt in its cache.

    Args:
        experiment: The experiment.
        tasks: The selected tasks.
        limit: Only the first so many tasks of each arm.
    """
    planned: list[Job] = []
    for arm in experiment.arms:
        mine = [find_task(tasks, task_id) for task_id in arm.tasks] if arm.tasks else list(tasks)
        for task in mine[: arm.first][:limit]:
            planned += [
                Job(arm, task, TrialKey(arm.name, task.id, seed)) for seed in experiment.seeds
            ]
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
