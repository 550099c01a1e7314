"""The parts of memory that arms are built of: distillers, builders of context, consolidation."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from reasoningbank.corpus import Task, split_tasks
from reasoningbank.errors import UsageError
from reasoningbank.experiment.config import Arm
from reasoningbank.experiment.learning.embeddings import Remembered
from reasoningbank.experiment.memory_config import LEARNED
from reasoningbank.experiment.plan import Plan
from reasoningbank.experiment.world import World
from reasoningbank.memory import MemoryBank, Snapshot
from reasoningbank.memory.consolidate import consolidate
from reasoningbank.memory.distillation import Distilled, Distiller
from reasoningbank.memory.layers import Budgets, ContextBuilder, SchemaCard
from reasoningbank.schema import Schema
from reasoningbank.sparql import Discovery, discover

__all__ = ["Parts"]


class Parts:
    """Makes the parts of memory as arms ask for them. Several threads may use it.

    Args:
        world: What trials share.
        plan: The run's plan.
    """

    def __init__(self, world: World, plan: Plan) -> None:
        self._world = world
        self._split = split_tasks(plan.corpus).by_id()
        self._embedder = Remembered()
        self._exemplary: Distiller | None = None
        self._builders: dict[str, ContextBuilder] = {}
        self._discovery: Discovery | None = None
        self._schema_card: SchemaCard | None = None
        self._lock = threading.Lock()

    def open_bank(self, snapshot: Snapshot) -> MemoryBank:
        """Return a bank that holds what a snapshot holds."""
        return MemoryBank.from_snapshot(snapshot, embedder=self._embedder)

    def consolidate(self, bank: MemoryBank, new: Sequence[str]) -> Sequence[Any]:
        """Consolidate a bank after a step."""
        return consolidate(
            bank, new=new, embedder=self._embedder, prefixes=self._world.endpoint.prefixes
        )

    def exemplars(self, arm: Arm, task: Task) -> Distilled:
        """Return the exemplars of a training task."""
        with self._lock:
            # Exemplars are golds in other words: arms do not differ in them.
            self._exemplary = self._exemplary or self.distiller(arm)
        return self._exemplary.from_gold(task, self._split.get(task.id))

    def builder(self, arm: Arm) -> ContextBuilder:
        """Return what builds an arm's context."""
        with self._lock:
            if arm.name not in self._builders:
                self._builders[arm.name] = self._builder(arm)
            return self._builders[arm.name]

    def distiller(self, arm: Arm) -> Distiller:
        """Return what makes items of an arm's experiences, for one stream."""
        memory, world = arm.memory, self._world
        settings: dict[str, Any] = {}
        if memory.distiller != "rules":
            lm = world.models[memory.distiller].lm(role="distiller", temperature=0.0)
            settings = {"lm": lm, "author": f"lm:{memory.distiller}"}
        if memory.learns:
            settings["kinds"] = frozenset(memory.kinds or LEARNED)
        return Distiller(
            vocabulary=self._vocabulary(arm),
            endpoint=world.endpoint,
            pack=world.pack,
            **settings,
        )

    def _builder(self, arm: Arm) -> ContextBuilder:
        layers = set(arm.layers) | ({"L2"} if arm.memory.in_context else set())
        if layers & {"L0", "L1"} and self._discovery is None:
            self._discovery = discover(self._world.client)
        if "L1" in layers and self._schema_card is None:
            self._schema_card = SchemaCard.of(
                self._world.endpoint,
                self._vocabulary(arm),
                self._discovery.void if self._discovery else None,
                pack=self._world.pack,
                embedder=self._embedder,
            )
        return ContextBuilder(
            sorted(layers),
            endpoint=self._world.endpoint,
            vocabulary=self._vocabulary(arm),
            pack=self._world.pack,
            discovery=self._discovery,
            schema_card=self._schema_card,
            budgets=Budgets(L2=arm.memory.tokens),
            hidden=self._world.hidden,
            tools=arm.agent != "direct",
        )

    def _vocabulary(self, arm: Arm) -> Schema:
        if self._world.vocabulary is None:
            raise UsageError("memory needs the endpoint's vocabulary", where=f"arm {arm.name}")
        return self._world.vocabulary
