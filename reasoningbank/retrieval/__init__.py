"""Finding texts by meaning and by words: one index, for memory banks and for examples alike.

`open_embedder` gives what turns texts into vectors, `open_index` what compares them, both by
name; `TextIndex` keeps texts in memory. A memory bank puts the same parts (`VectorTable`,
`WordIndex`, `best_first`) over its own file.
"""

from reasoningbank.retrieval.embedding import DEFAULT_EMBEDDER, Embedder, Vectors, open_embedder
from reasoningbank.retrieval.fusion import WEIGHTS, Match, best_first
from reasoningbank.retrieval.index import TextIndex
from reasoningbank.retrieval.lexical import WordIndex
from reasoningbank.retrieval.vector_index import (
    DEFAULT_INDEX,
    INDEXES,
    VectorIndex,
    open_index,
)
from reasoningbank.retrieval.vectors import VectorTable

__all__ = [
    "DEFAULT_EMBEDDER",
    "DEFAULT_INDEX",
    "INDEXES",
    "WEIGHTS",
    "Embedder",
    "Match",
    "TextIndex",
    "VectorIndex",
    "VectorTable",
    "Vectors",
    "WordIndex",
    "best_first",
    "open_embedder",
    "open_index",
]
