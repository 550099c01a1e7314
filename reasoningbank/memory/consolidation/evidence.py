"""Which of two items rests on more."""

from __future__ import annotations

from reasoningbank.memory.item import MemoryItem

__all__ = ["Evidence", "by_evidence", "evidence_of"]

#: Verdicts that rest on a gold query or on a person, and not on a model's opinion.
_CERTAIN_SOURCES = frozenset({"gold", "seed"})
_EXECUTION = "execution"

#: Tasks known for certain, tasks in all, tasks helped less tasks hurt: the first that differs
#: decides.
Evidence = tuple[int, int, int]


def evidence_of(item: MemoryItem) -> Evidence:
    """Return what an item rests on, to be compared.

    Tasks are counted, not attempts: ten rollouts of one task are one experience. What the
    execution judge said counts before what a model said.

    Examples:
        >>> from reasoningbank.memory.item import Provenance
        >>> seen = Provenance(task="t1", judge="execution")
        >>> item = MemoryItem("a", "b", "c", "success", provenance=seen, evidence=(seen,))
        >>> evidence_of(item)
        (1, 1, 0)
    """
    tasks = {(origin.corpus, origin.task) for origin in item.origins if origin.task}
    certain = {
        (origin.corpus, origin.task)
        for origin in item.origins
        if origin.task
        and (origin.judge.split(" and ")[0] == _EXECUTION or item.src in _CERTAIN_SOURCES)
    }
    return len(certain), len(tasks), item.counters.helped - item.counters.hurt


def by_evidence(item: MemoryItem) -> tuple[int, int, int, bool, str, str]:
    """Return a sort key: more evidence first, then with turns to show, then older, then by id."""
    certain, tasks, helped = evidence_of(item)
    return -certain, -tasks, -helped, not item.turns, item.provenance.time, item.id
