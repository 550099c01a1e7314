"""Items as an agent is shown them, packed whole into a token budget."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from reasoningbank.agents import FewShotExample
from reasoningbank.findings import Finding
from reasoningbank.lm.tokens import count_tokens
from reasoningbank.memory.item import ItemSource, MemoryItem
from reasoningbank.sparql import EntityLinker

#: Sources that share a part of the budget: what worked, what to avoid, what was given.
FAMILIES: Mapping[ItemSource, str] = {
    "success": "success",
    "failure": "failure",
    "contrast": "failure",
    "seed": "seed",
    "gold": "seed",
}
#: How many of the items that do not fit are reported.
MOST_SKIPPED = 5

_HEADS: Mapping[ItemSource, str] = {
    "success": "Strategy",
    "failure": "Pitfall",
    "contrast": "Contrast",
    "seed": "Hint",
    "gold": "Example",
}


@dataclass(frozen=True)
class FoundItem:
    """A retrieved item."""

    item: MemoryItem
    score: float  #: Its ranking score, comparable within one search only
    text: str  #: The text that is shown, never cut; `tokens` long
    tokens: int
    #: The few-shot example that is shown instead of the text, if any
    example: FewShotExample | None = None

    @classmethod
    def of(
        cls,
        item: MemoryItem,
        score: float,
        *,
        examples: bool = False,
        linker: EntityLinker | None = None,
    ) -> FoundItem:
        """Return an item as it is shown, as a few-shot example if it has one and that is wanted."""
        example = example_of(item) if examples else None
        if example is None:
            text = item_text(item)
            return cls(item, score, text, count_tokens(text))
        if linker is not None:
            example = replace(example, question=linker.annotated(example.question))
        text = f"Question: {example.question}\nQuery:\n{example.query}"
        return cls(item, score, text, count_tokens(text), example)


class Packed(NamedTuple):
    """What a budget holds, and the ids of what did not fit, with the reasons."""

    chosen: tuple[FoundItem, ...]
    skipped: tuple[tuple[str, Finding], ...]


def example_of(item: MemoryItem) -> FewShotExample | None:
    """Return an item's question and query as a few-shot example; None if it has none."""
    query = item.pattern if item.src == "gold" else item.query
    return FewShotExample(item.question, query) if item.question and query else None


def item_text(item: MemoryItem) -> str:
    """Return an item as a prompt shows it: kind and title, when it applies, what to do, pattern."""
    title = item.title.strip()
    # A description is the question with its constants abstracted; an example has its own.
    when = "" if item.src == "gold" and item.question else item.description
    question = "" if when else item.question
    parts = {title: f"{_HEADS[item.src]}: {title}"}
    for head, text in (("When: ", when), ("Question: ", question), ("", item.content)):
        parts.setdefault(text.strip(), head + text.strip())
    lines = [line for text, line in parts.items() if text]
    pattern = item.pattern.strip()
    if pattern and pattern not in item.content:
        lines += ["Query:" if item.src == "gold" else "Pattern:", pattern]
    return "\n".join(lines)


def pack(ranked: Sequence[FoundItem], *, items: int, tokens: int) -> Packed:
    """Choose whole items for a budget, so that each family (`FAMILIES`) keeps a share."""
    families: dict[str, list[int]] = defaultdict(list)
    for place, found in enumerate(ranked):
        families[FAMILIES[found.item.src]].append(place)
    shares: list[tuple[int, list[int]]] = []
    reserved = 0
    for places in families.values():
        least = min(ranked[place].tokens for place in places)
        if len(shares) < items and reserved + least <= tokens:
            shares.append((least, places))
            reserved += least
    chosen: set[int] = set()
    left = tokens
    for least, places in shares:
        reserved -= least
        best = next(place for place in places if ranked[place].tokens <= left - reserved)
        chosen.add(best)
        left -= ranked[best].tokens
    for place, found in enumerate(ranked):
        if len(chosen) < items and place not in chosen and found.tokens <= left:
            chosen.add(place)
            left -= found.tokens
    return _packed(ranked, chosen, items, tokens)


def pack_examples(ranked: Sequence[FoundItem], *, items: int, tokens: int) -> Packed:
    """Choose whole items for an agent that takes few-shot examples as turns."""
    shown: set[str] = set()
    chosen: set[int] = set()
    left = tokens
    for is_example in (True, False):
        room = items if is_example else max(items, len(chosen) + 1)
        for place, found in enumerate(ranked):
            wanted = (found.example is not None) == is_example and _query(found) not in shown
            if wanted and len(chosen) < room and found.tokens <= left:
                chosen.add(place)
                left -= found.tokens
                shown |= {_query(found)} - {""}
    # An item whose query is shown by another is not missing.
    kept = [n for n, found in enumerate(ranked) if n in chosen or _query(found) not in shown]
    places = {number for number, place in enumerate(kept) if place in chosen}
    return _packed([ranked[place] for place in kept], places, items, tokens)


def _query(found: FoundItem) -> str:
    """Return the query of an example with normalized white space; empty without one."""
    return "" if found.example is None else " ".join(found.example.query.split())


def _packed(ranked: Sequence[FoundItem], chosen: set[int], items: int, tokens: int) -> Packed:
    """Return the chosen items, and those that ranked as high and did not fit."""
    left = tokens - sum(ranked[place].tokens for place in chosen)
    last = max(chosen, default=-1) if len(chosen) >= items else len(ranked)
    passed = [found for place, found in enumerate(ranked[: last + 1]) if place not in chosen]
    skipped = [
        (found.item.id, over_budget(found.tokens, tokens, left))
        for found in passed
        if found.tokens > min(left, tokens)
    ]
    return Packed(tuple(ranked[place] for place in sorted(chosen)), tuple(skipped[:MOST_SKIPPED]))


def over_budget(needed: int, budget: int, left: int) -> Finding:
    """Return why an item does not fit a budget."""
    what = f"{needed} tokens, more than the whole budget of {budget}"
    if needed <= budget:
        what = f"{needed} tokens, more than the {left} left of the budget of {budget}"
    fields = {"tokens": needed, "budget": budget, "left": left}
    return Finding("over-budget", what, fields=fields)
