"""The training examples that every arm may see."""

from __future__ import annotations

from pathlib import Path

from reasoningbank.agents import Episode
from reasoningbank.corpus import Task, load_corpus
from reasoningbank.experiment.plan import select_tasks
from reasoningbank.experiment.settings import TaskSelection

#: By examples' folder, endpoint and number of each template: each question asks for them.
_selected: dict[tuple[Path, str, int | None], tuple[Task, ...]] = {}


def published(episode: Episode, per_template: int | None = 1) -> list[Task]:
    """Return training tasks with their golds, without those that the leakage filter hides.

    With the same `per_template` these are the tasks of `[learning] tasks = { split = "train",
    per_template = … }`, of which gold memory is made.
    """
    pack = episode.required_pack("peers")
    key = pack.examples, pack.endpoint, per_template
    if key not in _selected:
        selection = TaskSelection(split="train", per_template=per_template)
        _selected[key] = tuple(select_tasks(load_corpus(pack).tasks, selection))
    return [task for task in _selected[key] if task.id not in episode.hidden]
