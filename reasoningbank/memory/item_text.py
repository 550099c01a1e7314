"""The texts of an item that retrieval reads."""

from __future__ import annotations

from reasoningbank.memory.item import MemoryItem

__all__ = ["meaning_of", "words_of"]


def meaning_of(item: MemoryItem) -> str:
    """Return what an item is compared by in meaning: what it is about, not what it says to do."""
    # A description is the question without what it names.
    return "\n".join(filter(None, (item.title, item.description or item.question)))


def words_of(item: MemoryItem) -> str:
    """Return the words that an item is found by."""
    return "\n".join(filter(None, (meaning_of(item), *item.tags, item.content)))
