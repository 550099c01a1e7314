"""What each trial is given of memory: context layers, retrieved items, linked entities, tools."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal

from reasoningbank.agents import Agent, make_agent, uses
from reasoningbank.agents.program import give
from reasoningbank.corpus import Task, split_tasks
from reasoningbank.errors import ToolError
from reasoningbank.experiment.config import Arm
from reasoningbank.experiment.context import Given, Recall, RunContext
from reasoningbank.experiment.plan import Job
from reasoningbank.experiment.settings import (
    DISTILLED,
    LearnedMemory,
    RandomMemory,
    RetrievedMemory,
)
from reasoningbank.imports import imported, is_import_path
from reasoningbank.memory import (
    LeakageFilter,
    MemoryBank,
    MemoryTools,
    Retrieval,
    Scope,
    Snapshot,
    compose,
    retrieve,
    retrieve_random,
)
from reasoningbank.memory.context import Budgets, ContextBuilder
from reasoningbank.memory.demonstrations import (
    ShownDemonstration,
    random_demonstration,
    shown_demonstrations,
    worked_turns,
)
from reasoningbank.memory.distill import Distiller
from reasoningbank.memory.item import Turn
from reasoningbank.memory.schema_card import SchemaCard
from reasoningbank.retrieval import open_embedder
from reasoningbank.sparql import Discovery, discover
from reasoningbank.tools import SPARQLTools
from reasoningbank.trajectory import Recorder


class MemoryParts:
    """What arms ask for of memory, and what each trial is given of it. Thread-safe."""

    def __init__(self, context: RunContext, corpus: Sequence[Task], tasks: Sequence[Task]) -> None:
        assert context.schema is not None
        self._context, self._linker, self._vocabulary = context, context.linker, context.schema
        held_out = {task.id: task for task in (*tasks, *split_tasks(corpus).test)}
        self._held_out = tuple(held_out.values())
        key = context.pack.key if context.pack else ""
        self._scope = Scope(pack=key, endpoint=context.endpoint.url)
        self._worked: dict[str, tuple[Turn, ...]] = {}
        self._agents: dict[str, Agent] = {}
        self._builders: dict[str, ContextBuilder] = {}
        self._discovery: Discovery | None = None
        self._schema_card: SchemaCard | None = None
        self._lock = threading.Lock()

    def composed(self, snapshot: Snapshot) -> Snapshot:
        """Return a bank with what its strategies make in pairs."""
        active = [item for item in snapshot.items if item.status == "active"]
        made = compose(active, client=self._context.client, linker=self._linker)
        # Without a bank, which would embed all of them.
        return Snapshot.of({item.id: item for item in (*made, *snapshot.items)}.values())

    def distiller(self, arm: Arm) -> Distiller:
        """Return a distiller of an arm's experiences, for one stream."""
        memory, context = arm.memory, self._context
        settings: dict[str, Any] = {"endpoint": context.endpoint, "pack": context.pack}
        if isinstance(memory, LearnedMemory):
            settings["kinds"] = frozenset(memory.kinds or DISTILLED)
            if is_import_path(memory.distiller):
                settings |= {"own": imported(memory.distiller), "author": memory.distiller}
            elif memory.distiller != "rules":
                lm = context.models[memory.distiller].lm(role="distiller", temperature=0.0)
                settings |= {"lm": lm, "author": f"lm:{memory.distiller}"}
        return Distiller(vocabulary=self._vocabulary, **settings)

    def builder(self, arm: Arm) -> ContextBuilder:
        """Return the builder of an arm's context."""
        context, memory, vocabulary = self._context, arm.memory, self._vocabulary
        layers = set(arm.layers) | ({"L2"} if memory.in_context else set())
        with self._lock:
            if arm.name in self._builders:
                return self._builders[arm.name]
            if "L0" in layers and self._discovery is None:
                self._discovery = discover(context.client)
            if "L1" in layers and self._schema_card is None:
                self._schema_card = SchemaCard.of(
                    context.endpoint, vocabulary, pack=context.pack, embedder=open_embedder()
                )
            most = {"L2": memory.tokens} if isinstance(memory, RetrievedMemory) else {}
            self._builders[arm.name] = ContextBuilder(
                sorted(layers),
                endpoint=context.endpoint,
                vocabulary=vocabulary,
                pack=context.pack,
                discovery=self._discovery,
                schema_card=self._schema_card,
                budgets=Budgets(**most),
                hidden=context.hidden,
                tools=self._uses(arm, "tools")
                and (arm.tools == "all" or "federated_endpoints" in (arm.tools or ())),
            )
            return self._builders[arm.name]

    def recall(self, job: Job, given: Given, open_bank: Callable[[], MemoryBank]) -> Recall:
        """Return what a trial is given of memory, or of what was compiled."""
        arm, memory = job.arm, job.arm.memory
        adopt = None if given.program is None else partial(give, given.program)
        found, seconds = None, 0.0
        tools: Callable[[Recorder], Mapping[str, Callable[..., Any]]] | None = None
        if isinstance(memory, RetrievedMemory):
            bank, leakage = open_bank(), self.leakage(job.task)
            if memory.in_context:
                began = time.monotonic()
                found = self._retrieved(job, memory, bank, leakage)
                if memory.demonstrations:
                    # Beside the worked turns, examples are text.
                    texts = tuple(replace(one, example=None) for one in found.found)
                    found = replace(found, found=texts)
                seconds = time.monotonic() - began
            if memory.as_tools:
                tools = self._tools(job, memory, bank, leakage)
        text = ""
        if arm.layers or memory.in_context:
            context = self.builder(arm).build(job.task.query, found)
            # What is recorded is what was shown.
            text, found = context.text, context.retrieval
        turns, items = (found.demonstrations, found.found) if found else ((), ())
        return Recall(
            given.bank,
            text,
            demonstrations=tuple(one.demonstration for one in turns),
            examples=tuple(one.example for one in items if one.example is not None),
            question=self.asked(arm, job.task.query),
            adopt=adopt,
            tools=tools,
            event=found.to_event() if found else None,
            seconds=seconds,
        )

    def asked(self, arm: Arm, question: str) -> str:
        """Return a question as an arm's agent is asked it."""
        return self._linker.annotated(question) if arm.entity_linking else question

    def leakage(self, task: Task | None) -> LeakageFilter:
        """Return the leakage filter of a trial on a task, or of what all trials are given."""
        return LeakageFilter.of(task, self._held_out, prefixes=self._context.endpoint.prefixes)

    def _retrieved(
        self, job: Job, memory: RetrievedMemory, bank: MemoryBank, leakage: LeakageFilter
    ) -> Retrieval:
        question = job.task.query
        # Such an agent is shown few-shot examples as turns, others as text.
        examples = memory.demonstrations or self._uses(job.arm, "examples")
        linker = self._linker if job.arm.entity_linking else None
        shown: dict[str, Any] = {"leakage": leakage, "examples": examples, "linker": linker}
        found = retrieve(
            bank,
            question,
            k=memory.items,
            tokens=memory.tokens,
            kinds=_kinds(memory),
            scope=self._scope,
            own=imported(memory.retriever) if memory.retriever else None,
            **shown,
        )
        # An attempt sees one item as worked turns, a retry the next one.
        retry = job.arm.sampling if job.arm.sampling and job.arm.sampling.kind == "retry" else None
        most = (retry.k if retry else 1) if memory.demonstrations else 0
        items = (one.item for one in found.found)
        turns = shown_demonstrations(items, most, self._work, linker)
        if not isinstance(memory, RandomMemory):
            return replace(found, demonstrations=turns)
        chance: dict[str, Any] = {"seed": job.seed, "kinds": _kinds(memory)}
        shown |= {"tokens": found.tokens, **chance}
        answered = sum(one.tokens for one in found.found if one.example is not None)
        items_at_random = retrieve_random(bank, question, example_tokens=answered, **shown)
        chance |= {"leakage": leakage, "work": self._work, "linker": linker}
        drawn: list[ShownDemonstration] = []
        filtered_out = dict(items_at_random.filtered_out)
        for turn in turns:
            one, removed = random_demonstration(bank, turn, besides=drawn, **chance)
            drawn.append(one)
            filtered_out |= dict(removed)
        removed_items = tuple(filtered_out.items())
        return replace(items_at_random, demonstrations=tuple(drawn), filtered_out=removed_items)

    def _uses(self, arm: Arm, part: Literal["examples", "tools"]) -> bool:
        # Making a user's agent may take long.
        if arm.name not in self._agents:
            self._agents[arm.name] = make_agent(arm.agent, **arm.options)
        return uses(self._agents[arm.name], part)

    def _work(self, query: str) -> tuple[Turn, ...]:
        with self._lock:
            if query not in self._worked:
                self._worked[query] = ()
                tools = SPARQLTools(self._context.endpoint, client=self._context.client)
                with contextlib.closing(tools), contextlib.suppress(ToolError):
                    self._worked[query] = worked_turns(query, tools.as_dspy_tools())
            return self._worked[query]

    def _tools(
        self, job: Job, memory: RetrievedMemory, bank: MemoryBank, leakage: LeakageFilter
    ) -> Callable[[Recorder], Mapping[str, Callable[..., Any]]]:
        seed = job.seed if isinstance(memory, RandomMemory) else None
        given: dict[str, Any] = {"leakage": leakage, "scope": self._scope, "random_seed": seed}
        given |= {"kinds": _kinds(memory), "items": memory.items, "tokens": memory.tokens}
        return lambda recorder: MemoryTools(bank, recorder=recorder, **given).as_dspy_tools()


def _kinds(memory: RetrievedMemory) -> frozenset[Any] | None:
    """Return the kinds to retrieve; None for all. A stream's bank holds only what it distils."""
    if isinstance(memory, LearnedMemory) or not memory.kinds:
        return None
    return frozenset(memory.kinds)
