"""Search of texts by dense vectors and by words: for memory banks and few-shot examples alike.

`open_embedder` turns texts into vectors and `open_index` compares them, both by name; `TextIndex`
keeps texts in memory. A memory bank uses the same parts (`VectorTable`, `WordIndex`, `best_first`)
over its own file.
"""

from reasoningbank.retrieval.embedding import DEFAULT_EMBEDDER, Embedder, Vectors, open_embedder
from reasoningbank.retrieval.index import (
    DEFAULT_INDEX,
    INDEXES,
    WEIGHTS,
    Match,
    TextIndex,
    VectorTable,
    best_first,
    open_index,
)
from reasoningbank.retrieval.lexical import WordIndex

__all__ = [
    "DEFAULT_EMBEDDER",
    "DEFAULT_INDEX",
    "INDEXES",
    "WEIGHTS",
    "Embedder",
    "Match",
    "TextIndex",
    "VectorTable",
    "Vectors",
    "WordIndex",
    "best_first",
    "open_embedder",
    "open_index",
]
