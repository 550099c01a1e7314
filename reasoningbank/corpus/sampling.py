"""Drawing a few tasks, the same ones each time."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import get_args

from reasoningbank.corpus.task import Complexity, Task
from reasoningbank.errors import UsageError

__all__ = ["sample_tasks", "shuffle_key"]


def shuffle_key(seed: int, name: str) -> str:
    """Return a sort key that looks random and depends on nothing but its arguments."""
    return hashlib.sha256(f"{seed}\n{name}".encode()).hexdigest()


def sample_tasks(
    tasks: Iterable[Task], n: int = 10, complexity: Complexity | None = None, seed: int = 0
) -> list[Task]:
    """Draw tasks without replacement.

    A task's place in the order depends on the seed and its id alone: a corpus that grows
    keeps most of an earlier sample, and a larger `n` extends a smaller one.

    Args:
        tasks: Where to draw from.
        n: How many, at least 0; all there are if there are fewer.
        complexity: Draw only from these.
        seed: Another seed, another sample.

    Raises:
        UsageError: `n` is negative, or the complexity unknown.

    Examples:
        >>> pool = [Task(f"t{i}", "?", "ASK {}", "http://e/") for i in range(9)]
        >>> [t.id for t in sample_tasks(pool, 2)] == [t.id for t in sample_tasks(pool, 4)][:2]
        True
    """
    if n < 0:
        raise UsageError(f"cannot draw {n} tasks", where="n", hint="give 0 or more")
    if complexity not in (None, *get_args(Complexity)):
        raise UsageError(
            f"unknown complexity {complexity!r}", hint="choose simple, moderate, complex"
        )
    pool = [t for t in tasks if complexity is None or t.complexity == complexity]
    return sorted(pool, key=lambda t: (shuffle_key(seed, t.id), t.id))[:n]
