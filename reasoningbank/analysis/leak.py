"""What a leak is, and what an audit tells of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from reasoningbank.analysis.cell_text import counted

__all__ = ["Leak", "LeakKind", "Leakage"]

#: own task, own group: the item rests on an attempt at the trial's task, or at one of its group.
#: evaluation: it rests on a task that is held out, or on one of such a task's group.
#: gold text: what was shown holds the words of the task's own gold, or of a held-out task's.
#: question text: what was shown holds the question of a held-out task, or the trial's own.
#: gold in prompt: the first prompt holds the words of the task's own gold, which no earlier
#: attempt of the trial wrote.
#: not recorded: a memory tool gave the item to the agent, and no retrieval tells of it.
#: bank changed: trials of one frozen evaluation saw different banks.
#: other bank: they saw another than the one that the arm's stream ended with, or its golds made.
LeakKind = Literal[
    "own task", "own group", "evaluation", "gold text", "question text", "gold in prompt",
    "not recorded", "bank changed", "other bank",
]  # fmt: skip


@dataclass(frozen=True)
class Leak:
    """One thing that a trial was shown and should not have been.

    Attributes:
        trial: The trial, as ``arm/task.seed``; of a sampled one, any of its attempts.
        kind: What is wrong with it.
        item: The memory item; empty where it is none.
        detail: What gives it away: a task, a group, or a snapshot.
    """

    trial: str
    kind: LeakKind
    item: str = ""
    detail: str = ""

    def sentence(self) -> str:
        """Return it in one line."""
        item = f", item {self.item}" if self.item else ""
        return f"{self.trial}: {self.kind}{item}" + (f" ({self.detail})" if self.detail else "")


@dataclass(frozen=True)
class Leakage:
    """What the audit of a run found.

    Attributes:
        trials: Trials that were read.
        with_memory: Of these, those that had a memory: a retrieval or a snapshot is on record.
        showings: Items and demonstrations shown, once for each attempt and retrieval: all of them
            were checked.
        items: Different items among them.
        prompts: First prompts of attempts that were searched for the task's own gold.
        evaluation: Tasks that are held out.
        withheld: Items that the guard withheld, once for each retrieval, by its reason.
        unproven: Showings of items that the trial's snapshot does not hold or that tell no origin,
            seeds apart: only the task that the retrieval names and the text could be checked.
        unread: Snapshots and steps that cannot be read.
        leaks: What was found.
    """

    trials: int = 0
    with_memory: int = 0
    showings: int = 0
    items: int = 0
    prompts: int = 0
    evaluation: int = 0
    withheld: Mapping[str, int] = field(default_factory=dict)
    unproven: int = 0
    unread: int = 0
    leaks: tuple[Leak, ...] = ()

    def sentence(self) -> str:
        """Return one line that says what was checked and what came of it."""
        prompts = f"{counted(self.prompts, 'first prompt')} searched for the gold"
        if not self.with_memory:
            found = f"no memory in any of {counted(self.trials, 'trial')}; {prompts}"
        else:
            found = (
                f"{counted(self.showings, 'showing')} of {counted(self.items, 'item')} checked in "
                f"{self.with_memory} of {counted(self.trials, 'trial')} (the others have no "
                f"memory) against {counted(self.evaluation, 'held-out task')}; {prompts}"
            )
        reasons = ", ".join(f"{n} {reason}" for reason, n in self.withheld.items())
        withheld = f"; withheld by the guard: {reasons or 'none'}" if self.with_memory else ""
        unproven = f"; {self.unproven} of unproven origin" if self.unproven else ""
        if self.unread:
            unproven += f"; {counted(self.unread, 'file')} of memory cannot be read"
        sound = "no leak in what can be read" if self.unread else "no leak"
        leaks = counted(len(self.leaks), "leak") if self.leaks else sound
        return f"{found}{withheld}{unproven}: {leaks}"

    @property
    def proven(self) -> bool:
        """Whether nothing leaked, and all that could tell of it was read."""
        return not self.leaks and not self.unread

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON-able data."""
        return {**asdict(self), "sentence": self.sentence()}
