"""Items as text, and whole items in a token budget."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from reasoningbank.agents import Example
from reasoningbank.memory.item import ItemSource, MemoryItem

__all__ = ["FAMILIES", "Found", "Packed", "item_text", "pack", "pack_answered"]

#: Sources that share a share of the budget: what worked, what to beware of, what was given.
FAMILIES: Mapping[ItemSource, str] = MappingProxyType(
    {
        "success": "success",
        "failure": "failure",
        "contrast": "failure",
        "seed": "seed",
        "gold": "seed",
    }
)
#: Of what the budget had no room for, so many are told.
MOST_SKIPPED = 5

_HEADS: Mapping[ItemSource, str] = MappingProxyType(
    {
        "success": "Strategy",
        "failure": "Pitfall",
        "contrast": "Contrast",
        "seed": "Hint",
        "gold": "Example",
    }
)


@dataclass(frozen=True)
class Found:
    """An item as it may be shown.

    Attributes:
        item: The item.
        score: What it was ranked by; comparable within one search only.
        text: What is shown of it, whole.
        tokens: Tokens of the text.
        example: The answered question that is shown in place of a text; None where the text is.
    """

    item: MemoryItem
    score: float
    text: str
    tokens: int
    example: Example | None = None


@dataclass(frozen=True)
class Packed:
    """What a budget holds.

    Attributes:
        chosen: The items, the best first.
        skipped: Id and reason of items that ranked high enough and did not fit, at most five.
    """

    chosen: tuple[Found, ...]
    skipped: tuple[tuple[str, str], ...] = ()


def item_text(item: MemoryItem) -> str:
    r"""Write an item as a prompt shows it: kind and title, when, what to do, skeleton.

    Examples:
        >>> print(item_text(MemoryItem("Mass", "A mass is asked for", "It hangs on the sequence.",
        ...     "seed", pattern="SELECT ?m { <<protein>> up:sequence/up:mass ?m }")))
        Hint: Mass
        When: A mass is asked for
        It hangs on the sequence.
        Pattern:
        SELECT ?m { <<protein>> up:sequence/up:mass ?m }
    """
    lines = [f"{_HEADS[item.src]}: {item.title.strip()}"]
    said = [item.title.strip()]
    # A description is the question without what it names.
    question = "" if item.description else item.question
    parts = [("When: ", item.description), ("Question: ", question), ("", item.content)]
    for head, text in parts:
        text = text.strip()
        if text and text not in said:
            lines.append(f"{head}{text}")
            said.append(text)
    pattern = item.pattern.strip()
    if pattern and pattern not in item.content:
        lines += ["Query:" if item.src == "gold" else "Pattern:", pattern]
    return "\n".join(lines)


def pack(ranked: Sequence[Found], *, items: int, tokens: int) -> Packed:
    """Choose whole items for a budget, so that each family keeps a share.

    The best item of each family that fits comes first (`FAMILIES`: success, failure, seed), while
    room is kept for the smallest of the families still to come, where that fits beside the smallest
    of those before; then whatever ranks next and fits. Nothing is cut.

    Args:
        ranked: The candidates, the best first.
        items: How many at most.
        tokens: How many tokens at most.

    Examples:
        >>> seed, other = (MemoryItem(name, "", "x", "seed") for name in ("a", "b"))
        >>> pitfall = MemoryItem("c", "", "x", "failure")
        >>> ranked = [Found(i, 1.0, "", n) for i, n in ((seed, 60), (other, 30), (pitfall, 40))]
        >>> [found.item.title for found in pack(ranked, items=2, tokens=100).chosen]
        ['a', 'c']
        >>> [found.item.title for found in pack(ranked, items=3, tokens=75).chosen]
        ['b', 'c']
    """
    families: dict[str, list[int]] = {}
    for place, found in enumerate(ranked):
        families.setdefault(FAMILIES[found.item.src], []).append(place)
    shares: list[list[int]] = []
    kept: list[int] = []
    for places in families.values():
        least = min(ranked[place].tokens for place in places)
        if len(shares) < items and sum(kept) + least <= tokens:
            shares.append(places)
            kept.append(least)
    chosen: set[int] = set()
    left = tokens
    for number, places in enumerate(shares):
        room = left - sum(kept[number + 1 :])
        best = next(place for place in places if ranked[place].tokens <= room)
        chosen.add(best)
        left -= ranked[best].tokens
    for place, found in enumerate(ranked):
        if len(chosen) < items and place not in chosen and found.tokens <= left:
            chosen.add(place)
            left -= found.tokens
    return _packed(ranked, chosen, items, tokens)


def pack_answered(ranked: Sequence[Found], *, items: int, tokens: int) -> Packed:
    """Choose whole items for an agent that is shown answered questions as turns of its own.

    These come first, in their order: they are what such an agent goes by. Of several with the same
    query the first that fits is enough. Then comes the best lesson in words that fits in what is
    left, beyond `items` if need be; more of them only where there are fewer answered questions.

    Args:
        ranked: The candidates, the best first.
        items: How many answered questions at most.
        tokens: How many tokens at most, of all together.

    Examples:
        >>> items = {name: MemoryItem(name, "", "x", "gold") for name in ("a", "b", "c")}
        >>> solved = [Found(i, 1.0, "", 40, Example(n, f"ASK {{ {n} }}")) for n, i in items.items()]
        >>> lesson = Found(MemoryItem("d", "", "x", "failure"), 2.0, "", 15)
        >>> chosen = pack_answered([lesson, *solved], items=2, tokens=100).chosen
        >>> [found.item.title for found in chosen]
        ['d', 'a', 'b']
    """
    shown: set[str] = set()
    chosen: set[int] = set()
    left = tokens
    for answered in (True, False):
        room = items if answered else max(items, len(chosen) + 1)
        for place, found in enumerate(ranked):
            wanted = (found.example is not None) == answered and _query(found) not in shown
            if wanted and len(chosen) < room and found.tokens <= left:
                chosen.add(place)
                left -= found.tokens
                shown |= {_query(found)} - {""}
    # Whose query is shown by another is not missing.
    told = [
        place
        for place in range(len(ranked))
        if place in chosen or _query(ranked[place]) not in shown
    ]
    places = {number for number, place in enumerate(told) if place in chosen}
    return _packed([ranked[place] for place in told], places, items, tokens)


def _query(found: Found) -> str:
    """Return the query of an answered question, its layout apart; empty where there is none."""
    return "" if found.example is None else " ".join(found.example.query.split())


def _packed(ranked: Sequence[Found], chosen: set[int], items: int, tokens: int) -> Packed:
    """Return what was chosen, and what ranked as high and did not fit."""
    left = tokens - sum(ranked[place].tokens for place in chosen)
    last = max(chosen, default=-1) if len(chosen) >= items else len(ranked)
    passed = [found for place, found in enumerate(ranked[: last + 1]) if place not in chosen]
    skipped = tuple(
        (found.item.id, _why(found.tokens, tokens))
        for found in passed
        if found.tokens > left or found.tokens > tokens
    )
    return Packed(tuple(ranked[place] for place in sorted(chosen)), skipped[:MOST_SKIPPED])


def _why(needed: int, tokens: int) -> str:
    if needed > tokens:
        return f"of {needed} tokens, more than the whole budget of {tokens}"
    return f"of {needed} tokens, more than the budget of {tokens} had left"
