"""Finding a task by its id, and saying which one was probably meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from reasoningbank.corpus.task import Task
from reasoningbank.errors import UsageError

__all__ = ["find_task"]


def find_task(tasks: Iterable[Task], task_id: str, where: str = "tasks") -> Task:
    """Return the task of an id.

    Args:
        tasks: The tasks of a corpus.
        task_id: The id; a part of one is not enough, but is answered with the whole ids.
        where: What an error names as its place.

    Raises:
        UsageError: If there is no such task.

    Examples:
        >>> pool = [Task("024_mass_of_protein", "?", "ASK {}", "http://e/")]
        >>> find_task(pool, "024_mass")
        Traceback (most recent call last):
        ...
        reasoningbank.errors.UsageError: tasks: unknown task '024_mass'; did you mean ...?
    """
    by_id = {task.id: task for task in tasks}
    if task_id in by_id:
        return by_id[task_id]
    near = [known for known in by_id if task_id and task_id in known][:3]
    near = near or difflib.get_close_matches(task_id, by_id, n=3, cutoff=0.4)
    hint = f"did you mean {', '.join(near)}?" if near else "see: reasoningbank tasks list"
    raise UsageError(f"unknown task {task_id!r}", where=where, hint=hint)
