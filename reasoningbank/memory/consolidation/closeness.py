"""How near the texts of items are, by embeddings that are made once a process."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np

from reasoningbank.memory.item import MemoryItem
from reasoningbank.retrieval import Embedder, Vectors

__all__ = ["TextCloseness", "closeness_by"]

#: Vectors that are kept; an item's is 1.5 kB.
_MOST_KEPT = 20_000


class TextCloseness:
    """Cosines of what items say: title, description and content.

    The vectors of a bank's index are of no use here: they leave out the content, so that two items
    for the same case look alike whatever they advise.

    Args:
        embedder: What turns texts into vectors.

    Examples:
        >>> from reasoningbank.retrieval import open_embedder
        >>> one = MemoryItem("Weights", "Find proteins by mass", "Compare up:mass.", "success")
        >>> two = MemoryItem("Masses", "Proteins of a mass", "Filter on up:mass.", "success")
        >>> three = MemoryItem("Taxa", "Ranks of a taxon", "Follow up:rank.", "success")
        >>> near, far = TextCloseness(open_embedder())(one, [two, three])
        >>> near > far
        True
    """

    def __init__(self, embedder: Embedder) -> None:
        self.embedder = embedder
        self._vectors: dict[str, Vectors] = {}
        self._lock = threading.Lock()

    def __call__(self, item: MemoryItem, others: Sequence[MemoryItem]) -> list[float]:
        """Return the cosine of an item with each of others."""
        every = (item, *others)
        with self._lock:
            if len(self._vectors) + len(every) > _MOST_KEPT:
                self._vectors.clear()
            missing = {one.id: _said(one) for one in every if one.id not in self._vectors}
            rows = self.embedder.passages(list(missing.values()))
            self._vectors.update(zip(missing, rows, strict=True))
            mine, *theirs = (self._vectors[one.id] for one in every)
        # The last digits depend on how many vectors are multiplied at once.
        return [round(float(np.dot(mine, other)), 5) for other in theirs]


_LOCK = threading.Lock()
_MADE: dict[str, TextCloseness] = {}


def closeness_by(embedder: Embedder) -> TextCloseness:
    """Return the closeness by an embedder, one a process, so that no text is embedded twice."""
    with _LOCK:
        made = _MADE.get(embedder.name)
        if made is None or made.embedder is not embedder:
            made = _MADE[embedder.name] = TextCloseness(embedder)
        return made


def _said(item: MemoryItem) -> str:
    # An exemplar has no content; what tells it from others is its question.
    return "\n".join(filter(None, (item.title, item.description, item.content or item.question)))
