"""Evaluating a translator on a pack's questions: each answered, judged, and summed up."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

import dspy

from reasoningbank.agents.graph import GraphSettings, NL2SPARQLAgent, Tiers
from reasoningbank.agents.graph.tiers import open_tiers
from reasoningbank.agents.rag import translation_confidence
from reasoningbank.agents.shown_examples import shown_examples
from reasoningbank.analysis import TranslationRow
from reasoningbank.analysis.translators import component_match
from reasoningbank.corpus import Pack, Task, groups_of, load_corpus, sample_tasks
from reasoningbank.errors import UsageError
from reasoningbank.experiment import World
from reasoningbank.experiment.world import open_world
from reasoningbank.lm import UsageCounter
from reasoningbank.nl2sparql import NL2SPARQL, load_examples, validate_syntax
from reasoningbank.retrieval import DEFAULT_EMBEDDER, DEFAULT_INDEX
from reasoningbank.tools.diagnosis import explainer

__all__ = ["Asked", "LeftOut", "answered", "questions_of"]

#: What is not shown of a question: its group of examples, itself alone, or nothing.
LeftOut = Literal["group", "one", "none"]


@dataclass(frozen=True)
class Asked:
    """What is evaluated.

    Attributes:
        pack: The pack.
        agent: ``rag`` or ``graph``.
        tiers: The models.
        left_out: What is not retrieved for a question.
        embedding: The embedding model of retrieval.
        index: What compares its vectors.
    """

    pack: Pack
    agent: str
    tiers: Tiers
    left_out: LeftOut = "group"
    embedding: str = DEFAULT_EMBEDDER
    index: str = DEFAULT_INDEX


def questions_of(pack: Pack, sample: int | None, language: str) -> list[Task]:
    """Return the questions of an evaluation, each in each of its languages.

    Args:
        pack: The pack.
        sample: So many tasks, always the same; all where None.
        language: This language alone; all of the pack's where empty.

    Raises:
        UsageError: The pack has no question in the language.
    """
    languages = [language] if language else list(pack.languages)
    first = load_corpus(pack, language=languages[0]).tasks
    chosen = {task.id for task in (first if sample is None else sample_tasks(first, sample))}
    found = [
        task
        for one in languages
        for task in load_corpus(pack, language=one).tasks
        if task.id in chosen and task.language == one
    ]
    if not found:
        raise UsageError(f"there is no question in {', '.join(languages)}", where=pack.key)
    return found


def answered(asked: Asked, tasks: list[Task]) -> Iterator[TranslationRow]:
    """Yield a row a question, in order.

    Raises:
        EndpointError: The endpoint fails.
        ModelError: A model cannot be reached.
        SetupError: A model or the endpoint cannot be opened.
    """
    with ExitStack() as stack:
        lms = open_tiers(asked.tiers, stack)
        scratch = Path(stack.enter_context(TemporaryDirectory()))
        world = stack.enter_context(open_world(asked.pack, scratch))
        corpus = load_corpus(asked.pack).tasks
        groups = {
            task.id: frozenset(one.id for one in members)
            for members in groups_of(corpus).values()
            for task in members
        }
        needs = {one.id: one.patterns for one in load_examples(asked.pack)}
        translate = _graph if asked.agent == "graph" else _rag
        for task in tasks:
            hidden = {"group": groups.get(task.id, frozenset()), "one": frozenset({task.id})}
            began = time.monotonic()
            made = translate(asked, world, lms, task, hidden.get(asked.left_out, frozenset()))
            seconds = time.monotonic() - began
            yield _judged(asked, world, task, made, seconds, needs.get(task.id, ()))


@dataclass(frozen=True)
class _Made:
    sparql: str | None
    valid: bool
    detected: tuple[str, ...]
    calls: int
    tokens: int
    queries: int
    confidence: float
    score: float


_LMs = tuple[dspy.BaseLM, dspy.BaseLM]
_Translate = Callable[[Asked, World, _LMs, Task, frozenset[str]], _Made]


def _rag(asked: Asked, world: World, lms: _LMs, task: Task, hidden: frozenset[str]) -> _Made:
    shown = shown_examples(
        asked.pack,
        hidden,
        whole_groups=asked.left_out == "group",
        embedding=asked.embedding,
        index=asked.index,
    )
    counter = UsageCounter()
    with dspy.context(callbacks=[counter]):
        found = NL2SPARQL(
            asked.pack,
            lms[0],
            endpoint=world.client,
            retriever=shown.retriever,
            detector=shown.detector,
            timeout=world.endpoint.timeout_s,
            explain=explainer(world.client, world.vocabulary),
        ).translate(task.query, without_groups=shown.without_groups, without_ids=shown.without_ids)
    detected = tuple(one.pattern for one in found.patterns)
    trust = translation_confidence(found, asked.pack, getattr(lms[0], "model", ""))
    return _Made(
        found.sparql,
        found.is_valid,
        detected,
        found.calls,
        counter.usage.tokens,
        len(found.candidates),
        trust.confidence,
        trust.score,
    )


def _graph(asked: Asked, world: World, lms: _LMs, task: Task, hidden: frozenset[str]) -> _Made:
    agent = NL2SPARQLAgent(
        pack=asked.pack,
        lms=lms,
        endpoint=world.endpoint,
        settings=GraphSettings(
            timeout_s=world.endpoint.timeout_s,
            whole_groups=asked.left_out == "group",
            embedding=asked.embedding,
            index=asked.index,
        ),
        hidden=hidden,
    )
    found = agent.translate(task.query, language=task.language)
    return _Made(
        found.sparql,
        found.is_valid,
        found.patterns,
        found.usage.lm_calls,
        found.usage.tokens,
        found.attempts,
        found.confidence,
        found.score,
    )


def _judged(
    asked: Asked, world: World, task: Task, made: _Made, seconds: float, needs: tuple[str, ...]
) -> TranslationRow:
    verdict = world.judge.examine(task, made.sparql).verdict
    return TranslationRow(
        task=task.id,
        language=task.language,
        question=task.query,
        sparql=made.sparql,
        right=verdict.strict,
        status=verdict.status,
        parses=made.sparql is not None and validate_syntax(made.sparql, asked.pack).ok,
        executes=verdict.status in ("judged", "wrong_form"),
        components=component_match(made.sparql, task.expected_sparql, asked.pack),
        patterns=needs,
        detected=made.detected,
        valid=made.valid,
        confidence=made.confidence,
        score=made.score,
        calls=made.calls,
        tokens=made.tokens,
        seconds=round(seconds, 3),
        complexity=task.complexity,
        queries=made.queries,
    )
