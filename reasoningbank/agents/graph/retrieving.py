"""Which examples an attempt is shown: for every step of the plan, and others after a failure."""

from __future__ import annotations

from itertools import chain, zip_longest
from typing import Any

from reasoningbank.agents.graph.state import NL2SPARQLState
from reasoningbank.agents.shown_examples import ShownExamples
from reasoningbank.nl2sparql import Detected, Retrieved

__all__ = ["retrieved"]


def retrieved(
    state: NL2SPARQLState, question: str, shown: ShownExamples, top_k: int
) -> dict[str, Any]:
    """Retrieve for the question and each step; the best of each come first.

    After a failed attempt only the nearest of the examples that were shown stays: the others were
    no help, and give way to the next ones.

    Args:
        state: Patterns, plan, and what was shown before.
        question: The question as it is to be answered.
        shown: What may be shown.
        top_k: Most examples.
    """
    tasks = list(dict.fromkeys((question, *state["sub_tasks"])))
    before = frozenset(state["shown_ids"])
    earlier = (one for one in state["retrieved_examples"] if one["id"] in before)
    nearest = max(earlier, key=lambda one: one["score"], default={"id": ""})["id"]
    needs = [Detected(name, score) for name, score in state["pattern_scores"].items()]
    found = [
        shown.retriever.retrieve(
            task,
            top_k,
            patterns=needs,
            without_groups=shown.without_groups,
            without_ids=shown.without_ids | (before - {nearest}),
        )
        for task in tasks
    ]
    # One of each list in turn, so that no step of the plan goes without.
    turns = chain.from_iterable(zip_longest(*found))
    unique: dict[str, Retrieved] = {}
    for one in turns:
        if one is not None:
            unique.setdefault(one.example.id, one)
    kept = list(unique.values())[:top_k]
    return {
        "retrieved_examples": [_plain(one, state["language"]) for one in kept],
        "current_task_index": max(0, len(state["sub_tasks"]) - 1),
    }


def _plain(one: Retrieved, language: str) -> dict[str, Any]:
    return {
        "id": one.example.id,
        "group": one.example.group,
        "nl": one.example.question(language),
        "sparql": one.example.sparql,
        "patterns": list(one.example.patterns),
        "score": one.score,
    }
