"""Worked turns of items as an agent is shown them: bounded, counted, told, and their placebo."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import dspy

from reasoningbank.agents import Budget, Demonstration
from reasoningbank.agents.rlm import turn_examples
from reasoningbank.corpus.sampling import shuffle_key
from reasoningbank.lm.tokens import count_tokens
from reasoningbank.memory.bank import MemoryBank
from reasoningbank.memory.distillation import demonstrations_of
from reasoningbank.memory.guard import Guard
from reasoningbank.memory.item import ItemSource, MemoryItem

__all__ = ["MOST_TOKENS", "Demonstrated", "deal_demonstration", "demonstrated", "worked"]

#: Tokens that one demonstration may take of a prompt; each turn repeats those before it, so that
#: four turns of usual length take some 2,600.
MOST_TOKENS = 900
#: A placebo is dealt among so many that are nearest in tokens.
NEAREST = 5

_RUNS = re.compile(r"\bsparql_query\s*\(")


@dataclass(frozen=True)
class Demonstrated:
    """A demonstration that is shown, and the item it is of.

    Attributes:
        item: The item.
        demonstration: The turns that are shown, which may be the last ones of the item's.
        text: What is shown, each turn once.
        tokens: Tokens that it takes of a prompt, repetitions included.
    """

    item: MemoryItem
    demonstration: Demonstration
    text: str
    tokens: int

    def to_event(self) -> dict[str, Any]:
        """Return what a ``memory_retrieved`` event tells of it."""
        origin = self.item.provenance
        return {
            "id": self.item.id,
            "task": origin.task,
            "trial": origin.trial,
            "tokens": self.tokens,
            "turns": len(self.demonstration.turns),
            "left_out": len(self.item.turns) - len(self.demonstration.turns),
            "text": self.text,
        }


@lru_cache(maxsize=4096)
def demonstrated(item: MemoryItem, tokens: int = MOST_TOKENS) -> Demonstrated | None:
    """Return an item's demonstration within a bound, or None.

    Of one that is too long, the last turns that fit are shown, as long as one of them runs a
    query: a submission alone shows nothing.

    Args:
        item: The item; one without turns or question has no demonstration.
        tokens: Tokens at most, of all that the prompt holds of it.
    """
    for whole in demonstrations_of([item]):
        for first in range(len(whole.turns)):
            shown = whole.model_copy(update={"turns": whole.turns[first:]})
            if first and not any(_RUNS.search(turn.code) for turn in shown.turns):
                break
            # How many turns the agent may take is a number of one token or two.
            examples = turn_examples(shown, Budget().iterations)
            used = sum(count_tokens(_prompted(example)) for example in examples)
            if used <= tokens:
                last = {k: v for k, v in _fields(examples[-1]).items() if k != "iteration"}
                return Demonstrated(item, shown, "\n".join(last.values()), used)
    return None


def worked(items: Iterable[MemoryItem], most: int) -> tuple[Demonstrated, ...]:
    """Return the demonstrations of the first items that have one.

    Args:
        items: The items, the best first.
        most: Demonstrations at most.
    """
    found = (demonstrated(item) for item in items)
    return tuple(one for one in found if one is not None)[:most]


def deal_demonstration(
    bank: MemoryBank,
    like: Demonstrated,
    *,
    guard: Guard,
    seed: int = 0,
    kinds: frozenset[ItemSource] | None = None,
) -> tuple[Demonstrated, tuple[tuple[str, str], ...]]:
    """Return a demonstration dealt at random, as a placebo for one that a search gives.

    It is one of the five that are nearest in tokens, by task, seed and ids alone. The one that
    was found is dealt only where the bank has no other: the nearest of all, it would be dealt far
    more often than chance has it.

    Args:
        bank: Where to deal from.
        like: What a search shows.
        guard: What must not be shown.
        seed: Another seed, another deal.
        kinds: Sources to take items from; None for all.

    Returns:
        The demonstration, and id and reason of what the guard kept back on the way to it.
    """
    pool = [
        one
        for item in bank.items()
        if item.id != like.item.id and (kinds is None or item.src in kinds)
        if (one := demonstrated(item)) is not None
    ]
    order = {
        one.item.id: (shuffle_key(seed, f"{guard.task} turns {one.item.id}"), one.item.id)
        for one in pool
    }
    pool.sort(key=lambda one: (abs(one.tokens - like.tokens), order[one.item.id]))
    near: list[Demonstrated] = []
    withheld: list[tuple[str, str]] = []
    for one in pool:
        if len(near) == NEAREST:
            break
        objection = guard.objection(one.item)
        if objection:
            withheld.append((one.item.id, objection))
        else:
            near.append(one)
    return min(near, key=lambda one: order[one.item.id], default=like), tuple(withheld)


def _fields(example: dspy.Example) -> dict[str, str]:
    return {
        "variables_info": "\n".join(example.variables_info),
        "repl_history": example.repl_history.format(),
        "iteration": example.iteration,
        "reasoning": example.reasoning,
        "code": example.code,
    }


def _prompted(example: dspy.Example) -> str:
    """Write an example as the chat adapter does."""
    return "\n\n".join(f"[[ ## {name} ## ]]\n{text}" for name, text in _fields(example).items())
