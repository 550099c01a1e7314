"""Train, dev and test: by group, stratified, the same each time, and stable under growth."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from reasoningbank.corpus.task import Task, shuffle_key
from reasoningbank.errors import UsageError

SplitName = Literal["train", "dev", "test"]
PARTS: tuple[SplitName, ...] = ("train", "dev", "test")
DEFAULT_SHARES: Mapping[str, float] = MappingProxyType({"train": 0.5, "dev": 0.2, "test": 0.3})

#: A group belongs to the stratum of its rarest form.
_RARE_FIRST = ("UPDATE", "DESCRIBE", "CONSTRUCT", "ASK", "SELECT")


@dataclass(frozen=True)
class Split:
    """Train, dev and test tasks; no group is in two of them."""

    train: tuple[Task, ...]
    dev: tuple[Task, ...]
    test: tuple[Task, ...]

    def part_of(self, task_id: str) -> SplitName | None:
        """Return ``train``, ``dev`` or ``test``; None for an unknown task."""
        for name in PARTS:
            if any(t.id == task_id for t in getattr(self, name)):
                return name
        return None

    def by_id(self) -> dict[str, SplitName]:
        """Return the part of every task, by its id."""
        return {task.id: name for name in PARTS for task in getattr(self, name)}


def groups_of(tasks: Iterable[Task]) -> dict[str, list[Task]]:
    """Return the tasks by group; a task without a group forms its own."""
    found: dict[str, list[Task]] = defaultdict(list)
    for task in tasks:
        found[task.group or f"task-{task.id}"].append(task)
    return dict(found)


def split_tasks(
    tasks: Iterable[Task], shares: Mapping[str, float] = DEFAULT_SHARES, seed: int = 0
) -> Split:
    """Split tasks so that no group is in two parts.

    Groups of one stratum (rarest form, most frequent complexity) are placed around a circle in an
    order that depends on seed and group names alone, each as long as its number of tasks. The
    circle is cut into arcs of the shares, from a start that depends on seed and stratum alone. So a
    new group moves only tasks at the cuts of its own stratum, and the order of `tasks` does not
    matter. Each stratum meets its shares to within half a group at each cut. A task for which the
    corpus declares a split is in that one.

    Args:
        tasks: The tasks of a corpus.
        shares: Shares of ``train``, ``dev`` and ``test``; each at least 0, together 1.
        seed: Another seed gives another split.

    Raises:
        UsageError: If the shares do not have that form.

    Examples:
        >>> pool = [Task(f"t{i}", "?", "ASK {}", "http://e/", form="ASK") for i in range(10)]
        >>> split = split_tasks(pool)
        >>> len(split.train), len(split.dev), len(split.test)
        (5, 2, 3)
    """
    if set(shares) - set(PARTS) or not all(s >= 0 for s in shares.values()):
        raise UsageError("the shares are not those of train, dev and test", where="shares")
    if not abs(sum(shares.values()) - 1.0) <= 1e-6:
        raise UsageError(f"the shares add up to {sum(shares.values()):g}, not 1", where="shares")
    strata: dict[str, list[tuple[str, list[Task]]]] = defaultdict(list)
    placed: dict[str, list[Task]] = {part: [] for part in PARTS}
    for name, group in groups_of(tasks).items():
        if group[0].split in placed:
            placed[group[0].split] += group
        else:
            strata[_stratum(group)].append((name, group))
    for stratum, members in strata.items():
        members.sort(key=lambda member: (shuffle_key(seed, member[0]), member[0]))
        start = int(shuffle_key(seed, f"stratum {stratum}")[:13], 16) / 16**13
        whole = sum(len(group) for _, group in members)
        before = 0
        for _, group in members:
            middle = (start + (before + len(group) / 2) / whole) % 1.0
            placed[_part_at(middle, shares)] += group
            before += len(group)
    ordered = {part: tuple(sorted(found, key=lambda t: t.id)) for part, found in placed.items()}
    return Split(ordered["train"], ordered["dev"], ordered["test"])


def _stratum(group: Sequence[Task]) -> str:
    form = min((task.form for task in group), key=_RARE_FIRST.index)
    counts = Counter(task.complexity for task in group)
    return f"{form} {min(counts, key=lambda c: (-counts[c], c))}"


def _part_at(place: float, shares: Mapping[str, float]) -> SplitName:
    """Return the part at a place of a circle of length 1."""
    end = 0.0
    used = [part for part in PARTS if shares.get(part, 0.0) > 0]
    for part in used:
        end += shares[part]
        if place < end:
            return part
    # The sum of the shares may be below 1 by a rounding error.
    return used[-1]
