"""Which examples of a pack an agent may be shown: none of the evaluation, none of its groups."""

from __future__ import annotations

import copy
import threading
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType

from reasoningbank.agents.protocol import Episode
from reasoningbank.corpus import Pack, load_corpus
from reasoningbank.errors import UsageError
from reasoningbank.nl2sparql import (
    WEIGHTS,
    Detector,
    HybridRetriever,
    PatternDetector,
    RandomRetriever,
    Retriever,
    example_pack,
    load_patterns,
)
from reasoningbank.nl2sparql.hints import PackKey
from reasoningbank.retrieval import DEFAULT_EMBEDDER, DEFAULT_INDEX, open_embedder

__all__ = ["RETRIEVALS", "ShownExamples", "pack_of", "shown_examples"]

#: Ways of retrieving: weights of meaning, words and patterns; None for any examples.
RETRIEVALS = MappingProxyType(
    {
        "hybrid": WEIGHTS,
        "semantic": (1.0, 0.0, 0.0),
        "bm25": (0.0, 1.0, 0.0),
        "pattern": (0.0, 0.0, 1.0),
        "random": None,
    }
)

_lock = threading.Lock()


@dataclass(frozen=True)
class ShownExamples:
    """What an attempt retrieves from.

    Attributes:
        retriever: Finds examples of the pack.
        detector: Tells patterns.
        without_groups: Groups whose examples are not shown.
        without_ids: Examples that are not shown.
    """

    retriever: Retriever
    detector: Detector
    without_groups: frozenset[str] = frozenset()
    without_ids: frozenset[str] = frozenset()


def pack_of(episode: Episode, agent: str) -> Pack:
    """Return the pack of an episode.

    Raises:
        UsageError: It has none, so that there are neither examples nor rules.
    """
    if episode.pack is None:
        raise UsageError(
            "there is no pack, and so neither examples nor rules",
            where=f"agent {agent}",
            hint="run it over a domain pack, or choose direct, react or rlm",
        )
    return episode.pack


def shown_examples(
    pack: Pack,
    hidden: frozenset[str] = frozenset(),
    *,
    whole_groups: bool = True,
    retrieval: str = "hybrid",
    embedding: str = DEFAULT_EMBEDDER,
    index: str = DEFAULT_INDEX,
) -> ShownExamples:
    """Return what may be retrieved where some tasks are hidden.

    A test set shares templates with the examples, so that groups are left out as well as ids.

    Args:
        pack: The pack that is asked about; with its test set, that is never shown.
        hidden: Ids of tasks, of the pack as it is given, of which nothing may be shown.
        whole_groups: Whether their groups are left out (leave-group-out), or they alone.
        retrieval: One of `RETRIEVALS`.
        embedding: The embedding model, as `open_embedder` names them.
        index: What compares vectors, one of `retrieval.INDEXES`.

    Raises:
        UsageError: The pack has no example, its files cannot be read, or there is no such way of
            retrieving, model or index.
        SetupError: The package of the model or of the index is missing.
    """
    if retrieval not in RETRIEVALS:
        raise UsageError(
            f"examples cannot be retrieved by {retrieval!r}", hint=f"choose {', '.join(RETRIEVALS)}"
        )
    source = example_pack(pack)
    with _lock:
        # Two threads would both embed all questions.
        hybrid, detector = _opened(PackKey.of(source), embedding, index)
    groups = _groups(PackKey.of(pack))
    return ShownExamples(
        _by(retrieval, hybrid),
        detector,
        frozenset(groups[one] for one in hidden if whole_groups and one in groups),
        frozenset(hidden),
    )


def _by(retrieval: str, hybrid: HybridRetriever) -> Retriever:
    weights = RETRIEVALS[retrieval]
    if weights is None:
        return RandomRetriever(hybrid.examples)
    # The vectors of the examples are shared.
    other = copy.copy(hybrid)
    other.weights = weights
    return other


@lru_cache(maxsize=4)
def _opened(key: PackKey, embedding: str, index: str) -> tuple[HybridRetriever, Detector]:
    detector = PatternDetector(load_patterns(key.pack))
    embedder = open_embedder(embedding)
    retriever = HybridRetriever(key.pack, detector=detector, embedder=embedder, index=index)
    return retriever, detector


@lru_cache(maxsize=4)
def _groups(key: PackKey) -> dict[str, str]:
    tasks = load_corpus(key.pack).tasks
    return {task.id: task.group or f"task-{task.id}" for task in tasks}
