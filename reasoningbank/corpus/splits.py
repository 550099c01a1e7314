"""Train, dev and test, and how far a task is from those that an agent was trained on.

Splits are by group, stratified, the same each time, and stable under growth. Levels of
generalization are GrailQA's (Gu et al., WWW 2021, "Beyond I.I.D."): a task is *iid* if its query
shape occurs in training with other constants, *compositional* if only its classes and properties
do, *zero-shot* if one of them does not.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Literal, get_args

from reasoningbank.corpus.task import Task, shuffle_key
from reasoningbank.errors import QueryError
from reasoningbank.sparql.shape import SLOT, Prefixes, names_in, shape_hash, slots_as_iris
from reasoningbank.sparql.terms import RDF_TYPE, STANDARD_PREFIXES, absolute
from reasoningbank.sparql.tokens import prologue, tokenize
from reasoningbank.sparql.tree import read_query

SplitName = Literal["train", "dev", "test"]
PARTS: tuple[SplitName, ...] = get_args(SplitName)
#: Where each part ends on a circle of length 1: half for train, a fifth for dev.
_ENDS: tuple[tuple[float, SplitName], ...] = ((0.5, "train"), (0.7, "dev"), (1.0, "test"))
Level = Literal["iid", "compositional", "zero-shot"]
LEVELS: tuple[Level, ...] = get_args(Level)

#: A group belongs to the stratum of its rarest form.
_RARE_FIRST = ("UPDATE", "DESCRIBE", "CONSTRUCT", "ASK", "SELECT")


@dataclass(frozen=True)
class Split:
    """Train, dev and test tasks; no group is in two of them."""

    train: tuple[Task, ...]
    dev: tuple[Task, ...]
    test: tuple[Task, ...]

    def by_id(self) -> dict[str, SplitName]:
        """Return the part of every task, by its id."""
        return {task.id: name for name in PARTS for task in getattr(self, name)}


def groups_of(tasks: Iterable[Task]) -> dict[str, list[Task]]:
    """Return the tasks by group; a task without a group forms its own."""
    found: dict[str, list[Task]] = defaultdict(list)
    for task in tasks:
        found[task.group or f"task-{task.id}"].append(task)
    return dict(found)


def split_tasks(tasks: Iterable[Task], seed: int = 0) -> Split:
    """Split tasks into half train, a fifth dev and the rest test; no group is in two parts.

    Groups of one stratum (rarest form, most frequent complexity) are placed around a circle in an
    order that depends on seed and group names alone, each as long as its number of tasks. The
    circle is cut into arcs of the shares, from a start that depends on seed and stratum alone. So a
    new group moves only tasks at the cuts of its own stratum, and the order of `tasks` does not
    matter. Each stratum meets its shares to within half a group at each cut. A task for which the
    corpus declares a split is in that one. Another seed gives another split.

    Examples:
        >>> pool = [Task(f"t{i}", "?", "ASK {}", "http://e/", form="ASK") for i in range(10)]
        >>> split = split_tasks(pool)
        >>> len(split.train), len(split.dev), len(split.test)
        (5, 2, 3)
    """
    strata: dict[str, list[tuple[str, list[Task]]]] = defaultdict(list)
    placed: dict[str, list[Task]] = {part: [] for part in PARTS}
    for name, group in groups_of(tasks).items():
        if group[0].split in placed:
            placed[group[0].split] += group
        else:
            form = min((task.form for task in group), key=_RARE_FIRST.index)
            counts = Counter(task.complexity for task in group)
            most = min(counts, key=lambda one: (-counts[one], one))
            strata[f"{form} {most}"].append((name, group))
    for stratum, members in strata.items():
        members.sort(key=lambda member: (shuffle_key(seed, member[0]), member[0]))
        start = int(shuffle_key(seed, f"stratum {stratum}")[:13], 16) / 16**13
        whole = sum(len(group) for _, group in members)
        before = 0
        for _, group in members:
            middle = (start + (before + len(group) / 2) / whole) % 1.0
            placed[next(part for end, part in _ENDS if middle < end)] += group
            before += len(group)
    ordered = {part: tuple(sorted(found, key=lambda t: t.id)) for part, found in placed.items()}
    return Split(ordered["train"], ordered["dev"], ordered["test"])


def levels(
    tasks: Iterable[Task], training: Iterable[Task | str], prefixes: Mapping[str, str] = {}
) -> dict[str, Level]:
    """Return the level of each task relative to training tasks.

    Args:
        tasks: Tasks with their golds.
        training: Training tasks, or queries: of a memory bank (``<<name>>`` stands for a constant)
            or of the examples in a prompt.
        prefixes: Prefixes that the queries may use without declaring them, besides those that the
            golds declare.

    Returns:
        Task id → level.
    """
    tasks = list(tasks)
    golds = dict(declared_in(task.expected_sparql for task in tasks))
    declared = tuple(sorted({**golds, **prefixes}.items()))
    known = [one if isinstance(one, str) else one.expected_sparql for one in training]
    shapes = {shape_hash(query, declared) for query in known} - {""}
    items = frozenset[str]().union(*(schema_items(query, declared) for query in known))
    return {task.id: level_of(task.expected_sparql, shapes, items, declared) for task in tasks}


def level_of(gold: str, shapes: Set[str], items: Set[str], declared: Prefixes) -> Level:
    """Return the level of a gold relative to the shapes and schema items of training queries."""
    if shape_hash(gold, declared) in shapes:
        return "iid"
    return "compositional" if schema_items(gold, declared) <= items else "zero-shot"


def declared_in(queries: Iterable[str]) -> Prefixes:
    """Return the prefixes that queries declare."""
    found = {k: v for query in queries for k, v in prologue(tokenize(query))[0].items()}
    return tuple(sorted(found.items()))


@lru_cache(maxsize=8192)
def schema_items(query: str, prefixes: Prefixes = ()) -> frozenset[str]:
    """Return the IRIs of a query's properties and classes (objects of ``rdf:type``)."""
    text = slots_as_iris(query)
    own, _ = prologue(tokenize(text))
    declared = {**STANDARD_PREFIXES, **dict(prefixes), **own}
    try:
        patterns = read_query(text).triple_patterns()
    except QueryError:
        return frozenset(names_in(text, declared))
    found: set[str] = set()
    for pattern in patterns:
        steps = [absolute(token.text, declared) for token in tokenize(pattern.predicate)]
        found.update(step for step in steps if step)
        if steps and steps[-1] == RDF_TYPE and (named := absolute(pattern.object, declared)):
            found.add(named)
    return frozenset(name for name in found if not name.startswith(SLOT))


def near_duplicates(
    tasks: Sequence[Task], training: Sequence[Task], threshold: float = 0.8
) -> list[tuple[str, str, float]]:
    """Find tasks whose question nearly repeats a training question."""
    shown = [(task.id, _pairs(task.query)) for task in training]
    found = []
    for task in tasks:
        own = _pairs(task.query)
        for name, other in shown:
            common = len(own & other)
            if common and (share := common / (len(own) + len(other) - common)) >= threshold:
                found.append((task.id, name, round(share, 3)))
    return sorted(found, key=lambda pair: (-pair[2], pair))


def _pairs(question: str) -> frozenset[tuple[str, str]]:
    return frozenset(pairwise(["", *re.findall(r"\w+", question.casefold()), ""]))
