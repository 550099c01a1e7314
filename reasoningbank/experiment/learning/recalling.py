"""What each trial is given: layers, retrieved items, linked question, demonstrations, tools."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from reasoningbank.agents import takes_examples
from reasoningbank.corpus import Task, split_tasks
from reasoningbank.experiment.config import Arm
from reasoningbank.experiment.executors import Job
from reasoningbank.experiment.plan import Plan
from reasoningbank.experiment.recall import NOTHING, Recall
from reasoningbank.experiment.world import World
from reasoningbank.memory import (
    Consultation,
    LeakageFilter,
    MemoryBank,
    Retrieval,
    Scope,
    retrieve,
    retrieve_random,
)
from reasoningbank.memory.demonstrations import (
    ShownDemonstration,
    random_demonstration,
    shown_demonstrations,
)
from reasoningbank.sparql import Linker
from reasoningbank.tools import MemoryTools
from reasoningbank.trajectory import Recorder

if TYPE_CHECKING:
    from reasoningbank.memory.context import ContextBuilder

__all__ = ["Recalls"]

#: Retrieved successes whose turns are shown as demonstrations.
MOST_DEMONSTRATIONS = 1


class Recalls:
    """Finds what a trial is given of memory. Several threads may use it.

    Nothing that the evaluation rests on is ever shown: the leakage filter of each trial removes
    items of its own task and group, and of all tasks of the evaluation and of the test split.

    Args:
        world: What trials share.
        plan: The run's plan: its tasks, and those of the corpus.
        bank: Returns the bank that a trial may see, with its snapshot's hash.
        builder: Returns the builder of an arm's context.
    """

    def __init__(
        self,
        world: World,
        plan: Plan,
        bank: Callable[[Job], tuple[str, MemoryBank]],
        builder: Callable[[Arm], ContextBuilder],
    ) -> None:
        self._world = world
        pack = world.pack
        self._linker = Linker(world.client, world.endpoint, pack.languages if pack else ())
        self._bank = bank
        self._builder = builder
        held_out = {task.id: task for task in (*plan.tasks, *split_tasks(plan.corpus).test)}
        self._held_out = tuple(held_out.values())

    def recall(self, job: Job) -> Recall:
        """Return what a trial is given.

        Raises:
            EndpointError: If the endpoint fails where a layer is built of it, or a question linked.
            RecordError: If the bank cannot be had.
        """
        arm = job.arm
        if arm.memory.source == "none" and not arm.layers and not arm.linking:
            return NOTHING
        name, found, seconds = "", None, 0.0
        tools: Callable[[Recorder], Mapping[str, Callable[..., Any]]] | None = None
        if arm.memory.source != "none":
            name, bank = self._bank(job)
            leakage = self.leakage(job.task)
            if arm.memory.in_context:
                began = time.monotonic()
                found = self._retrieved(job, bank, leakage)
                seconds = time.monotonic() - began
            if arm.memory.as_tools:
                tools = self._tools(job, bank, leakage)
        text = ""
        if arm.layers or arm.memory.in_context:
            context = self._builder(arm).build(job.task.query, found)
            # What is recorded is what was shown.
            text, found = context.text, context.retrieval
        return Recall(
            snapshot=name,
            context=text,
            demonstrations=tuple(d.demonstration for d in found.demonstrations) if found else (),
            examples=tuple(
                one.example for one in (found.found if found else ()) if one.example is not None
            ),
            question=self._linker.linked(job.task.query) if arm.linking else "",
            tools=tools,
            event=found.to_event() if found is not None else None,
            seconds=seconds,
        )

    def leakage(self, task: Task) -> LeakageFilter:
        """Return what a trial on a task must not be shown."""
        return LeakageFilter.of(task, self._held_out, prefixes=self._world.endpoint.prefixes)

    def _retrieved(self, job: Job, bank: MemoryBank, leakage: LeakageFilter) -> Retrieval:
        memory, question = job.arm.memory, job.task.query
        shown: dict[str, Any] = {
            "examples": takes_examples(job.arm.agent),
            "link": self._linker.linked if job.arm.linking else None,
        }
        found = retrieve(
            bank,
            question,
            leakage=leakage,
            k=memory.items,
            tokens=memory.tokens,
            kinds=_kinds(job.arm),
            scope=self._scope,
            **shown,
            entity_classes=self._linker.kinds if job.arm.linking else None,
        )
        turns: tuple[ShownDemonstration, ...] = ()
        if memory.demonstrations:
            turns = shown_demonstrations((one.item for one in found.found), MOST_DEMONSTRATIONS)
        if memory.source != "placebo":
            return replace(found, demonstrations=turns)
        chance: dict[str, Any] = {
            "leakage": leakage,
            "seed": job.key.seed,
            "kinds": _kinds(job.arm),
        }
        answered = sum(one.tokens for one in found.found if one.example is not None)
        dealt = retrieve_random(
            bank, question, tokens=found.tokens, example_tokens=answered, **shown, **chance
        )
        kept = dict(dealt.filtered_out)
        worked_by_others = []
        for turn in turns:
            one, filtered_out = random_demonstration(bank, turn, **chance)
            worked_by_others.append(one)
            kept |= dict(filtered_out)
        return replace(
            dealt, demonstrations=tuple(worked_by_others), filtered_out=tuple(kept.items())
        )

    def _tools(
        self, job: Job, bank: MemoryBank, leakage: LeakageFilter
    ) -> Callable[[Recorder], Mapping[str, Callable[..., Any]]]:
        deal = job.key.seed if job.arm.memory.source == "placebo" else None

        def make(recorder: Recorder) -> Mapping[str, Callable[..., Any]]:
            consultation = Consultation(
                bank,
                leakage=leakage,
                recorder=recorder,
                scope=self._scope,
                kinds=_kinds(job.arm),
                items=job.arm.memory.items,
                tokens=job.arm.memory.tokens,
                random_seed=deal,
            )
            return MemoryTools(consultation).as_dspy_tools()

        return make

    @property
    def _scope(self) -> Scope:
        pack = self._world.pack
        return Scope(pack=pack.key if pack else "", endpoint=self._world.endpoint.url)


def _kinds(arm: Arm) -> frozenset[Any] | None:
    """Return the sources that are retrieved; a stream's bank holds only what it distils."""
    return None if arm.memory.learns or not arm.memory.kinds else frozenset(arm.memory.kinds)
