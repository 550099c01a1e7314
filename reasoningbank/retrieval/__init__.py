"""Search of texts by dense vectors and by words: for memory banks and few-shot examples alike.

`open_embedder` turns texts into vectors; `VectorTable` compares them and `WordIndex` finds words;
`best_first` joins the two.
"""

from reasoningbank.retrieval.embedding import DEFAULT_EMBEDDER, Embedder, Vectors, open_embedder
from reasoningbank.retrieval.index import (
    DEFAULT_INDEX,
    INDEXES,
    LARGE,
    WEIGHTS,
    Match,
    VectorTable,
    WordIndex,
    best_first,
    open_index,
)

__all__ = [
    "DEFAULT_EMBEDDER",
    "DEFAULT_INDEX",
    "INDEXES",
    "LARGE",
    "WEIGHTS",
    "Embedder",
    "Match",
    "VectorTable",
    "Vectors",
    "WordIndex",
    "best_first",
    "open_embedder",
    "open_index",
]
