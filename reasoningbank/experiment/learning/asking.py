"""What one question is given of a bank, outside a run."""

from __future__ import annotations

from collections.abc import Sequence

from reasoningbank.corpus import Pack, Task
from reasoningbank.experiment.config import Arm
from reasoningbank.experiment.executors import Job
from reasoningbank.experiment.learning.parts import Parts
from reasoningbank.experiment.learning.recalling import Recalls
from reasoningbank.experiment.plan import Plan
from reasoningbank.experiment.recall import Recall
from reasoningbank.experiment.records import TrialKey
from reasoningbank.experiment.world import World
from reasoningbank.memory import MemoryBank

__all__ = ["recalled"]


def recalled(
    world: World, pack: Pack, corpus: Sequence[Task], arm: Arm, task: Task, bank: MemoryBank
) -> Recall:
    """Return what a question is given of a bank.

    What is of the corpus' test split is withheld, as in every run.

    Args:
        world: What is asked.
        pack: Its pack.
        corpus: All tasks of the pack.
        arm: Agent and memory; its source is `bank`.
        task: The question.
        bank: The bank, open as long as the agent may search in it.

    Raises:
        EndpointError: If the endpoint fails where names of the items are looked up.
        RecordError: If the bank is damaged.
    """
    plan = Plan(pack, tuple(corpus), (), world.hidden, ())
    # No record is kept, so the bank needs no name.
    recalls = Recalls(world, plan, lambda _: ("", bank), Parts(world, plan).builder)
    return recalls.recall(Job(arm, task, TrialKey(arm.name, task.id, 0)))
