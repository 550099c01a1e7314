"""The operations, each one small class; importing this package registers them."""

from reasoningbank.algebra.builtin import (  # in the order of the documentation
    control,
    documents,
    extraction,
    graphs,
    queries,
    rows,
    strings,
    substituting,
    uris,
)  # isort: skip

__all__ = [
    "control",
    "documents",
    "extraction",
    "graphs",
    "queries",
    "rows",
    "strings",
    "substituting",
    "uris",
]
