"""Texts in memory, found by meaning and by words together."""

from __future__ import annotations

import itertools
import sqlite3
import threading
from collections.abc import Callable, Sequence

from reasoningbank.errors import UsageError
from reasoningbank.retrieval.embedding import Embedder, open_embedder
from reasoningbank.retrieval.fusion import WEIGHTS, Match, best_first
from reasoningbank.retrieval.lexical import WordIndex
from reasoningbank.retrieval.vector_index import DEFAULT_INDEX, open_index

__all__ = ["TextIndex"]


class TextIndex:
    """Texts by id, in memory; several threads may use it.

    Args:
        embedder: What turns texts into vectors; the one that comes with the package by default.
        index: What compares vectors, one of `INDEXES`.

    Raises:
        UsageError: There is no such index.
        SetupError: Its package is missing.

    Examples:
        >>> index = TextIndex()
        >>> index.add(["a", "b"], ["Proteins linked to a disease", "Rank of a taxon"])
        >>> [match.id for match in index.search("quali malattie?", 1)]
        ['a']
    """

    def __init__(self, embedder: Embedder | None = None, index: str = DEFAULT_INDEX) -> None:
        self._embedder = embedder or open_embedder()
        self._lock = threading.RLock()
        self._words = WordIndex(sqlite3.connect(":memory:", check_same_thread=False))
        self._vectors = open_index(index)
        self._keys: dict[str, int] = {}
        self._ids: dict[int, str] = {}
        self._numbers = itertools.count(1)

    def __len__(self) -> int:
        return len(self._keys)

    def __contains__(self, text_id: object) -> bool:
        return text_id in self._keys

    def add(self, ids: Sequence[str], texts: Sequence[str]) -> None:
        """Put texts in, embedded in batches; a text whose id is there takes its place.

        Raises:
            UsageError: There are not as many ids as texts, or an id is there twice.
        """
        if len(ids) != len(texts) or len(set(ids)) != len(ids):
            raise UsageError(f"{len(ids)} ids for {len(texts)} texts, or an id twice")
        vectors = self._embedder.passages(texts)
        with self._lock:
            keys = [self._keys.get(one) or next(self._numbers) for one in ids]
            self._words.add(zip(keys, texts, strict=True))
            self._vectors.put(keys, vectors)
            self._keys.update(zip(ids, keys, strict=True))
            self._ids.update(zip(keys, ids, strict=True))

    def remove(self, ids: Sequence[str]) -> None:
        """Take texts out; ids that are not there don't matter."""
        with self._lock:
            keys = [self._keys.pop(one) for one in ids if one in self._keys]
            self._words.remove(keys)
            self._vectors.drop(keys)
            for key in keys:
                del self._ids[key]

    def search(
        self,
        query: str,
        k: int,
        *,
        weights: tuple[float, float] = WEIGHTS,
        keep: Callable[[str], bool] | None = None,
    ) -> list[Match]:
        """Return the best texts for a query, best first; equals by id.

        Args:
            query: Any text, in any language; an empty one finds nothing.
            k: How many at most.
            weights: Weight of meaning and of words; only their proportion counts.
            keep: Which ids may be returned.
        """
        if not query.strip() or k < 1:
            return []
        vector = self._embedder.queries([query])[0]
        with self._lock:
            ranking = best_first(
                self._ids, self._vectors.cosines(vector), self._words.scores(query), weights
            )
            kept = (one for one in ranking if keep is None or keep(one.id))
            return list(itertools.islice(kept, k))
