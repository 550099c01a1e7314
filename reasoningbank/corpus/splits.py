"""Train, dev and test: by group, stratified, and the same each time."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from reasoningbank.corpus.sampling import shuffle_key
from reasoningbank.corpus.task import Task
from reasoningbank.errors import UsageError

__all__ = ["DEFAULT_SHARES", "Split", "groups_of", "split_tasks"]

_Stratum = tuple[str, str]

DEFAULT_SHARES: Mapping[str, float] = MappingProxyType({"train": 0.5, "dev": 0.2, "test": 0.3})


@dataclass(frozen=True)
class Split:
    """Three parts that share no group."""

    train: tuple[Task, ...]
    dev: tuple[Task, ...]
    test: tuple[Task, ...]

    def part_of(self, task_id: str) -> str | None:
        """Return ``train``, ``dev`` or ``test``; None for a task that is in no part."""
        for name in ("train", "dev", "test"):
            if any(t.id == task_id for t in getattr(self, name)):
                return name
        return None


def groups_of(tasks: Iterable[Task]) -> dict[str, list[Task]]:
    """Return the tasks by group; a task without a group is one by itself.

    Examples:
        >>> a, b = (Task(i, "?", "ASK {}", "http://e/", group="g") for i in "ab")
        >>> {name: [t.id for t in found] for name, found in groups_of([a, b]).items()}
        {'g': ['a', 'b']}
    """
    found: dict[str, list[Task]] = defaultdict(list)
    for task in tasks:
        found[task.group or f"task-{task.id}"].append(task)
    return dict(found)


def split_tasks(
    tasks: Iterable[Task], shares: Mapping[str, float] = DEFAULT_SHARES, seed: int = 0
) -> Split:
    """Split tasks so that no group is in two parts.

    Groups are dealt out one by one, the largest first, each to the part that lacks most of
    what the group has (tasks of its complexity and form) against the part's share. The order
    depends on seed and group names alone, never on the order of `tasks`.

    Args:
        tasks: The tasks of a corpus.
        shares: What part of the tasks goes to ``train``, ``dev`` and ``test``; each at least
            0, together 1.
        seed: Another seed, another split.

    Raises:
        UsageError: The shares are not of that form.
    """
    if set(shares) - {"train", "dev", "test"} or any(s < 0 for s in shares.values()):
        raise UsageError("shares are of train, dev and test, and not negative", where="shares")
    if abs(sum(shares.values()) - 1.0) > 1e-6:
        raise UsageError(f"the shares add up to {sum(shares.values()):g}, not 1", where="shares")
    parts = [p for p in ("train", "dev", "test") if shares.get(p, 0.0) > 0]
    groups = groups_of(tasks)
    wanted = Counter(_stratum(t) for found in groups.values() for t in found)
    dealt: dict[str, Counter[_Stratum]] = {part: Counter() for part in parts}
    placed: dict[str, list[Task]] = {part: [] for part in ("train", "dev", "test")}
    for name in sorted(groups, key=lambda g: (-len(groups[g]), shuffle_key(seed, g), g)):
        strata = Counter(_stratum(t) for t in groups[name])
        lacks = [
            _lack(strata, dealt[part], wanted, shares[part], len(placed[part])) for part in parts
        ]
        best = parts[lacks.index(max(lacks))]
        placed[best].extend(groups[name])
        dealt[best].update(strata)
    ordered = {part: tuple(sorted(found, key=lambda t: t.id)) for part, found in placed.items()}
    return Split(ordered["train"], ordered["dev"], ordered["test"])


def _lack(
    group: Counter[_Stratum],
    dealt: Counter[_Stratum],
    wanted: Counter[_Stratum],
    share: float,
    placed: int,
) -> tuple[float, float]:
    # Relative to the share, else a small part would never be the first to lack anything.
    of_kind = sum(n * (1 - dealt[s] / (share * wanted[s])) for s, n in group.items())
    overall = 1 - placed / (share * sum(wanted.values()))
    return of_kind / sum(group.values()) + overall, overall


def _stratum(task: Task) -> _Stratum:
    return task.complexity, task.form
