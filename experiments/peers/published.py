"""The training examples that every arm may see."""

from __future__ import annotations

from reasoningbank.agents import Episode
from reasoningbank.corpus import Task, load_corpus
from reasoningbank.experiment.plan import select_tasks
from reasoningbank.experiment.settings import TaskSelection


def published(episode: Episode, per_template: int | None = 1) -> list[Task]:
    """Return training tasks with their golds, without those that the leakage filter hides.

    With the same `per_template` these are the tasks of `[learning] tasks = { split = "train",
    per_template = … }`, of which gold memory is made.
    """
    tasks = load_corpus(episode.required_pack("peers")).tasks
    selection = TaskSelection(split="train", per_template=per_template)
    return [task for task in select_tasks(tasks, selection) if task.id not in episode.hidden]
