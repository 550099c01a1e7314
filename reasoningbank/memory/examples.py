"""Items as answered questions, for agents that are shown these as turns of their own."""

from __future__ import annotations

from reasoningbank.agents import Example
from reasoningbank.memory.item import MemoryItem

__all__ = ["example_of", "example_text"]


def example_of(item: MemoryItem) -> Example | None:
    """Return the answered question that an item rests on; None where it keeps none.

    Examples:
        >>> gold = MemoryItem("Mass", "", "", "gold", "SELECT ?m { }", question="How heavy?")
        >>> example_of(gold)
        Example(question='How heavy?', query='SELECT ?m { }')
        >>> example_of(MemoryItem("Mass", "A mass is asked for", "Do so.", "seed")) is None
        True
    """
    query = item.pattern if item.src == "gold" else item.query
    return Example(item.question, query) if item.question and query else None


def example_text(example: Example) -> str:
    """Write an answered question as records show it, and as its tokens are counted."""
    return f"Question: {example.question}\nQuery:\n{example.query}"
