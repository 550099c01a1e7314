"""Which trials an experiment consists of, in the order in which they run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

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
from reasoningbank.corpus.task import shuffle_key
from reasoningbank.errors import RecordError, UsageError
from reasoningbank.experiment.config import Arm, Experiment, TaskSelection
from reasoningbank.experiment.executors import Job
from reasoningbank.experiment.memory_config import find_bank, seeds_of
from reasoningbank.experiment.records import StepFolder, TrialKey
from reasoningbank.lm import parse_name

__all__ = [
    "Plan",
    "hidden_tasks",
    "plan_run",
    "plan_trials",
    "select_tasks",
    "step_is_taken",
    "stream_order",
]


@dataclass(frozen=True)
class Plan:
    """What an experiment comes to on its pack; nothing is opened yet.

    Attributes:
        pack: The domain pack.
        corpus: All tasks of the pack.
        tasks: The experiment's tasks; in mode `learn` those of the evaluation.
        hidden: Ids of the tasks whose examples no tool shows.
        jobs: The trials that were asked for, arm by arm.
        stream: Tasks of the learning stream, in the corpus' order; in mode `evaluate` those that
            exemplars are made of. None where no arm has use for them.
    """

    pack: Pack
    corpus: tuple[Task, ...]
    tasks: tuple[Task, ...]
    hidden: frozenset[str]
    jobs: tuple[Job, ...]
    stream: tuple[Task, ...] = ()

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
        limit: Only the first so many tasks of each arm; of a stream, its first so many steps.
        only: Only these arms; empty for all.
        tasks: Only these of the experiment's tasks; empty for all. The stream of an arm that
            learns is then left as it is: it has no steps to pick from.

    Raises:
        UsageError: If the experiment, `only` or `tasks` names what does not exist, or a task of
            the evaluation has a group in common with the stream.
    """
    for arm in experiment.arms:
        make_agent(arm.agent, **arm.options)
        for seed in seeds_of(experiment, arm) if arm.memory.bank else ():
            try:
                find_bank(arm.memory, seed)
            except UsageError as error:
                where = f"arm {arm.name}"
                raise UsageError(
                    error.what, where=where, hint=error.hint, code=error.code
                ) from error
        if arm.memory.distiller != "rules":
            try:
                parse_name(arm.memory.distiller)
            except UsageError as error:
                where, hint = f"arm {arm.name}, memory.distiller", f"{error.hint}; or rules"
                raise UsageError(error.what, where=where, hint=hint) from error
    pack = load_pack(experiment.pack)
    if experiment.language not in (*pack.languages, "en"):
        hint = f"choose {' or '.join(pack.languages)}"
        what = f"{pack.key} asks nothing in {experiment.language!r}"
        raise UsageError(what, where="language", hint=hint)
    corpus = load_shacl_tasks(experiment.pack, language=experiment.language)
    selected = select_tasks(corpus, experiment.tasks)
    stream = _stream(experiment, corpus, selected)
    met = [*selected, *stream] if experiment.mode == "learn" else selected
    hidden = hidden_tasks(corpus, met)
    if not pack.prefixes:
        # A bare folder of examples: what they declare is all that is known of namespaces.
        shown = (task.expected_sparql for task in corpus if task.id not in hidden)
        pack = replace(pack, prefixes=corpus_prefixes(shown))
    wanted = {find_task(met, task_id).id for task_id in tasks}
    names = [arm.name for arm in experiment.arms]
    for name in only:
        if name not in names:
            raise UsageError(f"unknown arm {name!r}", hint=f"choose from {', '.join(names)}")
    jobs = [
        job
        for job in plan_trials(experiment, selected, None if wanted else limit, stream)
        if (not only or job.arm.name in only)
        and (not wanted or (job.task.id in wanted and not job.teaches))
    ]
    return Plan(pack, tuple(corpus), tuple(selected), hidden, tuple(jobs), tuple(stream))


def _stream(experiment: Experiment, corpus: Sequence[Task], selected: Sequence[Task]) -> list[Task]:
    """Return the tasks of the stream, or those that exemplars are made of."""
    learning = experiment.mode == "learn"
    exemplars = any(arm.memory.source == "gold" for arm in experiment.arms)
    if not (learning or exemplars):
        return []
    try:
        stream = select_tasks(corpus, experiment.learning.tasks)
    except UsageError as error:
        raise UsageError(error.what, where="learning.tasks", hint=error.hint) from error
    part = split_tasks(corpus).by_id()
    for task in stream:
        if part[task.id] == "test" or (exemplars and part[task.id] != "train"):
            kept = "no exemplar may be made of it" if exemplars else "nothing may be learned of it"
            raise UsageError(
                f"{task.id} is of the {part[task.id]} split, so that {kept}",
                where="learning.tasks",
                hint='choose tasks of split = "train"',
            )
    if learning:
        of = {task.id: group for group, tasks in groups_of(corpus).items() for task in tasks}
        held_out = {of[task.id]: task.id for task in selected}
        for task in stream:
            if of[task.id] in held_out:
                raise UsageError(
                    f"{task.id} is of the same group as {held_out[of[task.id]]}, which is to "
                    "evaluate what the stream taught",
                    where="learning.tasks",
                    hint='choose tasks of another split, e.g. split = "train"',
                )
    return stream


def stream_order(stream: Sequence[Task], order: int) -> list[Task]:
    """Return the tasks of a stream in one of its orders, the same in every arm.

    A task's place depends on the order's number and the ids of the tasks alone.
    """
    return sorted(stream, key=lambda task: (shuffle_key(order, task.id), task.id))


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
    experiment: Experiment,
    tasks: Sequence[Task],
    limit: int | None = None,
    stream: Sequence[Task] = (),
) -> list[Job]:
    """Return every trial of the experiment, arm by arm.

    An arm's trials follow one another, since a local model keeps the beginning of an arm's
    prompt in its cache.

    Args:
        experiment: The experiment.
        tasks: The selected tasks.
        limit: Only the first so many tasks of each arm, and of each stream.
        stream: Tasks of the learning stream.
    """
    planned: list[Job] = []
    for arm in experiment.arms:
        if experiment.mode == "learn" and (arm.memory.learns or arm.stream):
            for order in seeds_of(experiment, arm):
                planned += _steps(arm, stream_order(stream, order)[:limit], order)
        mine = [find_task(tasks, task_id) for task_id in arm.tasks] if arm.tasks else list(tasks)
        for task in mine[: arm.first][:limit]:
            planned += [
                Job(arm, task, TrialKey(arm.name, task.id, seed))
                for seed in seeds_of(experiment, arm)
            ]
    return planned


def _steps(arm: Arm, tasks: Sequence[Task], order: int) -> list[Job]:
    keys = [TrialKey(arm.name, task.id, order) for task in tasks]
    return [Job(arm, *pair, step) for step, pair in enumerate(zip(tasks, keys, strict=True))]


def hidden_tasks(corpus: Sequence[Task], tasks: Sequence[Task]) -> frozenset[str]:
    """Return the ids whose examples no tool may show in a run of `tasks`.

    These are the test split, and every task of a group that the run has a task of: a question of
    the same template would tell the gold's shape. What a stream learns from counts as well, in
    both phases: else an agent would find its own gold among the examples, and learn to look there.

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


def step_is_taken(run: Path, job: Job) -> bool:
    """Return whether what a trial of a stream teaches is on disk and readable."""
    if job.step is None:
        return False
    try:
        return StepFolder(run, job.key.arm, job.key.seed).read(job.step) is not None
    except RecordError:
        return False
