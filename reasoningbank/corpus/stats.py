"""What a list of tasks holds, in counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TypedDict

from reasoningbank.corpus.task import Task

__all__ = ["TaskStats", "get_task_stats"]


class TaskStats(TypedDict):
    """Counts; the mappings are ordered from the most frequent down."""

    total: int
    by_complexity: dict[str, int]
    by_endpoint: dict[str, int]
    by_form: dict[str, int]
    by_feature: dict[str, int]
    groups: int
    top_keywords: dict[str, int]


def get_task_stats(tasks: Iterable[Task], top: int = 20) -> TaskStats:
    """Count tasks by complexity, endpoint, form, feature and keyword.

    Args:
        tasks: Any tasks; an empty list has zero of everything.
        top: How many keywords to name, at least 0.

    Examples:
        >>> t = Task("t1", "Which taxa?", "ASK {}", "http://e/", ("taxon",), form="ASK")
        >>> stats = get_task_stats([t])
        >>> stats["total"], stats["by_form"], stats["top_keywords"]
        (1, {'ASK': 1}, {'taxon': 1})
    """
    listed = list(tasks)

    def counted(values: Iterable[str], most: int | None = None) -> dict[str, int]:
        # Ties are broken by name, so that the same corpus always gives the same table.
        counts = sorted(Counter(values).items(), key=lambda item: (-item[1], item[0]))
        return dict(counts[:most])

    return TaskStats(
        total=len(listed),
        by_complexity=counted(t.complexity for t in listed),
        by_endpoint=counted(t.endpoint for t in listed),
        by_form=counted(t.form for t in listed),
        by_feature=counted(f for t in listed for f in t.features),
        groups=len({t.group for t in listed}),
        top_keywords=counted((k for t in listed for k in t.keywords), max(0, top)),
    )
