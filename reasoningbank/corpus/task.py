"""Tasks: questions over an endpoint with their gold queries; finding, drawing and counting them."""

from __future__ import annotations

import difflib
import hashlib
from collections import Counter
from collections.abc import Iterable
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal, Self, TypedDict, get_args

from reasoningbank.corpus.features import Complexity, query_features, query_template
from reasoningbank.errors import UsageError

#: An UPDATE says what documents hold after the instruction was carried out.
QueryForm = Literal["SELECT", "ASK", "CONSTRUCT", "DESCRIBE", "UPDATE"]


@dataclass(frozen=True)
class Task:
    """One question of a corpus."""

    id: str  #: Unique across the corpus, e.g. ``'121_proteins_and_diseases'``.
    query: str  #: The question in natural language
    expected_sparql: str  #: The gold query, prefixes included; ``''`` in a blind task
    endpoint: str  #: The public address of the endpoint the gold is written for
    keywords: tuple[str, ...] = ()  #: Free keywords of the example
    #: How hard the gold is, by its features and not by its length
    complexity: Complexity = "simple"
    form: QueryForm = "SELECT"  #: The query form of the gold
    resource: str = ""  #: The IRI of the example itself
    federates_with: tuple[str, ...] = ()  #: Addresses that the gold reaches with SERVICE
    #: What makes the gold hard, e.g. ``('path', 'optional', 'aggregate')``.
    features: tuple[str, ...] = ()
    source_file: str = ""  #: The file the example was read from, relative to the corpus
    corpus: str = ""  #: The name of the pack or folder
    group: str = ""  #: Splits and leakage filters keep the tasks of a group together
    bag: bool = False  #: Whether duplicate rows count when results are compared
    ordered: bool = False  #: Whether the question asks for an order
    language: str = field(default="en")  #: Language tag of the question
    template: str = ""  #: The template that the task is an instance of
    split: str = ""  #: The split that the corpus declares for the task; empty if it declares none
    #: ``iid``, ``compositional`` or ``zero-shot`` relative to the training tasks of a run
    level: str = ""

    def blind(self) -> Task:
        """Return the task as an agent may see it: without the gold and what is derived from it.

        Examples:
            >>> t = Task("t1", "Which taxa?", "SELECT * WHERE {}", "http://e/", ("taxon",))
            >>> t.blind().expected_sparql, t.blind().keywords
            ('', ())
        """
        return replace(
            self,
            expected_sparql="",
            keywords=(),
            complexity="simple",
            form="SELECT",
            federates_with=(),
            features=(),
            group="",
            template="",
            level="",
        )

    def changed(self, **fields: object) -> Self:
        """Return the task with other fields; unlike `replace`, derived ones stay uncomputed."""
        other = copy(self)
        other.__dict__.update(fields)
        return other


class LoadedTask(Task):
    """A task whose complexity, features and group are computed at first access.

    `written` is its gold and `targets` are its targets as its file has them.
    """

    written: str
    targets: tuple[str, ...]

    @cached_property
    def complexity(self) -> Complexity:
        """How hard the gold is."""
        return query_features(self.expected_sparql).complexity

    @cached_property
    def features(self) -> tuple[str, ...]:
        """What makes the gold hard."""
        return query_features(self.expected_sparql).features

    @cached_property
    def group(self) -> str:
        """The gold's template."""
        return query_template(self.expected_sparql)

    def deferred(self, written: str, targets: tuple[str, ...]) -> Self:
        """Forget the derived fields, so that the next access computes them; note the others."""
        self.__dict__.update(written=written, targets=targets)
        # cached_property is no data descriptor: __init__ has stored the defaults over it.
        for name in ("complexity", "features", "group"):
            if name != "group" or not self.group:
                del self.__dict__[name]
        return self


class TaskStats(TypedDict):
    """Counts; the mappings are ordered by frequency."""

    total: int
    by_complexity: dict[str, int]
    by_endpoint: dict[str, int]
    by_form: dict[str, int]
    by_feature: dict[str, int]
    groups: int
    top_keywords: dict[str, int]


def get_task_stats(tasks: Iterable[Task], top: int = 20) -> TaskStats:
    """Count tasks by complexity, endpoint, form, feature and keyword (the `top` most frequent).

    Examples:
        >>> t = Task("t1", "Which taxa?", "ASK {}", "http://e/", ("taxon",), form="ASK")
        >>> stats = get_task_stats([t])
        >>> stats["total"], stats["by_form"], stats["top_keywords"]
        (1, {'ASK': 1}, {'taxon': 1})
    """
    listed = list(tasks)

    def counted(values: Iterable[str], most: int | None = None) -> dict[str, int]:
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


def find_task(tasks: Iterable[Task], task_id: str, where: str = "tasks") -> Task:
    """Return the task with an id.

    Args:
        task_id: The complete id; for a part of one the error suggests complete ids.
        where: What an error names as its place.
    """
    by_id = {task.id: task for task in tasks}
    if task_id in by_id:
        return by_id[task_id]
    near = [known for known in by_id if task_id and task_id in known][:3]
    near = near or difflib.get_close_matches(task_id, by_id, n=3, cutoff=0.4)
    hint = f"did you mean {', '.join(near)}?" if near else "see: reasoningbank tasks list"
    what = f"unknown task {task_id!r}"
    raise UsageError(what, where=where, hint=hint, code="unknown-task", near=near)


def sample_tasks(
    tasks: Iterable[Task], n: int = 10, complexity: Complexity | None = None, seed: int = 0
) -> list[Task]:
    """Draw `n` tasks, all if there are fewer, without replacement; only of a complexity if given.

    A task's place in the order depends on the seed and its id alone: a corpus that grows
    keeps most of an earlier sample, and a larger `n` extends a smaller one.

    Raises:
        UsageError: If `n` is negative or the complexity unknown.

    Examples:
        >>> pool = [Task(f"t{i}", "?", "ASK {}", "http://e/") for i in range(9)]
        >>> [t.id for t in sample_tasks(pool, 2)] == [t.id for t in sample_tasks(pool, 4)][:2]
        True
    """
    if n < 0:
        raise UsageError(f"cannot draw {n} tasks", where="n", hint="give 0 or more")
    if complexity is not None:
        check_complexity(complexity, "complexity")
    pool = [t for t in tasks if complexity is None or t.complexity == complexity]
    return sorted(pool, key=lambda t: (shuffle_key(seed, t.id), t.id))[:n]


def check_complexity(word: str, where: str) -> None:
    """Raise a `UsageError` for an unknown complexity."""
    known = get_args(Complexity)
    if word not in known:
        what, hint = f"unknown complexity {word!r}", f"choose {', '.join(known)}"
        raise UsageError(what, where=where, hint=hint, code="unknown-complexity")


def shuffle_key(seed: int, name: str) -> str:
    """Return a pseudo-random sort key that depends on nothing but its arguments."""
    return hashlib.sha256(f"{seed}\n{name}".encode()).hexdigest()
